import { beforeEach, describe, expect, test } from 'vitest'
import { closeAfterEach } from '../support/close.ts'
import { startTestGateway, type TestGateway } from '../support/gateway.ts'
import { type Origin, startOrigin } from '../support/origin.ts'

// What WordPress lets pages of other origins read, they may read where the gateway answers in its place.

const app = 'https://app.test'
const methods = 'OPTIONS, GET, POST, PUT, PATCH, DELETE'
const json = { 'Content-Type': 'application/json; charset=UTF-8' }
const restHeaders = {
  'Access-Control-Expose-Headers': 'X-WP-Total, X-WP-TotalPages, Link',
  'Access-Control-Allow-Headers': 'Authorization, X-WP-Nonce, Content-Disposition, Content-MD5, Content-Type',
}
const endpoints = (...names: string[]) => names.map((name) => ({ methods: [name], args: {} }))
const index = JSON.stringify({
  name: 'Site',
  home: 'http://site.test',
  namespaces: ['wp/v2', 'shop/v1'],
  routes: {
    '/wp/v2/posts': {
      namespace: 'wp/v2',
      endpoints: [
        { methods: ['GET'], args: { per_page: { type: 'integer', default: 10, minimum: 1, maximum: 100 } } },
        { methods: ['POST'], args: { status: { type: 'string', enum: ['publish', 'draft'] } } },
      ],
    },
    '/shop/v1/cart': { namespace: 'shop/v1', endpoints: endpoints('GET', 'POST') },
  },
})

/** The index that the site announces. */
let announced: string
/** Whether the site as a whole allows all; the shop allows one origin, and its methods to all. */
let isOpen: boolean
let isDown: boolean
/** What a plugin changes of the CORS headers. */
let changed: Record<string, string>
let origin: Origin
let gateway: TestGateway

beforeEach(async () => {
  announced = index
  isOpen = true
  isDown = false
  changed = {}
  origin = await startOrigin(({ target, headers }, wire) => {
    if (isDown) {
      wire.reset()
      return
    }
    const asked = headers['origin']
    const ofShop = target.startsWith('/wp-json/shop/v1/')
    const mayRead = asked !== undefined && isOpen && (!ofShop || asked === 'https://shop.test')
    wire.respond({
      headers: {
        ...json,
        ...restHeaders,
        Vary: 'Origin',
        ...(mayRead ? { 'Access-Control-Allow-Origin': asked } : {}),
        ...(ofShop || mayRead
          ? { 'Access-Control-Allow-Methods': methods, 'Access-Control-Allow-Credentials': 'true' }
          : {}),
        ...changed,
      },
      content: target === '/wp-json/' ? announced : '[]',
    })
  })
})
closeAfterEach(() => [gateway, origin])

const start = async (
  more: { readonly [key: string]: unknown } = {},
  ofSite: { readonly [key: string]: unknown } = {},
): Promise<void> => {
  gateway = await startTestGateway({
    ...more,
    services: {
      site: {
        contract: 'site',
        names: 'same',
        mount: '/wp-json',
        limits: { bodyBytes: '1KiB' },
        upstream: { targets: [origin.origin], basePath: '/wp-json' },
        cache: { rules: [{ match: 'GET /**', ttl: '60s' }] },
        ...ofSite,
      },
    },
  })
  await expect.poll(() => gateway.metric('trellis_discovery_learned_rows')).toBeGreaterThan(0)
}

const ask = async (path: string, init: RequestInit = {}, from = app) => {
  const response = await fetch(`${gateway.publicAddress}/wp-json${path}`, {
    ...init,
    headers: { ...init.headers, Origin: from },
  })
  await response.arrayBuffer()
  return response
}
const names = [
  'access-control-allow-origin',
  'access-control-allow-methods',
  'access-control-allow-credentials',
  'access-control-expose-headers',
  'access-control-allow-headers',
] as const
const corsOf = ({ headers }: Response) => names.map((name) => headers.get(name))
const asWordPress = [app, methods, 'true', ...Object.values(restHeaders)]
const closed = names.map(() => null)

const post = (body: string): RequestInit => ({
  method: 'POST',
  headers: { 'Content-Type': 'application/json', Authorization: 'Basic YTpi' },
  body,
})
const preflight: RequestInit = { method: 'OPTIONS', headers: { 'Access-Control-Request-Method': 'POST' } }
type Case = [name: string, status: number, path: string, init?: RequestInit]
const rows: Case[] = [
  ['a wrong method', 404, '/wp/v2/posts', { method: 'DELETE' }],
  ['an invalid parameter', 400, '/wp/v2/posts?per_page=1000'],
  ['bad JSON', 400, '/wp/v2/posts', post('{')],
  ['an invalid argument', 400, '/wp/v2/posts', post('{"status":7}')],
  ['too much content', 413, '/wp/v2/posts', post(JSON.stringify({ title: 'x'.repeat(2000) }))],
  ['another media type', 415, '/wp/v2/posts', { ...post('x'), headers: { 'Content-Type': 'text/x-y' } }],
  ['a batch', 207, '/batch/v1', post('{"requests":[{"path":"/wp/v2/posts","body":{"title":"x"}}]}')],
  ['a batch without requests', 400, '/batch/v1', post('{}')],
  ['a preflight of the batch', 200, '/batch/v1', preflight],
  ['a preflight of the index', 200, '/', preflight],
  ['OPTIONS of a namespace', 200, '/wp/v2', { method: 'OPTIONS' }],
  ['the index', 200, '/'],
  ['a namespace', 200, '/wp/v2'],
  ['a target that is too long', 414, `/wp/v2/posts?search=${'x'.repeat(10_000)}`],
]

describe('where no cors is set', () => {
  test('what the gateway answers itself has the CORS headers of WordPress', async () => {
    await start()
    for (const [name, status, path, init] of rows) {
      const response = await ask(path, init)
      expect([name, response.status, ...corsOf(response)]).toEqual([name, status, ...asWordPress])
      expect(response.headers.get('vary'), name).toMatch(/\borigin\b/i)
    }
  })

  test('it has none if the upstream does not allow all', async () => {
    isOpen = false
    await start()
    for (const [name, status, path, init] of rows) {
      const response = await ask(path, init)
      expect([name, response.status, ...corsOf(response)]).toEqual([name, status, ...closed])
    }
  })

  test('429 and 502 have them once the route is known', async () => {
    const limit = {
      name: 'posts',
      service: 'site',
      match: 'GET /wp/v2/posts',
      by: 'address',
      max: 2,
      window: '1m',
    }
    await start({ rateLimits: [limit] })
    await ask('/wp/v2/posts?per_page=1000')
    await ask('/wp/v2/posts')
    const limited = await ask('/wp/v2/posts')
    expect([limited.status, ...corsOf(limited)]).toEqual([429, ...asWordPress])
    await ask('/wp/v2/pages?per_page=1000')
    isDown = true
    const failed = await ask('/wp/v2/pages?page=3', { headers: { Authorization: 'Basic YTpi' } })
    expect([failed.status, ...corsOf(failed)]).toEqual([502, ...asWordPress])
  })

  test('a route of which the site announces other arguments keeps them, also when the upstream is down', async () => {
    await start({}, { discovery: { refresh: '1s' } })
    await ask('/wp/v2/posts?per_page=1000')
    announced = index.replace('"maximum":100', '"maximum":2000')
    const long = `${gateway.publicAddress}/wp-json/wp/v2/posts?per_page=1000`
    await expect.poll(async () => (await fetch(long)).status).toBe(200)
    isDown = true
    const failed = await ask('/wp/v2/posts?per_page=3', { headers: { Authorization: 'Basic YTpi' } })
    expect([failed.status, ...corsOf(failed)]).toEqual([502, ...asWordPress])
  })

  test('a route with its own policy keeps it, in stored responses and in refusals', async () => {
    await start()
    const evil = 'https://evil.test'
    const ofShop = [null, methods, 'true', ...Object.values(restHeaders)]
    for (let i = 0; i < 3; i += 1) {
      expect(corsOf(await ask('/shop/v1/cart', {}, evil))).toEqual(ofShop)
      expect((await ask('/shop/v1/cart', {}, 'https://shop.test')).headers.get(names[0])).toBe(
        'https://shop.test',
      )
    }
    await fetch(`${gateway.publicAddress}/wp-json/shop/v1/cart`)
    const stored = await ask('/shop/v1/cart', {}, evil)
    expect(corsOf(stored)).toEqual(ofShop)
    expect(corsOf(await ask('/shop/v1/cart', post('{'), evil))).toEqual(closed)
    expect(corsOf(await ask('/shop/v1/cart', { method: 'DELETE' }, evil))).toEqual(closed)
  })

  test('names that a plugin adds to the lists of WordPress are listed too', async () => {
    const exposed = 'X-WP-Total, X-Plugin'
    changed = { 'Access-Control-Expose-Headers': exposed, 'Access-Control-Max-Age': '60' }
    await start()
    const { headers } = await ask('/wp/v2/posts', post('{'))
    expect(headers.get('access-control-expose-headers')).toBe(exposed)
    expect(headers.get('access-control-max-age')).toBe('60')
  })

  test('an upstream that allows every origin with * is repeated, and each origin reads its own response', async () => {
    changed = { 'Access-Control-Allow-Origin': '*' }
    await start()
    expect(corsOf(await ask('/wp/v2/posts', post('{')))[0]).toBe('*')
    expect(corsOf(await ask('/'))[0]).toBe('*')
    for (let i = 0; i < 2; i += 1) expect(corsOf(await ask('/wp/v2/posts'))[0]).toBe('*')
  })

  test('lists of more than 2 KiB are not remembered', async () => {
    changed = { 'Access-Control-Expose-Headers': 'X-Long, '.repeat(300) }
    await start()
    expect(corsOf(await ask('/wp/v2/posts', post('{')))).toEqual(closed)
  })

  test('a route that could not be asked allows nobody, and is asked again', async () => {
    await start()
    isDown = true
    expect(corsOf(await ask('/wp/v2/posts', post('{')))).toEqual(closed)
    isDown = false
    const again = async () => corsOf(await ask('/wp/v2/posts', post('{')))
    await expect.poll(again).toEqual(asWordPress)
  })

  test('each route is asked once, with an origin that nobody can know', async () => {
    await start()
    for (let i = 0; i < 3; i += 1) await ask('/wp/v2/posts?per_page=1000')
    const questions = origin.received.filter(({ target }) => target === '/wp-json/wp/v2/posts')
    expect(questions.map(({ headers }) => headers['origin'])).toEqual([
      expect.stringMatching(/^https:\/\/[0-9a-f]{16}\.invalid$/),
    ])
  })
})
