import { expect, test } from 'vitest'
import { systemClock } from '../../../src/clock.ts'
import { createBacklog } from '../../../src/cluster/protocol/backlog.ts'
import { createInvalidatedTags } from '../../../src/cluster/redis/tier.ts'
import { createMemoryLedger } from '../../../src/cluster/workers/memory-ledger.ts'

const long = (at: number): string => `t:${Buffer.alloc(8_000, 'x').toString()}${at}`
const longs = Array.from({ length: 2_000 }, (_, at) => long(at))

test('undelivered changes are kept as texts up to 4 MiB, and as "everything" above', () => {
  const backlog = createBacklog()
  for (const invalidation of longs.slice(0, 500)) backlog.add([invalidation], undefined)
  expect(backlog.take().invalidations).toHaveLength(500)
  for (const invalidation of longs) backlog.add([invalidation], undefined)
  const { invalidations } = backlog.take()
  expect(invalidations).toContain('a:')
  expect(invalidations.join('').length).toBeLessThan(4 * 1024 * 1024)
})

test('holds among them become one for everything, the longest', () => {
  const backlog = createBacklog()
  backlog.add(['h500:a', 'h2000:b'], undefined)
  for (const invalidation of longs) backlog.add([invalidation], undefined)
  expect(backlog.take().invalidations.slice(0, 2)).toEqual(['a:', 'h2000:'])
})

test('a ledger of workers stores texts up to 8 MiB; its floor shows members that older ones are forgotten', () => {
  const ledger = createMemoryLedger({
    epoch: 'e',
    maxLedgerEntries: 16_384,
    clock: systemClock,
    push: () => undefined,
  })
  for (const invalidation of longs) ledger.append('a', [invalidation], [])
  const { invalidations, floor } = ledger.sync('b', { epoch: 'e', applied: 0 })
  expect(invalidations.reduce((sum, { text }) => sum + text.length, 0)).toBeLessThanOrEqual(8 * 1024 * 1024)
  expect(invalidations.at(-1)?.text).toBe(longs.at(-1))
  expect(floor).toBe(2_000 - invalidations.length)
})

test('long tags that were noted are told apart', () => {
  const recorded = createInvalidatedTags(16_384)
  recorded.restart('e', 0)
  recorded.invalidate(long(1), 5)
  expect(recorded.touchedSince([long(1)], 'e', 4)).toBe(true)
  expect(recorded.touchedSince([long(2)], 'e', 4)).toBe(false)
})
