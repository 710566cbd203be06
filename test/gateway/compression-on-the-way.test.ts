import { request } from 'node:http'
import { brotliDecompressSync, constants, deflateSync, gunzipSync, gzipSync } from 'node:zlib'
import { beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { closeAfterAll } from '../support/close.ts'
import { startTestGateway, type TestGateway } from '../support/gateway.ts'
import { type Origin, pause, startOrigin } from '../support/origin.ts'

let origin: Origin
let gateway: TestGateway

type Got = {
  readonly status: number
  readonly headers: Readonly<Record<string, string | undefined>>
  readonly bytes: Buffer
  /** The sizes in which the content came, with pauses between them. */
  readonly chunks: readonly Buffer[]
}

type Asked = {
  readonly method?: string
  readonly body?: string
  readonly from?: string
  readonly onData?: (chunk: Buffer) => void
}

/** fetch decodes, and asks for codings itself; here the bytes count. */
const ask = (path: string, headers: Record<string, string> = {}, asked: Asked = {}): Promise<Got> =>
  new Promise((resolve, reject) => {
    const { method = 'GET', body, from, onData } = asked
    const sent = request(
      `${gateway.publicAddress}${path}`,
      { method, headers, localAddress: from },
      (response) => {
        const chunks: Buffer[] = []
        response.on('data', (chunk: Buffer) => {
          chunks.push(chunk)
          onData?.(chunk)
        })
        response.on('error', reject)
        response.on('end', () =>
          resolve({
            status: response.statusCode ?? 0,
            headers: response.headers as Got['headers'],
            bytes: Buffer.concat(chunks),
            chunks,
          }),
        )
      },
    )
    sent.on('error', reject).end(body)
  })

const gzip = { 'Accept-Encoding': 'gzip' }
const html = { 'Content-Type': 'text/html; charset=utf-8' }
const page = `<!doctype html>${'<p>Leaf, stem and root.</p>'.repeat(200)}`
const zipped = gzipSync(page)
const coded = { ...html, 'Content-Encoding': 'gzip', Vary: 'Accept-Encoding' }
const lasting = { 'Cache-Control': 'max-age=60' }

let count = 0
const fresh = (mount: string): string => {
  count += 1
  return `${mount}/page-${count}`
}

beforeAll(async () => {
  origin = await startOrigin()
  const upstream = {
    targets: [origin.origin],
    maxConcurrent: 512,
    clientShare: 1,
    queue: { max: 4096, timeout: '30s' },
  }
  gateway = await startTestGateway({
    cache: { maxEntryBytes: '256KiB' },
    // Beside other programs it takes a while until hundreds of connections have been read.
    limits: { headersTimeout: '5m', requestTimeout: '5m' },
    services: {
      passed: { contract: 'open', mount: '/passed', upstream },
      untouched: { contract: 'open', mount: '/untouched', upstream, compress: false },
      stored: { contract: 'open', mount: '/stored', upstream, cache: { profile: 'rfc-shared-cache' } },
      ruled: {
        contract: 'open',
        mount: '/ruled',
        upstream,
        cache: { rules: [{ match: 'GET /**', ttl: '60s' }] },
      },
      own: {
        contract: 'open',
        mount: '/own',
        upstream,
        cache: { rules: [{ match: 'GET /**', ttl: '60s', scope: 'credential' }] },
      },
    },
  })
})
closeAfterAll(() => [gateway, origin])
beforeEach(() => {
  origin.received.length = 0
  origin.script = (_, wire) => wire.respond({ headers: html, content: page })
})

describe('responses that are not stored', () => {
  test.each<[string, string | undefined, string]>([
    ['no field', undefined, 'identity'],
    ['an empty field', '', 'identity'],
    ['one coding', 'gzip', 'gzip'],
    ['what browsers send', 'gzip, deflate, br, zstd', 'gzip, deflate, br, zstd'],
    ['weights', 'br;q=1.0, gzip;q=0.8, *;q=0.1', 'br, gzip;q=0.8, *;q=0.1'],
    ['everything but one', 'gzip;q=0, *;q=1', 'gzip;q=0, *'],
    ['an old name, and the same coding again', 'X-GZip, gzip;q=0', 'gzip'],
    ['unknown codings', 'aes128gcm, made-up, br', 'br'],
    ['empty members', '\t,,;q=1, identity;q=0', 'identity;q=0'],
    ['a thousand unknown codings', Array.from({ length: 1000 }, (_, i) => `c${i}`).join(', '), 'identity'],
    ['a thousand known ones', `${'gzip,'.repeat(31)}${'br,'.repeat(1000)}`, 'gzip, br'],
  ])('Accept-Encoding is forwarded in one form: %s', async (_, accepted, expected) => {
    await ask(fresh('/passed'), accepted === undefined ? {} : { 'Accept-Encoding': accepted })
    expect(origin.received[0]?.headers['accept-encoding']).toBe(expected)
  })

  test('a response that the upstream has compressed passes byte for byte, with its entity tag and length', async () => {
    origin.script = (_, wire) => wire.respond({ headers: { ...coded, ETag: '"1-gzip"' }, content: zipped })
    const got = await ask(fresh('/passed'), gzip)
    expect(got.bytes).toEqual(zipped)
    expect(got.headers).toMatchObject({
      'content-encoding': 'gzip',
      'content-length': String(zipped.length),
      etag: '"1-gzip"',
      vary: 'Accept-Encoding',
    })
  })

  test.each([
    ['gzip', gunzipSync],
    ['br', brotliDecompressSync],
  ] as const)('what it has not coded is sent in %s', async (coding, decoded) => {
    origin.script = (_, wire) =>
      wire.respond({ headers: { ...html, ETag: '"1"', 'Accept-Ranges': 'bytes' }, content: page })
    const got = await ask(fresh('/passed'), { 'Accept-Encoding': coding })
    expect(decoded(got.bytes).toString()).toBe(page)
    expect(got.headers).toMatchObject({
      'content-encoding': coding,
      etag: `"1~${coding}"`,
      vary: 'Accept-Encoding',
    })
    expect(got.headers['accept-ranges']).toBeUndefined()
  })

  test.each([
    ['X-Accept-Encoding-Own', 'X-Accept-Encoding-Own, Accept-Encoding'],
    ['Accept-Language, accept-encoding', 'Accept-Language, accept-encoding'],
    ['*', '*'],
  ])('Vary of the upstream, %s, lists Accept-Encoding to the client once', async (vary, expected) => {
    origin.script = (_, wire) => wire.respond({ headers: { ...html, Vary: vary }, content: page })
    for (const mount of ['/passed', '/ruled']) {
      const got = await ask(fresh(mount), gzip)
      expect([got.headers['content-encoding'], got.headers['vary']]).toEqual(['gzip', expected])
    }
  })

  test('a long response without a length is sent in the coding', async () => {
    const part = page.repeat(20)
    origin.script = async (_, wire) => {
      wire.write('HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nTransfer-Encoding: chunked\r\n\r\n')
      for (let i = 0; i < 5; i += 1) wire.write(`${part.length.toString(16)}\r\n${part}\r\n`)
      wire.write('0\r\n\r\n')
    }
    const got = await ask(fresh('/passed'), gzip)
    expect(gunzipSync(got.bytes).toString()).toBe(part.repeat(5))
    expect(got.headers['content-length']).toBeUndefined()
  })

  test('a page that is still being made is sent as far as it has come', async () => {
    let seen = Buffer.alloc(0)
    let finish = (): void => {}
    origin.script = (_, wire) => {
      wire.write(
        'HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n<head\r\n',
      )
      finish = () => wire.write('1\r\n>\r\n0\r\n\r\n')
    }
    const got = ask(fresh('/passed'), gzip, {
      onData: (chunk) => {
        seen = Buffer.concat([seen, chunk])
      },
    })
    const text = () => gunzipSync(seen, { finishFlush: constants.Z_SYNC_FLUSH }).toString()
    await expect.poll(() => (seen.length === 0 ? '' : text())).toBe('<head')
    finish()
    expect(gunzipSync((await got).bytes).toString()).toBe('<head>')
  })

  test('a response that breaks off does not look complete', async () => {
    origin.script = async (_, wire) => {
      wire.write('HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nTransfer-Encoding: chunked\r\n\r\n')
      wire.write(`${page.length.toString(16)}\r\n${page}\r\n`)
      await pause(50)
      wire.reset()
    }
    await expect(ask(fresh('/passed'), gzip)).rejects.toThrow()
  })

  test.each<[string, Record<string, string>, string]>([
    ['short', html, '<p>'],
    ['of a type that is compressed already', { 'Content-Type': 'image/webp' }, page],
    ['of no type', {}, page],
    ['an event stream', { 'Content-Type': 'text/event-stream' }, page],
    ['no-transform', { ...html, 'Cache-Control': 'private, no-transform' }, page],
    ['with a digest of its bytes', { ...html, 'Content-Digest': 'sha-256=:AAAA:' }, page],
    ['in a coding that no one knows', { ...html, 'Content-Encoding': 'x-own' }, page],
  ])('a response is left as it is: %s', async (_, headers, content) => {
    origin.script = (_received, wire) => wire.respond({ headers, content })
    const got = await ask(fresh('/passed'), { 'Accept-Encoding': 'gzip, br' })
    expect([got.bytes.toString(), got.headers['content-encoding'], got.headers['vary']]).toEqual([
      content,
      headers['Content-Encoding'],
      undefined,
    ])
    expect(got.headers['content-length']).toBe(String(content.length))
  })

  test.each<[string, Record<string, string>]>([
    ['a range', { ...gzip, Range: 'bytes=0-9' }],
    ['no-transform', { ...gzip, 'Cache-Control': 'no-transform' }],
    ['only codings of weight 0', { 'Accept-Encoding': 'gzip;q=0, br;q=0' }],
    ['identity before gzip', { 'Accept-Encoding': 'identity, gzip;q=0.5' }],
    ['nothing', {}],
  ])('a client gets the uncoded form when it asks for %s', async (_, headers) => {
    const got = await ask(fresh('/passed'), headers)
    expect([got.bytes.toString(), got.headers['content-encoding']]).toEqual([page, undefined])
  })

  test.each<[string, Record<string, string>, number, string | undefined, string | undefined]>([
    ['leaves out the length that GET would not have', gzip, 5000, undefined, 'Accept-Encoding'],
    ['has the length of a response that GET would not compress', gzip, 50, '50', undefined],
    ['has the length for a client that accepts no coding', {}, 5000, '5000', undefined],
    ['has the length for a range', { ...gzip, Range: 'bytes=0-1' }, 5000, '5000', undefined],
  ])('HEAD %s', async (_, headers, length, expected, vary) => {
    origin.script = (_received, wire) =>
      wire.write(`HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: ${length}\r\n\r\n`)
    for (const mount of ['/passed', '/ruled']) {
      const { headers: headerLines } = await ask(fresh(mount), headers, { method: 'HEAD' })
      expect([headerLines['content-length'], headerLines['content-encoding'], headerLines['vary']]).toEqual([
        expected,
        undefined,
        vary,
      ])
    }
  })

  test('HEAD without a length has the Vary of GET', async () => {
    origin.script = (_received, wire) => wire.write('HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n')
    const { headers } = await ask(fresh('/passed'), gzip, { method: 'HEAD' })
    expect([headers['content-length'], headers['vary']]).toEqual([undefined, 'Accept-Encoding'])
  })

  test('compress: false leaves everything as it is', async () => {
    const got = await ask(fresh('/untouched'), gzip)
    expect([got.bytes.toString(), got.headers['content-encoding'], got.headers['vary']]).toEqual([
      page,
      undefined,
      undefined,
    ])
    expect(origin.received[0]?.headers['accept-encoding']).toBe('gzip')
  })

  test('the response to a POST is sent in the coding', async () => {
    const got = await ask(fresh('/passed'), gzip, { method: 'POST', body: 'a=1' })
    expect(gunzipSync(got.bytes).toString()).toBe(page)
  })

  test.each(['If-None-Match', 'If-Match'])(
    '%s with the tag of a coded form reaches the upstream with its own tag too',
    async (name) => {
      await ask(fresh('/passed'), { ...gzip, [name]: '"1~gzip", "2~identity~br"' })
      expect(origin.received[0]?.headers[name.toLowerCase()]).toBe(
        '"1~gzip", "2~identity~br", "1", "2~identity", "2"',
      )
    },
  )

  test.each([
    ['the form that the client has, and its Vary', '"1~gzip"', '"1~gzip"', 'Accept-Encoding'],
    ['the uncoded one, which it has', '"1"', '"1"', undefined],
    ['a weak tag', 'W/"1"', '"1"', undefined],
  ])('a 304 has the tag of %s', async (_, asked, expected, vary) => {
    origin.script = (_received, wire) => wire.respond({ status: 304, headers: { ETag: '"1"' } })
    const got = await ask(fresh('/passed'), { ...gzip, 'If-None-Match': asked })
    expect([got.status, got.headers['etag'], got.headers['vary']]).toEqual([304, expected, vary])
  })

  test('beyond the bound on concurrent work responses are sent uncompressed', async () => {
    origin.script = async (_, wire) => {
      wire.write('HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nTransfer-Encoding: chunked\r\n\r\n')
      wire.write(`${page.length.toString(16)}\r\n${page}\r\n`)
      await origin.until(() => origin.received.length === 60)
      wire.write('0\r\n\r\n')
    }
    const all = await Promise.all(Array.from({ length: 60 }, (_, i) => ask(`/passed/many-${i}`, gzip)))
    const plain = all.filter(({ headers }) => headers['content-encoding'] === undefined)
    expect(plain).toHaveLength(28)
    for (const { bytes, headers } of all) {
      expect(headers['vary']).toBe('Accept-Encoding')
      expect((headers['content-encoding'] === 'gzip' ? gunzipSync(bytes) : bytes).toString()).toBe(page)
    }
    origin.script = (_, wire) => wire.respond({ headers: html, content: page })
    expect((await ask(fresh('/passed'), gzip)).headers['content-encoding']).toBe('gzip')
  })
})

test('clients that hold as many compressed responses as they can leave some for others', async () => {
  let isOver = false
  origin.script = async (_, wire) => {
    wire.write('HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nTransfer-Encoding: chunked\r\n\r\n')
    wire.write(`${page.length.toString(16)}\r\n${page}\r\n`)
    await origin.until(() => isOver)
    wire.write('0\r\n\r\n')
  }
  const greedy = ['127.0.0.2', '127.0.0.3', '127.0.0.4', '127.0.0.5']
  const held: Promise<Got>[] = []
  for (const from of greedy) {
    for (let i = 0; i < 64; i += 1) held.push(ask(`/passed/held-${from}-${i}`, gzip, { from }))
    await origin.until(() => origin.received.length === held.length)
  }
  origin.script = (_, wire) => wire.respond({ headers: html, content: page })
  const others = ['127.0.0.6', '127.0.0.7', '127.0.0.8']
  const got = await Promise.all(others.map((from) => ask(`/passed/other-${from}`, gzip, { from })))
  isOver = true
  await Promise.all(held)
  expect(got.map(({ headers }) => headers['content-encoding'])).toEqual(['gzip', 'gzip', 'gzip'])
})

test('two hundred requests at once get whole responses, compressed or not', async () => {
  const long = page.repeat(10)
  origin.script = (_, wire) => wire.respond({ headers: html, content: long })
  const all = await Promise.all(
    Array.from({ length: 200 }, (_, i) => ask(`${i % 2 === 0 ? '/passed' : '/ruled'}/flood-${i}`, gzip)),
  )
  const wrong = all.filter(
    ({ bytes, headers }) =>
      (headers['content-encoding'] === 'gzip' ? gunzipSync(bytes) : bytes).toString() !== long,
  )
  expect(wrong.map(({ status }) => status)).toEqual([])
  expect(all.some(({ headers }) => headers['content-encoding'] === 'gzip')).toBe(true)
  // No slot was lost.
  const later = await Promise.all(Array.from({ length: 32 }, (_, i) => ask(`/passed/later-${i}`, gzip)))
  expect(later.every(({ headers }) => headers['content-encoding'] === 'gzip')).toBe(true)
})

describe('stored responses that the upstream has coded', () => {
  test.each(['/stored', '/ruled'])('one response under %s serves clients of every coding', async (mount) => {
    origin.script = (_, wire) =>
      wire.respond({ headers: { ...coded, ...lasting, ETag: '"1-gzip"' }, content: zipped })
    const path = fresh(mount)
    const miss = await ask(path, { 'Accept-Encoding': 'gzip, deflate, br;q=0.5' })
    expect(origin.received[0]?.headers['accept-encoding']).toBe('gzip, br')
    expect([miss.bytes, miss.headers['content-encoding']]).toEqual([zipped, 'gzip'])
    const plain = await ask(path)
    expect([plain.bytes.toString(), plain.headers['content-encoding'], plain.headers['etag']]).toEqual([
      page,
      undefined,
      '"1-gzip~identity"',
    ])
    const refusing = await ask(path, { 'Accept-Encoding': 'gzip;q=0, *;q=1' })
    expect(brotliDecompressSync(refusing.bytes).toString()).toBe(page)
    const same = await ask(path, gzip)
    expect([same.bytes, same.headers['etag']]).toEqual([zipped, '"1-gzip~identity~gzip"'])
    const again = await ask(path, { ...gzip, 'If-None-Match': '"1-gzip~identity~gzip"' })
    expect(again.status).toBe(304)
    const range = await ask(path, { ...gzip, Range: 'bytes=0-8' })
    expect([range.status, range.bytes.toString()]).toEqual([206, page.slice(0, 9)])
    expect(origin.received).toHaveLength(1)
  })

  test('for a client without codings the upstream is asked for none; later clients get theirs', async () => {
    const path = fresh('/stored')
    origin.script = (_, wire) => wire.respond({ headers: { ...html, ...lasting }, content: page })
    await ask(path)
    expect(origin.received[0]?.headers['accept-encoding']).toBe('identity')
    expect((await ask(path, gzip)).headers['content-encoding']).toBe('gzip')
    expect(origin.received).toHaveLength(1)
  })

  test('any Accept-Encoding makes one stored response', async () => {
    const path = fresh('/stored')
    origin.script = (received, wire) =>
      wire.respond(
        received.headers['accept-encoding'] === 'gzip'
          ? { headers: { ...coded, ...lasting }, content: zipped }
          : { headers: { ...html, ...lasting, Vary: 'Accept-Encoding' }, content: page },
      )
    for (const value of ['gzip', 'br', 'deflate', 'x, y', '*', 'gzip;q=0.3', 'identity;q=0.1']) {
      await ask(path, { 'Accept-Encoding': value })
    }
    expect(origin.received).toHaveLength(1)
  })

  test('it is validated with the tag of the upstream, and keeps its forms', async () => {
    origin.script = (received, wire) =>
      received.headers['if-none-match'] === '"1-gzip"'
        ? wire.respond({ status: 304, headers: { ETag: '"1-gzip"', 'Cache-Control': 'max-age=60' } })
        : wire.respond({
            headers: { ...coded, ETag: '"1-gzip"', 'Cache-Control': 'no-cache' },
            content: zipped,
          })
    const path = fresh('/stored')
    await ask(path, gzip)
    const validated = await ask(path, gzip)
    expect(validated.headers['cache-status']).toContain('fwd-status=304')
    expect([validated.bytes, validated.headers['etag']]).toEqual([zipped, '"1-gzip~identity~gzip"'])
    expect((await ask(path)).headers['etag']).toBe('"1-gzip~identity"')
  })

  test('a response that turns out not to be storable passes unchanged', async () => {
    origin.script = (_, wire) =>
      wire.respond({ headers: { ...coded, 'Cache-Control': 'private' }, content: zipped })
    const got = await ask(fresh('/stored'), gzip)
    expect([got.bytes, got.headers['content-encoding']]).toEqual([zipped, 'gzip'])
  })

  test('small contents that the upstream has coded stay coded', async () => {
    const small = gzipSync('{"a":1}'.repeat(30))
    const path = fresh('/stored')
    origin.script = (_, wire) => wire.respond({ headers: { ...coded, ...lasting }, content: small })
    await ask(path, gzip)
    expect((await ask(path, gzip)).bytes).toEqual(small)
  })

  test('responses of one caller are compressed too', async () => {
    const path = fresh('/own')
    const asked = { ...gzip, Authorization: 'Bearer abc' }
    for (const _ of [1, 2]) expect(gunzipSync((await ask(path, asked)).bytes).toString()).toBe(page)
    expect(origin.received).toHaveLength(1)
  })

  test('an error that many readers share is uncoded for those that accept no coding', async () => {
    origin.script = async (_, wire) => {
      await pause(100)
      wire.respond({ status: 503, headers: { ...coded, 'Retry-After': '1000' }, content: zipped })
    }
    const path = fresh('/ruled')
    const first = ask(path, gzip)
    await origin.until(() => origin.received.length > 0)
    const [own, other] = await Promise.all([first, ask(path)])
    expect(gunzipSync(own.bytes).toString()).toBe(page)
    expect([other.headers['content-encoding'], other.bytes.toString()]).toEqual([undefined, page])
  })

  const bomb = gzipSync(Buffer.alloc(64 * 1024 * 1024))
  test.each<[string, Buffer, Record<string, string>, string]>([
    ['that decodes to more than may be stored', bomb, {}, 'too-large'],
    ['that is cut off', zipped.subarray(0, -20), {}, 'coding'],
    ['that is not gzip', Buffer.from(page), {}, 'coding'],
    ['of two codings', zipped, { 'Content-Encoding': 'gzip, gzip' }, 'coding'],
    ['in zstd', zipped, { 'Content-Encoding': 'zstd' }, 'coding'],
    ['with no-transform', zipped, { 'Cache-Control': 'max-age=60, no-transform' }, 'coding'],
  ])('a content %s is not stored and passes unchanged', async (_, content, headers, reason) => {
    origin.script = (_received, wire) =>
      wire.respond({ headers: { ...coded, ...lasting, ...headers }, content: content as never })
    const path = fresh('/stored')
    for (const _time of [1, 2]) {
      const got = await ask(path, gzip)
      expect(got.bytes.equals(content)).toBe(true)
      expect(got.headers['content-encoding']).toBe(headers['Content-Encoding'] ?? 'gzip')
      expect(got.headers['cache-status']).toContain(`detail=${reason}`)
    }
    expect(origin.received).toHaveLength(2)
  })

  test('deflate from an upstream that was not asked for it is decoded', async () => {
    origin.script = (_, wire) =>
      wire.respond({
        headers: { ...html, ...lasting, 'Content-Encoding': 'deflate' },
        content: deflateSync(page) as never,
      })
    const path = fresh('/stored')
    expect((await ask(path)).bytes.toString()).toBe(page)
    expect(gunzipSync((await ask(path, gzip)).bytes).toString()).toBe(page)
  })

  test('a long coded response without a length is stored', async () => {
    const long = page.repeat(30)
    const content = gzipSync(long, { level: 0 })
    origin.script = async (_, wire) => {
      wire.write(
        `HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nCache-Control: max-age=60\r\nContent-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n${content.length.toString(16)}\r\n`,
      )
      wire.write(content)
      wire.write('\r\n0\r\n\r\n')
    }
    const path = fresh('/stored')
    const all = await Promise.all([ask(path, gzip), ask(path, gzip), ask(path)])
    for (const { bytes, headers } of all)
      expect((headers['content-encoding'] === 'gzip' ? gunzipSync(bytes) : bytes).toString()).toBe(long)
    expect((await ask(path)).bytes.toString()).toBe(long)
    expect(origin.received).toHaveLength(1)
  })

  test('a long uncoded response is compressed while it is stored', async () => {
    const long = page.repeat(30)
    origin.script = (_, wire) =>
      wire.respond({ headers: { ...html, ...lasting, ETag: '"1"' }, content: long })
    const path = fresh('/stored')
    for (const _ of [1, 2]) {
      const got = await ask(path, gzip)
      expect([gunzipSync(got.bytes).toString(), got.headers['etag']]).toEqual([long, '"1~gzip"'])
    }
    expect(origin.received).toHaveLength(1)
  })

  test('no memory stays reserved', async () => {
    await expect.poll(() => gateway.metric('trellis_buffered_bytes')).toBe(0)
  })
})
