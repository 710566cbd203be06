import { expect, test } from 'vitest'
import { memoize, memoizeLast } from '../../../src/http/memo.ts'

const counting = (perSnapshot?: number) => {
  const readings: string[] = []
  const read = memoize((text) => {
    readings.push(text)
    return { text }
  }, perSnapshot)
  return { read, readings }
}

test('a repeated text is not parsed again and gives the same result', () => {
  const { read, readings } = counting()
  expect(read('max-age=60')).toBe(read('max-age=60'))
  expect(readings).toEqual(['max-age=60'])
})

test('undefined is a result like any other', () => {
  const { readings, read } = counting()
  const nothing = memoize((text) => {
    read(text)
    return undefined
  })
  nothing('x')
  nothing('x')
  expect(readings).toEqual(['x'])
})

test('a flood of new texts evicts others and is not kept', () => {
  const { read, readings } = counting(10)
  read('first')
  for (let i = 0; i < 30; i += 1) read(`flood ${i}`)
  read('first')
  expect(readings.filter((text) => text === 'first')).toHaveLength(2)
})

test('a frequently used text survives a flood of others', () => {
  const { read, readings } = counting(10)
  for (let i = 0; i < 100; i += 1) {
    read('busy')
    read(`flood ${i}`)
  }
  expect(readings.filter((text) => text === 'busy')).toHaveLength(1)
})

test('a long text is parsed each time', () => {
  const { read, readings } = counting()
  const long = 'x'.repeat(300)
  read(long)
  read(long)
  expect(readings).toHaveLength(2)
})

test('the last text is not parsed again, however long it is, and no earlier one is kept', () => {
  const readings: string[] = []
  const read = memoizeLast((text) => {
    readings.push(text)
    return { text }
  })
  const long = 'x'.repeat(300)
  expect(read(long)).toBe(read(long))
  expect(read('y')).toEqual({ text: 'y' })
  expect(read(long)).toEqual({ text: long })
  expect(readings).toEqual([long, 'y', long])
})
