import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { siteService, startTestGateway, type TestGateway } from '../support/gateway.ts'
import { startGatewayProcess } from '../support/gateway-process.ts'
import { logLinesOf } from '../support/log-lines-of.ts'
import { type Origin, startOrigin } from '../support/origin.ts'
import { exchangeBytes } from '../support/raw-client.ts'

const json = { 'Content-Type': 'application/json; charset=UTF-8' }
const root = '/index.php/site-json'

type Tree = { readonly [key: string]: unknown }

/** The machine that runs the tests may well be busy. */
const calm = { interval: '100ms', eventLoopDelay: '0s' }

let origin: Origin
let gateway: TestGateway
let release: (() => void)[]
beforeEach(async () => {
  release = []
  origin = await startOrigin(async ({ target, content }, wire) => {
    if (target.includes('slow') || content.includes('slow'))
      await new Promise<void>((resolve) => release.push(resolve))
    wire.respond({ headers: json, content: '[{"id":1}]' })
  })
})
afterEach(async () => {
  for (const resolve of release) resolve()
  await gateway.close()
  await origin.close()
})

const services = (): Tree => ({
  site: siteService(origin.origin, {
    batch: { split: 'item' },
    cache: { rules: [{ match: 'GET /site/v2/**', ttl: '60s', staleIfError: '1h' }] },
  }),
})
const start = async (overload: Tree): Promise<void> => {
  gateway = await startTestGateway({ overload: { ...calm, ...overload }, services: services() })
}
const get = (path: string): Promise<Response> => fetch(`${gateway.publicAddress}${root}${path}`)
const post = (path: string, content: unknown): Promise<Response> =>
  fetch(`${gateway.publicAddress}${root}${path}`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', Authorization: 'Basic YTpi' },
    body: JSON.stringify(content),
  })
const batch = (): Promise<Response> =>
  post('/batch/v1', { requests: [{ path: '/site/v2/posts/1', body: {} }] })
const level = (): Promise<number> => gateway.metric('trellis_pressure_level')
const shed = (work: string): Promise<number> => gateway.metric('trellis_shed_total', `class="${work}"`)

describe('a process that has too much to do', () => {
  test('gives up batches and misses first: hits and writes go on', async () => {
    await start({ eventLoopUtilization: 0, retryAfter: '7s' })
    await get('/site/v2/posts')
    // A loop that is ever busy at all is above this.
    const overload = { ...calm, eventLoopUtilization: 0.000_001, retryAfter: '7s' }
    expect(await gateway.put({ overload, services: services() })).toMatchObject({ kind: 'applied' })
    await expect.poll(level).toBe(1)
    const miss = await get('/site/v2/pages')
    expect([miss.status, miss.headers.get('retry-after')]).toEqual([503, '7'])
    expect(await miss.json()).toMatchObject({ code: 'trellis_overloaded', data: { status: 503 } })
    const whole = await batch()
    expect([whole.status, whole.headers.get('retry-after')]).toEqual([503, '7'])
    expect((await get('/site/v2/posts')).headers.get('cache-status')).toContain('hit')
    expect((await post('/site/v2/posts', { title: 'x' })).status).toBe(200)
    expect([await shed('miss'), await shed('batch'), await shed('hit')]).toEqual([1, 1, 0])
    expect(origin.received).toHaveLength(2)
    await gateway.put({ overload: calm, services: services() })
    await expect.poll(level).toBe(0)
    expect((await get('/site/v2/pages')).status).toBe(200)
  })

  test('gives up hits last, with one response to each request that comes', async () => {
    await start({})
    await get('/site/v2/posts')
    await gateway.put({ overload: { ...calm, rssBytes: 1 }, services: services() })
    await expect.poll(level).toBe(3)
    const refused = await get('/site/v2/posts')
    expect(refused.status).toBe(503)
    expect(refused.headers.get('connection')).toBe('close')
    expect(await refused.json()).toMatchObject({ code: 'trellis_overloaded' })
    expect(await shed('hit')).toBe(1)
    expect((await fetch(`${gateway.adminAddress}/livez`)).status).toBe(200)
    await gateway.put({ overload: calm, services: services() })
    await expect.poll(level).toBe(0)
    expect((await get('/site/v2/posts')).headers.get('cache-status')).toContain('hit')
  })

  test.each([false, true])(
    'gives up hits with Upgrade too, where some service has WebSockets: %s',
    async (websockets) => {
      const live = { contract: 'open', mount: '/live', upstream: { targets: [origin.origin] }, websockets }
      await start({})
      await get('/site/v2/posts')
      await gateway.put({ overload: { ...calm, rssBytes: 1 }, services: { ...services(), live } })
      await expect.poll(level).toBe(3)
      const response = await exchangeBytes(
        gateway.publicAddress,
        `GET ${root}/site/v2/posts HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n`,
      )
      expect(response).toMatch(/^HTTP\/1\.1 503 /)
    },
  )

  test('serves stale what it may rather than 503', async () => {
    await start({})
    origin.script = (_, wire) =>
      wire.respond({ headers: { ...json, 'Cache-Control': 'max-age=0', ETag: '"a"' }, content: '[{"id":2}]' })
    await get('/site/v2/posts')
    await gateway.put({
      overload: { ...calm, eventLoopUtilization: 0.000_001 },
      services: services(),
    })
    await expect.poll(level).toBe(1)
    const stale = await get('/site/v2/posts')
    expect([stale.status, stale.headers.get('cache-status')]).toEqual([200, expect.stringContaining('error')])
  })
})

test('batches and misses may use four fifths of the slots; hits need none', async () => {
  await start({ inFlight: 10 })
  await get('/site/v2/posts')
  const waiting = Array.from({ length: 8 }, (_, n) => get(`/site/v2/posts?search=slow${n}`))
  await origin.until(() => release.length === 8)
  expect((await get('/site/v2/pages')).status).toBe(503)
  expect((await get('/site/v2/posts')).headers.get('cache-status')).toContain('hit')
  expect((await post('/site/v2/posts', { title: 'x' })).status).toBe(200)
  expect(await gateway.metric('trellis_shed_total', 'class="miss"', 'signal="in-flight"')).toBe(1)
  for (const resolve of release) resolve()
  expect(new Set((await Promise.all(waiting)).map(({ status }) => status))).toEqual(new Set([200]))
  await expect.poll(async () => (await get('/site/v2/pages')).status).toBe(200)
})

test('a write that is given up invalidates nothing: it was never sent', async () => {
  await start({ inFlight: 2 })
  await get('/site/v2/posts')
  const slow = post('/site/v2/pages', { title: 'slow' })
  await origin.until(() => release.length === 1)
  const before = origin.received.length
  expect((await post('/site/v2/posts', { title: 'x' })).status).toBe(503)
  expect(origin.received).toHaveLength(before)
  expect((await get('/site/v2/posts')).headers.get('cache-status')).toContain('hit')
  for (const resolve of release) resolve()
  await slow
})

test('a loop that is held up is noticed', async () => {
  await start({ eventLoopDelay: '30ms' })
  // The next measurement resets it: blocks the loop until a check has seen it.
  const heldUp = (): Promise<number> => {
    const until = performance.now() + 400
    while (performance.now() < until);
    return level()
  }
  await expect.poll(heldUp).toBeGreaterThan(0)
  await expect.poll(level).toBe(0)
})

test('a loop that was held up once refuses nothing', async () => {
  // A busy machine holds it up as well, but not for two of these intervals.
  const interval = 1_000
  await start({ interval: `${interval}ms`, eventLoopDelay: '500ms' })
  await get('/site/v2/posts')
  const held = performance.now() + 2.5 * interval
  while (performance.now() < held);
  // Long enough for the measurements after it.
  const until = performance.now() + 2.5 * interval
  const statuses = new Set<number>()
  for (let count = 0; performance.now() < until; count += 1) {
    statuses.add((await get(`/site/v2/posts?search=a${count}`)).status)
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
  expect([...statuses]).toEqual([200])
})

test('its log line is a warning: the level of the line is not the level of the pressure', async () => {
  gateway = await startTestGateway({ services: services() })
  const program = await startGatewayProcess({
    overload: { ...calm, rssBytes: 1 },
    services: services(),
  })
  try {
    await expect.poll(() => logLinesOf(program.program, 'pressure-changed')).not.toEqual([])
    const [line] = logLinesOf(program.program, 'pressure-changed')
    expect(line).toMatchObject({ level: 40, pressure: 3, signal: 'rss' })
  } finally {
    await program.stop()
  }
})
