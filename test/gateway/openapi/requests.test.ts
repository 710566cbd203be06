import { request } from 'node:http'
import { fileURLToPath } from 'node:url'
import { beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { closeAfterAll } from '../../support/close.ts'
import { startTestGateway, type TestGateway } from '../../support/gateway.ts'
import { type Origin, startOrigin } from '../../support/origin.ts'

const document = fileURLToPath(new URL('../../contracts/openapi/shop.yaml', import.meta.url))

let origin: Origin
let gateway: TestGateway
let counter = 0

beforeAll(async () => {
  origin = await startOrigin((_request, wire) => {
    counter += 1
    wire.respond({ headers: { 'Content-Type': 'text/plain' }, content: `answer ${counter}` })
  })
  gateway = await startTestGateway({
    services: {
      shop: {
        contract: 'openapi',
        mount: '/shop',
        document,
        upstream: { targets: [origin.origin], basePath: '/api' },
      },
    },
  })
})

beforeEach(() => {
  origin.received.length = 0
})

closeAfterAll(() => [gateway, origin])

type Init = { method?: string; headers?: Record<string, string>; body?: string }
const send = (target: string, init: Init = {}) => fetch(`${gateway.publicAddress}/shop${target}`, init)
const json = (value: unknown, method = 'POST'): Init => ({
  method,
  headers: { 'Content-Type': 'application/json' },
  body: typeof value === 'string' ? value : JSON.stringify(value),
})
const basic = { Authorization: 'Basic YTpi' }

type Expectation = readonly [title: string, target: string, init: Init, status: number]

describe('requests are checked against the document in the order 404, 405, 401, 415, 400', () => {
  const rows: readonly Expectation[] = [
    ['an unknown path', '/nope', {}, 404],
    ['a trailing slash makes another path', '/items/5/', {}, 404],
    ['case makes another path', '/Items/5', {}, 404],
    ['a method that the path has not', '/items', { method: 'DELETE' }, 405],
    ['OPTIONS that the path does not describe', '/items', { method: 'OPTIONS' }, 405],
    ['OPTIONS that the path describes', '/items/latest', { method: 'OPTIONS' }, 200],
    ['HEAD of a GET', '/items', { method: 'HEAD' }, 200],
    ['a literal segment before a parameter', '/items/latest', {}, 200],
    ['a segment with text before a parameter alone', '/items/5.csv', {}, 200],
    ['a value of such a segment that is not listed', '/items/5.pdf', {}, 400],
    ['an integer in the path', '/items/5', {}, 200],
    ['the largest int64', '/items/9223372036854775807', {}, 200],
    ['one more than the largest int64', '/items/9223372036854775808', {}, 400],
    ['an integer with a fraction', '/items/5%2E0', {}, 400],
    ['an integer with an exponent', '/items/1e3', {}, 400],
    ['an integer in hexadecimal digits', '/items/0x10', {}, 400],
    ['an encoded slash stays in its segment', '/items/a%2Fb', {}, 400],
    ['no credential', '/items/5', { method: 'DELETE' }, 401],
    ['the second of two alternative credentials', '/items/5', { method: 'DELETE', headers: basic }, 200],
    [
      'the first of them, by a name with an underscore',
      '/items/5',
      { method: 'DELETE', headers: { api_key: 'k' } },
      200,
    ],
    ['the credential before the value', '/items/x', { method: 'DELETE' }, 401],
    [
      'a body where none is described',
      '/items/5',
      { ...json({}, 'DELETE'), headers: { ...basic, 'Content-Type': 'application/json' } },
      415,
    ],
    [
      'a media type that is not described',
      '/items',
      { method: 'POST', headers: { 'Content-Type': 'text/plain' }, body: 'x' },
      415,
    ],
    [
      'a media type in a range',
      '/items',
      { method: 'POST', headers: { 'Content-Type': 'image/png' }, body: 'x' },
      200,
    ],
    ['a body that is missing', '/items', { method: 'POST' }, 400],
    ['a body that fits, without its read-only member', '/items', json({ name: 'a', serial: 1 }), 200],
    ['a member named $ref', '/items', json({ name: 'a', serial: 1, $ref: 'x' }), 200],
    ['a member named $ref of another type', '/items', json({ name: 'a', serial: 1, $ref: 5 }), 400],
    ['null where the document says nullable', '/items', json({ name: 'a', serial: 1, note: null }), 200],
    ['null elsewhere', '/items', json({ name: null, serial: 1 }), 400],
    [
      'a cycle of references',
      '/items',
      json({ name: 'a', serial: 1, children: [{ name: 'b', serial: 'x' }] }),
      400,
    ],
    ['an undeclared member', '/items', json({ name: 'a', serial: 1, other: 1 }), 400],
    ['a pattern', '/items', json({ name: 'A', serial: 1 }), 400],
    ['an int64 in a body', '/items', json('{"name":"a","serial":9223372036854775807}'), 200],
    ['an integer beyond int64 in a body', '/items', json('{"name":"a","serial":9223372036854775808}'), 400],
    ['a repeated member', '/items', json('{"name":"a","name":"b","serial":1}'), 400],
    ['JSON that is not valid', '/items', json('{'), 400],
    [
      'a form',
      '/items',
      {
        method: 'POST',
        headers: { 'Content-Type': 'application/x-www-form-urlencoded' },
        body: 'name=a&serial=9223372036854775807',
      },
      200,
    ],
    [
      'a form with an integer beyond int64',
      '/items',
      {
        method: 'POST',
        headers: { 'Content-Type': 'application/x-www-form-urlencoded' },
        body: 'name=a&serial=9223372036854775808',
      },
      400,
    ],
    [
      'a form with an undeclared member',
      '/items',
      {
        method: 'POST',
        headers: { 'Content-Type': 'application/x-www-form-urlencoded' },
        body: 'name=a&serial=1&x=1',
      },
      400,
    ],
    ['an empty integer', '/items?limit=', {}, 400],
    ['a repeated parameter that is no list', '/items?limit=1&limit=2', {}, 400],
    ['a list without explode that is repeated', '/items?tags=a&tags=b', {}, 400],
    ['a list with explode', '/items?ids=1&ids=9223372036854775807', {}, 200],
    ['a list with an item beyond int64', '/items?ids=1&ids=9223372036854775808', {}, 400],
    ['an object in brackets', '/items?filter[color]=red&filter[size]=5', {}, 200],
    ['an undeclared member in brackets', '/items?filter[other]=1', {}, 400],
    ['a member of another type in brackets', '/items?filter%5Bsize%5D=x', {}, 400],
    ['a percent-encoding that is not UTF-8', '/items?limit=%FF', {}, 400],
    ['a cookie that fits', '/items', { headers: { Cookie: 'lang=de' } }, 200],
    ['a cookie that is not listed', '/items', { headers: { Cookie: 'lang=fr' } }, 400],
    ['an undeclared parameter', '/items?other=1', {}, 200],
  ]

  test.each(rows)('%s', async (_title, target, init, status) => {
    const response = await send(target, init)
    const text = await response.text()
    expect([response.status, text]).toEqual([status, expect.anything()])
    expect(
      origin.received.length > 0 || status !== 200 || response.headers.get('cache-status')?.includes('hit'),
    ).toBe(true)
    if (status >= 400) {
      expect(origin.received).toEqual([])
      expect(response.headers.get('content-type')).toBe('application/problem+json')
    }
  })
})

test('a refusal points to the fault and does not repeat the request', async () => {
  const response = await send(
    '/items',
    json({ name: 'a', serial: 1, children: [{ name: 'SECRET', serial: 1 }] }),
  )
  const text = await response.text()
  expect(JSON.parse(text)).toEqual({
    type: 'about:blank',
    title: 'The body does not fit the description of the operation.',
    status: 400,
    code: 'invalid_body',
    errors: [{ pointer: '#/children/0/name', detail: 'does not match the pattern' }],
  })
  expect(text).not.toContain('SECRET')
})

test.each(['DELETE', 'OPTIONS'])('405 for %s names the methods of the path', async (method) => {
  expect((await send('/items', { method })).headers.get('allow')).toBe('GET, POST, HEAD')
})

test('an upstream answers the preflights of its pages', async () => {
  const headers = { Origin: 'https://app.example', 'Access-Control-Request-Method': 'POST' }
  expect((await send('/items', { method: 'OPTIONS', headers })).status).toBe(200)
  expect(origin.received[0]?.method).toBe('OPTIONS')
})

test('401 names the scheme of the first credential', async () => {
  expect((await send('/items/5', { method: 'DELETE' })).headers.get('www-authenticate')).toBe(
    'ApiKey realm="shop"',
  )
})

test('the upstream gets path, query and body byte for byte, and a header with an underscore that the document declares', async () => {
  const body = '{ "name":"a", "serial": 9223372036854775807 }'
  await (await send('/items', json(body))).text()
  await (
    await send('/items/9007199254740993', { method: 'DELETE', headers: { api_key: 'k', other_key: 'x' } })
  ).text()
  expect(origin.received[0]?.content.toString()).toBe(body)
  expect(origin.received[1]).toMatchObject({
    target: '/api/items/9007199254740993',
    headers: { api_key: 'k' },
  })
  expect(origin.received[1]?.headers).not.toHaveProperty('other_key')
})

test('declared parameters are sent in the order of the document, before the others in the order of the request', async () => {
  await (
    await send('/items?z=1&filter[size]=1&tags=%61%2cb&a=2&filter%5bcolor%5D=r&limit=1&z=0', {
      headers: { 'X-Tenant': 'order' },
    })
  ).text()
  expect(origin.received[0]?.target).toBe(
    '/api/items?limit=1&tags=a%2Cb&filter%5Bcolor%5D=r&filter[size]=1&z=1&a=2&z=0',
  )
})

describe('caching', () => {
  const status = async (target: string, headers: Record<string, string> = {}) => {
    const response = await send(target, { headers })
    await response.text()
    return response.headers.get('cache-status')
  }

  test('an operation without a rule is not stored', async () => {
    expect(await status('/items/5')).toContain('fwd=bypass; detail=no-rule')
  })

  test('spellings of one request have one stored response', async () => {
    await status('/items?limit=71&tags=x')
    expect(await status('/items?tags=%78&limit=7%31')).toContain('hit')
  })

  test('a comma in an item and a comma between items are two requests', async () => {
    await status('/items?tags=p%2Cq')
    expect(await status('/items?tags=p,q')).toContain('fwd=uri-miss')
  })

  test('declared headers and cookies are part of the key, and no other cookie is sent', async () => {
    const at = '/items?limit=9'
    await status(at, { 'X-Tenant': 'one' })
    expect(await status(at, { 'X-Tenant': 'two' })).toContain('fwd=uri-miss')
    expect(await status(at, { 'X-Tenant': 'one' })).toContain('hit')
    expect(await status(at)).toContain('fwd=uri-miss')
    expect(await status(at, { Cookie: '_ga=1; lang=de' })).toContain('fwd=uri-miss')
    expect(origin.received.at(-1)?.headers['cookie']).toBe('lang=de')
    expect(await status(at, { Cookie: 'lang=de; _ga=2' })).toContain('hit')
    expect(await status(at, { Cookie: 'lang=en' })).toContain('fwd=uri-miss')
    expect(await status(at, { Cookie: 'lang=de; session=1' })).toContain('detail=cookie')
  })

  test('a header that Connection names away is neither part of the key nor sent', async () => {
    const at = '/items?limit=77'
    const get = (headers: Record<string, string>) =>
      new Promise<string>((resolve, reject) => {
        const url = `${gateway.publicAddress}/shop${at}`
        request(url, { headers }, (response) => {
          response.resume()
          response.on('end', () => resolve(String(response.headers['cache-status'])))
        })
          .on('error', reject)
          .end()
      })
    await get({ 'X-Tenant': 'one', Connection: 'X-Tenant' })
    expect(origin.received.at(-1)?.headers).not.toHaveProperty('x-tenant')
    expect(await get({ 'X-Tenant': 'one' })).toContain('fwd=uri-miss')
    expect(origin.received.at(-1)?.headers['x-tenant']).toBe('one')
    expect(await get({})).toContain('hit')
  })

  test('responses of an operation with a credential are stored for each credential, whatever the document says', async () => {
    await status('/account', { api_key: 'one' })
    expect(await status('/account', { api_key: 'one' })).toContain('hit')
    expect(await status('/account', { api_key: 'two' })).toContain('fwd=uri-miss')
    expect(await status('/account', basic)).toContain('fwd=uri-miss')
  })

  test('a key in the query is never stored', async () => {
    expect(await status('/account?apikey=secret')).toContain('detail=api-key')
  })

  test.each([
    ['a POST', '/items', json({ name: 'a', serial: 1 })],
    ['a GET that the document says writes', '/reset', {}],
  ])('%s drops all responses of the service', async (_title, target, init) => {
    await status('/items?limit=5')
    expect(await status('/items?limit=5')).toContain('hit')
    await (await send(target, init)).text()
    expect(await status('/items?limit=5')).toContain('fwd=uri-miss')
  })

  test('a POST that the document says is safe drops nothing', async () => {
    await status('/items?limit=6')
    await (await send('/search', json({}))).text()
    expect(await status('/items?limit=6')).toContain('hit')
  })
})

describe('the served document', () => {
  const document = async (name: string) => fetch(`${gateway.adminAddress}/openapi/${name}.json`)

  test('has the public URL as its only server, no extension for the gateway, and all files in one', async () => {
    const text = await (await document('shop')).text()
    const { servers, paths, ...rest } = JSON.parse(text)
    expect(servers).toEqual([{ url: expect.stringMatching(/\/shop$/) }])
    expect(Object.keys(paths)).toContain('/items/{id}.{format}')
    expect(text).not.toContain('x-trellis')
    expect(text).not.toContain('internal.example')
    expect(paths['/items'].get.parameters[3].schema).toEqual({
      $ref: '#/x-files/schemas~1filter.yaml/Filter',
    })
    expect(rest['x-files']['schemas/filter.yaml'].Filter.type).toBe('object')
    expect(rest.components.schemas.NewItem.properties.$ref).toEqual({ type: 'string' })
  })

  test('is linked from the document of all services', async () => {
    const all = await (await fetch(`${gateway.adminAddress}/openapi.json`)).json()
    expect(all).toMatchObject({ info: { description: expect.stringContaining('[shop](docs?service=shop)') } })
    expect((await document('nope')).status).toBe(404)
  })
})

test('metrics name the template of the operation, never the URL', async () => {
  await (await send('/items/123456')).text()
  const text = await (await fetch(`${gateway.adminAddress}/metrics`)).text()
  expect(text).toContain('route="/items/{id}"')
  expect(text).not.toContain('123456')
})

test('explain shows the operation, what its document implies, and the fault of a request', async () => {
  const explain = async (url: string, header = '', method = 'GET') => {
    const query = new URLSearchParams({ method, url: `/shop${url}`, ...(header === '' ? {} : { header }) })
    return (await fetch(`${gateway.adminAddress}/explain?${query}`)).json()
  }
  expect(await explain('/account', 'api_key: k')).toMatchObject({
    operation: 'account',
    scope: 'credential, because the operation takes one',
    cache: 'read, credential',
    fieldsThatCountAsCredentials: ['api_key'],
  })
  expect(await explain('/items', '', 'POST')).toMatchObject({
    cache: 'write: invalidates',
    mayInvalidate: ['shop/all'],
  })
  expect(await explain('/search', '', 'POST')).toMatchObject({
    effect: 'reads only, by x-trellis-safe',
    cache: 'bypass: method',
  })
  expect(await explain('/account?apikey=k')).toMatchObject({ cache: 'bypass: api-key' })
  expect(await explain('/account')).toMatchObject({ refused: '401: no ApiKey credential' })
  expect(await explain('/items')).toMatchObject({
    'x-trellis-cache': 'ttl 60s; rules of the configuration come first',
    partOfTheCacheKey: ['header x-tenant', 'cookie lang'],
  })
  expect(await explain('/items?limit=0')).toMatchObject({
    refused: '400 invalid_parameter: limit must be at least 1',
  })
})

test('a purge by URL drops all responses of an operation with declared headers', async () => {
  const at = '/items?limit=31'
  for (const tenant of ['one', 'two']) await (await send(at, { headers: { 'X-Tenant': tenant } })).text()
  const purged = await fetch(`${gateway.adminAddress}/cache/purge`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ url: `/shop${at}` }),
  })
  expect(await purged.json()).toMatchObject({ entries: 2 })
})
