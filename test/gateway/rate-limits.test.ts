import { beforeEach, describe, expect, test } from 'vitest'
import { systemClock } from '../../src/clock.ts'
import type { Rate } from '../../src/exchange/ports.ts'
import { addressGroup } from '../../src/http/bounds/client-network.ts'
import { createRateLimiter, takeOne } from '../../src/server/rate-limiter.ts'
import { closeAfterEach } from '../support/close.ts'
import { postBatch, siteService, startTestGateway, type TestGateway } from '../support/gateway.ts'
import { type Origin, startOrigin } from '../support/origin.ts'

const json = { 'Content-Type': 'application/json; charset=UTF-8' }
const root = '/index.php/site-json'

type Tree = { readonly [key: string]: unknown }

let origin: Origin
let gateway: TestGateway
beforeEach(async () => {
  origin = await startOrigin((_, wire) => wire.respond({ headers: json, content: '{"id":1}' }))
})
closeAfterEach(() => [gateway, origin])

const start = async (rateLimits: readonly Tree[], more: Tree = {}): Promise<void> => {
  gateway = await startTestGateway({
    trustedProxies: ['127.0.0.1'],
    rateLimits,
    services: { site: siteService(origin.origin) },
    ...more,
  })
}
const limit = (more: Tree): Tree => ({ name: 'all', service: 'site', max: 2, window: '1h', ...more })
const get = (path: string, headers: Record<string, string> = {}): Promise<Response> =>
  fetch(gateway.publicAddress + root + path, { headers })
const statuses = async (path: string, times: number, headers: Record<string, string> = {}) => {
  const seen: number[] = []
  for (let i = 0; i < times; i += 1) {
    const response = await get(path, headers)
    await response.arrayBuffer()
    seen.push(response.status)
  }
  return seen
}

describe('a limit', () => {
  test('is reported before and when it is reached, in the shape of the service, and is counted', async () => {
    await start([limit({})])
    const first = await get('/site/v2/posts')
    expect(first.headers.get('ratelimit-policy')).toBe('"all";q=2;w=3600')
    expect(first.headers.get('ratelimit')).toMatch(/^"all";r=1;t=1800$/)
    const second = await get('/site/v2/posts')
    expect(second.headers.get('cache-status')).toContain('hit')
    expect(second.headers.get('ratelimit')).toContain('r=0')
    const third = await get('/site/v2/posts')
    expect(third.status).toBe(429)
    expect(third.headers.get('retry-after')).toMatch(/^(1800|17\d\d)$/)
    expect(third.headers.get('ratelimit')).toContain('r=0')
    expect(await third.json()).toMatchObject({ code: 'trellis_rate_limited', data: { status: 429 } })
    expect(await gateway.metric('trellis_rate_limited_total', 'limit="all"')).toBe(1)
    expect(origin.received).toHaveLength(1)
  })

  test('says what is left in every response to a counted request, a failure of the upstream too', async () => {
    await start([limit({ max: 3 })])
    const left = async (path: string) => {
      const { status, headers } = await get(path)
      return [status, headers.get('ratelimit')?.split(';')[1]]
    }
    expect(await left('/site/v2/posts?per_page=none')).toEqual([400, 'r=2'])
    await origin.close()
    expect(await left('/site/v2/posts')).toEqual([502, 'r=1'])
  })

  test('counts hits as it counts misses, and its headers are not stored', async () => {
    await start([limit({ max: 3 })])
    await get('/site/v2/posts')
    expect((await get('/site/v2/posts')).headers.get('ratelimit')).toContain('r=1')
    expect((await get('/site/v2/posts')).headers.get('ratelimit')).toContain('r=0')
  })

  test('holds for its routes alone, however they are spelled', async () => {
    await start([limit({ match: 'GET /site/v2/posts/**', max: 1 })])
    expect(await statuses('/site/v2/posts/1', 1)).toEqual([200])
    expect(await statuses('/SITE/v2//posts/2/', 1)).toEqual([429])
    expect(await statuses('/site/v2/pages', 3)).toEqual([200, 200, 200])
  })

  test('is one for each address, an IPv6 host being its /64', async () => {
    await start([limit({ max: 1 })])
    const from = (address: string) => statuses('/site/v2/posts', 1, { 'X-Forwarded-For': address })
    expect(await from('203.0.113.1')).toEqual([200])
    expect(await from('203.0.113.1')).toEqual([429])
    expect(await from('203.0.113.2')).toEqual([200])
    expect(await from('2001:db8:1:2::1')).toEqual([200])
    expect(await from('2001:db8:1:2:ffff::2')).toEqual([429])
    expect(await from('2001:db8:1:3::1')).toEqual([200])
  })

  test('is one for each credential, and for the address where there is none', async () => {
    await start([limit({ max: 1, by: 'credential' })])
    const as = (name: string) =>
      statuses('/site/v2/posts', 1, { Authorization: `Basic ${Buffer.from(`${name}:x`).toString('base64')}` })
    expect(await as('ann')).toEqual([200])
    expect(await as('ann')).toEqual([429])
    expect(await as('bob')).toEqual([200])
    expect(await statuses('/site/v2/posts', 2)).toEqual([200, 429])
  })

  test('is kept together with others: all that match are counted', async () => {
    await start([
      limit({ name: 'wide', max: 3 }),
      limit({ name: 'narrow', match: 'GET /site/v2/posts', max: 1 }),
    ])
    const first = await get('/site/v2/posts')
    expect(first.headers.get('ratelimit-policy')).toBe('"wide";q=3;w=3600, "narrow";q=1;w=3600')
    expect(await statuses('/site/v2/posts', 1)).toEqual([429])
    expect(await statuses('/site/v2/pages', 2)).toEqual([200, 429])
  })

  test('counts the items of a batch as the requests that they are', async () => {
    await start([limit({ match: 'POST,PUT,PATCH,DELETE /site/v2/**', max: 2 })], {
      services: { site: siteService(origin.origin, { batch: { split: 'item' } }) },
    })
    const requests = [1, 2, 3].map((id) => ({ path: `/site/v2/posts/${id}`, body: {} }))
    const response = await postBatch(gateway, { requests }, { Authorization: 'Basic YTpi' })
    const { responses } = (await response.json()) as { responses: { status: number; headers: object }[] }
    expect(responses.map(({ status }) => status).sort()).toEqual([200, 200, 429])
    expect(JSON.stringify(responses)).not.toContain('RateLimit-Policy')
  })

  test('goes on with its counts when another one is reloaded beside it', async () => {
    const services = { site: siteService(origin.origin) }
    await start([limit({})])
    expect(await statuses('/site/v2/posts', 3)).toEqual([200, 200, 429])
    const rateLimits = [limit({}), limit({ name: 'more', max: 100 })]
    expect(await gateway.put({ trustedProxies: ['127.0.0.1'], rateLimits, services })).toMatchObject({
      kind: 'applied',
    })
    expect(await statuses('/site/v2/posts', 1)).toEqual([429])
    await gateway.put({ trustedProxies: ['127.0.0.1'], services })
    const free = await get('/site/v2/posts')
    expect([free.status, free.headers.get('ratelimit')]).toEqual([200, null])
  })

  test('remembers a bounded number of clients', async () => {
    await start([limit({ max: 1 })], { rateLimitKeys: 10 })
    const from = (n: number) => statuses('/site/v2/posts', 1, { 'X-Forwarded-For': `10.0.0.${n}` })
    expect(await from(1)).toEqual([200])
    expect(await from(1)).toEqual([429])
    for (let n = 2; n < 15; n += 1) await from(n)
    expect(await from(1)).toEqual([200])
  })

  test('remembers as many as the configuration in force says', async () => {
    await start([limit({ max: 1 })])
    const settings = { trustedProxies: ['127.0.0.1'], rateLimits: [limit({ max: 1 })] }
    const services = { site: siteService(origin.origin) }
    expect(await gateway.put({ ...settings, rateLimitKeys: 10, services })).toMatchObject({ kind: 'applied' })
    const from = (n: number) => statuses('/site/v2/posts', 1, { 'X-Forwarded-For': `10.0.0.${n}` })
    for (let n = 1; n < 15; n += 1) await from(n)
    expect(await from(1)).toEqual([200])
  })
})

test('without limits nothing is said of them', async () => {
  await start([])
  expect((await get('/site/v2/posts')).headers.get('ratelimit')).toBeNull()
})

test.each([
  ['192.0.2.1', '192.0.2.1'],
  ['::ffff:192.0.2.1', '192.0.2.1'],
  ['2001:db8:0:1:2:3:4:5', '2001:db8:0:1::/64'],
  ['2001:DB8::1', '2001:db8:0:0::/64'],
  ['2001:db8:0000:0001::', '2001:db8:0:1::/64'],
  ['::1', '0:0:0:0::/64'],
  ['fe80::1%eth0', 'fe80:0:0:0::/64'],
  ['64:ff9b::192.0.2.33', '64:ff9b:0:0::/64'],
  ['unknown', 'unknown'],
])('%s is counted as %s', (address, group) => {
  expect(addressGroup(address)).toBe(group)
})

describe('a store that several processes share', () => {
  const shared = () => {
    const used = new Map<string, number>()
    return {
      used,
      take: async (name: string, key: string, rate: Rate) => {
        const taken = takeOne(used.get(`${name} ${key}`) ?? 0, rate)
        used.set(`${name} ${key}`, taken.usedMs)
        return taken
      },
    }
  }
  const settings = { name: 'all', by: 'address', max: 1, windowMs: 60_000 } as const
  const caller = { address: '192.0.2.1', credential: undefined }
  const partitionOf = (credential: string): string => credential

  beforeEach(() => start([]))

  test('counts for all of them', async () => {
    const store = shared()
    const limiters = await Promise.all(
      [0, 1].map(() =>
        createRateLimiter(settings, { maxKeys: 10, clock: systemClock, store, processes: 1, partitionOf }),
      ),
    )
    expect(await limiters[0]?.count(caller)).toMatchObject({
      retryAfterSeconds: 0,
      remaining: 0,
      resetSeconds: 60,
    })
    expect(await limiters[1]?.count(caller)).toMatchObject({ retryAfterSeconds: 60 })
    expect([...store.used.keys()]).toEqual(['all address 192.0.2.1'])
  })

  test('admits requests while it cannot be reached', async () => {
    const store = { take: () => Promise.reject(new Error('gone')) }
    const limiter = await createRateLimiter(settings, {
      maxKeys: 10,
      clock: systemClock,
      store,
      processes: 1,
      partitionOf,
    })
    for (let i = 0; i < 3; i += 1) expect(await limiter.count(caller)).toMatchObject({ retryAfterSeconds: 0 })
  })
})

describe('counts in one process', () => {
  const settings = { name: 'all', by: 'address', max: 2, windowMs: 10_000 } as const
  beforeEach(() => start([]))
  type RateLimitOf = { readonly max: number; readonly windowMs: number; readonly processes: number }
  /** A limiter and the time that it reads. */
  const counting = async (maxKeys = 10, { processes = 1, ...more }: Partial<RateLimitOf> = {}) => {
    const time = { nowMs: 0 }
    const limiter = await createRateLimiter(
      { ...settings, ...more },
      {
        maxKeys,
        clock: { monotonic: () => time.nowMs },
        store: undefined,
        processes,
        partitionOf: (credential) => credential,
      },
    )
    return { time, count: (address: string) => limiter.count({ address, credential: undefined }) }
  }

  test('are there at once, without a promise', async () => {
    const { count } = await counting()
    expect(count('192.0.2.1')).toMatchObject({ remaining: 1, resetSeconds: 5, retryAfterSeconds: 0 })
  })

  test('admit a client at once as often as the limit says, and then once in each interval', async () => {
    const { time, count } = await counting()
    const at = async (nowMs: number): Promise<string> => {
      time.nowMs = nowMs
      const { remaining, resetSeconds, retryAfterSeconds } = await count('192.0.2.1')
      return `${remaining} ${resetSeconds} ${retryAfterSeconds}`
    }
    expect(await at(0)).toBe('1 5 0')
    expect(await at(0)).toBe('0 10 0')
    expect(await at(0)).toBe('0 10 5')
    expect(await at(4_500)).toBe('0 6 1')
    expect(await at(5_000)).toBe('0 10 0')
    expect(await at(9_999)).toBe('0 6 1')
    expect(await at(60_000)).toBe('1 5 0')
  })

  test('admit no more than the quota and what a window gives back, wherever it begins', async () => {
    const { time, count } = await counting(10, { max: 100, windowMs: 60_000 })
    const admitted: number[] = []
    for (; time.nowMs < 600_000; time.nowMs += 37)
      if ((await count('192.0.2.1'))?.retryAfterSeconds === 0) admitted.push(time.nowMs)
    const inAWindow = admitted.map((from) => admitted.filter((at) => at >= from && at < from + 60_000).length)
    expect(Math.max(...inAWindow)).toBeLessThanOrEqual(200)
    // Ten windows.
    expect(admitted.length).toBeGreaterThan(1_090)
    expect(admitted.length).toBeLessThanOrEqual(1_100)
  })

  test('are exact for a limit whose interval is no whole number', async () => {
    const { count } = await counting(10, { max: 7, windowMs: 60_000 })
    const admitted = Array.from({ length: 9 }, () => count('192.0.2.1'))
    expect((await Promise.all(admitted)).map(({ remaining }) => remaining)).toEqual([
      6, 5, 4, 3, 2, 1, 0, 0, 0,
    ])
    expect(
      (await Promise.all(admitted)).filter(({ retryAfterSeconds }) => retryAfterSeconds > 0),
    ).toHaveLength(2)
  })

  test('of several processes are a part of the limit each', async () => {
    const { count } = await counting(10, { max: 10, processes: 4 })
    const admitted = await Promise.all(Array.from({ length: 5 }, () => count('192.0.2.1')))
    expect(admitted.filter(({ retryAfterSeconds }) => retryAfterSeconds === 0)).toHaveLength(3)
    expect(admitted[0]?.policy).toBe('"all";q=3;w=10')
  })

  test('are forgotten for the client that was seen least recently, not for the oldest one', async () => {
    const { count } = await counting(2)
    for (const address of ['192.0.2.1', '192.0.2.2', '192.0.2.1', '192.0.2.3']) await count(address)
    expect(await count('192.0.2.1')).toMatchObject({ retryAfterSeconds: 5 })
    expect(await count('192.0.2.2')).toMatchObject({ remaining: 1 })
  })
})
