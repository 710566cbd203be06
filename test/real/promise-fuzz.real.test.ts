import { afterAll, beforeAll, expect, test } from 'vitest'
import { times } from '../support/breadth.ts'
import { describeWith } from '../support/requirements.ts'
import { plantFault, plants } from './promise-fuzz/plants.ts'
import { type RunOptions, runFuzz } from './promise-fuzz/run.ts'
import { type FuzzedSites, startFuzzedSites } from './promise-fuzz/site-under-fuzz.ts'

/** More: `PROMISE_WRITES=10000 npm run fuzz:promise`. */
const common: Pick<RunOptions, 'seed' | 'responsesPerWrite' | 'firstOnly' | 'tell'> = {
  seed: 20_261_122,
  responsesPerWrite: 14,
  firstOnly: true,
  tell: (line) => process.stdout.write(`${line}\n`),
}

describeWith('php', 'random writes of every kind, on a real WordPress', () => {
  let sites: FuzzedSites

  beforeAll(async () => {
    sites = await startFuzzedSites()
  })
  afterAll(async () => {
    await sites?.close()
  })

  test('after each of them a stored response says what WordPress says', { timeout: 900_000 }, async () => {
    const { seen, stale } = await runFuzz(sites, { ...common, writes: times(8, 1000) })
    const { writes, refused, reads, hits } = seen
    process.stdout.write(`${JSON.stringify({ writes, refused, reads, hits, stale: stale.length })}\n`)
    expect(stale).toEqual([])
    // Else it would have proved nothing.
    expect(hits).toBeGreaterThan(writes)
    expect(refused).toBeLessThan(writes / 3)
  })

  test('a write that reaches too little is found', { timeout: 600_000 }, async () => {
    const plant = plants.find(({ name }) => name === 'posts.delete.tags')
    if (plant === undefined) throw new Error('the table has no such effect')
    const remove = plantFault(plant)
    const { stale } = await runFuzz(sites, {
      ...common,
      writes: 1000,
      focus: 'posts.delete',
      readFocus: /\/tags\b/,
      shrinks: false,
      tell: () => {},
    }).finally(remove)
    expect(stale).toHaveLength(1)
  })
})
