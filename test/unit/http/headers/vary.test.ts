import { expect, test } from 'vitest'
import { parseVary, varyKey } from '../../../../src/http/headers/caching-headers.ts'

const names = (count: number): string => Array.from({ length: count }, (_, at) => `x-${at}`).join(', ')

test('64 members of Vary are read; a longer list counts as one that no request can match', () => {
  expect(parseVary(['Vary', names(64)])).toMatchObject({ kind: 'fields', names: { length: 64 } })
  expect(parseVary(['Vary', names(65)])).toEqual({ kind: 'any' })
  expect(parseVary(['Vary', names(64), 'Vary', 'x-0'])).toEqual({ kind: 'any' })
})

test.each([
  ['nothing', [], { kind: 'fields', names: [] }],
  ['names in any case and order', ['Vary', 'B, a'], { kind: 'fields', names: ['a', 'b'] }],
  ['several lines', ['Vary', 'a', 'Vary', 'b,'], { kind: 'fields', names: ['a', 'b'] }],
  ['a repeated name', ['Vary', 'a, A'], { kind: 'fields', names: ['a'] }],
  ['*', ['Vary', '*'], { kind: 'any' }],
  ['* in a list', ['Vary', 'a, *'], { kind: 'any' }],
  ['a field that differs in each request', ['Vary', 'a, X-Request-Id'], { kind: 'any' }],
  ['a name that CGI reads as another one', ['Vary', 'Accept_Language'], { kind: 'any' }],
  ['a validator of the cache', ['Vary', 'If-None-Match'], { kind: 'any' }],
  ['* in another line', ['Vary', 'a', 'Vary', '*'], { kind: 'any' }],
])('reads %s', (_, headers, expected) => {
  expect(parseVary(headers)).toEqual(expected)
})

const key = (headers: Readonly<Record<string, string>>) =>
  varyKey(['accept-language', 'foo'], { sentHeader: (name) => headers[name] })

test.each([
  ['the same', { foo: '1' }, { foo: '1' }, true],
  ['another value', { foo: '1' }, { foo: '2' }, false],
  ['a missing field and an empty one', {}, { foo: '' }, false],
  ['a value in another field', { foo: '1' }, { 'accept-language': '1' }, false],
  ['case', { 'accept-language': 'EN' }, { 'accept-language': 'en' }, false],
  ['order', { 'accept-language': 'en,de' }, { 'accept-language': 'de,en' }, false],
  ['space around commas', { foo: '1,2' }, { foo: '1, 2' }, false],
  ['a value that looks like another key', { 'accept-language': '1:a;-' }, { foo: '1:a;-' }, false],
])('requests that differ by %s select the same: %s', (_, a, b, same) => {
  expect(key(a) === key(b)).toBe(same)
})
