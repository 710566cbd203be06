import { expect, test } from 'vitest'
import { createWriteWatch } from '../../../src/pipeline/writes/concurrent-writes.ts'

test('a write is alone as long as no other of its services has been under way beside it', () => {
  const watch = createWriteWatch()
  const first = watch.begin(['site', 'plants'])
  const elsewhere = watch.begin(['files'])
  expect([first.alone(), elsewhere.alone()]).toEqual([true, true])
  const second = watch.begin(['plants'])
  expect([first.alone(), second.alone(), elsewhere.alone()]).toEqual([false, false, true])
  first.end()
  const third = watch.begin(['plants'])
  expect(third.alone()).toBe(false)
  expect(watch.begin(['site']).alone()).toBe(true)
})

test('what was disturbed stays so, and the next one after all have ended is alone', () => {
  const watch = createWriteWatch()
  const first = watch.begin(['site'])
  const second = watch.begin(['site'])
  second.end()
  expect(first.alone()).toBe(false)
  first.end()
  expect(watch.begin(['site']).alone()).toBe(true)
})

test('a write that is ended twice does not end another one', () => {
  const watch = createWriteWatch()
  const first = watch.begin(['site'])
  const second = watch.begin(['site'])
  first.end()
  first.end()
  expect(watch.begin(['site']).alone()).toBe(false)
  second.end()
})
