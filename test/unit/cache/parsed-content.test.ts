import { expect, test } from 'vitest'
import { parsedContent } from '../../../src/cache/tags/parsed-content.ts'

test('whoever asks second gets what the first one read, and it is then let go', () => {
  const content = Buffer.from('{"id": 1}')
  const first = parsedContent(content)
  expect(first).toEqual({ kind: 'json', value: { id: 1 } })
  expect(parsedContent(content)).toBe(first)
  expect(parsedContent(content)).not.toBe(first)
})

test('another content in between is another reading', () => {
  const one = Buffer.from('1')
  const other = Buffer.from('1')
  const first = parsedContent(one)
  expect(parsedContent(other)).not.toBe(first)
  expect(parsedContent(one)).not.toBe(first)
})

test('what is no JSON is nothing', () => {
  expect(parsedContent(Buffer.from('<p>'))).toEqual({ kind: 'nothing' })
})
