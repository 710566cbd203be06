import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import { createKeysInMemory } from '../../../src/batch/idempotency.ts'
import { systemClock } from '../../../src/clock.ts'
import type { RedisConnection } from '../../../src/cluster/redis/connections.ts'
import { createTier } from '../../../src/cluster/redis/tier.ts'
import { createSignatures } from '../../../src/cluster/redis/values.ts'
import { isAll } from '../../support/breadth.ts'
import { siteService, startTestGateway, type TestGateway } from '../../support/gateway.ts'
import { type Origin, pause, type Script, startOrigin } from '../../support/origin.ts'
import { testLedger } from '../../unit/cluster/members.ts'

// The wall clock of the machine is set back or forward while the gateway runs. The monotonic clock goes on as it does.

const hour = 3_600_000
const year = 365 * 24 * hour
const jumps = isAll ? [-30 * year, -hour, hour, 30 * year] : [-hour, 30 * year]

const realNow = Date.now
let shiftMs = 0
const jump = (ms: number): void => {
  shiftMs += ms
}

type Tree = { readonly [key: string]: unknown }

const root = '/index.php/site-json'
const json = { 'Content-Type': 'application/json; charset=UTF-8' }
let origins: Origin[]
let gateway: TestGateway
/** When the upstream made each version of its response, by the monotonic clock. */
let madeAt: number[]

/** A new version for each request, so that a reader can tell how old its response is. */
const versions: Script = (_, wire) => {
  madeAt.push(performance.now())
  wire.respond({ headers: json, content: JSON.stringify({ id: madeAt.length - 1 }) })
}

beforeEach(() => {
  shiftMs = 0
  madeAt = []
  origins = []
  vi.spyOn(Date, 'now').mockImplementation(() => realNow() + shiftMs)
})
afterEach(() => {
  vi.restoreAllMocks()
})

const startUpstream = async (script: Script): Promise<Origin> => {
  const origin = await startOrigin(script)
  origins.push(origin)
  return origin
}
const start = async (targets: readonly Origin[], service: Tree = {}, more: Tree = {}): Promise<void> => {
  const { upstream, ...rest } = service
  const from = siteService('', rest)
  gateway = await startTestGateway({
    services: {
      site: {
        ...from,
        upstream: {
          ...(from['upstream'] as Tree),
          targets: targets.map(({ origin }) => origin),
          ...(upstream as Tree),
        },
      },
    },
    ...more,
  })
  onTestFinished(async () => {
    await gateway.close()
    for (const origin of origins) await origin.close()
  })
}
const cached = (rule: Tree): Tree => ({ cache: { rules: [{ match: 'GET /site/v2/**', ...rule }] } })

type Got = { readonly status: number; readonly version: number; readonly ageMs: number; readonly age: number }

/** `ageMs` is the true age of the response; `age` what its Age header says, in seconds. */
const get = async (path = '/site/v2/posts'): Promise<Got> => {
  const askedAt = performance.now()
  const response = await fetch(`${gateway.publicAddress}${root}${path}`)
  const { id: version } = (await response.json()) as { id: number }
  const ageMs = askedAt - (madeAt[version] ?? Number.NaN)
  return { status: response.status, version, ageMs, age: Number(response.headers.get('age') ?? 0) }
}
const write = (): Promise<Response> =>
  fetch(`${gateway.publicAddress}${root}/site/v2/posts/1`, {
    method: 'POST',
    headers: { ...json, Authorization: 'Basic YTpi' },
    body: '{"title":"a"}',
  })
const gatewayErrors = (): Promise<number> => gateway.metric('trellis_requests_total', 'status_class="5xx"')

/** Reads for this time, and checks the true age of each response. */
const readFor = async (ms: number, maxAgeMs: number, path?: string): Promise<void> => {
  for (const until = performance.now() + ms; performance.now() < until; ) {
    const { status, ageMs, age } = await get(path)
    expect(status).toBeLessThan(500)
    expect(ageMs).toBeLessThan(maxAgeMs)
    expect(age).toBeGreaterThanOrEqual(0)
    await pause(50)
  }
}

describe.each(jumps)('a wall clock that jumps by %i ms', (ms) => {
  test('does not make a stored response fresh for longer than its lifetime', async () => {
    await start([await startUpstream(versions)], cached({ ttl: '400ms' }))
    await get()
    jump(ms)
    await readFor(600, 400)
    jump(-ms)
    await readFor(600, 400)
    expect(madeAt.length).toBeGreaterThan(2)
    expect(await gatewayErrors()).toBe(0)
  })

  test('does not prolong the freshness of a response in flight', async () => {
    const origin = await startUpstream(async (request, wire, count) => {
      madeAt.push(performance.now())
      const made = madeAt.length - 1
      await pause(100)
      if (made === 0) jump(ms)
      wire.respond({ headers: json, content: JSON.stringify({ id: made, count, target: request.target }) })
    })
    await start([origin], cached({ ttl: '500ms' }))
    expect((await get()).status).toBe(200)
    await readFor(700, 500)
    jump(-ms)
    await readFor(700, 500)
    expect(await gatewayErrors()).toBe(0)
  })

  test.each([
    ['max-age', () => ({ 'Cache-Control': 'max-age=1' })],
    ['Expires', () => ({ Expires: new Date(realNow() + 2_000).toUTCString() })],
  ])('does not make a response with a Date and %s fresh for longer than it says', async (_, lifetime) => {
    const origin = await startUpstream((_request, wire) => {
      madeAt.push(performance.now())
      const date = new Date(realNow()).toUTCString()
      const headers = { ...json, Date: date, ...lifetime() }
      wire.respond({ headers, content: JSON.stringify({ id: madeAt.length - 1 }) })
    })
    await start([origin], cached({ ttl: '1h' }))
    await get('/site/v2/posts?page=1')
    jump(ms)
    await get('/site/v2/posts?page=2')
    jump(-ms)
    for (const page of [1, 2, 1, 2]) {
      await readFor(600, 2_000, `/site/v2/posts?page=${page}`)
    }
    expect(await gatewayErrors()).toBe(0)
  })

  test('does not lengthen the time in which a stale response is served while it is fetched anew', async () => {
    await start([await startUpstream(versions)], cached({ ttl: '200ms', staleWhileRevalidate: '300ms' }))
    await get()
    jump(ms)
    await pause(600)
    await readFor(300, 500)
    jump(-ms)
    await pause(600)
    await readFor(300, 500)
    expect(await gatewayErrors()).toBe(0)
  })

  test('does not restore a response that a write has invalidated', async () => {
    await start([await startUpstream(versions)], cached({ ttl: '1h', staleWhileRevalidate: '1h' }))
    for (const [before, after] of [
      [ms, 0],
      [0, ms],
      [-ms, 0],
      [0, -ms],
    ] as const) {
      await get()
      await get('/site/v2/posts/1')
      jump(before)
      expect((await write()).status).toBe(200)
      const written = madeAt.length
      jump(after)
      expect((await get()).version).toBeGreaterThanOrEqual(written)
      expect((await get('/site/v2/posts/1')).version).toBeGreaterThanOrEqual(written)
    }
    expect(await gatewayErrors()).toBe(0)
  })

  test('does not lengthen the time in which something is said to be missing', async () => {
    const origin = await startUpstream((_, wire) => {
      madeAt.push(performance.now())
      wire.respond({ status: 404, headers: json, content: JSON.stringify({ id: madeAt.length - 1 }) })
    })
    await start([origin], cached({ ttl: '1h', negativeTtl: '400ms' }))
    await get()
    jump(ms)
    await readFor(600, 400)
    jump(-ms)
    await readFor(600, 400)
    expect(madeAt.length).toBeGreaterThan(2)
  })

  test('admits a client over its rate limit when the window has passed, and not before', async () => {
    const limit = { name: 'all', service: 'site', match: 'GET /site/v2/pages', max: 1, window: '1500ms' }
    await start([await startUpstream(versions)], {}, { rateLimits: [limit] })
    // The first request of a gateway takes longest.
    await get()
    expect((await get('/site/v2/pages')).status).toBe(200)
    expect((await get('/site/v2/pages')).status).toBe(429)
    jump(ms)
    expect((await get('/site/v2/pages')).status).toBe(429)
    await pause(1_600)
    expect((await get('/site/v2/pages')).status).toBe(200)
  })

  test('sends requests again when the time of a breaker has passed', async () => {
    const origin = await startUpstream((_, wire) => wire.respond({ status: 503 }))
    const breaker = { failureRatio: 0.5, minRequests: 1, for: '1s', probes: 1 }
    await start([origin], { cache: { rules: [] }, upstream: { breaker, retry: { attempts: 1 } } })
    const ask = async (): Promise<number> => {
      const response = await fetch(`${gateway.publicAddress}${root}/site/v2/posts`)
      await response.arrayBuffer()
      return response.status
    }
    await ask()
    const asked = origin.received.length
    origin.script = versions
    jump(ms)
    expect(await ask()).toBe(503)
    expect(origin.received).toHaveLength(asked)
    await pause(1_100)
    expect(await ask()).toBe(200)
  })

  test('uses an ejected target again when its time has passed', async () => {
    const good = await startUpstream(versions)
    const bad = await startUpstream((_, wire) => wire.respond({ status: 503 }))
    const eject = { after: 1, for: '1s', maxShare: 0.5 }
    await start([good, bad], { cache: { rules: [] }, upstream: { eject } })
    const askAll = async (): Promise<void> => {
      for (let i = 0; i < 8; i += 1) expect((await get(`/site/v2/posts?page=${i + 1}`)).status).toBe(200)
    }
    await askAll()
    expect(bad.received).toHaveLength(1)
    bad.script = versions
    jump(ms)
    await pause(1_100)
    await askAll()
    expect(bad.received.length).toBeGreaterThan(1)
  })

  test('keeps retries within their budget, and does not wait long for the date of a Retry-After', async () => {
    const origin = await startUpstream((_, wire) =>
      wire.respond({ status: 503, headers: { 'Retry-After': new Date(realNow() + 100).toUTCString() } }),
    )
    const upstream = { retry: { attempts: 3, budget: 0.1 }, breaker: { minRequests: 1_000 } }
    await start([origin], { cache: { rules: [] }, upstream })
    jump(ms)
    const began = performance.now()
    for (let i = 0; i < 20; i += 1) {
      const response = await fetch(`${gateway.publicAddress}${root}/site/v2/posts?page=${i + 1}`)
      await response.arrayBuffer()
      expect(response.status).toBe(503)
      if (i === 9) jump(-ms)
    }
    expect(performance.now() - began).toBeLessThan(100_000)
    // At least three retries in ten seconds are granted, whatever the share.
    expect(origin.received.length).toBeLessThanOrEqual(26)
  })

  test('does not keep an idempotency key for longer than its time, nor give it up earlier', async () => {
    const store = createKeysInMemory(systemClock).under({ maxBytes: 100_000, ttlMs: 500 })
    expect(await store.begin('k', 'f')).toEqual({ kind: 'begun' })
    jump(ms)
    expect(await store.begin('k', 'f')).toEqual({ kind: 'in-flight' })
    await store.finish('k', 'f', { status: 207, contentType: 'x', content: Buffer.alloc(1) })
    jump(-2 * ms)
    expect(await store.begin('k', 'f')).toMatchObject({ kind: 'finished' })
    await pause(510)
    expect(await store.begin('k', 'f')).toEqual({ kind: 'begun' })
  })

  test('stops serving from memory when the lease has passed without the ledger', async () => {
    const leaseMs = 600
    const ledger = testLedger(leaseMs)
    const a = await ledger.join('a')
    const b = await ledger.join('b')
    onTestFinished(() => Promise.all([a.coherence.close(), b.coherence.close()]).then(() => undefined))
    const trusts = (): boolean => b.coherence.mayTrust({ now: Date.now(), monotonic: performance.now() })
    expect(trusts()).toBe(true)
    jump(ms)
    // A clock that was set forward ends the lease; the next message to the ledger renews it.
    await expect.poll(trusts).toBe(true)
    expect(await a.coherence.broadcast([{ kind: 'tag', tag: 't', mode: 'hard' }])).toMatchObject({
      unacknowledged: false,
    })
    expect(b.applied).toEqual([{ kind: 'tag', tag: 't', mode: 'hard' }])
    b.line.cut = true
    jump(-ms)
    await pause(leaseMs)
    expect(trusts()).toBe(false)
    jump(-ms)
    expect(trusts()).toBe(false)
    b.line.cut = false
    await expect.poll(trusts).toBe(true)
  })

  test('does not make an entry of the shared store younger than it is', async () => {
    const kept = new Map<string, { readonly bytes: Buffer; readonly untilMs: number }>()
    const leftMs = (key: string): number => {
      const one = kept.get(key)
      return one === undefined ? -2 : Math.round(one.untilMs - performance.now())
    }
    const connection = {
      pttl: async (key: string) => leftMs(key),
      getrangeBuffer: async (key: string) => kept.get(key)?.bytes ?? Buffer.alloc(0),
      set: async (key: string, bytes: Buffer, _unit: string, forMs: number) => {
        kept.set(key, { bytes, untilMs: performance.now() + forMs })
        return 'OK'
      },
      del: async (key: string) => Number(kept.delete(key)),
      defineCommand: () => undefined,
    }
    const tier = createTier({
      connection: connection as unknown as RedisConnection,
      prefix: 'test',
      invalidated: { touchedSince: () => false },
      targetTag: (key) => key,
      signatures: createSignatures([], 'entry'),
      maxBytes: 1024 * 1024,
      position: () => ({ epoch: 'e', applied: 3 }),
      mayTrust: () => true,
      clock: systemClock,
      report: () => undefined,
      troubled: (cause) => {
        throw cause
      },
    })
    const load = () =>
      tier.load({
        key: 'k',
        contentId: '',
        secondary: () => '',
        take: ({ ageMs }) => ({ tags: ['k'], ageMs }),
      })
    const record = {
      key: 'k',
      contentId: '',
      tags: ['k'],
      varyNames: [],
      varyKey: '',
      facts: { status: 200, headers: [], ownTag: false },
      content: Buffer.from('x'),
    }
    const place = { epoch: 'e', applied: 3 }
    for (const [before, after] of [
      [0, 0],
      [0, ms],
      [ms, 0],
      [-ms, ms],
    ] as const) {
      jump(before)
      tier.store({ ...record, ageMs: 1_000, lifetimeMs: 60_000 }, place)
      await pause(50)
      jump(after)
      const found = await load()
      if (before === 0 && after === 0) expect(found).toBeDefined()
      if (found !== undefined) expect(found.ageMs).toBeGreaterThanOrEqual(1_049)
      kept.clear()
    }
  })
})
