import { expect, test } from 'vitest'
import { systemClock } from '../../../src/clock.ts'
import { createBacklog } from '../../../src/cluster/protocol/announce-write.ts'
import { createNotedTags } from '../../../src/cluster/redis/tier.ts'
import { createMemoryLedger } from '../../../src/cluster/workers/memory-ledger.ts'

const long = (at: number): string => `t:${Buffer.alloc(8_000, 'x').toString()}${at}`
const longs = Array.from({ length: 2_000 }, (_, at) => long(at))

test('undelivered changes are kept as texts up to 4 MiB, and as "everything" above', () => {
  const backlog = createBacklog()
  for (const note of longs.slice(0, 500)) backlog.add([note], undefined)
  expect(backlog.take().notes).toHaveLength(500)
  for (const note of longs) backlog.add([note], undefined)
  const { notes } = backlog.take()
  expect(notes).toContain('a:')
  expect(notes.join('').length).toBeLessThan(4 * 1024 * 1024)
})

test('holds among them become one for everything, the longest', () => {
  const backlog = createBacklog()
  backlog.add(['h500:a', 'h2000:b'], undefined)
  for (const note of longs) backlog.add([note], undefined)
  expect(backlog.take().notes.slice(0, 2)).toEqual(['a:', 'h2000:'])
})

test('a ledger of workers stores texts up to 8 MiB; its floor shows members that older ones are forgotten', () => {
  const ledger = createMemoryLedger({
    epoch: 'e',
    rememberedNotes: 16_384,
    clock: systemClock,
    push: () => undefined,
  })
  for (const note of longs) ledger.append('a', [note], [])
  const { notes, floor } = ledger.sync('b', { epoch: 'e', applied: 0 })
  expect(notes.reduce((sum, { text }) => sum + text.length, 0)).toBeLessThanOrEqual(8 * 1024 * 1024)
  expect(notes.at(-1)?.text).toBe(longs.at(-1))
  expect(floor).toBe(2_000 - notes.length)
})

test('long tags that were noted are told apart', () => {
  const noted = createNotedTags(16_384)
  noted.restart('e', 0)
  noted.note(long(1), 5)
  expect(noted.touchedSince([long(1)], 'e', 4)).toBe(true)
  expect(noted.touchedSince([long(2)], 'e', 4)).toBe(false)
})
