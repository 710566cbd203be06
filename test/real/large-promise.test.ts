import { expect, test } from 'vitest'
import { times } from '../support/breadth.ts'
import { describeWith } from '../support/requirements.ts'

// Read when the modules of the fuzzer are loaded.
process.env['PROMISE_LARGE'] = '1'
const { runFuzz } = await import('./promise-fuzz/run.ts')
const { startFuzzedSites } = await import('./promise-fuzz/site-under-fuzz.ts')

/** More: `PROMISE_LARGE=1 PROMISE_WRITES=10000 npm run fuzz:promise`, and the same with PROMISE_COMPANION=1. */
const options = {
  seed: 20_261_127,
  writes: times(12, 400),
  answersPerWrite: 14,
  firstOnly: true,
  tell: (line: string): void => {
    process.stdout.write(`${line}\n`)
  },
}

describeWith('php', 'random writes through all that large plugins add', () => {
  test.each([
    ['with the companion', true],
    ['without it', false],
  ])('%s a stored answer says what WordPress says', { timeout: 900_000 }, async (_what, withCompanion) => {
    const sites = await startFuzzedSites(withCompanion)
    try {
      const { seen, stale } = await runFuzz(sites, options)
      const { writes, refused, reads, hits } = seen
      process.stdout.write(`${JSON.stringify({ writes, refused, reads, hits, stale: stale.length })}\n`)
      expect(stale).toEqual([])
      expect(refused).toBeLessThan(writes / 2)
      expect(hits).toBeGreaterThan(withCompanion ? writes : 0)
    } finally {
      await sites.close()
    }
  })
})
