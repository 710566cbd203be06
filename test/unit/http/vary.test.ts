import { expect, test } from 'vitest'
import { parseVary, varyKey } from '../../../src/http/vary.ts'

test.each([
  ['nothing', [], { kind: 'fields', names: [] }],
  ['names in any case and order', ['Vary', 'B, a'], { kind: 'fields', names: ['a', 'b'] }],
  ['several lines', ['Vary', 'a', 'Vary', 'b,'], { kind: 'fields', names: ['a', 'b'] }],
  ['a repeated name', ['Vary', 'a, A'], { kind: 'fields', names: ['a'] }],
  ['*', ['Vary', '*'], { kind: 'any' }],
  ['* in a list', ['Vary', 'a, *'], { kind: 'any' }],
  ['* in another line', ['Vary', 'a', 'Vary', '*'], { kind: 'any' }],
])('reads %s', (_, fields, expected) => {
  expect(parseVary(fields)).toEqual(expected)
})

const key = (fields: Record<string, string>) => varyKey(['accept-language', 'foo'], { fields })

test.each([
  ['the same', { foo: '1' }, { foo: '1' }, true],
  ['another value', { foo: '1' }, { foo: '2' }, false],
  ['a missing field and an empty one', {}, { foo: '' }, false],
  ['a value in another field', { foo: '1' }, { 'accept-language': '1' }, false],
  ['case of a language', { 'accept-language': 'EN' }, { 'accept-language': 'en' }, true],
  [
    'order and space of languages',
    { 'accept-language': 'en,de;q=0.5' },
    { 'accept-language': 'de; q=0.5 , en' },
    true,
  ],
  ['weight of a language', { 'accept-language': 'en;q=0.5' }, { 'accept-language': 'en;q=0.6' }, false],
  ['space around commas', { foo: '1,2' }, { foo: ' 1 , 2 ' }, true],
  ['order in another field', { foo: '1,2' }, { foo: '2,1' }, false],
  ['case of another field', { foo: 'A' }, { foo: 'a' }, false],
])('requests that differ by %s select the same: %s', (_, a, b, same) => {
  expect(key(a) === key(b)).toBe(same)
})

test('where a comma is text, space counts', () => {
  const agent = (text: string) => varyKey(['user-agent'], { fields: { 'user-agent': text } })
  expect(agent('a (b, c)')).not.toBe(agent('a (b,c)'))
})

test('what the gateway sends itself, or withholds, selects in place of what the client sent', () => {
  const settled = { 'accept-encoding': 'identity', cookie: undefined }
  const of = (fields: Record<string, string>) => varyKey(['accept-encoding', 'cookie'], { fields, settled })
  expect(of({ 'accept-encoding': 'br', cookie: 'a=1' })).toBe(of({}))
})

test('names that every object has select nothing', () => {
  const names = ['constructor', '__proto__', 'tostring']
  expect(varyKey(names, { fields: {} })).toBe('-;-;-;')
})
