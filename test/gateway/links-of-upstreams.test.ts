import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { siteService, startTestGateway, type TestGateway } from '../support/gateway.ts'
import { type Origin, startOrigin } from '../support/origin.ts'
import { exchangeBytes } from '../support/raw-client.ts'

// An upstream knows its own address; clients know only that of the gateway.

let origin: Origin
let second: Origin
let gateway: TestGateway
const folder = mkdtempSync(join(tmpdir(), 'links-'))
const publicUrl = 'https://public.test:8443'

beforeAll(async () => {
  origin = await startOrigin()
  second = await startOrigin()
  const document = join(folder, 'books.yaml')
  const paths = ['/books', '/books/{id}'].map((path) => {
    const parameters = path.includes('{')
      ? 'parameters: [{ name: id, in: path, required: true, schema: { type: string } }]'
      : 'parameters: []'
    const response = '{ responses: { default: { description: any } } }'
    return `  ${path}: { ${parameters}, get: ${response}, post: ${response} }`
  })
  writeFileSync(
    document,
    `openapi: 3.1.0\ninfo: { title: books, version: "1" }\npaths:\n${paths.join('\n')}\n`,
  )
  const targets = [origin.origin]
  const open = { contract: 'open', cache: { rules: [{ match: 'GET /**', ttl: '1h', scope: 'public' }] } }
  gateway = await startTestGateway({
    publicUrl,
    services: {
      api: { ...open, mount: '/api', upstream: { targets, basePath: '/v1' } },
      documented: {
        contract: 'openapi',
        ...{ mount: '/documented', document, upstream: { targets, basePath: '/v1' }, batch: {} },
        cache: { rules: [{ match: 'GET /**', ttl: '1h' }] },
      },
      deep: { ...open, mount: '/shop/deep', upstream: { targets } },
      same: { ...open, mount: '/same', upstream: { targets, basePath: '/same' } },
      pool: {
        ...{ ...open, mount: '/pool' },
        upstream: { targets: [...targets, second.origin], basePath: '/v1' },
      },
      hosts: {
        ...{ ...open, mount: '/', hosts: ['a.test', 'b.test'] },
        upstream: { targets, basePath: '/v1' },
      },
      preserving: {
        ...{ ...open, mount: '/kept', hosts: ['c.test', 'd.test'], publicUrl: 'https://c.test' },
        upstream: { targets, basePath: '/v1', host: 'preserve' },
      },
      site: siteService(origin.origin, { mount: '/wp-json', names: 'same' }),
      plants: { contract: 'plants', mount: '/garden', upstream: { targets, basePath: '/store' } },
    },
  })
})
afterAll(async () => {
  await gateway.close()
  await origin.close()
  await second.close()
  rmSync(folder, { recursive: true })
})
beforeEach(() => {
  origin.received.length = 0
})

type HeaderValues = Readonly<Record<string, string>>

const respondWith = (status: number, headers: HeaderValues): void => {
  const script: Origin['script'] = (_, wire) => wire.respond({ status, headers, content: 'x' })
  origin.script = script
  second.script = script
}

let asked = 0
const query = (): string => `n=${++asked}`

const ask = (method: string, target: string, host = 'public.test', headers = ''): Promise<string> =>
  exchangeBytes(
    gateway.publicAddress,
    `${method} ${target} HTTP/1.1\r\nHost: ${host}\r\n${headers}Content-Length: 0\r\nConnection: close\r\n\r\n`,
  )

const headerOf = (response: string, name: string): string | undefined =>
  new RegExp(`^${name}: ?(.*?)\\r$`, 'im').exec(response)?.[1]

/** What clients of a service see for a header value that its upstream sends. */
const shown = async (
  value: string,
  { name = 'Location', path = '/api/books/3', method = 'GET', status = 200, host = 'public.test' } = {},
): Promise<string | undefined> => {
  respondWith(status, { [name]: value })
  return headerOf(await ask(method, `${path}?${query()}`, host), name)
}

const own = (): string => origin.origin
const port = (): number => origin.port

describe('a URL of the upstream becomes the public URL, in the form in which it was sent', () => {
  test.each([
    ['a path', () => '/v1/books/7', '/api/books/7'],
    ['a path with a query and a fragment', () => '/v1/books?a=/v1/b#c', '/api/books?a=/v1/b#c'],
    ['basePath itself', () => '/v1', '/api'],
    ['basePath with a query', () => '/v1?a', '/api?a'],
    ['an absolute URL', () => `${own()}/v1/books/7`, `${publicUrl}/api/books/7`],
    ['another scheme', () => `https://127.0.0.1:${port()}/v1/books/7`, `${publicUrl}/api/books/7`],
    ['capital letters', () => `HTTP://127.0.0.1:${port()}/v1/B`, `${publicUrl}/api/B`],
    ['no scheme', () => `//127.0.0.1:${port()}/v1/b`, '//public.test:8443/api/b'],
    ['the host of X-Forwarded-Host', () => 'https://PUBLIC.test:8443/v1/b', `${publicUrl}/api/b`],
    ['that host with http', () => 'http://public.test:8443/v1/b', `${publicUrl}/api/b`],
    ['the public URL', () => `${publicUrl}/api/books/7?a#b`, `${publicUrl}/api/books/7?a#b`],
    ['dot segments inside of basePath', () => '/v1/x/../books/7', '/api/books/7'],
    ['dot segments that lead into basePath', () => '/x/%2e%2E/v1/b', '/api/b'],
    ['characters that URL objects escape', () => "/v1/{b}'|caf\u00e9", "/api/{b}'|caf\u00e9"],
  ])('%s', async (_, value, expected) => {
    expect(await shown(value())).toBe(expected)
  })

  test('another target than the one that answers', async () => {
    for (const target of [origin, second]) {
      expect(await shown(`${target.origin}/v1/b`, { path: '/pool/a' })).toBe(`${publicUrl}/pool/b`)
    }
  })

  test('also where mount and basePath are the same', async () => {
    expect(await shown(`${own()}/same/b`, { path: '/same/a' })).toBe(`${publicUrl}/same/b`)
    expect(await shown('/same/b', { path: '/same/a' })).toBe('/same/b')
  })
})

describe('what does not lead to the service at the upstream stays', () => {
  test.each([
    ['another host', () => 'https://other.test/v1/books/7'],
    ['another port', () => 'http://127.0.0.1:1/v1/books/7'],
    ['the address of the upstream as user information', () => `http://127.0.0.1:${port()}@evil.test/v1/b`],
    ['user information', () => `http://user:word@127.0.0.1:${port()}/v1/b`],
    ['a path outside of basePath', () => '/v2/books'],
    ['a URL outside of basePath', () => `${own()}/v2/books`],
    ['a path that begins like basePath', () => '/v10/books'],
    ['dot segments that leave basePath', () => '/v1/../admin'],
    ['another scheme', () => 'mailto:a@b.test'],
    ['a scheme without an authority', () => 'http:/v1/b'],
    ['a backslash after the host', () => `http://127.0.0.1:${port()}\\v1/b`],
    ['a backslash that browsers read as a slash', () => '/\\other.test/v1/b'],
    ['an invalid host', () => 'http://[bad/v1/b'],
    ['no host', () => 'http:///v1/b'],
    ['a relative path', () => '7'],
    ['a relative path to a sibling', () => '../authors/1'],
    ['a query', () => '?page=2'],
    ['an empty reference', () => ''],
    ['a very long URL', () => `/v1/${'x'.repeat(8200)}`],
  ])('%s', async (_, value) => {
    expect(await shown(value())).toBe(value())
  })

  test('where the mount is inside of basePath, a path that has the mount already', async () => {
    const at = { path: '/shop/deep/a' }
    expect(await shown('/shop/deep/b', at)).toBe('/shop/deep/b')
    expect(await shown(`${publicUrl}/shop/deep/b`, at)).toBe(`${publicUrl}/shop/deep/b`)
    expect(await shown('/login', at)).toBe('/shop/deep/login')
  })
})

test('a path that would name a host keeps its own', async () => {
  const at = { path: '/a', host: 'a.test' }
  expect(await shown('/v1//evil.test/x', at)).toBe('/.//evil.test/x')
  expect(await shown('/v1/\\evil.test/x', at)).toBe('/./\\evil.test/x')
  expect(await shown('/v1', at)).toBe('/')
  expect(await shown(`${own()}/v1//evil.test`, at)).toBe('https://a.test:8443//evil.test')
})

test('a relative reference stays where clients resolve it as the upstream does, otherwise it becomes a path', async () => {
  const at = { path: '/shop/deep/books/7' }
  expect(await shown('../authors/1', at)).toBe('../authors/1')
  // The upstream cannot climb above its root.
  expect(await shown('../../../login?a#b', at)).toBe('/shop/deep/login?a#b')
  expect(await shown('%2E%2e/../../login', at)).toBe('/shop/deep/login')
  // Clients that ask for the mount without a slash would resolve it beside the mount.
  expect(await shown('login', { path: '/shop/deep' })).toBe('/shop/deep/login')
})

describe('every header with URLs', () => {
  test.each([
    ['Content-Location', '/v1/books/7', '/api/books/7'],
    ['Refresh', '5; url=/v1/books/7', '5; url=/api/books/7'],
    ['Refresh', `0;URL="/v1/b"; x`, `0;URL="/api/b"; x`],
    ['Refresh', `3.5, '/v1/b'`, `3.5, '/api/b'`],
    ['Refresh', '30', '30'],
    [
      'Link',
      '</v1/b?page=2>; rel="next"; title="a, <b>; \\"</v1/c>", </v1/b?page=9>;rel=last,<https://other.test/v1>; rel=up',
      '</api/b?page=2>; rel="next"; title="a, <b>; \\"</v1/c>", </api/b?page=9>;rel=last,<https://other.test/v1>; rel=up',
    ],
    ['Link', '<?page=2>; rel=next', '<?page=2>; rel=next'],
    ['Link', '</v1/b', '</v1/b'],
    ['X-Location', '/v1/b', '/v1/b'],
  ])('%s: %s', async (name, value, expected) => {
    expect(await shown(value, { name })).toBe(expected)
  })

  test('Link in an interim response', async () => {
    origin.script = (_, wire) =>
      wire.write(
        'HTTP/1.1 103 Early Hints\r\nLink: </v1/a.css>; rel=preload; as=style\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n',
      )
    const response = await ask('GET', `/api/books?${query()}`)
    expect(response).toMatch(/^HTTP\/1\.1 103 /)
    expect(headerOf(response, 'link')).toBe('</api/a.css>; rel=preload; as=style')
  })
})

describe.each([
  ['an open service', '/api/books'],
  ['an OpenAPI service', '/documented/books'],
])('%s', (_, path) => {
  test.each([
    ['POST', 201],
    ['POST', 303],
    ['GET', 301],
    ['GET', 302],
    ['HEAD', 301],
  ])('in the response to %s with %i', async (method, status) => {
    const at = { path, method, status }
    const mount = path.replace('/books', '')
    expect(await shown('/v1/books/7', at)).toBe(`${mount}/books/7`)
    expect(await shown(`${own()}/v1/books/7`, at)).toBe(`${publicUrl}${mount}/books/7`)
  })

  test('a hit and HEAD of it show what was stored', async () => {
    const target = `${path}/${query()}`
    respondWith(200, { Link: `<${own()}/v1/books/8>; rel="next"`, ETag: '"1"' })
    const expected = `<${publicUrl}${path}/8>; rel="next"`
    expect(headerOf(await ask('GET', target), 'link')).toBe(expected)
    for (const method of ['GET', 'HEAD']) {
      const hit = await ask(method, target)
      expect(hit).toContain('; hit')
      expect(headerOf(hit, 'link')).toBe(expected)
    }
    expect(origin.received).toHaveLength(1)
  })
})

test('a plant store', async () => {
  respondWith(301, { Location: '/store/plants/7' })
  expect(
    headerOf(await ask('GET', '/garden/plants', 'public.test', 'Authorization: Bearer x\r\n'), 'location'),
  ).toBe('/garden/plants/7')
})

test('a site, in Refresh too', async () => {
  const at = { path: '/wp-json/wp/v2/posts', name: 'Refresh' }
  const value = `5; url=${own()}/index.php/wp-json/wp/v2/posts/1`
  expect(await shown(value, at)).toBe(`5; url=${publicUrl}/wp-json/wp/v2/posts/1`)
})

test('an item of a batch', async () => {
  const headers = { Location: '/v1/books/7', Link: `<${own()}/v1/books>; rel="collection"` }
  origin.script = (_, wire) =>
    wire.respond({ status: 201, headers: { ...headers, 'Content-Type': 'application/json' }, content: '{}' })
  const response = await fetch(`${gateway.publicAddress}/documented/batch`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ requests: [{ method: 'POST', path: '/books' }] }),
  })
  expect(((await response.json()) as { responses: unknown }).responses).toEqual([
    expect.objectContaining({
      status: 201,
      headers: {
        Link: `<${publicUrl}/documented/books>; rel="collection"`,
        Location: '/documented/books/7',
      },
    }),
  ])
})

describe('a service with several hosts', () => {
  test('uses the host of the request, also for stored responses', async () => {
    const target = `/books/${query()}`
    respondWith(200, { 'Content-Location': `${own()}/v1/books/7` })
    for (const expected of [/fwd=/, /; hit/]) {
      for (const host of ['a.test', 'b.test']) {
        const response = await ask('GET', target, host)
        expect(headerOf(response, 'cache-status')).toMatch(expected)
        expect(headerOf(response, 'content-location')).toBe(`https://${host}:8443/books/7`)
      }
    }
  })

  test('with publicUrl uses that, and keeps the host that the upstream received', async () => {
    for (const host of ['c.test', 'd.test']) {
      const at = { path: '/kept/a', host }
      expect(await shown(`${own()}/v1/b`, at)).toBe('https://c.test/kept/b')
      expect(await shown(`http://${host}/v1/b`, at)).toBe(`https://${host}/kept/b`)
    }
  })
})

test('a client is not sent from https to http', async () => {
  const plain = await startTestGateway({
    publicUrl: 'http://plain.test',
    services: { pages: { contract: 'open', mount: '/', upstream: { targets: [origin.origin] } } },
  })
  respondWith(301, { Location: 'https://plain.test/a' })
  const response = await fetch(`${plain.publicAddress}/a`, { redirect: 'manual' })
  expect(response.headers.get('location')).toBe('https://plain.test/a')
  await plain.close()
})
