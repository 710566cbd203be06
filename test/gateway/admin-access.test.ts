import { request as httpRequest, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { pino } from 'pino'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createAccess } from '../../src/admin/access.ts'
import { adminDocument } from '../../src/admin/admin-document.ts'
import type { AdminEvent } from '../../src/admin/events.ts'
import type { PurgeRequest } from '../../src/admin/purge-request.ts'
import { createAdmin } from '../../src/admin/server.ts'

type Side = {
  readonly port: number
  readonly events: AdminEvent[]
  readonly purges: PurgeRequest[]
  readonly routes: string[]
  /** After how long a silence a connection ends, 0 for never: while a purge is carried out, and when its response has been written. */
  readonly timeouts: (number | undefined)[]
  close(): Promise<unknown>
}

/** The admin side alone, over real sockets. */
const startAdmin = async (token: string): Promise<Side> => {
  const events: AdminEvent[] = []
  const purges: PurgeRequest[] = []
  const routes: string[] = []
  const timeouts: (number | undefined)[] = []
  let connection: Socket | undefined
  const server = createAdmin({
    logger: pino({ level: 'silent' }),
    token,
    operator: {
      purge: (request) => {
        purges.push(request)
        timeouts.push(connection?.timeout)
        return { kind: 'purged', entries: 3, warming: 0 }
      },
      warm: () => ({ warming: 0, refused: [] }),
      entries: () => [],
      explain: () => ({}),
      drift: () => ({}),
      config: () => ({ secret: 'shown to operators only' }),
      openApi: () => Buffer.from('{}'),
      drain: () => undefined,
      builds: { begin: async () => undefined, changes: async () => undefined },
      changes: {
        admit: () => ({ kind: 'refused', reason: 'no-credential', detail: '' }),
        receive: async () => ({ kind: 'refused', reason: 'no-credential', detail: '' }),
      },
      history: async () => ({}),
      recent: async () => ({}),
      logLevel: () => ({}),
      setLogLevel: async () => ({}),
      reload: async () => ({ kind: 'applied', hash: 'abc', changed: ['cors'] }),
    },
    metrics: async () => [],
    scrape: async () => ({ contentType: 'text/plain', text: 'up 1' }),
    readiness: () => ({ ready: true, reasons: [], degraded: [], findings: [], unknown: [] }),
    notices: () => [],
    report: (event) => events.push(event),
    registered: (method, path) => routes.push(`${method} ${path}`),
  })
  server.server.on('connection', (socket: Socket) => {
    connection = socket
  })
  server.server.on('request', ({ socket }: IncomingMessage, response: ServerResponse) => {
    response.once('prefinish', () => timeouts.push(socket.timeout))
  })
  await server.listen({ host: '127.0.0.1', port: 0 })
  const { port } = server.server.address() as AddressInfo
  return { port, events, purges, routes, timeouts, close: () => server.close() }
}

type Reply = { readonly status: number; readonly code: unknown; readonly challenge: unknown }

const send = (
  { port }: Side,
  method: string,
  path: string,
  headers: Record<string, string> = {},
  body?: string,
): Promise<Reply> =>
  new Promise((resolve, reject) => {
    const request = httpRequest({ host: '127.0.0.1', port, method, path, headers: headers }, (response) => {
      let text = ''
      response.setEncoding('utf8')
      response.on('data', (part: string) => {
        text += part
      })
      response.on('end', () => {
        const isProblem = String(response.headers['content-type']).startsWith('application/problem+json')
        resolve({
          status: response.statusCode ?? 0,
          code: isProblem ? (JSON.parse(text) as { code: unknown }).code : undefined,
          challenge: response.headers['www-authenticate'],
        })
      })
    })
    request.on('error', reject)
    request.end(body)
  })

const json = { 'content-type': 'application/json' }
const purgeAll = '{"all":true}'
const purge = (side: Side, headers: Record<string, string>): Promise<Reply> =>
  send(side, 'POST', '/cache/purge', { ...json, ...headers }, purgeAll)

const views = [
  '/',
  '/docs',
  '/openapi.json',
  '/cache/entries',
  '/explain?url=/',
  '/drift',
  '/config',
  '/history',
  '/recent',
  '/log-level',
  '/none',
]

describe('without a token', () => {
  let side: Side
  beforeAll(async () => {
    side = await startAdmin('')
  })
  afterAll(() => side.close())

  test.each([
    ['by address', {}, 200],
    ['by localhost', { host: 'localhost:9090' }, 200],
    ['by IPv6 address', { host: '[::1]:9090' }, 200],
    ['by curl, which sends no Origin', { 'user-agent': 'curl/8' }, 200],
    ['by a page of the admin side', { host: '127.0.0.1:9090', origin: 'http://127.0.0.1:9090' }, 200],
    ['by a page of the admin side, in a new browser', { 'sec-fetch-site': 'same-origin' }, 200],
    ['under a name that could be made to lead here', { host: 'rebound.example:9090' }, 403],
    ['under a name that begins like an address', { host: '127.0.0.1.example' }, 403],
    ['by a page of another origin', { origin: 'https://evil.example' }, 403],
    ['by a page without an origin', { origin: 'null' }, 403],
    ['by a page of another port', { host: '127.0.0.1:9090', origin: 'http://127.0.0.1:8080' }, 403],
    ['by another site', { 'sec-fetch-site': 'cross-site' }, 403],
    ['by another port, in a new browser', { 'sec-fetch-site': 'same-site' }, 403],
    ['through a proxy on this host', { 'x-forwarded-for': '203.0.113.7' }, 403],
    ['through a proxy that says Forwarded', { forwarded: 'for=203.0.113.7' }, 403],
    ['through a proxy that says Via', { via: '1.1 proxy' }, 403],
    ['through a proxy that says X-Real-IP', { 'x-real-ip': '203.0.113.7' }, 403],
    ['through a proxy that says X-Forwarded-Host', { 'x-forwarded-host': 'a.example' }, 403],
    ['through a proxy that says X-Forwarded-Proto', { 'x-forwarded-proto': 'https' }, 403],
    ['through a content network', { 'cf-connecting-ip': '203.0.113.7' }, 403],
    ['through another content network', { 'true-client-ip': '203.0.113.7' }, 403],
    ['through a network that says only its own fields', { 'cf-ray': '8f1' }, 403],
    ['through a network that prevents loops', { 'cdn-loop': 'cloudflare' }, 403],
    ['through a balancer that traces', { 'x-amzn-trace-id': 'Root=1-67' }, 403],
    ['through a mesh', { 'x-envoy-expected-rq-timeout-ms': '15000' }, 403],
    [
      'with the trace of a script',
      { traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01' },
      200,
    ],
    ['with an id of a script', { 'x-request-id': '7' }, 200],
    ['as a form', { 'content-type': 'text/plain' }, 415],
    ['as what only begins like JSON', { 'content-type': 'application/jsonp' }, 415],
  ])('a write %s', async (_description, headers, status) => {
    const before = side.purges.length
    expect((await purge(side, headers as unknown as Record<string, string>)).status).toBe(status)
    expect(side.purges.length - before).toBe(status === 200 ? 1 : 0)
  })

  test.each<[string, Record<string, string>, number]>([
    ['of curl -X POST', {}, 200],
    ["of curl -d ''", { 'content-type': 'application/x-www-form-urlencoded', 'content-length': '0' }, 200],
    ['with Content-Length: 0', { 'content-length': '0' }, 200],
    ['that says JSON', { 'content-type': 'application/json', 'content-length': '0' }, 200],
    ['of a page of the admin side', { origin: 'http://127.0.0.1:9090', host: '127.0.0.1:9090' }, 200],
    ['of a browser that does not say of which page', { 'accept-language': 'en' }, 415],
    ['of a page of another origin', { origin: 'https://evil.example' }, 403],
    ['in chunks, as a form', { 'transfer-encoding': 'chunked', 'content-type': 'text/plain' }, 415],
  ])('a reload without content %s', async (_description, headers, status) => {
    expect((await send(side, 'POST', '/reload', headers)).status).toBe(status)
  })

  test('the document of the admin side is valid, and has every route', async () => {
    const { Validator } = await import('@seriousme/openapi-schema-validator')
    const document = adminDocument() as { paths: Record<string, object> }
    expect(await new Validator().validate(structuredClone(document))).toMatchObject({ valid: true })
    const described = Object.entries(document.paths).flatMap(([path, methods]) =>
      Object.keys(methods).map((method) => `${method.toUpperCase()} ${path.replace(/\{(\w+)\}/, ':$1')}`),
    )
    const files = /^(?:HEAD |GET \/(?:docs|status)\/)/
    expect(described.sort()).toEqual(side.routes.filter((route) => !files.test(route)).sort())
  })

  test('a purge without content says what is missing', async () => {
    expect(await send(side, 'POST', '/cache/purge')).toMatchObject({ status: 400, code: 'invalid-purge' })
  })

  test('a method that a path does not take is 405, with those that it takes', async () => {
    expect(await send(side, 'DELETE', '/cache/entries')).toMatchObject({
      status: 405,
      code: 'method-not-allowed',
    })
    expect(await send(side, 'POST', '/log-level')).toMatchObject({ status: 405 })
    expect(await send(side, 'DELETE', '/nothing')).toMatchObject({ status: 404 })
  })

  test.each(['/%zz', `/openapi/${'a'.repeat(500)}.json`])(
    'a path that cannot be read is a problem as any other: %s',
    async (path) => {
      expect(await send(side, 'GET', path)).toMatchObject({ status: 400, code: 'invalid-request' })
    },
  )

  test('views are for those who reach the port by address', async () => {
    for (const path of views.filter((one) => one !== '/none')) {
      expect([path, (await send(side, 'GET', path)).status]).toEqual([path, 200])
      expect((await send(side, 'GET', path, { host: 'rebound.example' })).code).toBe('host-by-name')
    }
  })
})

/** What any browser sends with a request of a page. */
const browser = { 'user-agent': 'Mozilla/5.0', accept: '*/*', 'accept-language': 'en' }

describe.each([
  ['without a token', ''],
  ['with a token', 'a-long-token'],
])('what is open to machines, %s', (_description, token) => {
  let side: Side
  beforeAll(async () => {
    side = await startAdmin(token)
  })
  afterAll(() => side.close())
  const name = { host: 'trellis.monitoring.svc:9090' }

  test.each<[string, Record<string, string>]>([
    ['Prometheus, which uses the name of its target', { ...name, 'user-agent': 'Prometheus/3.5.0' }],
    [
      'a probe, which uses the address of the pod',
      { host: '10.1.2.3:9090', 'user-agent': 'kube-probe/1.34' },
    ],
    ['a person in a browser on this host', { ...browser, host: 'localhost:9090', 'sec-fetch-site': 'none' }],
    [
      'a person who followed a link',
      { ...browser, host: '127.0.0.1:9090', 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'navigate' },
    ],
    ['the status page', { ...browser, host: '127.0.0.1:9090', 'sec-fetch-site': 'same-origin' }],
  ])('is answered to %s', async (_who, headers) => {
    for (const path of ['/metrics', '/livez', '/readyz']) {
      expect([path, (await send(side, 'GET', path, headers)).status]).toEqual([path, 200])
    }
  })

  test.each<[string, Record<string, string>]>([
    ['under a name that could be made to lead here', { ...browser, host: 'rebound.example:9090' }],
    ['under such a name, as the page of it', { ...name, referer: 'http://trellis.monitoring.svc:9090/' }],
    ['of another origin', { ...browser, host: '127.0.0.1:9090', origin: 'https://evil.example' }],
    ['of another site, in a new browser', { ...browser, host: 'localhost', 'sec-fetch-site': 'cross-site' }],
    ['of another site, by name', { ...name, 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'no-cors' }],
  ])('metrics are not answered to a page %s', async (_who, headers) => {
    const { status, code } = await send(side, 'GET', '/metrics', headers)
    expect([401, 403]).toContain(status)
    expect(['cross-site', 'host-by-name', 'credential-missing']).toContain(code)
    expect((await send(side, 'GET', '/livez', headers)).status).toBe(200)
  })
})

test('with the token a browser may read metrics under any name', async () => {
  const side = await startAdmin('a-long-token')
  const headers = { ...browser, host: 'trellis.internal', authorization: `Basic ${btoa('any:a-long-token')}` }
  expect((await send(side, 'GET', '/metrics', headers)).status).toBe(200)
  await side.close()
})

describe('with a token', () => {
  const token = 'correct horse'.replace(' ', '-')
  const basic = (password: string): string => `Basic ${Buffer.from(`any:${password}`).toString('base64')}`
  let side: Side
  beforeAll(async () => {
    side = await startAdmin(token)
  })
  afterAll(() => side.close())

  test.each(views)('%s asks for it, also on loopback', async (path) => {
    const without = await send(side, 'GET', path)
    expect([without.status, without.code]).toEqual([401, 'credential-missing'])
    expect(without.challenge).toContain('Bearer')
    const wrong = await send(side, 'GET', path, { authorization: `Bearer ${token}x` })
    expect([wrong.status, wrong.code]).toEqual([401, 'credential-wrong'])
    const right = await send(side, 'GET', path, {
      authorization: `Bearer ${token}`,
      host: 'trellis.internal',
    })
    expect(right.status).toBe(path === '/none' ? 404 : 200)
  })

  test.each(['/metrics', '/livez', '/readyz'])('%s asks for nothing', async (path) => {
    expect((await send(side, 'GET', path, { host: 'trellis.internal' })).status).toBe(200)
  })

  test('a browser may show it as a password to look, not to change', async () => {
    expect((await send(side, 'GET', '/docs', { authorization: basic(token) })).status).toBe(200)
    expect((await send(side, 'GET', '/docs', { authorization: basic('x') })).status).toBe(401)
    expect((await purge(side, { authorization: basic(token) })).status).toBe(401)
  })

  test.each([
    ['with it', { authorization: `Bearer ${token}` }, 200],
    ['with it, through a proxy', { authorization: `bearer ${token}`, 'x-forwarded-for': '203.0.113.7' }, 200],
    ['without it', {}, 401],
    ['with another', { authorization: 'Bearer other' }, 401],
    ['with an empty one', { authorization: 'Bearer ' }, 401],
    [
      'with it, by a page of another origin',
      { authorization: `Bearer ${token}`, origin: 'https://x.example' },
      403,
    ],
  ])('a write %s', async (_description, headers, status) => {
    expect((await purge(side, headers as unknown as Record<string, string>)).status).toBe(status)
  })

  test('writes and refusals are logged, without anything that the client sent', async () => {
    side.events.length = 0
    await purge(side, { authorization: `Bearer ${token}` })
    await purge(side, { authorization: 'Bearer guess' })
    await send(side, 'GET', '/config', { authorization: `Bearer ${token}` })
    expect(side.events).toEqual([
      {
        kind: 'admin-purge',
        address: '127.0.0.1',
        selector: 'all',
        selectors: 1,
        mode: 'hard',
        dryRun: false,
        entries: 3,
        warming: 0,
      },
      { kind: 'admin-refused', address: '127.0.0.1', reason: 'credential-wrong' },
    ])
  })
})

test('a client counts as silent while it may send or read, not while its purge is carried out', async () => {
  const side = await startAdmin('')
  expect((await purge(side, {})).status).toBe(200)
  expect(side.timeouts).toEqual([0, 60_000])
  await side.close()
})

describe('where a request comes from', () => {
  const access = createAccess('')
  test.each([
    ['127.0.0.1', 'granted'],
    ['127.8.9.10', 'granted'],
    ['::1', 'granted'],
    ['::ffff:127.0.0.1', 'granted'],
    ['10.0.0.1', 'refused'],
    ['::ffff:10.0.0.1', 'refused'],
    ['', 'refused'],
  ])('a write from %s is %s', (peer, kind) => {
    expect(
      access({ isOpen: false, writes: true, peer, headers: { ...json, host: '10.0.0.9:9090' } }).kind,
    ).toBe(kind)
    expect(access({ isOpen: false, writes: false, peer, headers: { host: '10.0.0.9:9090' } }).kind).toBe(
      'granted',
    )
  })
})
