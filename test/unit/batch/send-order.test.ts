import { expect, test } from 'vitest'
import { createSendOrder } from '../../../src/batch/order/plan-order.ts'

const settled = () => new Promise(setImmediate)

test('an item is sent when the previous one has been sent, not when it has been answered', async () => {
  const inOrder = createSendOrder()
  const log: string[] = []
  let send = (): void => {}
  let answer = (): void => {}
  const first = inOrder((sent) => {
    log.push('first')
    send = sent
    return new Promise<void>((resolve) => {
      answer = resolve
    })
  })
  const second = inOrder(async (sent) => {
    log.push('second')
    sent()
  })
  await settled()
  expect(log).toEqual(['first'])
  send()
  await second
  expect(log).toEqual(['first', 'second'])
  answer()
  await first
})

test('an item that ends without sending, or fails, delays no other', async () => {
  const inOrder = createSendOrder()
  const failing = inOrder(() => Promise.reject(new Error('broken')))
  const answered = inOrder(async () => 'answered before')
  const third = inOrder(async () => 'third')
  await expect(failing).rejects.toThrow('broken')
  expect([await answered, await third]).toEqual(['answered before', 'third'])
})
