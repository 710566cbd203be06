import { expect, test } from 'vitest'
import { jsonReadability } from '../../../../src/http/bodies/json-readability.ts'

const json = ['Content-Type', 'application/json; charset=UTF-8']

test.each<[string, readonly string[], Buffer | string, boolean]>([
  ['an object', json, '{"a":1}', true],
  ['a list', json, '[]', true],
  ['a word', json, 'null', true],
  ['JSON of another name', ['Content-Type', 'application/problem+json'], '{', false],
  ['JSON that breaks off', json, '{"a":', false],
  ['nothing', json, '', false],
  ['a warning in front', json, '<b>Warning</b>{"a":1}', false],
  ['what is no UTF-8', json, Buffer.from('{"a":"\xff"}', 'latin1'), false],
  ['a page', ['Content-Type', 'text/html; charset=UTF-8'], '<h1>Error</h1>', false],
  ['XML, which oEmbed gives', ['Content-Type', 'text/xml'], '<oembed/>', true],
  ['no type at all', [], 'x', true],
  ['a coding that was not asked for', [...json, 'Content-Encoding', 'gzip'], '{"a":1}', false],
  ['no coding, in as many words', [...json, 'Content-Encoding', 'identity'], '{"a":1}', true],
])('%s', (_, headers, content, readable) => {
  const expected = readable ? 'readable' : 'unreadable'
  expect(jsonReadability({ status: 200, headers }, Buffer.from(content as string))).toBe(expected)
})

test.each([204, 206])('a %i needs no readable content', (status) => {
  expect(jsonReadability({ status, headers: json }, Buffer.from('{"a":'))).toBe('readable')
})

test.each<[string, readonly string[], ReturnType<typeof jsonReadability>]>([
  ['JSON', json, 'unknown'],
  ['a page', ['Content-Type', 'text/html; charset=UTF-8'], 'unreadable'],
  ['a coding that was not asked for', [...json, 'Content-Encoding', 'gzip'], 'unreadable'],
  ['XML', ['Content-Type', 'text/xml'], 'readable'],
])('the head of %s says what can be known before the content', (_, headers, expected) => {
  expect(jsonReadability({ status: 200, headers }, undefined)).toBe(expected)
})
