import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { pause, type Script } from '../support/origin.ts'
import { headerOf, type OpenService, startOpenService } from './open-service.ts'

let service: OpenService
let target = 0
const scripts = new Map<string, Script>()
beforeAll(async () => {
  service = await startOpenService()
})
afterAll(() => service.close())

/** Answers once with these lines, then with another content; whether the second read still gets the first. */
const isReused = async (lines: readonly string[], options: { status?: number; waitMs?: number } = {}) => {
  target += 1
  const path = `/topic/${target}`
  let count = 0
  scripts.set(path, (_, wire) => {
    count += 1
    const head = [
      `HTTP/1.1 ${options.status ?? 200} Scripted`,
      ...lines,
      'Content-Length: 1',
      '',
      String(count),
    ]
    wire.write(head.join('\r\n'))
  })
  service.origin.script = (request, ...rest) => scripts.get(request.target)?.(request, ...rest)
  await service.ask([`GET ${path} HTTP/1.1`])
  await pause(options.waitMs ?? 0)
  return (await service.ask([`GET ${path} HTTP/1.1`])).endsWith('1')
}

const seconds = (offset: number): string => new Date(Date.now() + offset * 1000).toUTCString()

describe('targeted headers (RFC 9213)', () => {
  test.each<[string, readonly string[], boolean]>([
    ['their own lifetime', ['CDN-Cache-Control: max-age=60'], true],
    [
      'a lifetime that Cache-Control denies',
      ['CDN-Cache-Control: max-age=60', 'Cache-Control: no-store'],
      true,
    ],
    [
      'none although Cache-Control has one',
      ['CDN-Cache-Control: max-age=0', 'Cache-Control: max-age=60'],
      false,
    ],
    [
      'no-store although Cache-Control has a lifetime',
      ['CDN-Cache-Control: no-store', 'Cache-Control: max-age=60'],
      false,
    ],
    ['private', ['CDN-Cache-Control: private, max-age=60', 'Cache-Control: max-age=60'], false],
    [
      'ours before the general one',
      ['Trellis-Cache-Control: max-age=60', 'CDN-Cache-Control: no-store'],
      true,
    ],
    [
      'an Age above their lifetime',
      ['CDN-Cache-Control: max-age=60', 'Age: 61', 'Cache-Control: max-age=90'],
      false,
    ],
    ['Expires without a say', ['CDN-Cache-Control: no-cache', `Expires: ${seconds(60)}`], false],
    [
      'what is no dictionary: ignored',
      ['CDN-Cache-Control: max-age=60, "x', 'Cache-Control: max-age=0'],
      false,
    ],
    [
      'a value of the wrong type: no-store',
      ['CDN-Cache-Control: max-age="60"', 'Cache-Control: max-age=60'],
      false,
    ],
    ['a parameter on a value', ['CDN-Cache-Control: max-age=60;x=1', 'Cache-Control: no-store'], true],
    ['two lines of one field', ['CDN-Cache-Control: no-transform', 'CDN-Cache-Control: max-age=60'], true],
  ])('%s', async (_, lines, reused) => {
    expect(await isReused(lines)).toBe(reused)
  })
})

describe('age (RFC 9111 §4.2.3, §5.1)', () => {
  test.each<[string, readonly string[], boolean]>([
    ['below the lifetime', ['Cache-Control: max-age=60', 'Age: 30'], true],
    ['above the lifetime', ['Cache-Control: max-age=60', 'Age: 60'], false],
    ['2^31', ['Cache-Control: max-age=2147483648', 'Age: 2147483648'], false],
    ['beyond every integer', ['Cache-Control: max-age=60', `Age: ${'9'.repeat(40)}`], false],
    ['no number: ignored', ['Cache-Control: max-age=60', 'Age: x'], true],
    ['a fraction: ignored', ['Cache-Control: max-age=60', 'Age: 99.9'], true],
    ['negative: ignored', ['Cache-Control: max-age=60', 'Age: -99'], true],
    ['a list: the first member', ['Cache-Control: max-age=60', 'Age: 0, 99'], true],
    ['two lines: the first', ['Cache-Control: max-age=60', 'Age: 99', 'Age: 0'], false],
    ['a Date long ago', ['Cache-Control: max-age=60', `Date: ${seconds(-90)}`], false],
    ['a Date to come', ['Cache-Control: max-age=60', `Date: ${seconds(90)}`], true],
  ])('%s', async (_, lines, reused) => {
    expect(await isReused(lines)).toBe(reused)
  })
})

describe('must-understand (RFC 9111 §5.2.2.3)', () => {
  test.each<[string, number, string, boolean]>([
    ['voids no-store where the status is known', 200, 'must-understand, no-store, max-age=60', true],
    ['leaves no-store alone where it is not', 299, 'must-understand, no-store, max-age=60', false],
    ['forbids a status that is not known', 299, 'must-understand, max-age=60', false],
    ['absent: any final status with a lifetime is stored', 299, 'max-age=60', true],
  ])('%s', async (_, status, control, reused) => {
    expect(await isReused([`Cache-Control: ${control}`], { status })).toBe(reused)
  })
})

describe('stale-while-revalidate (RFC 5861 §3)', () => {
  // Beside each other: each waits.
  test.concurrent.each<[string, string, boolean]>([
    ['within the window', 'max-age=1, stale-while-revalidate=60', true],
    ['after the window', 'max-age=0, stale-while-revalidate=1', false],
    ['not against must-revalidate', 'max-age=1, stale-while-revalidate=60, must-revalidate', false],
    ['not against no-cache', 'max-age=1, stale-while-revalidate=60, no-cache', false],
    ['an invalid window is none', 'max-age=1, stale-while-revalidate=x', false],
  ])('%s', async (_, control, reused) => {
    expect(await isReused([`Cache-Control: ${control}`], { waitMs: 1200 })).toBe(reused)
  })
})

test('octets beyond ASCII in an entity tag come back as they were, and match', async () => {
  service.origin.script = (_, wire) =>
    wire.respond({ headers: { 'Cache-Control': 'max-age=60', ETag: '"\xfc\xe9"' } })
  const first = await service.ask(['GET /octets HTTP/1.1'])
  expect(headerOf(first, 'ETag')).toBe('"\xfc\xe9"')
  const second = await service.ask(['GET /octets HTTP/1.1', 'If-None-Match: "\xfc\xe9"'])
  expect(second).toMatch(/^HTTP\/1\.1 304 /)
})

// RFC 9112 §8, RFC 9110 §15.6.3: a client is answered whatever its gateway's upstream does.
test.each<[string, string, RegExp]>([
  ['no bytes at all', '', /^HTTP\/1\.1 502 /],
  ['a head that breaks off', 'HTTP/1.1 200 OK\r\nConte', /^HTTP\/1\.1 502 /],
  ['what is no HTTP', 'hello\r\n\r\n', /^HTTP\/1\.1 502 /],
  ['a status out of range', 'HTTP/1.1 999 What\r\nContent-Length: 2\r\n\r\nok', /^HTTP\/1\.1 (?:999|502) /],
  [
    'an unregistered status',
    'HTTP/1.1 599 What\r\nContent-Length: 2\r\n\r\nok',
    /^HTTP\/1\.1 599 [\s\S]*ok$/,
  ],
  [
    'an unknown transfer coding',
    'HTTP/1.1 200 OK\r\nTransfer-Encoding: foo\r\n\r\nok',
    /^HTTP\/1\.1 (?:200 [\s\S]*ok|502 )/,
  ],
])('an upstream that sends %s: the client has a response, read or write', async (name, bytes, expected) => {
  service.origin.script = (_, wire) => {
    wire.write(bytes)
    wire.end()
  }
  const path = `/odd/${encodeURIComponent(name)}`
  expect(await service.ask([`GET ${path} HTTP/1.1`])).toMatch(expected)
  expect(await service.ask([`POST ${path} HTTP/1.1`, 'Content-Length: 1'], 'x')).toMatch(expected)
})

test('M-SEARCH with content is sent once, whole, and counts as a write', async () => {
  const { origin } = service
  origin.script = (_, wire) => wire.respond({ headers: { 'Cache-Control': 'max-age=60' }, content: 'ok' })
  await service.ask(['GET /m HTTP/1.1'])
  const before = origin.received.length
  const reply = await service.ask(['M-SEARCH /m HTTP/1.1', 'Content-Length: 3'], 'abc')
  expect(headerOf(reply, 'Cache-Status')).toBe('trellis; fwd=method')
  const sent = origin.received.slice(before)
  expect(sent.map(({ method, content }) => [method, content.toString()])).toEqual([['M-SEARCH', 'abc']])
  expect(headerOf(await service.ask(['GET /m HTTP/1.1']), 'Cache-Status')).toContain('fwd=uri-miss')
})
