import { beforeEach, describe, expect, test } from 'vitest'
import { closeAfterEach } from '../support/close.ts'
import { siteService, startTestGateway, type TestGateway } from '../support/gateway.ts'
import { type Origin, startOrigin } from '../support/origin.ts'

const json = { 'Content-Type': 'application/json; charset=UTF-8' }
const root = '/index.php/site-json'
const app = 'https://app.test'
const evil = 'https://evil.test'

type Tree = { readonly [key: string]: unknown }

let origin: Origin
let gateway: TestGateway
beforeEach(async () => {
  // As WordPress does: every origin is allowed, with credentials.
  origin = await startOrigin(({ headers }, wire) => {
    const asked = headers['origin']
    const echoed: Record<string, string> =
      asked === undefined
        ? {}
        : { 'Access-Control-Allow-Origin': asked, 'Access-Control-Allow-Credentials': 'true' }
    wire.respond({ headers: { ...json, ...echoed }, content: '[{"id":1}]' })
  })
})
closeAfterEach(() => [gateway, origin])

const start = async (cors: Tree, more: Tree = {}): Promise<void> => {
  gateway = await startTestGateway({ cors, services: { site: siteService(origin.origin, more) } })
}
const from = (asked: string, path = '/site/v2/posts', init: RequestInit = {}): Promise<Response> =>
  fetch(gateway.publicAddress + root + path, { ...init, headers: { ...init.headers, Origin: asked } })
const told = ({ headers }: Response): unknown => [
  headers.get('access-control-allow-origin'),
  headers.get('access-control-allow-credentials'),
]
const isHit = ({ headers }: Response): boolean => headers.get('cache-status')?.includes('hit') === true
const preflight = (asked: string, path?: string): Promise<Response> =>
  from(asked, path, {
    method: 'OPTIONS',
    headers: { 'Access-Control-Request-Method': 'PUT', 'Access-Control-Request-Headers': 'x-wp-nonce' },
  })

test('a service at the root is reached with OPTIONS, and its preflights are answered', async () => {
  const services = { open: { contract: 'open', mount: '/', upstream: { targets: [origin.origin] } } }
  gateway = await startTestGateway({ cors: { origins: [app] }, services })
  const url = `${gateway.publicAddress}/x`
  const headers = { Origin: app }
  expect((await fetch(url, { method: 'OPTIONS', headers })).status).toBe(200)
  expect(origin.received).toHaveLength(1)
  const asked = { ...headers, 'Access-Control-Request-Method': 'PUT' }
  expect((await fetch(url, { method: 'OPTIONS', headers: asked })).status).toBe(204)
  expect((await fetch(url, { headers })).headers.get('access-control-allow-origin')).toBe(app)
  expect(origin.received).toHaveLength(2)
})

describe('with origins', () => {
  test('the gateway permits allowed origins, others get no CORS header of the upstream; one stored response serves both', async () => {
    await start({ origins: [app], credentials: true })
    const first = await from(evil)
    expect([isHit(first), ...(told(first) as unknown[])]).toEqual([false, null, null])
    const second = await from(app)
    expect([isHit(second), ...(told(second) as unknown[])]).toEqual([true, app, 'true'])
    expect(second.headers.get('vary')).toMatch(/\borigin\b/i)
    expect(second.headers.get('access-control-expose-headers')).toContain('X-WP-Total')
    const third = await from(evil)
    expect([isHit(third), ...(told(third) as unknown[])]).toEqual([true, null, null])
    expect(third.headers.get('vary')).toMatch(/\borigin\b/i)
    expect(origin.received).toHaveLength(1)
    expect(origin.received[0]?.headers['origin']).toBeUndefined()
  })

  test('the response to a request without Origin says that it depends on the origin', async () => {
    await start({ origins: [app] })
    const response = await fetch(`${gateway.publicAddress}${root}/site/v2/posts`)
    expect(told(response)).toEqual([null, null])
    expect(response.headers.get('vary')).toMatch(/\borigin\b/i)
  })

  test('a preflight is answered by the gateway, without an upstream request', async () => {
    await start({ origins: [app], maxAge: '1h' })
    const allowed = await preflight(app)
    expect(allowed.status).toBe(204)
    expect(told(allowed)).toEqual([app, null])
    expect(allowed.headers.get('access-control-allow-methods')).toBe(
      'GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS',
    )
    expect(allowed.headers.get('access-control-allow-headers')).toContain('X-WP-Nonce')
    expect(allowed.headers.get('access-control-max-age')).toBe('3600')
    expect(told(await preflight(evil))).toEqual([null, null])
    expect(told(await preflight(app, '/no/such/route'))).toEqual([app, null])
    expect(origin.received).toHaveLength(0)
    expect(await gateway.metric('trellis_upstream_attempts_total')).toBe(0)
  })

  test('pages may send what WordPress and features of the gateway need, and read what they answer', async () => {
    await start({ origins: [app] })
    const { headers } = await preflight(app)
    const listed = (name: string) => headers.get(name)?.toLowerCase().split(', ')
    const sent = 'authorization, x-wp-nonce, content-disposition, content-md5, content-type'.split(', ')
    const own =
      'x-http-method-override, if-match, if-none-match, idempotency-key, x-api-key, traceparent'.split(', ')
    expect(listed('access-control-allow-headers')).toEqual(expect.arrayContaining([...sent, ...own]))
    const exposed = (await from(app)).headers.get('access-control-expose-headers')?.toLowerCase().split(', ')
    const read = 'x-wp-total, x-wp-totalpages, link, location, etag, cache-status, x-request-id'.split(', ')
    const limits = 'retry-after, age, allow, ratelimit, ratelimit-policy'.split(', ')
    expect(exposed).toEqual(expect.arrayContaining([...read, ...limits]))
  })

  test('no header of the upstream is sent beside one of the gateway', async () => {
    await start({ origins: [app] })
    for (const path of ['/site/v2/posts', '/site/v2/posts?per_page=1000', '/no/such/route']) {
      const { headers } = await from(app, path)
      const names = [...headers.keys()].filter((name) => name.startsWith('access-control-'))
      expect(names).toEqual(['access-control-allow-origin', 'access-control-expose-headers'])
      expect(headers.get('access-control-allow-origin')).toBe(app)
    }
  })

  test('an OPTIONS that is no preflight is handled as without CORS', async () => {
    await start({ origins: [app] })
    const response = await from(app, '/site/v2/posts', { method: 'OPTIONS' })
    expect(response.status).toBe(200)
    expect(told(response)).toEqual([app, null])
  })

  test('errors can be read too', async () => {
    await start({ origins: [app] })
    const response = await from(app, '/site/v2/posts?per_page=1000')
    expect([response.status, ...(told(response) as unknown[])]).toEqual([400, app, null])
  })

  test('a write says where it comes from to the upstream, whose permissions do not pass', async () => {
    await start({ origins: [app] })
    const response = await from(evil, '/site/v2/posts', {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', Authorization: 'Basic YTpi' },
      body: '{"title":"x"}',
    })
    expect(told(response)).toEqual([null, null])
    expect(origin.received[0]?.headers['origin']).toBe(evil)
  })

  test('* allows every origin', async () => {
    await start({ origins: ['*'] })
    expect(told(await from(evil))).toEqual(['*', null])
    expect(told(await preflight(app))).toEqual(['*', null])
  })
})

describe('without origins', () => {
  test('CORS headers of the upstream pass unchanged, for the origin that they name', async () => {
    await start({ origins: [] })
    expect(told(await from(app))).toEqual([app, 'true'])
    const other = await from(evil)
    expect(isHit(other)).toBe(false)
    expect(told(other)).toEqual([evil, 'true'])
    const again = await from(app)
    expect([isHit(again), ...(told(again) as unknown[])]).toEqual([true, app, 'true'])
    const nobody = await fetch(`${gateway.publicAddress}${root}/site/v2/posts`)
    expect([isHit(nobody), ...(told(nobody) as unknown[])]).toEqual([false, null, null])
  })
})

describe('of a service, in place of the general one', () => {
  const other = 'https://other.test'
  const open = (cors: Tree | undefined, mount: string): Tree => ({
    contract: 'open',
    mount,
    upstream: { targets: [origin.origin] },
    cache: { rules: [{ match: 'GET /**', ttl: '1m' }] },
    ...(cors === undefined ? {} : { cors }),
  })
  const ask = (path: string, asked: string, init: RequestInit = {}): Promise<Response> =>
    fetch(gateway.publicAddress + path, { ...init, headers: { ...init.headers, Origin: asked } })
  const preflightOf = (path: string, asked: string): Promise<Response> =>
    ask(path, asked, { method: 'OPTIONS', headers: { 'Access-Control-Request-Method': 'PUT' } })

  beforeEach(async () => {
    gateway = await startTestGateway({
      cors: { origins: [app] },
      services: {
        general: open(undefined, '/general'),
        own: open({ origins: [other], credentials: true }, '/own'),
        passing: open({ origins: [] }, '/passing'),
      },
    })
  })

  test('permits its own origins, for the first request and for hits', async () => {
    for (const time of ['first', 'second']) {
      expect([time, told(await ask('/general/x', app))]).toEqual([time, [app, null]])
      expect([time, told(await ask('/general/x', other))]).toEqual([time, [null, null]])
      expect([time, told(await ask('/own/x', other))]).toEqual([time, [other, 'true']])
      expect([time, told(await ask('/own/x', app))]).toEqual([time, [null, null]])
    }
    expect(isHit(await ask('/own/x', app))).toBe(true)
  })

  test('answers its preflights', async () => {
    expect(told(await preflightOf('/own/x', other))).toEqual([other, 'true'])
    expect(told(await preflightOf('/own/x', app))).toEqual([null, null])
    expect(told(await preflightOf('/general/x', app))).toEqual([app, null])
    expect(origin.received).toHaveLength(0)
  })

  test('without origins leaves everything to the upstream', async () => {
    expect(told(await ask('/passing/x', evil))).toEqual([evil, 'true'])
    expect(told(await ask('/passing/x', app))).toEqual([app, 'true'])
    expect((await preflightOf('/passing/y', evil)).status).toBe(200)
    expect(origin.received).toHaveLength(3)
  })

  test('is for its requests alone: what no service answers gets the general one', async () => {
    expect(told(await ask('/nowhere', app))).toEqual([app, null])
    expect(told(await ask('/nowhere', other))).toEqual([null, null])
  })

  test.each([
    ['a wildcard with credentials', { origins: ['*'], credentials: true }, 'services.own.cors.credentials'],
    ['an origin with a path', { origins: ['https://a.test/x'] }, 'services.own.cors.origins[0]'],
  ])('%s is a fault', async (_, cors, path) => {
    const services = { own: open(cors, '/own') }
    expect(JSON.stringify(await gateway.put({ services }))).toContain(path)
  })
})
