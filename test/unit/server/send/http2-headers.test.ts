import { expect, test } from 'vitest'
import type { HeaderLines } from '../../../../src/http/headers/header-lines.ts'
import { headersOf, headersOfHead, PreparedHeaders } from '../../../../src/server/send/http2-headers.ts'

const begin: HeaderLines = ['Content-Type', 'text/plain', 'ETag', '"a"', 'Age', '3']
const none: ReadonlySet<string> = new Set()

test('names are in lower case, repeated lines joined, cookies kept, headers of the connection left out', () => {
  const lines = [
    ...['Vary', 'Accept', 'Set-Cookie', 'a=1', 'vary', 'Origin', 'Set-Cookie', 'b=2'],
    ...['Connection', 'close', 'constructor', 'x', '__proto__', 'y'],
  ]
  const headers = headersOf(lines, 200)
  expect(Object.entries(headers).sort()).toEqual([
    [':status', 200],
    ['__proto__', 'y'],
    ['constructor', 'x'],
    ['set-cookie', ['a=1', 'b=2']],
    ['vary', 'Accept, Origin'],
  ])
})

/** Lines behind the prepared ones, one response after the other. */
const sequences: Record<string, readonly HeaderLines[]> = {
  'the same names': [
    ['Via', '1.1 a', 'X-Request-Id', '1'],
    ['Via', '1.1 a', 'X-Request-Id', '2'],
  ],
  'other names, more and fewer of them': [
    ['Via', '1.1 a', 'X-Request-Id', '1'],
    ['Via', '1.1 a', 'RateLimit', 'r', 'X-Request-Id', '2'],
    ['Via', '1.1 a', 'RateLimit-Policy', 'p'],
    [],
    ['X-Request-Id', '3', 'Via', '1.1 a'],
  ],
  'a name of a prepared line': [
    ['ETag', '"b"', 'X-Request-Id', '1'],
    ['ETag', '"c"', 'X-Request-Id', '2'],
  ],
  'a name twice': [
    ['Via', '1.1 a', 'Via', '1.1 b'],
    ['Via', '1.1 c', 'Via', '1.1 d'],
  ],
  'one that is not sent': [
    ['Connection', 'close', 'Via', '1.1 a'],
    ['Connection', 'close', 'Via', '1.1 b'],
  ],
  'one cookie, then two': [
    ['Set-Cookie', 'a=1'],
    ['Set-Cookie', 'b=2'],
    ['Set-Cookie', 'c=3', 'Set-Cookie', 'd=4'],
  ],
}

test.each(Object.entries(sequences))('prepared headers are those of all lines: %s', (_, sequence) => {
  const prepared = new PreparedHeaders(begin, begin.length, none)
  for (const behind of sequence) {
    const lines = [...begin, ...behind]
    expect(prepared.headersFor(lines, 200)).toEqual(headersOf(lines, 200))
    // A response that is changed by its reader changes no other.
    Object.assign(prepared.headersFor(lines, 200), { etag: 'changed', 'x-request-id': 'changed' })
    expect(prepared.headersFor(lines, 304)).toEqual(headersOf(lines, 304))
  }
})

test('removed names are not sent of the lines behind', () => {
  const changed = ['Content-Type', 'text/html']
  const prepared = new PreparedHeaders(changed, begin.length, new Set(['via', 'etag']))
  for (const id of ['1', '2']) {
    const lines = [...begin, 'Via', '1.1 a', 'X-Request-Id', id]
    expect(prepared.headersFor(lines, 200)).toEqual(
      headersOf(['Content-Type', 'text/html', 'X-Request-Id', id], 200),
    )
  }
})

test('of a head with lines behind shared ones, and of one without', () => {
  const shared = { of: begin, begin: undefined, text: '' }
  const lines = [...begin, 'Via', '1.1 a']
  expect(headersOfHead({ of: lines, begin: shared, text: '' }, 200)).toEqual(headersOf(lines, 200))
  expect(headersOfHead(shared, 200)).toEqual(headersOf(begin, 200))
})
