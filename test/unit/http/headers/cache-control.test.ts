import { expect, test } from 'vitest'
import {
  deltaSeconds,
  parseCacheControl,
  qualifiedHeaders,
} from '../../../../src/http/headers/caching-headers.ts'

test.each([
  ['one directive', 'no-store', { 'no-store': undefined }],
  ['an argument', 'max-age=60', { 'max-age': '60' }],
  ['a quoted argument', 'max-age="60"', { 'max-age': '60' }],
  ['another case', 'Max-AGE=60, No-Store', { 'max-age': '60', 'no-store': undefined }],
  ['empty members', ', ,max-age=60,,', { 'max-age': '60' }],
  ['the first of two', 'max-age=1, max-age=2', { 'max-age': '1' }],
  ['a comma in quotes', 'private="a, b", max-age=1', { private: 'a, b', 'max-age': '1' }],
  ['an escaped quote', 'ext="a\\"b", max-age=1', { ext: 'a"b', 'max-age': '1' }],
  ['a directive hidden in quotes', 'ext="x, no-store", max-age=1', { ext: 'x, no-store', 'max-age': '1' }],
  ['an open quote as no-store', 'ext="abc, max-age=1', { 'no-store': undefined }],
  ['space before = as no-store', 'max-age =60', { 'no-store': undefined }],
  ['space after = as no-store', 'max-age= 60', { 'no-store': undefined }],
  ['text behind quotes as no-store', 'max-age="60"1', { 'no-store': undefined }],
  ['an empty argument as no-store', 'max-age=', { 'no-store': undefined }],
  ['NUL as no-store', 'max-age=60\0', { 'no-store': undefined }],
  [
    'words that forbid in what is unreadable',
    'Private; no-transform; must-understand',
    { 'no-store': undefined, private: undefined, 'no-transform': undefined },
  ],
  ['an unqualified directive beside a qualified one', 'no-cache="a", no-cache', { 'no-cache': undefined }],
  ['two qualified ones', 'no-cache="a", no-cache="b"', { 'no-cache': 'a,b' }],
  ['nothing', '', {}],
])('reads %s', (_, value, expected) => {
  // Strict: a directive without an argument is a member that is undefined.
  expect(Object.fromEntries(parseCacheControl(value))).toStrictEqual(expected)
})

test.each([
  ['a number', 'max-age=60', 60],
  ['an overflow', 'max-age=99999999999999999999', 2_147_483_648],
  ['a negative number', 'max-age=-1', 'invalid'],
  ['a fraction', 'max-age=1.5', 'invalid'],
  ['a suffix', 'max-age=60s', 'invalid'],
  ['a prefix', 'max-age=a60', 'invalid'],
  ['single quotes', "max-age='60'", 'invalid'],
  ['no argument', 'max-age', 'invalid'],
  ['absence', 'no-store', undefined],
])('takes %s as %s', (_, value, expected) => {
  expect(deltaSeconds(parseCacheControl(value), 'max-age')).toBe(expected)
})

test('names of headers are lower case and without space', () => {
  expect(qualifiedHeaders(parseCacheControl('private=" Set-Cookie , X"'), 'private')).toEqual([
    'set-cookie',
    'x',
  ])
  expect(qualifiedHeaders(parseCacheControl('private'), 'private')).toBeUndefined()
})

test.each(['private=""', 'private=', 'private=" , "', 'private="", max-age=60'])(
  '%s names no header, and means the whole response',
  (value) => expect(qualifiedHeaders(parseCacheControl(value), 'private')).toBeUndefined(),
)
