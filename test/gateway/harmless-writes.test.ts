import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { siteService } from '../support/gateway.ts'
import { exchangeBytes } from '../support/raw-client.ts'
import { type StoredRead, startStoredRead } from '../support/stored-read.ts'

let site: StoredRead
const json = { 'Content-Type': 'application/json' }
const form = { 'Content-Type': 'application/x-www-form-urlencoded' }

beforeAll(async () => {
  site = await startStoredRead(
    '/wp-json/wp/v2/posts/1',
    (_, wire) => wire.respond({ headers: json, content: '{"id":1,"type":"post"}' }),
    (origin) => ({
      wordpress: siteService(origin, {
        mount: '/wp-json',
        names: 'same',
        upstream: { targets: [origin], basePath: '/wp-json' },
        cache: { rules: [{ match: 'GET /wp/v2/**', ttl: '1h' }], harmlessWrites: ['POST /acme/v1/ping'] },
      }),
      pages: {
        contract: 'open',
        mount: '/',
        upstream: { targets: [origin] },
        cache: { harmlessWrites: ['POST /?wc-ajax=*', 'POST,PUT /count/*?page=*&kind=view'] },
      },
    }),
  )
})
afterAll(() => site?.close())
beforeEach(() => site.store())

const post = (path: string, body = 'time=1', headers: Readonly<Record<string, string>> = form) =>
  site.post(path, body, headers)

describe('a request that harmlessWrites names drops nothing', () => {
  test.each([
    ['with a form', '/?wc-ajax=get_refreshed_fragments', 'time=1', form],
    ['with an empty form', '/?wc-ajax=x', '', form],
    ['with its name encoded', '/?%77c-ajax=x', 'time=1', form],
    ['with JSON', '/wp-json/acme/v1/ping', '{}', json],
    ['with its parameters in another order', '/count/5?kind=view&page=7', '{}', json],
  ] as const)('%s', async (_, path, body, headers) => {
    expect(await post(path, body, headers)).toBe('trellis; fwd=method; detail=harmless')
    expect(site.origin.received.at(-1)?.content.toString()).toBe(body)
    expect(await site.isStored()).toBe(true)
  })

  test('and is counted', async () => {
    const count = () => site.gateway.metric('trellis_cache_writes_total', 'service="pages",taken="harmless"')
    const before = (await count()) ?? 0
    await post('/?wc-ajax=x')
    expect(await count()).toBe(before + 1)
  })
})

describe('a request that only looks like one is a write', () => {
  test.each([
    ['another parameter', '/?wc-ajax=x&add-to-cart=5'],
    ['a route beside it', '/?wc-ajax=x&rest_route=/wp/v2/posts/5'],
    ['the parameter twice', '/?wc-ajax=x&wc-ajax=checkout'],
    ['the parameter as a list', '/?wc-ajax[]=x'],
    ['the same, encoded', '/?wc-ajax%5B%5D=x'],
    ['another separator', '/?wc-ajax=x;rest_route=/wp/v2/posts/5'],
    ['a name that PHP does not read so', '/?wc_ajax=x'],
    ['an empty parameter', '/?wc-ajax=x&'],
    ['a broken escape', '/?wc-ajax=%zz'],
    ['no parameter', '/'],
    ['another path', '/shop?wc-ajax=x'],
    ['a value that is not named', '/count/5?kind=order&page=7'],
    ['an override of its method', '/?wc-ajax=x&_method=DELETE'],
  ])('in its URL: %s', async (_, path) => {
    expect(await post(path)).not.toContain('harmless')
    expect(await site.isStored()).toBe(false)
  })

  test.each([
    ['the parameter again', 'wc-ajax=checkout', form],
    ['the parameter again, encoded', '%77c-ajax=checkout', form],
    ['the parameter again, as a list', 'time=1&wc-ajax%5Bx%5D=checkout', form],
    ['a route', 'time=1&rest_route=%2Fwp%2Fv2%2Fposts%2F5', form],
    ['a route in a spelling of PHP', 'rest.route=/wp/v2/posts/5', form],
    ['a route behind spaces', '++rest%20route=/wp/v2/posts/5', form],
    ['a method', 'a=1&_method=DELETE', form],
    ['a broken escape', '%zz=1', form],
    ['a form that is too long to read', `time=${'1'.repeat(20_000)}`, form],
    [
      'a type that nobody reads',
      'rest_route=/x',
      { 'Content-Type': 'application/x-www-form-urlencoded, application/json' },
    ],
    ['several parts', '--a\r\n\r\n--a--', { 'Content-Type': 'multipart/form-data; boundary=a' }],
    ['no type', 'rest_route=/x', { 'Content-Type': '' }],
  ] as const)('in its body: %s', async (_, body, headers) => {
    expect(await post('/?wc-ajax=x', body, headers)).not.toContain('harmless')
    expect(site.origin.received.at(-1)?.content.toString()).toBe(body)
    expect(await site.isStored()).toBe(false)
  })

  test('with another method', async () => {
    await site.statusOf('/?wc-ajax=x', { method: 'DELETE' })
    expect(await site.isStored()).toBe(false)
  })
})

test('QUERY is safe: without a rule it passes with its content, is not stored and drops nothing', async () => {
  const request =
    'QUERY /any HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}'
  for (const _ of [1, 2]) {
    const response = await exchangeBytes(site.gateway.publicAddress, request)
    expect(response).toMatch(/^HTTP\/1\.1 200 [\s\S]*cache-status: trellis; fwd=bypass; detail=no-rule/i)
  }
  expect(
    site.origin.received.filter(({ method }) => method === 'QUERY').map(({ content }) => content.toString()),
  ).toEqual(['{}', '{}'])
  expect(await site.isStored()).toBe(true)
})

test('QUERY with an override of its method is a write', async () => {
  await exchangeBytes(
    site.gateway.publicAddress,
    'QUERY /?rest_route=/wp/v2/posts/5&_method=DELETE HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\nConnection: close\r\n\r\n',
  )
  expect(await site.isStored()).toBe(false)
})
