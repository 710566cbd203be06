import { expect, test } from 'vitest'
import { Slots } from '../../../../src/upstream/send/slots.ts'

const one = { client: '', queue: '', arriving: false }

const slotsOf = (max: number, queueMax = 100, queueTimeoutMs = 0) => {
  const slots = new Slots({ max, queueMax, queueTimeoutMs, clientShare: 1 })
  const log: string[] = []
  const ask = (name: string, queue = '') =>
    slots.acquire(
      { client: '', queue, arriving: false },
      () => log.push(name),
      (why) => log.push(`${name}:${why}`),
    )
  return { slots, log, ask }
}

test('first come, first served', () => {
  const { slots, log, ask } = slotsOf(1)
  for (const name of ['a', 'b', 'c']) ask(name)
  expect(log).toEqual(['a'])
  slots.release(one)
  slots.release(one)
  expect(log).toEqual(['a', 'b', 'c'])
  slots.release(one)
  expect([slots.inFlight, slots.queued]).toEqual([0, 0])
})

test('a queue of many does not keep another queue waiting', () => {
  const { slots, log, ask } = slotsOf(1)
  for (const name of ['b1', 'b2', 'b3', 'b4']) ask(name, 'batches')
  ask('s1', 'single')
  ask('s2', 'single')
  for (let i = 0; i < 5; i += 1) slots.release(one)
  expect(log).toEqual(['b1', 'b2', 's1', 'b3', 's2', 'b4'])
})

test('a full queue refuses at once', () => {
  const { slots, log, ask } = slotsOf(1, 1)
  for (const name of ['a', 'b', 'c']) ask(name)
  expect(log).toEqual(['a', 'c:full'])
  expect(slots.queued).toBe(1)
})

test('a request that has waited too long is refused and gets no slot later', async () => {
  const { slots, log, ask } = slotsOf(1, 10, 10)
  ask('a')
  ask('b')
  await expect.poll(() => slots.queued).toBe(0)
  slots.release(one)
  expect(log).toEqual(['a', 'b:timeout'])
  expect([slots.inFlight, slots.queued]).toEqual([0, 0])
})

test('a request that leaves the queue gets no slot, and the next one is served', () => {
  const { slots, log, ask } = slotsOf(1)
  ask('a')
  const leave = ask('b')
  ask('c')
  leave()
  leave()
  slots.release(one)
  expect(log).toEqual(['a', 'c'])
})
