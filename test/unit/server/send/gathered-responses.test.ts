import { setImmediate as nextTurn } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { createGathering as createGatheringOf } from '../../../../src/server/send/send-response.ts'

/** Gathers responses that are known by a number. */
const createGathering = (send: (item: number) => void): ((item: number) => void) => {
  const add = createGatheringOf<{ item: number; response: { content: undefined } }>(
    ({ item }) => send(item),
    ({ item }) => item >= 0,
  )
  return (item) => add({ item, response: { content: undefined } })
}

test('responses of one turn of the event loop are sent at its end, in their order', async () => {
  const sent: number[] = []
  const add = createGathering((item) => sent.push(item))
  add(1)
  add(2)
  expect(sent).toEqual([])
  await nextTurn()
  expect(sent).toEqual([1, 2])
  add(3)
  await nextTurn()
  expect(sent).toEqual([1, 2, 3])
})

test('a sixteenth response is not waited for longer: all of them are sent', async () => {
  const sent: number[] = []
  const add = createGathering((item) => sent.push(item))
  for (let i = 0; i < 15; i += 1) add(i)
  expect(sent).toHaveLength(0)
  add(15)
  expect(sent).toEqual(Array.from({ length: 16 }, (_, i) => i))
  add(16)
  expect(sent).toHaveLength(16)
  await nextTurn()
  expect(sent).toHaveLength(17)
})

test('a response that becomes ready while others are sent is sent too, behind them', async () => {
  const sent: number[] = []
  const add = createGathering((item) => {
    sent.push(item)
    if (item === 1) add(3)
  })
  add(1)
  add(2)
  await nextTurn()
  await nextTurn()
  expect(sent).toEqual([1, 2, 3])
})

test('a response that may not wait is sent at once', () => {
  const sent: number[] = []
  const add = createGathering((item) => sent.push(item))
  add(1)
  add(-1)
  expect(sent).toEqual([-1])
})
