import { afterAll, beforeAll, expect, test } from 'vitest'
import { times } from '../support/breadth.ts'
import { describeWith } from '../support/requirements.ts'
import { compare } from './raw-requests/compare.ts'
import { startThreeReaders, type ThreeReaders } from './raw-requests/three-readers.ts'

// Whatever bytes come, a request that the gateway sends on is one that node:http and nginx see in the same bytes, with the
// same end. `npm run fuzz:raw` tries a million; several at a time, each from its own RAW_SEED, share the cores.

const count = Number(process.env['RAW_VARIANTS'] ?? times(600, 10_000))
const firstSeed = Number(process.env['RAW_SEED'] ?? 1)

describeWith('nginx', 'variants of requests', () => {
  let readers: ThreeReaders

  beforeAll(async () => {
    readers = await startThreeReaders()
  })
  afterAll(() => readers.close())

  test(`${count} of them`, { timeout: 180_000 + count * 60 }, async () => {
    const began = performance.now()
    const figures = await compare(readers, firstSeed, count)
    const seconds = Math.round((performance.now() - began) / 1000)
    process.stderr.write(`raw requests: ${JSON.stringify({ ...figures, seconds })}\n`)
    expect(figures.unexplained).toEqual([])
    expect(figures.tried).toBe(count)
    expect(readers.faults).toEqual([])
    // Not a test that passes because everything is refused.
    expect(figures.sentOn).toBeGreaterThan(count / 4)
    expect(await readers.soundStatus()).toBe(200)
  })
})
