import { expect, test } from 'vitest'
import { createSemaphore } from '../../../../src/batch/send/semaphore.ts'

const never = new AbortController().signal
const settled = () => new Promise((resolve) => setImmediate(resolve))

test('lines are served in turn, whatever their length', async () => {
  const places = createSemaphore(1, 100)
  const served: string[] = []
  const enter = (flow: string, name: string) => void places.enter(flow, never).then(() => served.push(name))
  enter('a', 'a1')
  for (const name of ['a2', 'a3', 'a4']) enter('a', name)
  enter('b', 'b1')
  for (let n = 0; n < 5; n += 1) {
    await settled()
    places.leave(served.at(-1)?.charAt(0) ?? '')
  }
  expect(served).toEqual(['a1', 'a2', 'b1', 'a3', 'a4'])
})

test('a cancelled item leaves the queue, and holds no slot', async () => {
  const places = createSemaphore(1, 100)
  const stop = new AbortController()
  expect(await places.enter('a', never)).toBe(true)
  const waiting = places.enter('a', stop.signal)
  const next = places.enter('a', never)
  stop.abort()
  expect(await waiting).toBe(false)
  places.leave('a')
  expect(await next).toBe(true)
})

test('one flow has no more than its share; the others get the rest', async () => {
  const places = createSemaphore(4, 2)
  const inside: string[] = []
  for (const flow of ['a', 'a', 'a', 'b', 'b', 'c'])
    void places.enter(flow, never).then(() => inside.push(flow))
  await settled()
  expect(inside).toEqual(['a', 'a', 'b', 'b'])
  places.leave('b')
  await settled()
  expect(inside).toEqual(['a', 'a', 'b', 'b', 'c'])
  places.leave('a')
  await settled()
  expect(inside).toEqual(['a', 'a', 'b', 'b', 'c', 'a'])
})
