import { expect, onTestFinished, test } from 'vitest'
import { GatewayError } from '../../src/errors.ts'
import { siteService, startTestGateway } from '../support/gateway.ts'
import { type Origin, pause, type Script, startOrigin } from '../support/origin.ts'
import { request, upstreamOf } from '../unit/upstream/upstream-of.ts'

const originOf = async (script?: Script): Promise<Origin> => {
  const origin = await startOrigin(script)
  onTestFinished(() => origin.close())
  return origin
}

const breaker = { failureRatio: 0.5, minRequests: 4, windowMs: 60_000, forMs: 60_000, probes: 2 }
const once = { retry: { attempts: 1, budget: 0 } }

test('a failing upstream gets no requests, then a few probes, and is used again when they succeed', async () => {
  let broken = true
  const origin = await originOf((_, wire) => (broken ? wire.reset() : wire.respond({})))
  const { upstream, events, skip } = upstreamOf([origin.origin], { ...once, breaker })
  const code = () =>
    upstream.request(request()).then(
      ({ status }) => status,
      (error: unknown) => (error instanceof GatewayError ? error.code : error),
    )
  const codes: unknown[] = []
  for (let i = 0; i < 6; i += 1) codes.push(await code())
  expect(codes).toEqual([...Array(4).fill('upstream_broken'), 'upstream_suspended', 'upstream_suspended'])
  expect(origin.received).toHaveLength(4)
  expect(upstream.snapshot().breaker).toBe('open')
  broken = false
  skip(breaker.forMs)
  expect(await Promise.all([code(), code(), code()])).toEqual([200, 200, 'upstream_suspended'])
  expect(await code()).toBe(200)
  const changes = events.flatMap((event) => (event.kind === 'breaker-changed' ? [event.to] : []))
  expect(changes).toEqual(['open', 'half-open', 'closed'])
})

test('a request that waits for a slot when it opens is refused too, and nothing is sent', async () => {
  const origin = await originOf(async (_, wire) => {
    await pause(20)
    wire.reset()
  })
  const { upstream } = upstreamOf([origin.origin], {
    ...once,
    breaker,
    maxConcurrent: 2,
    queue: { max: 64, timeoutMs: 0 },
  })
  const codes = await Promise.all(
    Array.from({ length: 20 }, () => upstream.request(request()).catch(({ code }: GatewayError) => code)),
  )
  expect(origin.received.length).toBeLessThanOrEqual(5)
  expect(codes.filter((one) => one === 'upstream_suspended').length).toBeGreaterThanOrEqual(15)
  expect(upstream.snapshot()).toMatchObject({ inFlight: 0, queued: 0 })
})

test('answers below 500, and a 500 of the program behind, keep it closed', async () => {
  const statuses = [404, 500, 200, 501]
  const origin = await originOf((_, wire, count) => wire.respond({ status: statuses[count % 4] as number }))
  const { upstream } = upstreamOf([origin.origin], { ...once, breaker })
  for (let i = 0; i < 12; i += 1) await upstream.request(request())
  expect(upstream.snapshot().breaker).toBe('closed')
})

const list = (page: number) => `/site/v2/posts?page=${page}`

test('behind an open breaker: hits go on, stale responses stand in, the rest is 503 with Retry-After, and writes change nothing', async () => {
  let dead = false
  const origin = await originOf((received, wire) =>
    dead
      ? wire.reset()
      : wire.respond({
          headers: { 'Content-Type': 'application/json' },
          content: `["${received.target.at(-1)}"]`,
        }),
  )
  const rule = (match: string, ttl: string) => ({ match, ttl, staleIfError: '1h' })
  const gateway = await startTestGateway({
    services: {
      site: siteService(origin.origin, {
        upstream: {
          targets: [origin.origin],
          basePath: '/index.php/wp-json',
          retry: { attempts: 1 },
          breaker: { minRequests: 4, for: '60s' },
        },
        cache: { rules: [rule('GET /site/v2/tags', '1ms'), rule('GET /site/v2/**', '1h')] },
      }),
    },
  })
  onTestFinished(() => gateway.close())
  const root = `${gateway.publicAddress}/index.php/site-json`
  const get = async (target: string) => {
    const response = await fetch(root + target)
    return [response.status, response.headers.get('cache-status') ?? (await response.json())]
  }
  const before = [await get(list(1)), await get('/site/v2/tags')]
  expect(before.map(([status]) => status)).toEqual([200, 200])
  dead = true
  for (let page = 2; page < 4; page += 1) expect((await get(list(page)))[0]).toBe(502)
  const asked = origin.received.length

  const refused = await fetch(root + list(9))
  expect(refused.status).toBe(503)
  expect(Number(refused.headers.get('retry-after'))).toBeGreaterThanOrEqual(1)
  expect(await refused.json()).toMatchObject({ code: 'trellis_upstream_suspended', data: { status: 503 } })
  const write = await fetch(`${root}/site/v2/posts/1`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: '{"title":"x"}',
  })
  expect(write.status).toBe(503)
  expect(await get(list(1))).toEqual([200, expect.stringContaining('hit')])
  expect(await get('/site/v2/tags')).toEqual([200, expect.stringContaining('detail=error')])
  expect(origin.received).toHaveLength(asked)
  expect(await gateway.metric('upstream_breaker_state', 'state="open"')).toBe(1)
  expect(await gateway.metric('upstream_breaker_changes_total', 'to="open"')).toBe(1)
  expect(await gateway.metric('upstream_breaker_refused_total')).toBe(3)
  expect(await gateway.metric('refusals_total', 'upstream_suspended')).toBeGreaterThanOrEqual(1)
})
