import { expect, test } from 'vitest'
import type { ClientWait } from '../../../src/upstream/events.ts'
import { pollIntervalMs } from '../../../src/upstream/send/in-flight.ts'
import { createPacePoll } from '../../../src/upstream/send/slow-clients.ts'

/** Requests that move a number of bytes per second for a time; returns the ended ones with the second of their end. */
const watched = (
  requests: readonly { readonly rate: (second: number) => number; readonly wait?: ClientWait | 'upstream' }[],
  seconds: number,
  { isContended = false, most: max = 32, minBytesPerSecond = 1024 } = {},
): { readonly ended: Map<number, number> } => {
  let nowMs = 0
  const ended = new Map<number, number>()
  const paced = requests.map(({ wait = 'request-body' }, index) => ({
    waitsForClient: wait === 'upstream' ? undefined : wait,
    movedBytes: 0,
    endForSlowClient: () => ended.set(index, nowMs / 1000),
  }))
  const slots = { isContended: () => isContended, maxWaitingForClients: max }
  const look = createPacePoll({ slots, minBytesPerSecond, monotonic: () => nowMs })
  while (nowMs < seconds * 1000) {
    nowMs += pollIntervalMs
    paced.forEach((one, index) => {
      one.movedBytes += ((requests[index]?.rate(nowMs / 1000) ?? 0) * pollIntervalMs) / 1000
    })
    look(paced.filter((_, index) => !ended.has(index)))
  }
  return { ended }
}

test('a client that moves less than the rate is ended after ten seconds', () => {
  const { ended } = watched([{ rate: () => 1 }, { rate: () => 900, wait: 'reader' }], 30)
  expect(ended.get(0)).toBeGreaterThanOrEqual(10)
  expect(ended.get(0)).toBeLessThan(11)
  expect(ended.has(1)).toBe(false)
  expect(watched([{ rate: () => 900 }], 120).ended.size).toBe(1)
})

test('a client that keeps the rate is not ended, nor one that pauses for some seconds', () => {
  const pausing = (second: number): number => (second % 12 < 8 ? 0 : 20_000)
  const { ended } = watched([{ rate: () => 20_000 }, { rate: pausing }, { rate: () => 1_100 }], 300)
  expect(ended.size).toBe(0)
})

test('a wait for the upstream does not count against the client', () => {
  expect(watched([{ rate: () => 0, wait: 'upstream' }], 60).ended.size).toBe(0)
})

test('a rate of 0 is no bound', () => {
  expect(watched([{ rate: () => 0 }], 60, { minBytesPerSecond: 0 }).ended.size).toBe(0)
})

test('while others wait and too many slots wait for clients, the slowest are ended at once and fast ones never', () => {
  const crowd = [
    ...Array.from({ length: 6 }, (_, at) => ({ rate: () => 2_000 + at })),
    { rate: () => 1_000_000 },
  ]
  expect([...watched(crowd, 5, { isContended: true, most: 4 }).ended.keys()]).toEqual([0, 1, 2])
  expect(watched(crowd, 5, { isContended: false, most: 4 }).ended.size).toBe(0)
  const fast = Array.from({ length: 9 }, () => ({ rate: () => 200_000 }))
  expect(watched(fast, 5, { isContended: true, most: 4 }).ended.size).toBe(0)
})

test('while others wait and clients hold all that they may, one that is behind the rate has two seconds', () => {
  const { ended } = watched([{ rate: () => 0 }, { rate: () => 5_000 }], 5, { isContended: true, most: 2 })
  expect([...ended.keys()]).toEqual([0])
  expect(ended.get(0)).toBeLessThan(3)
})
