import { expect, test } from 'vitest'
import { createConcurrentWrites } from '../../../../src/exchange/write/concurrent-writes.ts'

test('a write is alone as long as no other write of its services was in flight beside it', () => {
  const writes = createConcurrentWrites()
  const first = writes.begin(['site', 'plants'])
  const elsewhere = writes.begin(['files'])
  expect([first.isAlone(), elsewhere.isAlone()]).toEqual([true, true])
  const second = writes.begin(['plants'])
  expect([first.isAlone(), second.isAlone(), elsewhere.isAlone()]).toEqual([false, false, true])
  first.end()
  const third = writes.begin(['plants'])
  expect(third.isAlone()).toBe(false)
  expect(writes.begin(['site']).isAlone()).toBe(true)
})

test('a write with another one beside it never counts as alone; the next one after all have ended does', () => {
  const writes = createConcurrentWrites()
  const first = writes.begin(['site'])
  const second = writes.begin(['site'])
  second.end()
  expect(first.isAlone()).toBe(false)
  first.end()
  expect(writes.begin(['site']).isAlone()).toBe(true)
})

test('a write that is ended twice does not end another one', () => {
  const writes = createConcurrentWrites()
  const first = writes.begin(['site'])
  const second = writes.begin(['site'])
  first.end()
  first.end()
  expect(writes.begin(['site']).isAlone()).toBe(false)
  second.end()
})
