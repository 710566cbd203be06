import { connect } from 'node:net'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { startTestGateway, type TestGateway } from '../support/gateway.ts'
import { type Origin, pause, startOrigin } from '../support/origin.ts'
import { exchangeBytes } from '../support/raw-client.ts'
import { describeWith } from '../support/requirements.ts'
import { type RedisServer, startRedisServer } from './shared/redis-server.ts'
import {
  openEntry,
  packEntry,
  type RedisWriter,
  redisWriter,
  type StoredEntry,
} from './shared/stored-entries.ts'

const fromUpstream = 'from the upstream'
const smuggled = 'HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\nsmuggle'
const hour = 3_600_000

const withHeader = (name: string, value: string) => (entry: StoredEntry) => {
  const { facts } = entry.head
  const at = facts.headers.findIndex(
    (one, index) => index % 2 === 0 && one.toLowerCase() === name.toLowerCase(),
  )
  if (at >= 0) facts.headers.splice(at, 2)
  facts.headers.push(name, value)
}
const withStatus = (status: number) => (entry: StoredEntry) => {
  entry.head.facts.status = status
}
const withHead = (name: string, value: unknown) => (entry: StoredEntry) => {
  entry.head[name] = value
}

/** What is changed in an entry, and why it is refused. */
const forged: readonly (readonly [name: string, reason: string, change: (entry: StoredEntry) => void])[] = [
  [
    'a Content-Length shorter than the content',
    'fields',
    (entry) => {
      entry.content = Buffer.from(`x${smuggled}`)
      withHeader('Content-Length', '1')(entry)
    },
  ],
  ['a Content-Length longer than the content', 'fields', withHeader('Content-Length', '1000')],
  ['Transfer-Encoding', 'fields', withHeader('Transfer-Encoding', 'chunked')],
  ['Connection', 'fields', withHeader('Connection', 'close')],
  ['Upgrade', 'fields', withHeader('Upgrade', 'h2c')],
  ['Trailer', 'fields', withHeader('Trailer', 'x')],
  ['Age', 'fields', withHeader('Age', '1')],
  ['fields of a megabyte', 'size', withHeader('X-Long', 'x'.repeat(1_000_000))],
  ['a line end in a field value', 'malformed', withHeader('X-A', 'b\r\nSet-Cookie: a=b')],
  ['a CR in a field value', 'malformed', withHeader('X-A', 'b\rSet-Cookie: a=b')],
  ['an LF in a field value', 'malformed', withHeader('X-A', 'b\nSet-Cookie: a=b')],
  ['an LF behind a field value', 'malformed', withHeader('X-A', 'b\n')],
  ['a NUL in a field value', 'malformed', withHeader('X-A', 'b\0c')],
  [
    'a sign beyond one octet that ends in that of a line end',
    'malformed',
    withHeader('X-A', 'b\u010d\u010aX: y'),
  ],
  ['a line end in a field name', 'malformed', withHeader('X-A: b\r\nX-B', 'c')],
  ['a colon in a field name', 'malformed', withHeader('X-A: b', 'c')],
  ['a space behind a field name', 'malformed', withHeader('X-A ', 'c')],
  ['no field name', 'malformed', withHeader('', 'c')],
  ['a field name without a value', 'malformed', (entry) => void entry.head.facts.headers.push('X-A')],
  ['a status with a text behind it', 'malformed', withStatus('200 OK\r\nX: y' as unknown as number)],
  ['a status that is no integer', 'malformed', withStatus(200.5)],
  ['Content-Length in other letters', 'fields', withHeader('cONTENT-lENGTH', '1')],
  ['Keep-Alive', 'fields', withHeader('Keep-Alive', 'timeout=1')],
  ['status 205', 'not-storable', withStatus(205)],
  ['Set-Cookie under the profile safe', 'not-storable', withHeader('Set-Cookie', 'a=b')],
  ['a nonce', 'not-storable', withHeader('X-WP-Nonce', 'abc')],
  ['Cache-Control: private', 'not-storable', withHeader('Cache-Control', 'private')],
  ['Cache-Control: no-store', 'not-storable', withHeader('Cache-Control', 'no-store')],
  ['Cache-Control: no-cache', 'not-storable', withHeader('Cache-Control', 'no-cache')],
  ['Cache-Control: max-age=0', 'not-storable', withHeader('Cache-Control', 'max-age=0')],
  ['Vary: *', 'not-storable', withHeader('Vary', '*')],
  ['status 204 with content', 'not-storable', withStatus(204)],
  [
    'status 204 without content',
    'not-storable',
    (entry) => {
      entry.content = Buffer.alloc(0)
      withStatus(204)(entry)
    },
  ],
  ['status 304', 'not-storable', withStatus(304)],
  ['status 206', 'not-storable', withStatus(206)],
  ['status 404', 'not-storable', withStatus(404)],
  ['status 500', 'not-storable', withStatus(500)],
  ['status 101', 'malformed', withStatus(101)],
  [
    'a content larger than cache.maxEntryBytes',
    'size',
    (entry) => {
      entry.content = Buffer.alloc(70_000, 'x')
    },
  ],
  ['the key of another target', 'key', (entry) => withHead('key', `${String(entry.head['key'])}x`)(entry)],
  ['the selecting fields of another variant', 'variant', withHead('varyKey', 'accept-language:de')],
  ['a negative age', 'malformed', withHead('ageMs', -1)],
  ['a time to live that is shorter than what is left of it', 'age', withHead('keptMs', 1)],
  ['a time to live of a year', 'age', withHead('keptMs', 365 * 24 * hour)],
  ['a time of storing in the future', 'age', withHead('storedAt', Date.now() + hour)],
  ['a time of storing that is long over', 'stale', withHead('storedAt', Date.now() - hour)],
  ['a tag that is no text', 'malformed', withHead('tags', [1])],
  ['another version', 'malformed', withHead('version', 99)],
]

describeWith('redis', 'entries that somebody else wrote to Redis', () => {
  let redis: RedisServer
  let writer: RedisWriter
  let origin: Origin
  let a: TestGateway
  let b: TestGateway
  let turn = 0
  let target = ''
  let key = ''

  const start = async (): Promise<TestGateway> => {
    const gateway = await startTestGateway({
      cache: {
        maxEntryBytes: '64KiB',
        shared: { url: `redis://127.0.0.1:${redis.port}`, lease: '4s', forgetAfter: '12s' },
      },
      services: {
        open: {
          contract: 'open',
          mount: '/',
          upstream: { targets: [origin.origin] },
          cache: { rules: [{ match: 'GET /**', ttl: '1m' }] },
        },
      },
    })
    // A new ledger gives no lease before forgetAfter is over.
    await writer.redis.hset('{trellis}:ledger', 'born', '1')
    while ((await gateway.metric('trellis_memory_trusted ')) !== 1) await pause(100)
    return gateway
  }

  /** Two requests on one connection: everything that comes back. */
  const rawResponses = (gateway: TestGateway): Promise<string> =>
    exchangeBytes(
      gateway.publicAddress,
      `GET ${target} HTTP/1.1\r\nHost: a\r\n\r\nGET /second${target} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`,
    )

  const expectUpstreamTwice = async (gateway: TestGateway): Promise<string> => {
    const raw = await rawResponses(gateway)
    expect(raw.match(/HTTP\/1\.1 /g)).toHaveLength(2)
    expect(raw.split(fromUpstream)).toHaveLength(3)
    expect(raw.match(/^Cache-Status: trellis; fwd=uri-miss/gim)).toHaveLength(2)
    return raw
  }

  const refusals = (gateway: TestGateway, reason: string): Promise<number> =>
    gateway.metric('trellis_shared_refused_total{', `"${reason}"`)

  beforeAll(async () => {
    redis = await startRedisServer()
    writer = redisWriter(redis.port)
    origin = await startOrigin((_, wire) =>
      wire.respond({
        headers: { 'Content-Type': 'text/plain', 'Surrogate-Key': 'k' },
        content: fromUpstream,
      }),
    )
    a = await start()
    b = await start()
  })
  afterAll(async () => {
    await a.close()
    await b.close()
    await origin.close()
    writer.close()
    await redis.stop()
  })
  beforeEach(async () => {
    turn += 1
    target = `/forged/${turn}`
    await Promise.all((await writer.keys()).map((one) => writer.redis.del(one)))
    await (await fetch(`${a.publicAddress}${target}`)).text()
    while ((await writer.keys()).length === 0) await pause(5)
    key = (await writer.keys())[0] ?? ''
  })

  const forge = async (change: (entry: StoredEntry) => void): Promise<void> => {
    const bytes = await writer.read(key)
    const entry = openEntry(bytes)
    change(entry)
    await writer.write(key, packEntry(bytes, entry))
  }

  test('what instances of the version before store under the same key is left alone, and no damage', async () => {
    const before = key.replace(/:e:.*\{/, ':e:{')
    const bytes = await writer.read(key)
    const entry = openEntry(bytes)
    withHead('version', 4)(entry)
    await writer.redis.del(key)
    await writer.redis.set(before, packEntry(bytes, entry), 'PX', 60_000)
    const refused = await refusals(b, 'malformed')
    expect(await (await fetch(`${b.publicAddress}${target}`)).text()).toBe(fromUpstream)
    await expect.poll(() => writer.keys()).toHaveLength(2)
    expect(openEntry(await writer.read(before)).head['version']).toBe(4)
    expect(await refusals(b, 'malformed')).toBe(refused)
  })

  test('HEAD, ranges, a condition and the hits after them send exactly what their heads say', async () => {
    const octets = Buffer.from(smuggled)
    await forge((entry) => {
      entry.content = octets
      withHeader('ETag', '"a"')(entry)
    })
    await (await fetch(`${b.publicAddress}${target}`)).arrayBuffer()
    const request = (method: string, more = ''): string =>
      `${method} ${target} HTTP/1.1\r\nHost: a\r\n${more}\r\n`
    const forms = [
      request('GET'),
      request('HEAD'),
      request('GET', 'Range: bytes=1-5\r\n'),
      request('GET', 'Range: bytes=9999-\r\n'),
      request('GET', 'If-None-Match: "a"\r\n'),
    ]
    const contents = [octets.toString(), '', octets.toString('latin1', 1, 6), undefined, '']
    const socket = connect(Number(new URL(b.publicAddress).port), '127.0.0.1')
    let text = ''
    socket.setEncoding('latin1').on('data', (chunk) => {
      text += chunk
    })
    // One after the other: after the first rounds the gateway sends heads and contents that it has prepared as text.
    for (let at = 0; at < 60; at += 1) {
      text = ''
      socket.write(forms[at % 5] ?? '')
      await expect.poll(() => text, { interval: 2 }).toContain('\r\n\r\n')
      const end = text.indexOf('\r\n\r\n') + 4
      const head = text.slice(0, end)
      expect(head).toMatch([/ 200 /, / 200 /, / 206 /, / 416 /, / 304 /][at % 5] ?? /^$/)
      const hasContent = at % 5 !== 1 && at % 5 !== 4
      const length = hasContent ? Number(/^content-length: (\d+)/im.exec(head)?.[1]) : 0
      await expect.poll(() => text.length, { interval: 2 }).toBeGreaterThanOrEqual(end + length)
      await pause(3)
      expect(text.length).toBe(end + length)
      if (contents[at % 5] !== undefined) expect(text.slice(end)).toBe(contents[at % 5])
    }
    socket.destroy()
  })

  test('an entry that is as it was written is a hit', async () => {
    await forge(() => undefined)
    const raw = await rawResponses(b)
    expect(raw).toMatch(/^Cache-Status: trellis; hit; ttl=5\d; detail=shared/im)
    expect(raw.match(/^Content-Length: 17\r$/gim)).toHaveLength(2)
  })

  test.each(forged)('%s is a miss, counted as %s', async (_, reason, change) => {
    const before = await refusals(b, reason)
    await forge(change)
    await expectUpstreamTwice(b)
    expect(await refusals(b, reason)).toBe(before + 1)
  })

  test.each([
    ['cut off within its head', (bytes: Buffer) => bytes.subarray(0, 40)],
    ['cut off within its frame', (bytes: Buffer) => bytes.subarray(0, 6)],
    ['empty', () => Buffer.alloc(0)],
    ['a text', () => Buffer.from('hello')],
    [
      'with a head that says it is longer than all',
      (bytes: Buffer) => {
        const copy = Buffer.from(bytes)
        copy.writeUInt32BE(0xffffffff, 4)
        return copy
      },
    ],
    [
      'a list of selecting fields that leads to nothing but itself',
      () => {
        const names = Buffer.from('["accept"]')
        const frame = Buffer.alloc(8)
        frame.writeUInt32BE(0x54563031, 0)
        frame.writeUInt32BE(names.length, 4)
        return Buffer.concat([frame, names])
      },
    ],
    ['of 80 MB', () => Buffer.alloc(80 * 1024 * 1024)],
  ])('an entry that is %s is a miss', async (_, change) => {
    await writer.write(key, change(await writer.read(key)))
    await expectUpstreamTwice(b)
  })

  test('a list, a set and a hash in the place of an entry are misses, and the tier goes on', async () => {
    const lengthen: readonly (() => Promise<unknown>)[] = [
      () => writer.redis.lpush(key, 'a'),
      () => writer.redis.sadd(key, 'a'),
      () => writer.redis.hset(key, 'a', 'b'),
    ]
    const failures = await b.metric('trellis_shared_failures_total')
    for (const put of lengthen) {
      await writer.redis.del(key)
      await put()
      await writer.redis.pexpire(key, 60_000)
      const raw = await rawResponses(b)
      expect(raw.split(fromUpstream)).toHaveLength(3)
      await fetch(`${b.adminAddress}/cache/purge`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: '{"all":true}',
      })
    }
    expect(await b.metric('trellis_shared_failures_total')).toBe(failures)
    expect(await refusals(b, 'malformed')).toBeGreaterThanOrEqual(3)
  })

  test('an entry without a time to live is a miss, and is deleted', async () => {
    await writer.redis.persist(key)
    await expectUpstreamTwice(b)
    // What came in its place has one.
    await expect.poll(() => writer.redis.pttl(key)).toBeGreaterThan(0)
  })

  test('a lifetime is never longer than the rule of this instance says', async () => {
    await writer.redis.pexpire(key, 24 * hour)
    await forge((entry) => {
      entry.head['lifetimeMs'] = 24 * hour
      entry.head['keptMs'] = 24 * hour
    })
    expect(await rawResponses(b)).toMatch(/^Cache-Status: trellis; hit; ttl=(?:5\d|60); detail=shared/im)
  })

  test('tags follow from the response: an entry that names none is stale by a purge of one that it carries', async () => {
    await forge(withHead('tags', []))
    const purged = await fetch(`${a.adminAddress}/cache/purge`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: '{"tag":"open/upstream/k"}',
    })
    expect(purged.status).toBe(200)
    await pause(50)
    const raw = await rawResponses(b)
    expect(raw.split(fromUpstream)).toHaveLength(3)
    expect(raw).not.toContain('detail=shared')
  })
})
