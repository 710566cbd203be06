import { expect, test } from 'vitest'
import {
  partialContent,
  type RangeSelection,
  rangeNotSatisfiable,
  rangeOf,
  selectRanges,
} from '../../../../src/http/conditional/ranges.ts'
import { headerValue } from '../../../../src/http/headers/header-lines.ts'

const parts = (...ranges: [number, number][]): RangeSelection => ({
  kind: 'parts',
  ranges: ranges.map(([first, last]) => ({ first, last })),
})
const whole: RangeSelection = { kind: 'whole' }
const unsatisfiable: RangeSelection = { kind: 'unsatisfiable' }

test.each<[string, string, RangeSelection]>([
  ['from and to', 'bytes=2-4', parts([2, 4])],
  ['from', 'bytes=7-', parts([7, 9])],
  ['beyond the end', 'bytes=7-99', parts([7, 9])],
  ['a suffix', 'bytes=-3', parts([7, 9])],
  ['a suffix longer than the content', 'bytes=-30', parts([0, 9])],
  ['several', 'bytes=0-1, 4-5', parts([0, 1], [4, 5])],
  ['several out of order', 'bytes=4-5,0-1', parts([4, 5], [0, 1])],
  ['some outside', 'bytes=0-1,20-30', parts([0, 1])],
  ['another case of the unit', 'BYTES=0-1', parts([0, 1])],
  ['all outside', 'bytes=10-', unsatisfiable],
  ['an empty suffix', 'bytes=-0', unsatisfiable],
  ['another unit', 'lines=0-1', whole],
  ['backwards', 'bytes=4-2', whole],
  ['no number', 'bytes=a-b', whole],
  ['nothing', 'bytes=', whole],
  ['one bad among good', 'bytes=0-1,x', whole],
  ['overlapping', 'bytes=0-5,3-7', whole],
  ['too many', `bytes=${Array.from({ length: 17 }, (_, i) => `${i}-${i}`).join(',')}`, whole],
])('%s', (_, value, expected) => {
  expect(selectRanges(value, 10)).toEqual(expected)
})

const now = Date.UTC(2026, 0, 1)
const lastModified = 'Wed, 01 Jan 2025 00:00:00 GMT'
const headers = ['ETag', '"a"', 'Last-Modified', lastModified, 'Date', 'Thu, 02 Jan 2025 00:00:00 GMT']

test.each<[string, string, readonly string[], RangeSelection['kind']]>([
  ['the strong tag', '"a"', headers, 'parts'],
  ['another tag', '"b"', headers, 'whole'],
  ['a weak tag', 'W/"a"', ['ETag', 'W/"a"'], 'whole'],
  ['the date', lastModified, headers, 'parts'],
  ['another date', 'Wed, 01 Jan 2025 00:00:01 GMT', headers, 'whole'],
  [
    'a date too young to be strong',
    lastModified,
    ['Last-Modified', lastModified, 'Date', lastModified],
    'whole',
  ],
  ['nonsense', 'x', headers, 'whole'],
])('If-Range with %s', (_, condition, responseHeaders, expected) => {
  const head = { status: 200, headers: responseHeaders }
  expect(rangeOf({ range: 'bytes=0-1', 'if-range': condition }, head, 10, now).kind).toBe(expected)
})

test('only a 200 has parts', () => {
  expect(rangeOf({ range: 'bytes=0-1' }, { status: 404, headers: [] }, 10, now)).toEqual(whole)
})

const content = Buffer.from('0123456789')
const head = { status: 200, headers: ['Content-Type', 'text/plain', 'Content-Length', '10', 'ETag', '"a"'] }

test('one part comes with its range', () => {
  const response = partialContent(head, content, [{ first: 2, last: 4 }])
  expect(response.content.toString()).toBe('234')
  expect(response.head.status).toBe(206)
  expect(headerValue(response.head.headers, 'content-range')).toBe('bytes 2-4/10')
  expect(headerValue(response.head.headers, 'content-length')).toBe('3')
})

test('several parts come as multipart/byteranges, each with its type and range', () => {
  const response = partialContent(head, content, [
    { first: 0, last: 1 },
    { first: 8, last: 9 },
  ])
  const type = headerValue(response.head.headers, 'content-type') ?? ''
  const boundary = type.replace('multipart/byteranges; boundary=', '')
  expect(response.content.toString()).toBe(
    `--${boundary}\r\nContent-Type: text/plain\r\nContent-Range: bytes 0-1/10\r\n\r\n01\r\n` +
      `--${boundary}\r\nContent-Type: text/plain\r\nContent-Range: bytes 8-9/10\r\n\r\n89\r\n--${boundary}--\r\n`,
  )
  expect(headerValue(response.head.headers, 'content-length')).toBe(String(response.content.length))
})

test('a 416 tells the length', () => {
  expect(headerValue(rangeNotSatisfiable(head, 10).headers, 'content-range')).toBe('bytes */10')
})
