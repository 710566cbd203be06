import { expect, test } from 'vitest'
import { parseDictionary, parseList } from '../../../src/http/structured-fields.ts'

const item = (type: string, value: unknown) => ({ kind: 'item', item: { type, value } })

test.each([
  ['an integer', 'a=1', { a: item('integer', 1) }],
  ['a negative integer', 'a=-1', { a: item('integer', -1) }],
  ['a decimal', 'a=1.5', { a: item('decimal', 1.5) }],
  ['a string', 'a="x\\"y"', { a: item('string', 'x"y') }],
  ['a token', 'a=b/c', { a: item('token', 'b/c') }],
  ['bytes', 'a=:YQ==:', { a: item('binary', ':YQ==:') }],
  ['a date', 'a=@10', { a: item('date', 10) }],
  ['true without a value', 'a', { a: item('boolean', true) }],
  ['false', 'a=?0', { a: item('boolean', false) }],
  ['parameters', 'a=1;x=2;y, b;z="q"', { a: item('integer', 1), b: item('boolean', true) }],
  [
    'an inner list',
    'a=(1 2)',
    { a: { kind: 'inner-list', items: [item('integer', 1).item, item('integer', 2).item] } },
  ],
  ['the last of two', 'a=1, a=2', { a: item('integer', 2) }],
  ['space around the comma', 'a=1 ,\tb', { a: item('integer', 1), b: item('boolean', true) }],
  ['nothing', '', {}],
])('a dictionary with %s', (_, text, expected) => {
  expect(Object.fromEntries(parseDictionary(text) ?? [['failed', true]])).toEqual(expected)
})

test.each([
  ['upper case in a key', 'Max-age=1'],
  ['a trailing comma', 'a=1,'],
  ['a leading comma', ',a=1'],
  ['no comma', 'a=1 b=2'],
  ['space after =', 'a= 1'],
  ['an open string', 'a="x'],
  ['sixteen digits', 'a=1234567890123456'],
  ['four decimals', 'a=1.2345'],
  ['thirteen digits before the point', 'a=1234567890123.5'],
  ['a control character', 'a="\u0001"'],
  ['an open list', 'a=(1 2'],
  ['no value', 'a='],
])('%s is no dictionary', (_, text) => {
  expect(parseDictionary(text)).toBeUndefined()
})

test('a list of strings', () => {
  expect(parseList('"a", "b";x')).toEqual([item('string', 'a'), item('string', 'b')])
})
