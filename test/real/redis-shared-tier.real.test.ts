import { afterEach, beforeEach, expect, test } from 'vitest'
import { connect } from '../../src/cluster/redis/connections.ts'
import { createCountedRequests, createIdempotencyKeys } from '../../src/cluster/redis/stores.ts'
import { createSignatures } from '../../src/cluster/redis/values.ts'
import { siteService, startTestGateway, type TestGateway } from '../support/gateway.ts'
import { type Origin, pause, startOrigin } from '../support/origin.ts'
import { describeWith } from '../support/requirements.ts'
import { type RedisServer, startRedisServer } from './shared/redis-server.ts'

/** No process is blocked that long, even on a busy machine. */
const steady = { lease: '4s', forgetAfter: '12s' }
/** For tests that wait until no instance trusts its memory. */
const short = { lease: '300ms', forgetAfter: '900ms' }

const noTls = { ca: '', cert: '', key: '', serverName: '' }
const root = '/index.php/site-json/site/v2'

/** What two instances count and remember on one store. */
const sharedStores = async (url: string, secrets: readonly string[] = []) => {
  const signatures = createSignatures(secrets, 'answer')
  const connection = connect(
    {
      url,
      cluster: false,
      tls: noTls,
      troubled: () => undefined,
      timeoutMs: 500,
      maxReplyBytes: 1024 * 1024,
    },
    () => undefined,
  )
  while (connection.status !== 'ready') await pause(10)
  return {
    connection,
    counted: () => createCountedRequests(connection, 'test'),
    keys: () =>
      createIdempotencyKeys(connection, { prefix: 'test', ttlMs: 60_000, maxBytes: 100, signatures }),
  }
}

describeWith('redis', 'the second tier on a real Redis', () => {
  let redis: RedisServer
  let origin: Origin
  let version = 1
  const gateways: TestGateway[] = []
  /** How long the upstream takes. */
  let slowMs = 0

  const settings = (more: Record<string, unknown> = {}, target = origin.origin) => {
    const rules = [
      { match: 'GET /site/v2/users', ttl: '1m', scope: 'credential' },
      { match: 'GET /site/v2/**', ttl: '1m' },
    ]
    return {
      cache: { shared: { url: `redis://127.0.0.1:${redis.port}`, ...steady, ...more } },
      services: { site: siteService(target, { cache: { rules } }) },
    }
  }
  const startInstance = async (more: Record<string, unknown> = {}): Promise<TestGateway> => {
    const gateway = await startTestGateway(settings(more))
    gateways.push(gateway)
    // Makes the ledger look old: a new one grants no leases before forgetAfter has passed.
    await redis.command('HSET', '{trellis}:ledger', 'born', '1')
    return gateway
  }

  const trusting = async (gateway: TestGateway): Promise<void> => {
    for (let tries = 0; tries < 100; tries += 1) {
      if ((await gateway.metric('trellis_memory_trusted ')) === 1) return
      await pause(100)
    }
    throw new Error('the instance does not trust its memory')
  }

  const get = async (
    gateway: TestGateway,
    path = '/posts/1',
    headers: Record<string, string> = {},
  ): Promise<{ status: string; text: string }> => {
    const response = await fetch(`${gateway.publicAddress}${root}${path}`, { headers: headers })
    return { status: response.headers.get('cache-status') ?? '', text: await response.text() }
  }

  const put = (gateway: TestGateway): Promise<number> =>
    fetch(`${gateway.publicAddress}${root}/posts/1`, {
      method: 'PUT',
      headers: { authorization: 'Bearer x', 'content-type': 'application/json' },
      body: '{"title":"x"}',
    }).then(async (response) => {
      await response.arrayBuffer()
      return response.status
    })

  /** Waits until this number of responses is in the second tier. */
  const hasStored = (gateway: TestGateway, count: number): Promise<void> =>
    expect.poll(() => gateway.metric('trellis_shared_stored_total')).toBe(count)

  const reads = (): number => origin.received.filter(({ method }) => method === 'GET').length

  beforeEach(async () => {
    version = 1
    slowMs = 0
    redis = await startRedisServer()
    origin = await startOrigin(async (request, wire) => {
      if (request.method === 'PUT') version += 1
      await pause(slowMs)
      wire.respond({
        headers: { 'Content-Type': 'application/json', Vary: 'Accept-Language' },
        content: JSON.stringify({ id: 1, type: 'post', version }),
      })
    })
  })
  afterEach(async () => {
    for (const gateway of gateways.splice(0)) await gateway.close()
    await origin.close()
    await redis.stop()
  })

  test('a response fetched by one instance serves others, also one that starts later', async () => {
    const [a, b] = [await startInstance(), await startInstance()]
    await Promise.all([trusting(a), trusting(b)])
    expect((await get(a)).status).toMatch(/fwd=uri-miss; fwd-status=200; .*stored/)
    await hasStored(a, 1)
    expect((await get(b)).status).toMatch(/^trellis; hit; ttl=5\d; detail=shared$/)
    expect((await get(b)).status).toMatch(/^trellis; hit; ttl=5\d$/)
    const c = await startInstance()
    await trusting(c)
    expect((await get(c)).status).toContain('detail=shared')
    expect(reads()).toBe(1)
    // Another selection is another entry.
    expect((await get(c, '/posts/1', { 'accept-language': 'de' })).status).toContain('fwd=')
    expect(reads()).toBe(2)
  })

  test('after an acknowledged write no read gets an older response, from memory or from the shared store', async () => {
    const [a, b] = [await startInstance(), await startInstance()]
    await Promise.all([trusting(a), trusting(b)])
    await get(a)
    await get(b)
    expect(await put(a)).toBe(200)
    expect(JSON.parse((await get(b)).text)).toMatchObject({ version: 2 })
    await hasStored(b, 1)
    const c = await startInstance()
    await trusting(c)
    const last = await get(c)
    expect(last.status).toContain('detail=shared')
    expect(JSON.parse(last.text)).toMatchObject({ version: 2 })
    expect(await b.metric('trellis_notes_applied_total')).toBeGreaterThan(0)
  })

  test('a response of the upstream before a reload is not one of its new upstream, nor of instances that have it already', async () => {
    const other = await startOrigin((_, wire) =>
      wire.respond({ headers: { 'Content-Type': 'application/json' }, content: '{"id":1,"version":"new"}' }),
    )
    try {
      const [a, b] = [await startInstance(), await startInstance()]
      await Promise.all([trusting(a), trusting(b)])
      await get(a)
      await hasStored(a, 1)
      expect((await a.put(settings({}, other.origin))).kind).toBe('applied')
      expect(await get(a)).toMatchObject({
        status: expect.stringMatching(/fwd-status=200/),
        text: '{"id":1,"version":"new"}',
      })
      // The other way round, while the other instance has not read the file yet.
      await get(a, '/posts/2')
      await hasStored(a, 3)
      expect((await get(b, '/posts/2')).text).toContain('"version":1')
    } finally {
      await other.close()
    }
  })

  test('a write of an instance that gets a renamed service later than the other one is seen when both have it', async () => {
    const renamed = (): Record<string, unknown> => {
      const { cache, services } = settings()
      return { cache, services: { blog: services.site } }
    }
    const [a, b] = [await startInstance(), await startInstance()]
    await Promise.all([trusting(a), trusting(b)])
    expect((await a.put(renamed())).kind).toBe('applied')
    await get(a)
    expect((await get(a)).status).toContain('hit')
    expect(await put(b)).toBe(200)
    expect((await b.put(renamed())).kind).toBe('applied')
    expect(JSON.parse((await get(a)).text)).toMatchObject({ version: 2 })
  })

  test('forty readers at two instances make one upstream request', async () => {
    const [a, b] = [await startInstance(), await startInstance()]
    await Promise.all([trusting(a), trusting(b)])
    slowMs = 150
    const responses = await Promise.all(Array.from({ length: 40 }, (_, turn) => get(turn % 2 === 0 ? a : b)))
    expect(new Set(responses.map(({ text }) => text)).size).toBe(1)
    expect(reads()).toBe(1)
  })

  test('responses of a single credential are not in the shared tier', async () => {
    const [a, b] = [await startInstance(), await startInstance()]
    await Promise.all([trusting(a), trusting(b)])
    const mine = { authorization: 'Bearer a' }
    await get(a, '/users', mine)
    expect((await get(a, '/users', mine)).status).toContain('hit')
    expect((await get(b, '/users', mine)).status).toContain('fwd=')
    expect(await redis.command('KEYS', 'trellis:e:*')).toBe('*0\r\n')
  })

  test('an empty store after a restart makes no old response valid', async () => {
    const [a, b] = [await startInstance(short), await startInstance(short)]
    await Promise.all([trusting(a), trusting(b)])
    await get(a)
    await get(b)
    await redis.restartEmpty(100)
    // A change that bypasses the gateway shows which responses are fetched again.
    version = 7
    for (const gateway of [a, b]) {
      await expect.poll(() => gateway.metric('trellis_memory_dropped_total')).toBeGreaterThan(0)
    }
    await Promise.all([trusting(a), trusting(b)])
    expect(JSON.parse((await get(a)).text)).toMatchObject({ version: 7 })
    expect(JSON.parse((await get(b)).text)).toMatchObject({ version: 7 })
  })

  test('a first instance is not ready before it may serve stored responses', async () => {
    // A ledger that is as new as it says.
    const a = await startTestGateway(settings({ lease: '300ms', forgetAfter: '3s' }))
    gateways.push(a)
    const ready = async (): Promise<unknown> => {
      const response = await fetch(`${a.adminAddress}/readyz`)
      const { reasons } = (await response.json()) as { reasons: unknown }
      return [response.status, reasons]
    }
    expect(await ready()).toEqual([503, ['starting']])
    expect((await get(a)).status).toContain('fwd=bypass')
    await expect.poll(ready).toEqual([200, []])
    await trusting(a)
  })

  test('without the store reads and writes continue, and readiness reports it', async () => {
    const a = await startInstance(short)
    await trusting(a)
    await get(a)
    await redis.stop()
    await expect.poll(() => a.metric('trellis_memory_trusted ')).toBe(0)
    expect((await get(a)).status).toContain('fwd=bypass')
    const ready = await fetch(`${a.adminAddress}/readyz`)
    expect(ready.status).toBe(200)
    expect(await ready.json()).toMatchObject({ degraded: [{ reason: 'shared' }] })
    const waited = (): Promise<number> => a.metric('trellis_write_spread_seconds_sum{', 'outcome="isolated"')
    // A process that stood still looks for the ledger anew; one that did not waits three leases, and then not at all.
    const oneMore = async (): Promise<number> => {
      const before = await waited()
      expect(await put(a)).toBe(200)
      return (await waited()) - before
    }
    await expect.poll(oneMore).toBeLessThan(0.03)
    expect(JSON.parse((await get(a)).text)).toMatchObject({ version })
  })

  test('a full store is not used until it has memory again', async () => {
    const a = await startInstance(short)
    await trusting(a)
    await redis.command('CONFIG', 'SET', 'maxmemory', '1')
    await expect.poll(() => a.metric('trellis_memory_trusted ')).toBe(0)
    expect((await get(a)).status).toContain('fwd=')
    await redis.command('CONFIG', 'SET', 'maxmemory', '0')
    await trusting(a)
  })

  test('a purge at one instance also removes responses at the other, and both counts are added', async () => {
    const [a, b] = [await startInstance(), await startInstance()]
    await Promise.all([trusting(a), trusting(b)])
    await get(a)
    await hasStored(a, 1)
    await get(b)
    const response = await fetch(`${a.adminAddress}/cache/purge`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: '{"all":true}',
    })
    expect(await response.json()).toMatchObject({ entries: 2 })
    expect((await get(b)).status).toContain('fwd=uri-miss')
  })

  test('both instances share rate limits and idempotency keys', async () => {
    const { counted, keys, connection } = await sharedStores(`redis://127.0.0.1:${redis.port}`)
    const [a, b] = [counted(), counted()]
    const rate = { windowMs: 60_000, intervalMs: 60_000 }
    expect(await a.take('one', 'caller', rate)).toMatchObject({ admitted: true })
    expect(await b.take('one', 'caller', rate)).toMatchObject({ admitted: false })
    expect(await b.take('two', 'caller', rate)).toMatchObject({ admitted: true })
    const [first, second] = [keys(), keys()]
    expect(await first.begin('key', 'what')).toEqual({ kind: 'begun' })
    expect(await second.begin('key', 'what')).toEqual({ kind: 'in-flight' })
    const response = { status: 207, contentType: 'application/json', content: Buffer.from([0, 255, 10]) }
    await first.finish('key', 'what', response)
    expect(await second.begin('key', 'what')).toEqual({ kind: 'finished', response })
    expect(await second.begin('key', 'other')).toEqual({ kind: 'mismatch' })
    expect(await first.begin('large', 'what')).toEqual({ kind: 'begun' })
    await first.finish('large', 'what', { ...response, content: Buffer.alloc(101) })
    expect(await second.begin('large', 'what')).toEqual({ kind: 'not-kept' })
    await first.begin('free', 'what')
    await first.abandon('free')
    expect(await second.begin('free', 'other')).toEqual({ kind: 'begun' })
    await redis.stop()
    await expect(first.begin('gone', 'what')).rejects.toMatchObject({ code: 'shared_store_unreachable' })
    connection.disconnect()
  })

  test('with a key, only a response that was kept for the same request by an instance with the key is given again', async () => {
    const url = `redis://127.0.0.1:${redis.port}`
    const [one, two] = ['a'.repeat(32), 'b'.repeat(32)]
    const a = await sharedStores(url, [one])
    const stranger = await sharedStores(url, [two])
    const keyless = await sharedStores(url)
    const rotated = await sharedStores(url, [two, one])
    const response = { status: 207, contentType: 'application/json', content: Buffer.from('{}') }
    const refused = { code: 'shared_store_unreachable' }
    const finished = { kind: 'finished', response }
    await a.keys().begin('key', 'what')
    await a.keys().finish('key', 'what', response)
    expect(await a.keys().begin('key', 'what')).toEqual(finished)
    expect(await rotated.keys().begin('key', 'what')).toEqual(finished)
    await expect(stranger.keys().begin('key', 'what')).rejects.toMatchObject(refused)
    await expect(keyless.keys().begin('key', 'what')).rejects.toMatchObject(refused)
    // Responses to another request, with another status or type, and an unsigned one.
    for (const change of [
      ['fingerprint', 'other'],
      ['status', '200'],
      ['type', 'text/html'],
      ['content', '{}'],
    ] as const) {
      await redis.command('DEL', 'test:i:{key}')
      await a.keys().begin('key', 'what')
      await a.keys().finish('key', 'what', response)
      await redis.command('HSET', 'test:i:{key}', ...change)
      const fingerprint = change[0] === 'fingerprint' ? change[1] : 'what'
      await expect(a.keys().begin('key', fingerprint)).rejects.toMatchObject(refused)
    }
    for (const { connection } of [a, stranger, keyless, rotated]) connection.disconnect()
  })

  test.each([
    ['a state of another version', ['fingerprint', 'what', 'state', 'half-done']],
    ['no state', ['fingerprint', 'what']],
    ['no fingerprint', ['state', 'in-flight']],
    ['fields of another version', ['digest', 'what', 'phase', '2']],
    ['an answer without its content', ['fingerprint', 'what', 'state', 'finished', 'status', '207']],
    [
      'an answer whose status is none',
      ['fingerprint', 'what', 'state', 'finished', 'status', 'x', 'type', 'a/b', 'content', ''],
    ],
    [
      'an answer whose type is no field value',
      ['fingerprint', 'what', 'state', 'finished', 'status', '207', 'type', 'a\nb', 'content', ''],
    ],
  ])('an invalid idempotency key may stand for a batch that ran: %s', async (_, headers) => {
    const { keys, connection } = await sharedStores(`redis://127.0.0.1:${redis.port}`)
    expect(await redis.command('HSET', 'test:i:{key}', ...headers)).toBe(`:${headers.length / 2}\r\n`)
    const refused = { code: 'shared_store_unreachable' }
    await expect(keys().begin('key', 'what')).rejects.toMatchObject(refused)
    await expect(keys().begin('key', 'what')).rejects.toMatchObject(refused)
    connection.disconnect()
  })

  test('the keys of one entry lie in one slot, and all of the ledger in another: a cluster serves them', async () => {
    await redis.stop()
    redis = await startRedisServer('--cluster-enabled', 'yes', '--cluster-announce-ip', '127.0.0.1')
    expect(await redis.command('CLUSTER', 'ADDSLOTSRANGE', '0', '16383')).toContain('OK')
    while (!(await redis.command('CLUSTER', 'INFO')).includes('cluster_state:ok')) await pause(50)
    const [a, b] = [await startInstance({ cluster: true }), await startInstance({ cluster: true })]
    await Promise.all([trusting(a), trusting(b)])
    await get(a)
    await hasStored(a, 1)
    expect((await get(b)).status).toContain('detail=shared')
    expect(await put(b)).toBe(200)
    expect(JSON.parse((await get(a)).text)).toMatchObject({ version: 2 })
  })
})
