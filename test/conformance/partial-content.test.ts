import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startTestGateway } from '../support/gateway.ts'
import type { Script } from '../support/origin.ts'
import { headerOf, type OpenService, startOpenService } from './open-service.ts'

let service: OpenService
let target = 0
beforeAll(async () => {
  service = await startOpenService()
})
afterAll(() => service.close())

const content = '0123456789'
const fresh = { 'Cache-Control': 'max-age=60', ETag: '"a"' }

/** An origin that does as RFC 9110 §14 says, with these headers on every response. */
const ranged =
  (headers: Readonly<Record<string, string>> = fresh, text = content): Script =>
  ({ method, headers: asked }, wire) => {
    if (asked['if-none-match'] !== undefined && asked['if-none-match'] === headers['ETag']) {
      wire.respond({ status: 304, headers })
      return
    }
    const [, from, to] = /^bytes=(\d+)-(\d*)$/.exec(asked['range'] ?? '') ?? []
    const applies = asked['if-range'] === undefined || asked['if-range'] === headers['ETag']
    if (from === undefined || !applies || method === 'HEAD') {
      wire.respond({ headers, content: method === 'HEAD' ? '' : text })
      return
    }
    const last = to === '' || to === undefined ? text.length - 1 : Number(to)
    const range = { 'Content-Range': `bytes ${from}-${last}/${text.length}` }
    wire.respond({
      status: 206,
      headers: { ...headers, ...range },
      content: text.slice(Number(from), last + 1),
    })
  }

type Reply = {
  readonly status: number
  readonly content: string
  readonly cache: string
  readonly head: string
}

const read = async (path: string, lines: readonly string[] = [], method = 'GET'): Promise<Reply> => {
  const reply = await service.ask([`${method} ${path} HTTP/1.1`, ...lines])
  const end = reply.indexOf('\r\n\r\n')
  return {
    status: Number(reply.slice(9, 12)),
    content: reply.slice(end + 4),
    cache: headerOf(reply, 'Cache-Status') ?? '',
    head: reply.slice(0, end),
  }
}

const part = (path: string, range: string, ...lines: string[]): Promise<Reply> =>
  read(path, [`Range: bytes=${range}`, ...lines])

const fresher = (): string => {
  target += 1
  return `/part/${target}`
}

/** Headers of the last request that reached the origin. */
const lastAsked = () => service.origin.received.at(-1)?.headers ?? {}

describe('a part that was stored (RFC 9111 §3.3)', () => {
  test.each<[string, number, string, string]>([
    ['2-5', 206, '2345', 'bytes 2-5/10'],
    ['3-4', 206, '34', 'bytes 3-4/10'],
    ['5-5', 206, '5', 'bytes 5-5/10'],
  ])('answers %s, which lies within it', async (range, status, text, contentRange) => {
    const path = fresher()
    service.origin.script = ranged()
    await part(path, '2-5')
    const reply = await part(path, range)
    expect(reply).toMatchObject({ status, content: text })
    expect(reply.cache).toMatch(/^trellis; hit; ttl=/)
    expect(reply.head).toContain(`Content-Range: ${contentRange}`)
    expect(reply.head).toContain(`Content-Length: ${text.length}`)
    expect(reply.head).toMatch(/Age: \d/)
  })

  test.each(['1-3', '4-6', '7-', '-2', '3-4,5-5'])('does not answer %s', async (range) => {
    const path = fresher()
    service.origin.script = ranged()
    await part(path, '2-5')
    const before = service.origin.received.length
    const reply = await part(path, range)
    expect(reply.cache).toContain('fwd=partial')
    expect(service.origin.received).toHaveLength(before + 1)
  })

  test('answers -2 and 8- when it reaches to the end', async () => {
    const path = fresher()
    service.origin.script = ranged()
    await part(path, '6-')
    expect(await part(path, '-2')).toMatchObject({ content: '89', status: 206 })
    expect((await part(path, '8-')).cache).toContain('hit')
  })

  test('of unknown total length answers its ranges, with the total still unknown', async () => {
    const path = fresher()
    service.origin.script = (_, wire) =>
      wire.respond({ status: 206, headers: { ...fresh, 'Content-Range': 'bytes 2-5/*' }, content: '2345' })
    await part(path, '2-5')
    const reply = await part(path, '3-4')
    expect(reply.content).toBe('34')
    expect(reply.head).toContain('Content-Range: bytes 3-4/*')
    expect((await part(path, '-1')).cache).toContain('fwd=partial')
  })

  test('meets the preconditions of its reader', async () => {
    const path = fresher()
    service.origin.script = ranged()
    await part(path, '2-5')
    const same = await part(path, '2-5', 'If-None-Match: "a"')
    expect(same).toMatchObject({ status: 304, content: '' })
    expect(same.cache).toContain('hit')
    expect(await part(path, '2-5', 'If-Range: "a"')).toMatchObject({ status: 206, content: '2345' })
    expect(await part(path, '2-5', 'If-Range: "b"')).toMatchObject({ status: 200, content })
  })

  test.each<[string, Readonly<Record<string, string>>, string]>([
    ['no-store', { ...fresh, 'Cache-Control': 'no-store' }, '2345'],
    ['private', { ...fresh, 'Cache-Control': 'private, max-age=60' }, '2345'],
    ['a length that contradicts its Content-Range', fresh, '234'],
    ['no Content-Range', { ...fresh, 'Content-Range': 'bytes 2-5' }, '2345'],
    ['an end before its beginning', { ...fresh, 'Content-Range': 'bytes 5-2/10' }, '2345'],
    ['an end beyond the length', { ...fresh, 'Content-Range': 'bytes 2-5/5' }, '2345'],
  ])('is not kept with %s', async (_, headers, text) => {
    const path = fresher()
    service.origin.script = (__, wire) =>
      wire.respond({
        status: 206,
        headers: { 'Content-Range': 'bytes 2-5/10', ...headers },
        content: text,
      })
    expect(await part(path, '2-5')).toMatchObject({ status: 206, content: text })
    expect((await part(path, '2-5')).cache).toContain('fwd=uri-miss')
  })

  test('is removed by a write to its target', async () => {
    const path = fresher()
    service.origin.script = ranged()
    await part(path, '2-5')
    await service.ask([`POST ${path} HTTP/1.1`, 'Content-Length: 1'], 'x')
    expect((await part(path, '2-5')).cache).toContain('fwd=uri-miss')
  })

  test.each([
    ['is kept once all of it has passed', '345', '012345', 'hit'],
    ['is not kept when it breaks off', undefined, '012', 'fwd=uri-miss'],
  ])('that streams %s', async (_, rest, seen, next) => {
    const path = fresher()
    const head = 'Cache-Control: max-age=60\r\nETag: "a"\r\nContent-Range: bytes 0-5/10\r\nContent-Length: 6'
    const sent = () => service.gateway.metric('trellis_sent_bytes_total')
    const before = await sent()
    service.origin.script = async (__, wire) => {
      wire.write(`HTTP/1.1 206 Partial Content\r\n${head}\r\n\r\n012`)
      // What breaks off before the client has the head is answered 502.
      await expect.poll(sent).toBeGreaterThan(before)
      if (rest === undefined) wire.reset()
      else wire.write(rest)
    }
    expect((await part(path, '0-5')).content).toBe(seen)
    expect((await part(path, '0-5')).cache).toContain(next)
  })
})

describe('parts under one strong entity tag (RFC 9111 §3.4)', () => {
  test('are combined, with the headers of the newest, and become the whole', async () => {
    const path = fresher()
    service.origin.script = ranged({ ...fresh, 'X-Made': '1' })
    await part(path, '0-3')
    service.origin.script = ranged({ ...fresh, 'X-Made': '2' })
    await part(path, '3-6')
    const before = service.origin.received.length
    const both = await part(path, '1-5')
    expect(both.content).toBe('12345')
    expect(both.head).toContain('X-Made: 2')
    expect(both.head).not.toContain('X-Made: 1')
    expect(service.origin.received).toHaveLength(before)
    await part(path, '7-')
    const whole = await read(path)
    expect(whole).toMatchObject({ status: 200, content })
    expect(whole.cache).toContain('hit')
    expect(whole.head).not.toContain('Content-Range')
  })

  test.each([
    ['0-3', 'bytes=4-'],
    ['4-', 'bytes=0-3'],
    ['2-5', 'bytes=0-'],
  ])('%s is completed by asking for %s under If-Range', async (held, missing) => {
    const path = fresher()
    service.origin.script = ranged()
    await part(path, held)
    const reply = await read(path)
    expect(lastAsked()).toMatchObject({ range: missing, 'if-range': '"a"' })
    expect(reply).toMatchObject({ status: 200, content })
    expect(reply.cache).toMatch(/^trellis; fwd=partial; fwd-status=206; ttl=\d+; stored$/)
    expect((await read(path)).cache).toContain('hit')
  })

  test('a gap in the middle is requested alone', async () => {
    const path = fresher()
    service.origin.script = ranged()
    await part(path, '0-2')
    await part(path, '7-')
    expect(await read(path)).toMatchObject({ status: 200, content })
    expect(lastAsked()['range']).toBe('bytes=3-6')
  })

  test('another representation replaces the stored parts', async () => {
    const path = fresher()
    service.origin.script = ranged()
    await part(path, '0-3')
    service.origin.script = ranged({ ...fresh, ETag: '"b"' }, 'abcdefghij')
    expect(await read(path)).toMatchObject({ status: 200, content: 'abcdefghij' })
    expect(await part(path, '0-3')).toMatchObject({ content: 'abcd' })
  })

  test('a part of another representation replaces a part', async () => {
    const path = fresher()
    service.origin.script = ranged()
    await part(path, '0-3')
    service.origin.script = ranged({ ...fresh, ETag: '"b"' }, 'abcdefghij')
    await part(path, '4-6')
    expect((await part(path, '0-3')).content).toBe('abcd')
  })

  test.each([
    ['a weak tag', { ...fresh, ETag: 'W/"a"' }],
    ['no tag', { 'Cache-Control': 'max-age=60' }],
  ])('with %s nothing is combined: the whole is asked for', async (_, headers) => {
    const path = fresher()
    service.origin.script = ranged(headers)
    await part(path, '0-3')
    expect((await part(path, '1-2')).cache).toContain('hit')
    expect(await read(path)).toMatchObject({ status: 200, content })
    expect(lastAsked()['range']).toBeUndefined()
  })

  test('a part that does not fit although it has the tag: the whole is requested', async () => {
    const path = fresher()
    service.origin.script = ranged()
    await part(path, '0-3')
    service.origin.script = ({ headers }, wire) => {
      if (headers['range'] === undefined) wire.respond({ headers: fresh, content })
      else
        wire.respond({
          status: 206,
          headers: { ...fresh, 'Content-Range': 'bytes 5-9/10' },
          content: '56789',
        })
    }
    expect(await read(path)).toMatchObject({ status: 200, content })
  })

  test('a 416 for the rest: the whole is requested', async () => {
    const path = fresher()
    service.origin.script = ranged()
    await part(path, '0-3')
    service.origin.script = ({ headers }, wire) =>
      headers['range'] === undefined
        ? wire.respond({ headers: fresh, content })
        : wire.respond({ status: 416, headers: { 'Content-Range': 'bytes */3' } })
    expect(await read(path)).toMatchObject({ status: 200, content })
  })
})

describe('a refusal of one request is not stored, whatever its Cache-Control', () => {
  test.each([
    [416, 'Range: bytes=99-'],
    [412, 'If-Match: "z"'],
  ])('%i to %s', async (status, line) => {
    const path = fresher()
    service.origin.script = (_, wire) => wire.respond({ status, headers: fresh, content: '' })
    expect(await read(path, [line])).toMatchObject({ status })
    service.origin.script = ranged()
    expect(await read(path)).toMatchObject({ status: 200, content })
  })
})

describe('a stale part', () => {
  const stale = { 'Cache-Control': 'max-age=0', ETag: '"a"' }

  test('is validated, and freshened by the 304 (RFC 9111 §4.3.4)', async () => {
    const path = fresher()
    service.origin.script = ranged(stale)
    await part(path, '2-5')
    service.origin.script = ranged({ ...fresh, 'X-New': '1' })
    const reply = await part(path, '3-4')
    expect(lastAsked()).toMatchObject({ 'if-none-match': '"a"', range: 'bytes=3-4' })
    expect(reply).toMatchObject({ status: 206, content: '34' })
    expect(reply.cache).toContain('fwd-status=304')
    expect(reply.head).toContain('X-New: 1')
    expect((await part(path, '2-5')).cache).toContain('hit')
  })

  test('that has changed is replaced', async () => {
    const path = fresher()
    service.origin.script = ranged(stale)
    await part(path, '2-5')
    service.origin.script = ranged({ ...fresh, ETag: '"b"' }, 'abcdefghij')
    expect(await part(path, '3-4')).toMatchObject({ status: 206, content: 'de' })
    expect((await part(path, '2-5')).content).toBe('cdef')
  })

  // RFC 9111 §4.3.5
  test.each([
    ['the same length and tag', { 'Content-Length': '10', ETag: '"a"' }, 'hit'],
    ['another length', { 'Content-Length': '11', ETag: '"a"' }, 'miss'],
    ['another tag', { ETag: '"b"' }, 'miss'],
  ])('after a HEAD with %s: %s', async (_, headers, expected) => {
    const path = fresher()
    service.origin.script = ranged(stale)
    await part(path, '2-5')
    service.origin.script = (__, wire) => {
      const lines = Object.entries({ 'Cache-Control': 'max-age=60', ...headers })
      wire.write(`HTTP/1.1 200 OK\r\n${lines.map((line) => `${line.join(': ')}\r\n`).join('')}\r\n`)
      wire.end()
    }
    await read(path, [], 'HEAD')
    service.origin.script = ranged(fresh)
    expect((await part(path, '2-5')).cache.includes('hit')).toBe(expected === 'hit')
  })
})

test('the profile `safe` stores no parts', async () => {
  const gateway = await startTestGateway({
    services: {
      open: {
        contract: 'open',
        mount: '/',
        upstream: { targets: [service.origin.origin] },
        cache: { rules: [{ match: 'GET /**', ttl: '1m' }] },
      },
    },
  })
  service.origin.script = ranged()
  const path = fresher()
  for (let i = 0; i < 2; i += 1) {
    const reply = await fetch(gateway.publicAddress + path, { headers: { range: 'bytes=2-5' } })
    expect(reply.headers.get('cache-status')).toContain('fwd=uri-miss')
    await reply.arrayBuffer()
  }
  await gateway.close()
})
