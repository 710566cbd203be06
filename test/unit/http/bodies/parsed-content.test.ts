import { expect, test } from 'vitest'
import { parsedContent } from '../../../../src/http/bodies/json-readability.ts'

test('the second caller gets the parsed content of the first, and it is then released', () => {
  const content = Buffer.from('{"id": 1}')
  const first = parsedContent(content)
  expect(first).toEqual({ id: 1 })
  expect(parsedContent(content)).toBe(first)
  expect(parsedContent(content)).not.toBe(first)
})

test('another content in between is parsed again', () => {
  const one = Buffer.from('[1]')
  const other = Buffer.from('[1]')
  const first = parsedContent(one)
  expect(parsedContent(other)).not.toBe(first)
  expect(parsedContent(one)).not.toBe(first)
})

test('a content that is no JSON is undefined', () => {
  expect(parsedContent(Buffer.from('<p>'))).toBeUndefined()
})
