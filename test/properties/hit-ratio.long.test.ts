import { expect, test } from 'vitest'
import { runTrace } from '../../bench/trace-run.ts'
import { times } from '../support/breadth.ts'

test('on a realistic trace nothing is stale, and more is answered without the upstream than by the usual means', async ({
  annotate,
}) => {
  // npm run bench:trace runs a long one.
  const [trellis, ttlOnly, purgeAll] = await runTrace({
    seed: 1,
    operations: times(700, 1_500),
    betweenMs: 50,
  })
  if (trellis === undefined || ttlOnly === undefined || purgeAll === undefined) throw new Error('no results')
  await annotate(
    [trellis, ttlOnly, purgeAll]
      .map(
        ({ name, hits, reads, stale }) => `${name}: ${((hits / reads) * 100).toFixed(1)} %, ${stale} stale`,
      )
      .join('; '),
  )
  expect(trellis.stale).toBe(0)
  expect(purgeAll.stale).toBe(0)
  // The trace has writes that matter, otherwise it shows nothing.
  expect(ttlOnly.stale).toBeGreaterThan(0)
  expect(trellis.hits).toBeGreaterThan(purgeAll.hits)
  expect(trellis.hits).toBeGreaterThan(ttlOnly.hits)
  expect(trellis.upstreamReads).toBeLessThan(purgeAll.upstreamReads)
})
