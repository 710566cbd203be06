import { request } from 'node:http'
import { brotliDecompressSync, gunzipSync } from 'node:zlib'
import { beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { closeAfterAll } from '../support/close.ts'
import { siteService, startTestGateway, type TestGateway } from '../support/gateway.ts'
import { type Origin, pause, startOrigin } from '../support/origin.ts'

let origin: Origin
let gateway: TestGateway
const json = { 'Content-Type': 'application/json; charset=UTF-8' }
const long = JSON.stringify([{ id: 1, type: 'page', text: 'Leaf, stem and root. '.repeat(120) }])

type Got = {
  readonly status: number
  readonly headers: Readonly<Record<string, string | undefined>>
  readonly bytes: Buffer
}

/** fetch decodes and asks for codings on its own account; here the bytes count. */
const get = (path: string, headers: Record<string, string> = {}, method = 'GET'): Promise<Got> =>
  new Promise((resolve, reject) => {
    const sent = request(`${gateway.publicAddress}${path}`, { method, headers }, (response) => {
      const chunks: Buffer[] = []
      response.on('data', (chunk: Buffer) => chunks.push(chunk))
      response.on('end', () =>
        resolve({
          status: response.statusCode ?? 0,
          headers: response.headers as Got['headers'],
          bytes: Buffer.concat(chunks),
        }),
      )
    })
    sent.on('error', reject).end()
  })

const site = '/index.php/site-json/site/v2'
let count = 0
/** A list that no test has asked for yet. */
const fresh = (): string => {
  count += 1
  return `${site}/pages?search=c${count}`
}

/** Asks until the response has the coding. */
const coded = async (path: string, coding: string): Promise<Got> => {
  const latest = performance.now() + 60_000
  while (performance.now() < latest) {
    const got = await get(path, { 'Accept-Encoding': coding })
    if (got.headers['content-encoding'] === coding) return got
    await pause(5)
  }
  throw new Error(`never coded with ${coding}`)
}

beforeAll(async () => {
  origin = await startOrigin()
  gateway = await startTestGateway({
    services: {
      site: siteService(origin.origin),
      open: {
        contract: 'open',
        mount: '/open',
        upstream: { targets: [origin.origin] },
        cache: { profile: 'rfc-shared-cache' },
      },
    },
  })
})
closeAfterAll(() => [gateway, origin])
beforeEach(() => {
  origin.received.length = 0
  origin.script = (_, wire) => wire.respond({ headers: json, content: long })
})

describe('content codings of stored responses', () => {
  test('the first response has the coding that its client accepts, and so has each later one', async () => {
    const path = fresh()
    const gzip = { 'Accept-Encoding': 'gzip' }
    const miss = await get(path, gzip)
    const plain = await get(path)
    const hit = await get(path, gzip)
    expect([plain.headers['content-encoding'], plain.headers['vary'], plain.bytes.toString()]).toEqual([
      undefined,
      'Accept-Encoding',
      long,
    ])
    for (const zipped of [miss, hit]) {
      expect(gunzipSync(zipped.bytes).toString()).toBe(long)
      expect(zipped.headers).toMatchObject({
        'content-length': String(zipped.bytes.length),
        'content-type': json['Content-Type'],
        'content-encoding': 'gzip',
        vary: 'Accept-Encoding',
        etag: `${plain.headers['etag']?.slice(0, -1)}~gzip"`,
      })
    }
    expect(miss.headers['cache-status']).toMatch(/; stored$/)
    expect(hit.headers['cache-status']).toMatch(/^trellis; hit; ttl=\d+$/)
    expect(origin.received).toHaveLength(1)
    expect(origin.received[0]?.headers['accept-encoding']).toBe('identity')
  })

  test('HEAD has the headers of GET', async () => {
    const path = fresh()
    await get(path)
    const zipped = await coded(path, 'br')
    const head = await get(path, { 'Accept-Encoding': 'br' }, 'HEAD')
    for (const name of ['etag', 'content-length', 'content-encoding', 'vary', 'content-type']) {
      expect(head.headers[name]).toBe(zipped.headers[name])
    }
    expect(head.bytes).toHaveLength(0)
  })

  test.each([
    ['no field', undefined, undefined],
    ['an empty field', '', undefined],
    ['identity alone', 'identity', undefined],
    ['an unknown coding', 'compress', undefined],
    ['both: the better one of the gateway', 'gzip, br', 'br'],
    ['weights decide', 'br;q=0.5, gzip;q=0.8', 'gzip'],
    ['a refused one is not taken', 'br;q=0, gzip', 'gzip'],
    ['any', '*', 'br'],
    ['any but', '*, br;q=0', 'gzip'],
    ['nothing but', '*;q=0, gzip;q=0.1', 'gzip'],
    ['identity preferred', 'gzip;q=0.5, identity', undefined],
    ['identity refused', 'gzip, identity;q=0', 'gzip'],
    ['an old name', 'X-GZip', 'gzip'],
    ['everything refused', '*;q=0', undefined],
    ['no weight at all', 'gzip;q=, br;q=0', 'gzip'],
  ])('%s: Accept-Encoding %s', async (_, accept, expected) => {
    const path = `${site}/pages?search=negotiation`
    await get(path)
    await coded(path, 'br')
    await coded(path, 'gzip')
    const got = await get(path, accept === undefined ? {} : { 'Accept-Encoding': accept })
    expect(got.headers['content-encoding']).toBe(expected)
    expect(got.status).toBe(200)
    const text =
      expected === 'br'
        ? brotliDecompressSync(got.bytes)
        : expected === 'gzip'
          ? gunzipSync(got.bytes)
          : got.bytes
    expect(text.toString()).toBe(long)
  })

  test.each<[string, Record<string, string>, string]>([
    ['short', json, '[]'],
    ['coded already', { ...json, 'Content-Encoding': 'x-own' }, long],
    ['no-transform', { ...json, 'Cache-Control': 'no-transform' }, long],
    ['an image', { 'Content-Type': 'image/png' }, long],
    ['of unknown type', {}, long],
    ['with a digest of its bytes', { ...json, 'Repr-Digest': 'sha-256=:AAAA:' }, long],
    ['noise', { 'Content-Type': 'text/plain' }, `${Buffer.from(noise()).toString('latin1')}`],
  ])('a response is left as it is: %s', async (name, headers, content) => {
    origin.script = (_, wire) => wire.respond({ headers, content: Buffer.from(content, 'latin1') })
    const path = fresh()
    for (let asked = 0; asked < 4; asked += 1) {
      const got = await get(path, { 'Accept-Encoding': 'gzip, br' })
      expect(got.headers['content-encoding']).toBe(headers['Content-Encoding'])
      expect(got.bytes.toString('latin1')).toBe(content)
      if (name !== 'noise') expect(got.headers['vary']).toBeUndefined()
      await pause(10)
    }
  })

  test.each([
    ['of the form itself', '~gzip"'],
    ['of the form as it is stored', '"'],
    ['of a form that nobody has made', '~br"'],
  ])('who has it already gets 304 with the tag it has: %s', async (_, end) => {
    const path = fresh()
    const etag = (await get(path)).headers['etag'] ?? ''
    await coded(path, 'gzip')
    const mine = `${etag.slice(0, -1)}${end}`
    const got = await get(path, { 'Accept-Encoding': 'gzip, br', 'If-None-Match': `"x", ${mine}` })
    expect(got.status).toBe(304)
    expect(got.headers['etag']).toBe(mine)
    expect(got.headers['vary']).toBe('Accept-Encoding')
    expect(got.headers['content-encoding']).toBeUndefined()
  })

  test('a form that the reader does not accept is not confirmed', async () => {
    const path = fresh()
    await get(path)
    const { etag = '' } = (await coded(path, 'gzip')).headers
    expect((await get(path, { 'If-None-Match': etag })).status).toBe(200)
    const refused = await get(path, { 'If-None-Match': etag, 'Accept-Encoding': 'gzip;q=0' })
    expect(refused.status).toBe(200)
  })

  test('ranges are parts of the uncoded form', async () => {
    const path = fresh()
    const plain = await get(path)
    const zipped = await coded(path, 'gzip')
    const part = { 'Accept-Encoding': 'gzip', Range: 'bytes=0-9' }
    const got = await get(path, part)
    expect([got.status, got.bytes.toString(), got.headers['etag']]).toEqual([
      206,
      long.slice(0, 10),
      plain.headers['etag'],
    ])
    const other = await get(path, { ...part, 'If-Range': zipped.headers['etag'] ?? '' })
    expect([other.status, other.bytes.toString()]).toEqual([200, long])
  })

  test('Accept-Encoding is listed once when the upstream sends Vary, and a weak tag stays weak', async () => {
    const headers = { ...json, Vary: 'Accept-Language, Accept-Encoding', ETag: 'W/"7"' }
    origin.script = (_, wire) => wire.respond({ headers, content: long })
    const path = fresh()
    await get(path)
    const got = await coded(path, 'gzip')
    expect([got.headers['vary'], got.headers['etag']]).toEqual(['Accept-Language, Accept-Encoding', 'W/"7"'])
    expect(origin.received).toHaveLength(1)
  })

  test('an invalidation removes all forms, also one that is being made', async () => {
    const path = fresh()
    await get(path)
    await coded(path, 'gzip')
    void get(path, { 'Accept-Encoding': 'br' })
    const other = long.replaceAll('Leaf', 'Twig')
    origin.script = (_, wire) => wire.respond({ headers: json, content: other })
    await fetch(`${gateway.publicAddress}${site}/pages/1`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: '{}',
    })
    await get(path)
    expect(gunzipSync((await coded(path, 'gzip')).bytes).toString()).toBe(other)
    expect(brotliDecompressSync((await coded(path, 'br')).bytes).toString()).toBe(other)
  })

  test('a write with the tag of a coded form also sends the tag of the upstream', async () => {
    await fetch(`${gateway.publicAddress}${site}/pages/1`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', 'If-Match': '"abc~gzip", "def"' },
      body: '{}',
    })
    expect(origin.received[0]?.headers['if-match']).toBe('"abc~gzip", "def", "abc"')
  })

  test('a write with a tag that the gateway made sends it, and the upstream decides', async () => {
    const path = fresh()
    const made = (await get(path)).headers['etag'] ?? ''
    expect(made).toMatch(/^"/)
    origin.script = (_, wire) => wire.respond({ status: 412, headers: json, content: '{}' })
    const { status } = await fetch(`${gateway.publicAddress}${site}/pages/1`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', 'If-Match': made },
      body: '{}',
    })
    expect(status).toBe(412)
    expect(origin.received.at(-1)?.headers['if-match']).toBe(made)
  })

  test('a validated response keeps its coded forms', async () => {
    const headers = { ...json, ETag: '"1"', 'Cache-Control': 'max-age=1, must-revalidate' }
    origin.script = (received, wire) =>
      received.headers['if-none-match'] === undefined
        ? wire.respond({ headers, content: long })
        : wire.respond({ status: 304, headers })
    const path = fresh()
    await get(path)
    await coded(path, 'gzip')
    await pause(1100)
    const validated = await get(path, { 'Accept-Encoding': 'gzip' })
    expect(validated.headers['cache-status']).toContain('fwd-status=304')
    expect(validated.headers['content-encoding']).toBe('gzip')
    expect(gunzipSync(validated.bytes).toString()).toBe(long)
  })

  test('a hit for which no client has accepted a coding before is coded for the first one that does', async () => {
    const path = fresh()
    await get(path)
    const first = await get(path, { 'Accept-Encoding': 'br' })
    expect(first.headers['cache-status']).toMatch(/^trellis; hit/)
    expect(brotliDecompressSync(first.bytes).toString()).toBe(long)
  })
})

/** Bytes that no coding makes shorter. */
function noise(): Uint8Array {
  let state = 1
  return Uint8Array.from({ length: 2000 }, () => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648
    return state >> 16
  })
}
