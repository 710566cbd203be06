import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { Redaction } from '../../src/http/redaction.ts'
import { createHistory, historyView } from '../../src/observability/history.ts'
import { closeAfterAll } from '../support/close.ts'
import { siteService, startTestGateway, type TestGateway } from '../support/gateway.ts'
import { type GatewayProcess, startGatewayProcess } from '../support/gateway-process.ts'
import { logLinesOf } from '../support/log-lines-of.ts'
import { type Origin, startOrigin } from '../support/origin.ts'

const mount = '/index.php/site-json/site/v2'
const json = { 'Content-Type': 'application/json' }

let origin: Origin
let gateway: TestGateway

beforeAll(async () => {
  origin = await startOrigin((request, wire) =>
    wire.respond({
      status: request.target.includes('broken') ? 500 : 200,
      headers: { 'Content-Type': 'application/json' },
      content: JSON.stringify({ id: 1, type: 'post' }),
    }),
  )
  gateway = await startTestGateway({
    services: {
      site: siteService(origin.origin, { cache: { rules: [{ match: 'GET /site/v2/**', ttl: '60s' }] } }),
      pages: {
        contract: 'open',
        mount: '/pages',
        upstream: { targets: [origin.origin] },
        cache: { harmlessWrites: ['POST /ping'] },
      },
    },
  })
})
closeAfterAll(() => [gateway, origin])

const ask = async (path: string, init: RequestInit = {}): Promise<Response> => {
  const response = await fetch(`${gateway.publicAddress}${path}`, init)
  await response.arrayBuffer()
  return response
}

const view = async (path: string): Promise<Record<string, unknown>> =>
  (await (await fetch(`${gateway.adminAddress}${path}`)).json()) as Record<string, unknown>

type Rows = readonly Readonly<Record<string, unknown>>[]

/** The row of an exchange, which is listed when its response has been sent: perhaps later than one that came after it. */
const rowOf = async (list: string, response: Response): Promise<Rows[number]> => {
  const id = response.headers.get('x-request-id')
  const find = async () => ((await view('/recent'))[list] as Rows).find((row) => row['id'] === id)
  await expect.poll(find).toBeDefined()
  return (await find()) as Rows[number]
}

describe('/recent', () => {
  test('errors have the request id, the time, the route and the code; those of clients are listed apart', async () => {
    const failed = await ask('/pages/broken')
    const refused = await ask(`${mount}/posts?per_page=0`)
    const nowhere = await ask('/nowhere')
    expect(await rowOf('errors', failed)).toEqual({
      at: expect.stringMatching(/^\d{4}-\d\d-\d\dT/),
      id: failed.headers.get('x-request-id'),
      service: 'pages',
      route: '/**',
      status: 500,
      code: '',
    })
    expect(await rowOf('refusals', refused)).toMatchObject({
      service: 'site',
      route: '/site/v2/posts',
      status: 400,
      code: 'rest_invalid_param',
    })
    expect(await rowOf('refusals', nowhere)).toMatchObject({ service: 'none', status: 404, code: 'no_route' })
  })

  test('a write is listed with what it invalidated, a purge with what it named', async () => {
    await ask(`${mount}/posts/1`)
    const write = await ask(`${mount}/posts/1`, { method: 'PUT', headers: json, body: '{"title":"x"}' })
    await ask(`${mount}/posts/1`)
    const purge = { url: `${mount}/posts/1?token=planted` }
    const init = { method: 'POST', headers: json }
    await fetch(`${gateway.adminAddress}/cache/purge`, { ...init, body: JSON.stringify(purge) })
    await fetch(`${gateway.adminAddress}/cache/purge`, {
      ...init,
      body: JSON.stringify({ all: true, dryRun: true }),
    })
    await rowOf('invalidations', write)
    const { invalidations } = (await view('/recent')) as { invalidations: Rows }
    expect(invalidations).toMatchObject([
      { by: 'purge', cause: 'purge by url', reach: [`${mount}/posts/1?token=[redacted]`] },
      {
        by: 'write',
        id: write.headers.get('x-request-id'),
        service: 'site',
        cause: 'PUT /site/v2/posts/{id}',
        entries: 1,
        reach: expect.arrayContaining([expect.stringContaining('posts')]),
      },
    ])
  })

  test('a write that removed nothing is listed apart, and many of them hide no invalidation', async () => {
    await ask(`${mount}/posts/1`, { method: 'PUT', headers: json, body: '{"title":"y"}' })
    const init = { method: 'POST', headers: json, body: '{}' }
    for (let i = 0; i < 120; i += 1) await ask('/pages/ping', init)
    const last = await ask('/pages/ping', init)
    expect(await rowOf('kept', last)).toEqual({
      at: expect.stringMatching(/^\d{4}-\d\d-\d\dT/),
      id: last.headers.get('x-request-id'),
      service: 'pages',
      cause: 'POST /**',
      taken: 'harmless',
    })
    const { invalidations, kept } = (await view('/recent')) as { invalidations: Rows; kept: Rows }
    expect(kept).toHaveLength(100)
    expect(invalidations[0]).toMatchObject({ cause: 'PUT /site/v2/posts/{id}' })
  })

  test('a flood of refusals is bounded and hides no error', async () => {
    const broken = await ask('/pages/broken')
    for (let i = 0; i < 150; i += 1) await ask('/nowhere')
    await rowOf('refusals', await ask('/nowhere'))
    expect(await rowOf('errors', broken)).toMatchObject({ status: 500 })
    const { refusals } = (await view('/recent')) as { refusals: Rows }
    expect(refusals).toHaveLength(100)
  })
})

describe('the history', () => {
  const totalsOf = (requests: number, hits: number, failed: number, ...counts: number[]) =>
    new Map([['site', [requests, hits, failed, ...counts]]])

  test('has an hour in steps of ten seconds, with the ratio of hits and the times of each step', () => {
    vi.useFakeTimers({ now: 1_000_000_000_000 })
    let totals = totalsOf(0, 0, 0, 0, 0)
    const clock = { now: Date.now, monotonic: Date.now }
    const history = createHistory(() => totals, clock, new Redaction())
    totals = totalsOf(10, 5, 1, 10, 0)
    vi.advanceTimersByTime(10_000)
    vi.advanceTimersByTime(10_000)
    totals = totalsOf(30, 25, 1, 10, 20)
    vi.advanceTimersByTime(10_000)
    const seen = historyView([history.read(''), history.read('site')], [0.1])
    expect(seen.requests).toHaveLength(360)
    expect(seen.requests.slice(-5)).toEqual([null, 0, 20, 0, 40])
    expect(seen.errors.slice(-3)).toEqual([2, 0, 0])
    expect(seen.hitRatio.slice(-3)).toEqual([0.5, null, 1])
    expect(seen.p50.slice(-3)).toEqual([0.05, null, 0.1])
    vi.advanceTimersByTime(3_600_000)
    expect(history.read('').rows).toEqual([])
    history.close()
    vi.useRealTimers()
  })

  test('counts that begin anew with a longer list of buckets are not lost', () => {
    vi.useFakeTimers({ now: 1_000_000_000_000 })
    let totals = new Map([['site', [0, 0, 0]]])
    const history = createHistory(() => totals, { now: Date.now, monotonic: Date.now }, new Redaction())
    totals = new Map([['site', [1, 0, 0, 1]]])
    vi.advanceTimersByTime(10_000)
    expect(history.read('site').rows).toEqual([[100_000_001, 1, 0, 0, 1]])
    history.close()
    vi.useRealTimers()
  })

  test('lists the last hundred events, newest first, with the time of each', () => {
    const clock = { now: () => 0, monotonic: () => 0 }
    const history = createHistory(() => new Map(), clock, new Redaction())
    for (let at = 1; at <= 250; at += 1) {
      clock.now = () => at * 1000
      history.purged({ cause: 'purge by tag', reach: `tag-${at} ${'x'.repeat(400)}`, entries: at })
    }
    const { invalidations } = history.recent()
    const expected = Array.from({ length: 100 }, (_, i) => 250 - i)
    expect(invalidations.map(({ entries }) => entries)).toEqual(expected)
    expect(invalidations.map(({ at }) => at)).toEqual(
      expected.map((second) => new Date(second * 1000).toISOString()),
    )
    expect(invalidations[0]?.reach[0]).toMatch(/^tag-250 x{149}\.\.\.$/)
    history.close()
  })

  test('is there for each service, and an unknown one has none', async () => {
    expect(await view('/history')).toMatchObject({ seconds: 10, requests: expect.any(Array) })
    expect((await fetch(`${gateway.adminAddress}/history?service=${'x'.repeat(40)}`)).status).toBe(400)
    const { requests } = (await view('/history?service=absent')) as { requests: (number | null)[] }
    expect(requests.every((count) => count === 0 || count === null)).toBe(true)
  })
})

describe('the level of the log', () => {
  let process: GatewayProcess
  const token = 'a-token-of-the-test'
  const headers = { ...json, Authorization: `Bearer ${token}` }
  const put = (content: unknown, headerLines: Record<string, string> = headers) =>
    fetch(`${process.adminOrigin}/log-level`, {
      method: 'PUT',
      headers: headerLines,
      body: JSON.stringify(content),
    })
  const lines = () => logLinesOf(process.program, 'log-level')

  beforeAll(async () => {
    process = await startGatewayProcess({
      workers: 2,
      log: { level: 'warn' },
      admin: { token },
      services: { pages: { contract: 'open', mount: '/pages', upstream: { targets: [origin.origin] } } },
    })
  })
  afterAll(() => process.stop())

  test('needs the token to be changed', async () => {
    expect((await put({ level: 'debug' }, json)).status).toBe(401)
    expect((await put({ level: 'debug' }, { ...headers, 'Content-Type': 'text/plain' })).status).toBe(415)
  })

  test.each([
    [{ level: 'loud' }],
    [{ level: 'debug', for: '10' }],
    [{ level: 'debug', for: '0s' }],
    [{ level: 'debug', for: '2d' }],
    [{ level: 'debug', to: 'x' }],
    [[]],
  ])('%j is refused', async (content) => {
    const response = await put(content)
    expect([response.status, await response.json()]).toMatchObject([400, { code: 'invalid-log-level' }])
  })

  test('changes in all workers and in their parent, goes back after its time, and each change is logged', async () => {
    const refused = () => logLinesOf(process.program, 'request-refused').length
    expect(await (await put({ level: 'info', for: '2s' })).json()).toMatchObject({
      level: 'info',
      configured: 'warn',
      until: expect.stringMatching(/^\d{4}-/),
    })
    await expect.poll(() => lines().length).toBe(3)
    expect(lines()[0]).toMatchObject({ from: 'warn', to: 'info' })
    await expect
      .poll(async () => {
        await fetch(`${process.origin}/nowhere`)
        return refused()
      })
      .toBeGreaterThan(0)
    await expect.poll(() => lines().length).toBe(6)
    expect(lines().at(-1)).toMatchObject({ from: 'info', to: 'warn' })
    const state = await fetch(`${process.adminOrigin}/log-level`, { headers })
    expect(await state.json()).toEqual({ level: 'warn', configured: 'warn' })
  })

  test('the numbers and the last errors are those of all workers', async () => {
    const ids = new Set<string | null>()
    for (let i = 0; i < 8; i += 1) {
      const response = await fetch(`${process.origin}/pages/broken`, { headers: { Connection: 'close' } })
      ids.add(response.headers.get('x-request-id'))
      await response.arrayBuffer()
    }
    const { errors } = (await (await fetch(`${process.adminOrigin}/recent`, { headers })).json()) as {
      errors: Rows
    }
    expect(new Set(errors.map(({ id }) => id))).toEqual(ids)
  })
})
