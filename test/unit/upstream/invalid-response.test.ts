import fc from 'fast-check'
import { expect, test } from 'vitest'
import { invalidResponse } from '../../../src/upstream/invalid-response.ts'
import { headerTexts } from '../../../src/upstream/messages.ts'

const socketKey = ['sec-websocket-key', 'dGhlIHNhbXBsZSBub25jZQ==']
const socketAccept = ['Sec-WebSocket-Accept', 's3pPLMBiTxaQ9kYGzzhZRbK+xOo=']

test.each<[string, string[], number, readonly string[], boolean]>([
  ['an answer', [], 200, [], false],
  ['an error', [], 599, [], false],
  ['no status', [], 0, [], true],
  ['a status of a sixth class', [], 600, [], true],
  ['chunks', [], 200, ['Transfer-Encoding', 'Chunked'], false],
  ['chunks of something coded', [], 200, ['Transfer-Encoding', 'gzip, chunked'], true],
  ['another coding', [], 200, ['Transfer-Encoding', 'rot13'], true],
  ['a WebSocket', socketKey, 101, ['Upgrade', 'WebSocket', ...socketAccept], false],
  [
    'a WebSocket for another key',
    socketKey,
    101,
    ['Upgrade', 'websocket', 'Sec-WebSocket-Accept', 'x'],
    true,
  ],
  ['another protocol', socketKey, 101, ['Upgrade', 'h2c', ...socketAccept], true],
  ['a change of protocol without a name', socketKey, 101, socketAccept, true],
  ['a 304 unasked', [], 304, [], true],
  ['a 304 to a tag', ['if-none-match', '"a"'], 304, [], false],
  ['a 304 to a date', ['if-modified-since', 'x'], 304, [], false],
  ['a part unasked', [], 206, [], true],
  ['a part asked for', ['range', 'bytes=0-1'], 206, [], false],
])('%s', (_, headers, status, headerLines, invalid) => {
  expect(invalidResponse(headers, status, headerLines) !== undefined).toBe(invalid)
})

test('header lines are their octets one to one, however many names there are', () => {
  const octets = fc.uint8Array({ maxLength: 6 }).map((part) => Buffer.from(part))
  const names = fc.oneof(
    octets,
    fc.constantFrom('Etag', 'Exag', 'etag', 'x'.repeat(70)).map((name) => Buffer.from(name)),
  )
  fc.assert(
    fc.property(fc.array(fc.tuple(names, octets)), (lines) => {
      const raw = lines.flat()
      expect(headerTexts(raw)).toEqual(raw.map((part) => part.toString('latin1')))
    }),
  )
})
