import fc from 'fast-check'
import { expect, test } from 'vitest'
import { type BufferedBytes, createBufferedBytes } from '../../../src/server/buffered-bytes.ts'
import type { OverloadEvent } from '../../../src/server/overload.ts'

const setUp = (maxBytes: number): { buffered: BufferedBytes; events: OverloadEvent[] } => {
  const events: OverloadEvent[] = []
  const buffered = createBufferedBytes({
    maxBytes: () => maxBytes,
    report: (event) => events.push(event),
  })
  return { buffered, events }
}

test('one client has at most half of what the others leave, the addresses of its network together', () => {
  const { buffered, events } = setUp(1_000)
  expect(buffered.budget('fill', '2001:db8::1').reserve(300)).toBe(true)
  expect(buffered.budget('fill', '2001:db8::2').reserve(300)).toBe(false)
  expect(buffered.budget('request-body', 'b').reserve(500)).toBe(false)
  expect(buffered.budget('fill', 'b').reserve(350)).toBe(true)
  expect(buffered.budget('fill', 'c').reserve(175)).toBe(true)
  expect(buffered.bytes).toBe(825)
  expect(events).toEqual([
    { kind: 'buffer-refused', work: 'fill' },
    { kind: 'buffer-refused', work: 'request-body' },
  ])
})

test('four clients that hold as much as they get leave bytes for another one', () => {
  const { buffered } = setUp(32_000_000)
  for (let round = 0; round < 4; round += 1)
    for (let client = 0; client < 4; client += 1)
      for (let bytes = 16_000_000; bytes > 100; bytes /= 2)
        buffered.budget('fill', `${client}`).reserve(bytes)
  expect(buffered.budget('request-body', 'other').reserve(500_000)).toBe(true)
})

test('data after the end of the work reserves no bytes', () => {
  const { buffered, events } = setUp(1_000)
  const room = buffered.budget('batch-item', 'a')
  room.reserve(100)
  room.release()
  expect(room.reserve(100)).toBe(false)
  expect(buffered.bytes).toBe(0)
  expect(events).toEqual([])
})

type Step = readonly [at: number, what: 'reserve' | 'shrink' | 'release', bytes: number]

test('whatever is reserved, shrunk and released, and however often: nothing is left, and the bound holds', () => {
  const step: fc.Arbitrary<Step> = fc.tuple(
    fc.nat(5),
    fc.constantFrom('reserve', 'shrink', 'release'),
    fc.nat(600),
  )
  fc.assert(
    fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
      const { buffered } = setUp(1_000)
      const rooms = Array.from({ length: 6 }, (_, i) => buffered.budget('fill', 'abc'.charAt(i % 3)))
      for (const [at, what, bytes] of steps) {
        rooms[at]?.[what](bytes)
        expect(buffered.bytes).toBeGreaterThanOrEqual(0)
        expect(buffered.bytes).toBeLessThanOrEqual(1_000)
      }
      for (const room of [...rooms, ...rooms]) room.release()
      expect(buffered.bytes).toBe(0)
      expect(buffered.budget('fill', 'a').reserve(500)).toBe(true)
    }),
  )
})
