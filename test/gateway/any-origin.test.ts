import { beforeEach, expect, test } from 'vitest'
import { closeAfterEach } from '../support/close.ts'
import { startTestGateway, type TestGateway } from '../support/gateway.ts'
import { type Origin, startOrigin } from '../support/origin.ts'

// WordPress answers anonymous GETs with Vary: Origin, and lets pages of every origin read.

const json = { 'Content-Type': 'application/json; charset=UTF-8' }
const app = 'https://app.test'
const methods = 'OPTIONS, GET, POST, PUT, PATCH, DELETE'
const index = JSON.stringify({
  name: 'Site',
  home: 'http://site.test',
  namespaces: ['wp/v2'],
  routes: { '/x/v1/y': { namespace: 'x/v1', endpoints: [{ methods: ['GET'], args: {} }] } },
})

/** Which origins the upstream lets read; WordPress by itself: all. */
let allows: (asked: string) => boolean
/** What it answers to others. */
let refusesWith: number
let origin: Origin
let gateway: TestGateway

beforeEach(async () => {
  allows = () => true
  refusesWith = 200
  origin = await startOrigin(({ target, headers, method }, wire) => {
    const asked = headers['origin']
    const isAllowed = asked !== undefined && allows(asked)
    const permission: Record<string, string> = isAllowed
      ? {
          'Access-Control-Allow-Origin': asked,
          'Access-Control-Allow-Methods': methods,
          'Access-Control-Allow-Credentials': 'true',
        }
      : {}
    const vary: Record<string, string> = asked === undefined && method !== 'GET' ? {} : { Vary: 'Origin' }
    wire.respond({
      status: asked === undefined || isAllowed ? 200 : refusesWith,
      headers: { ...json, ...permission, ...vary },
      content: target === '/wp-json/' ? index : '[]',
    })
  })
})
closeAfterEach(() => [gateway, origin])

/** Requests for a path, without those that ask what the route allows. */
const asked = (path: string): number =>
  origin.received.filter(
    ({ target, headers }) => target.startsWith(path) && headers['origin']?.endsWith('.invalid') !== true,
  ).length

const start = async (more: { readonly [key: string]: unknown } = {}): Promise<void> => {
  gateway = await startTestGateway({
    services: {
      site: {
        contract: 'site',
        names: 'same',
        mount: '/wp-json',
        upstream: { targets: [origin.origin], basePath: '/wp-json' },
        cache: { rules: [{ match: 'GET /wp/v2/**', ttl: '60s' }] },
        ...more,
      },
    },
  })
  // The index has been read when the route that only it names is known.
  await expect.poll(() => gateway.metric('trellis_discovery_learned_rows')).toBeGreaterThan(0)
}

const from = async (value: string | undefined, init: RequestInit = {}, path = '/wp/v2/posts') => {
  const response = await fetch(`${gateway.publicAddress}/wp-json${path}`, {
    ...init,
    headers: { ...init.headers, ...(value === undefined ? {} : { Origin: value }) },
  })
  await response.arrayBuffer()
  const { headers } = response
  return {
    status: response.status,
    hit: headers.get('cache-status')?.includes('hit') === true,
    allowed: headers.get('access-control-allow-origin'),
    credentials: headers.get('access-control-allow-credentials'),
    methods: headers.get('access-control-allow-methods'),
    vary: headers.get('vary'),
  }
}

/** A route allows nobody until the upstream has been asked. */
const learnt = async (path = '/wp/v2/posts'): Promise<void> => {
  await from(undefined, {}, path)
  let number = 0
  const another = () => {
    number += 1
    return from(`https://learn-${number}.test`, {}, path)
  }
  await expect.poll(another).toMatchObject({ hit: true })
  origin.received.length = 0
}

const permission = (value: string | null) =>
  value === null
    ? { allowed: null, credentials: null, methods: null }
    : { allowed: value, credentials: 'true', methods }

test('a hundred origins share one stored response, and each gets the CORS headers of WordPress', async () => {
  await start()
  await learnt()
  const values = Array.from({ length: 100 }, (_, number) => `https://app-${number}.test:${8000 + number}`)
  const responses = await Promise.all(values.map((value) => from(value)))
  expect(responses).toMatchObject(values.map((value) => ({ ...permission(value), vary: 'Origin' })))
  expect(await from(undefined)).toMatchObject({ hit: true, ...permission(null), vary: 'Origin' })
  expect(await from('null')).toMatchObject({ hit: true, ...permission('null') })
  expect(asked('/wp-json/wp/v2/posts')).toBe(0)
})

test('a confirmation and a response to HEAD say it, too', async () => {
  await start()
  await learnt()
  await learnt('/wp/v2/pages')
  const first = await fetch(`${gateway.publicAddress}/wp-json/wp/v2/posts`)
  await first.arrayBuffer()
  const etag = first.headers.get('etag') ?? ''
  expect(await from(app, { headers: { 'If-None-Match': etag } })).toMatchObject({
    status: 304,
    hit: true,
    ...permission(app),
  })
  expect(await from(app, { method: 'HEAD' })).toMatchObject({ hit: true, ...permission(app), vary: 'Origin' })
  // The length of what GET has is unknown, so GET may be compressed.
  expect(await from(app, { method: 'HEAD' }, '/wp/v2/pages?page=2')).toMatchObject({
    ...permission(app),
    vary: 'Origin, Accept-Encoding',
  })
})

test('if a plugin allows some origins only, each origin has a separate response', async () => {
  allows = (value) => value === app
  await start()
  expect(await from(app)).toMatchObject(permission(app))
  expect(await from('https://evil.test')).toMatchObject(permission(null))
  expect(await from(app)).toMatchObject({ hit: true, ...permission(app) })
  expect(asked('/wp-json/wp/v2/posts')).toBe(2)
})

test('where a plugin refuses requests of other origins, the index is read all the same', async () => {
  allows = (value) => value === app
  refusesWith = 403
  await start()
  expect(await from('https://evil.test')).toMatchObject({ status: 403, ...permission(null) })
  expect(await from(app)).toMatchObject({ status: 200, ...permission(app) })
})

test('a plugin that begins to choose is noticed when the index is read again', async () => {
  await start({ discovery: { refresh: '1s' } })
  await learnt()
  expect(await from('https://evil.test')).toMatchObject(permission('https://evil.test'))
  allows = (value) => value === app
  await expect.poll(() => from('https://evil.test')).toMatchObject(permission(null))
  expect(await from(app)).toMatchObject(permission(app))
})

test.each([
  'chrome-extension://abc',
  'https://UPPER.test',
  'https://a_b.test',
  'https://a.test/x',
  'https://a.test, b',
])('an Origin of %s is left to the upstream', async (value) => {
  await start()
  await from(undefined)
  expect(await from(value)).toMatchObject(permission(value))
  expect(origin.received.at(-1)?.headers['origin']).toBe(value)
})

test('so is one of a request that bypasses the cache', async () => {
  await start()
  expect(await from(app, { headers: { authorization: 'Basic eDp5' } })).toMatchObject(permission(app))
  expect(origin.received.at(-1)?.headers['origin']).toBe(app)
})

test("other origins may read the gateway's own index, as in WordPress", async () => {
  await start()
  const vary = 'Origin, Accept-Encoding'
  expect(await from(app, {}, '/')).toMatchObject({ ...permission(app), vary })
  expect(await from(undefined, {}, '/')).toMatchObject({ ...permission(null), vary })
})
