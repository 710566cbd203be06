import { gzipSync } from 'node:zlib'
import { beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { closeAfterAll } from '../support/close.ts'
import { siteService, startTestGateway, type TestGateway } from '../support/gateway.ts'
import { type Origin, startOrigin } from '../support/origin.ts'
import { freePort } from '../support/ports.ts'
import { exchangeBytes } from '../support/raw-client.ts'

let origin: Origin
let gateway: TestGateway

beforeAll(async () => {
  origin = await startOrigin()
  gateway = await startTestGateway({
    limits: { bodyBytes: '4KiB', uploadBytes: '64KiB', headerBytes: '8KiB', urlBytes: '1KiB', jsonDepth: 16 },
    services: {
      plants: { contract: 'plants', mount: '/', upstream: { targets: [origin.origin] } },
      site: siteService(origin.origin, { unlistedRoutes: 'refuse' }),
      legacy: { contract: 'open', mount: '/legacy', upstream: { targets: [origin.origin] } },
      down: siteService(`http://127.0.0.1:${await freePort()}`, { mount: '/down' }),
    },
  })
})
closeAfterAll(() => [gateway, origin])
beforeEach(() => {
  origin.received.length = 0
})

type Case = {
  readonly case: string
  readonly path: string
  readonly init?: RequestInit
  readonly status: number
  /** What of the body must be there. */
  readonly body: Readonly<Record<string, unknown>>
}

const site = '/index.php/site-json'
const jsonHeaders = { 'Content-Type': 'application/json' }
const bearer = { Authorization: 'Bearer token' }
const deep = `{"title":${'{"raw":'.repeat(40)}1${'}'.repeat(40)}}`

const cases: readonly Case[] = [
  { case: 'site: unknown route', path: `${site}/site/v2/nope`, status: 404, body: { code: 'rest_no_route' } },
  {
    case: 'site: wrong method on a known route',
    path: `${site}/site/v2/posts`,
    init: { method: 'DELETE' },
    status: 404,
    body: { code: 'rest_no_route' },
  },
  {
    case: 'site: bad parameter',
    path: `${site}/site/v2/posts?page=0`,
    status: 400,
    body: {
      code: 'rest_invalid_param',
      data: expect.objectContaining({ params: { page: expect.any(String) } }),
    },
  },
  {
    case: 'site: missing parameter',
    path: `${site}/oembed/1.0/embed`,
    status: 400,
    body: { code: 'rest_missing_callback_param', data: { status: 400, params: ['url'] } },
  },
  {
    case: 'site: bad JSON',
    path: `${site}/site/v2/posts`,
    init: { method: 'POST', headers: jsonHeaders, body: '{"title":' },
    status: 400,
    body: { code: 'rest_invalid_json', data: expect.objectContaining({ json_error_code: 4 }) },
  },
  {
    case: 'site: JSON too deep',
    path: `${site}/site/v2/posts`,
    init: { method: 'POST', headers: jsonHeaders, body: deep },
    status: 400,
    body: { code: 'rest_invalid_json' },
  },
  {
    case: 'site: content too large',
    path: `${site}/site/v2/posts`,
    init: { method: 'POST', headers: jsonHeaders, body: `{"title":"${'x'.repeat(5000)}"}` },
    status: 413,
    body: { code: 'trellis_content_too_large', data: { status: 413 } },
  },
  {
    case: 'site: upload too large',
    path: `${site}/site/v2/media`,
    init: { method: 'POST', headers: { 'Content-Type': 'image/png' }, body: 'x'.repeat(70_000) },
    status: 413,
    body: { code: 'trellis_content_too_large' },
  },
  {
    case: 'site: content type that no row takes',
    path: `${site}/site/v2/posts`,
    init: { method: 'POST', headers: { 'Content-Type': 'text/plain' }, body: 'title' },
    status: 415,
    body: { code: 'trellis_unsupported_content_type' },
  },
  {
    case: 'site: a form that is coded, so that nobody here can check it',
    path: `${site}/site/v2/posts`,
    init: {
      method: 'POST',
      headers: { 'Content-Type': 'application/x-www-form-urlencoded', 'Content-Encoding': 'gzip' },
      body: gzipSync('title=x&_method=DELETE'),
    },
    status: 415,
    body: { code: 'trellis_unsupported_content_type' },
  },
  {
    case: 'site: batch of 26',
    path: `${site}/batch/v1`,
    init: {
      method: 'POST',
      headers: jsonHeaders,
      body: JSON.stringify({ requests: Array.from({ length: 26 }, () => ({ path: '/' })) }),
    },
    status: 400,
    body: { code: 'rest_invalid_param' },
  },
  {
    case: 'site: an identifier that contradicts the path',
    path: `${site}/site/v2/posts/1?id=6`,
    status: 400,
    body: { data: expect.objectContaining({ status: 400 }) },
  },
  {
    case: 'site: upstream down',
    path: '/down/site/v2/posts/1',
    status: 502,
    body: { code: 'trellis_upstream_unreachable', data: { status: 502 } },
  },
  {
    case: 'plants: missing token',
    path: '/plants',
    status: 401,
    body: { error: 401, message: expect.any(String) },
  },
  {
    case: 'plants: another scheme',
    path: '/plants',
    init: { headers: { Authorization: 'Basic abc' } },
    status: 401,
    body: { error: 401 },
  },
  { case: 'plants: unknown route', path: '/flowers', status: 404, body: { error: 404 } },
  {
    case: 'plants: wrong method',
    path: '/plants',
    init: { method: 'PUT', headers: bearer },
    status: 405,
    body: { error: 405 },
  },
  {
    case: 'plants: OPTIONS, which the contract does not have',
    path: '/plants',
    init: { method: 'OPTIONS', headers: bearer },
    status: 405,
    body: { error: 405 },
  },
  {
    case: 'plants: an identifier that is no integer',
    path: '/plants',
    init: { method: 'POST', headers: { ...bearer, ...jsonHeaders }, body: '{"id":1.0,"name":"Fern"}' },
    status: 400,
    body: { error: 400 },
  },
  {
    case: 'plants: bad JSON',
    path: '/plants',
    init: { method: 'POST', headers: { ...bearer, ...jsonHeaders }, body: 'id=1' },
    status: 400,
    body: { error: 400 },
  },
  {
    case: 'plants: wrong content type',
    path: '/plants',
    init: { method: 'POST', headers: { ...bearer, 'Content-Type': 'text/plain' }, body: '{}' },
    status: 415,
    body: { error: 415 },
  },
  {
    case: 'plants: identifier beyond 64 bits in the path',
    path: '/plants/9223372036854775808',
    init: { method: 'DELETE', headers: bearer },
    status: 400,
    body: { error: 400 },
  },
  {
    case: 'open: path with dot segments, escaped',
    path: '/legacy/%2e%2e/admin',
    status: 400,
    body: { status: 400, code: 'ambiguous_request', type: 'about:blank' },
  },
  {
    case: 'target too long',
    path: `/legacy/${'x'.repeat(1200)}`,
    status: 414,
    body: { status: 414, code: 'target_too_long' },
  },
]

describe('each is refused in the shape of its service, before it reaches the upstream, and counted once', () => {
  // fetch resolves dot segments before it sends them.
  const sentAsIs = cases.filter(({ path }) => !path.includes('%2e'))

  test.each(sentAsIs)('$case', async ({ path, init, status, body }) => {
    const before = await refusals()
    const response = await fetch(`${gateway.publicAddress}${path}`, init)
    expect(response.status).toBe(status)
    const contentType = path.startsWith('/legacy') ? 'application/problem+json' : 'application/json'
    expect(response.headers.get('content-type')).toContain(contentType)
    expect(await response.json()).toMatchObject(body)
    expect(origin.received).toEqual([])
    expect(await refusals()).toBe(before + 1)
  })

  test('a 401 names its scheme, a 405 what is allowed', async () => {
    const missing = await fetch(`${gateway.publicAddress}/plants`)
    expect(missing.headers.get('www-authenticate')).toBe('Bearer realm="plants"')
    const wrong = await fetch(`${gateway.publicAddress}/plants`, { method: 'PATCH', headers: bearer })
    expect(wrong.headers.get('allow')).toBe('GET, POST, HEAD')
  })
})

const refusals = async (): Promise<number> => {
  const text = await (await fetch(`${gateway.adminAddress}/metrics`)).text()
  const values = text.matchAll(/^trellis_refusals_total\{.*\} (\d+)$/gm)
  return [...values].reduce((sum, [, value]) => sum + Number(value), 0)
}

describe('bytes that are no request', () => {
  test.each([
    [
      'header fields too large',
      `GET ${site}/site/v2/posts HTTP/1.1\r\nHost: a\r\nX-A: ${'x'.repeat(9000)}\r\n\r\n`,
      431,
      '"code":"trellis_fields_too_large"',
    ],
    [
      'the same for plants',
      `GET /plants HTTP/1.1\r\nHost: a\r\nX-A: ${'x'.repeat(9000)}\r\n\r\n`,
      431,
      '"error":431',
    ],
    [
      'more chunks than a body may have',
      `POST ${site}/site/v2/posts HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n1400\r\n${' '.repeat(5120)}\r\n0\r\n\r\n`,
      413,
      '"code":"trellis_content_too_large"',
    ],
    [
      'two lengths',
      'POST /plants HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\na',
      400,
      '"error":400',
    ],
    [
      'length and chunks',
      'POST /plants HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
      400,
      '"error":400',
    ],
    ['a space in front of the colon', 'GET /plants HTTP/1.1\r\nHost : a\r\n\r\n', 400, '"error":400'],
    ['no HTTP at all', 'hello\r\n\r\n', 400, '"error":400'],
    [
      'a fragment behind the query, which some upstreams cut off',
      'GET /legacy/a?b=1#c HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n',
      400,
      'malformed_request',
    ],
    [
      'dot segments, escaped',
      'GET /legacy/%2e%2e/admin HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n',
      400,
      'ambiguous_request',
    ],
    [
      'dot segments as they are',
      'GET /legacy/../admin HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n',
      400,
      'ambiguous_request',
    ],
  ])('%s', async (_, bytes, status, text) => {
    const response = await exchangeBytes(gateway.publicAddress, bytes)
    expect(response).toMatch(new RegExp(`^HTTP/1.1 ${status} `))
    expect(response).toContain(text)
    expect(response.match(/HTTP\/1\.1/g)).toHaveLength(1)
    expect(origin.received).toEqual([])
  })

  test('the process lives, and the next request is served', async () => {
    const response = await fetch(`${gateway.publicAddress}/plants`, { headers: bearer })
    expect(response.status).toBe(200)
  })
})
