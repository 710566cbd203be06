import { request as httpRequest } from 'node:http'
import type { AddressInfo } from 'node:net'
import { pino } from 'pino'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createAccess } from '../../src/admin/access.ts'
import type { AdminEvent } from '../../src/admin/events.ts'
import type { PurgeRequest } from '../../src/admin/purge-request.ts'
import { createAdmin } from '../../src/admin/server.ts'

type Side = {
  readonly port: number
  readonly events: AdminEvent[]
  readonly purges: PurgeRequest[]
  close(): Promise<unknown>
}

/** The admin side alone, over real sockets. */
const startAdmin = async (token: string): Promise<Side> => {
  const events: AdminEvent[] = []
  const purges: PurgeRequest[] = []
  const server = createAdmin({
    logger: pino({ level: 'silent' }),
    token,
    operator: {
      purge: (request) => {
        purges.push(request)
        return { kind: 'purged', entries: 3 }
      },
      entries: () => [],
      explain: () => ({}),
      drift: () => ({}),
      config: () => ({ secret: 'shown to operators only' }),
      openApi: () => Buffer.from('{}'),
      drain: () => undefined,
      reload: async () => ({ kind: 'done', outcome: 'applied', hash: 'abc' }),
    },
    scrape: async () => ({ contentType: 'text/plain', text: 'up 1' }),
    readiness: () => ({ ready: true, reasons: [], degraded: [] }),
    report: (event) => events.push(event),
  })
  await server.listen({ host: '127.0.0.1', port: 0 })
  const { port } = server.server.address() as AddressInfo
  return { port, events, purges, close: () => server.close() }
}

type Reply = { readonly status: number; readonly code: unknown; readonly challenge: unknown }

const send = (
  { port }: Side,
  method: string,
  path: string,
  fields: Record<string, string> = {},
  body?: string,
): Promise<Reply> =>
  new Promise((resolve, reject) => {
    const request = httpRequest({ host: '127.0.0.1', port, method, path, headers: fields }, (response) => {
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
const purge = (side: Side, fields: Record<string, string>): Promise<Reply> =>
  send(side, 'POST', '/cache/purge', { ...json, ...fields }, purgeAll)

const views = [
  '/',
  '/docs',
  '/openapi.json',
  '/cache/entries',
  '/explain?url=/',
  '/drift',
  '/config',
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
    ['as a form', { 'content-type': 'text/plain' }, 415],
    ['as what only begins like JSON', { 'content-type': 'application/jsonp' }, 415],
  ])('a write %s', async (_description, fields, status) => {
    const before = side.purges.length
    expect((await purge(side, fields as unknown as Record<string, string>)).status).toBe(status)
    expect(side.purges.length - before).toBe(status === 200 ? 1 : 0)
  })

  test('views are for those who reach the port by address', async () => {
    for (const path of views.filter((one) => one !== '/none')) {
      expect([path, (await send(side, 'GET', path)).status]).toEqual([path, 200])
      expect((await send(side, 'GET', path, { host: 'rebound.example' })).code).toBe('host-by-name')
    }
  })
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
  ])('a write %s', async (_description, fields, status) => {
    expect((await purge(side, fields as unknown as Record<string, string>)).status).toBe(status)
  })

  test('who wrote and who was turned away is reported, with nothing that they sent', async () => {
    side.events.length = 0
    await purge(side, { authorization: `Bearer ${token}` })
    await purge(side, { authorization: 'Bearer guess' })
    await send(side, 'GET', '/config', { authorization: `Bearer ${token}` })
    expect(side.events).toEqual([
      { kind: 'admin-purge', address: '127.0.0.1', selector: 'all', mode: 'hard', dryRun: false, entries: 3 },
      { kind: 'admin-refused', address: '127.0.0.1', reason: 'credential-wrong' },
    ])
  })
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
    expect(access({ writes: true, peer, fields: { ...json, host: '10.0.0.9:9090' } }).kind).toBe(kind)
    expect(access({ writes: false, peer, fields: { host: '10.0.0.9:9090' } }).kind).toBe('granted')
  })
})
