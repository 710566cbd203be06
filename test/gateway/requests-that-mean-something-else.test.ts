import { beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { closeAfterAll } from '../support/close.ts'
import { siteService, startTestGateway, type TestGateway } from '../support/gateway.ts'
import { type Origin, startOrigin } from '../support/origin.ts'
import { exchangeBytes } from '../support/raw-client.ts'

// One row for each decision of docs/decisions/0003-requests-that-mean-something-else.md: what was sent, what the upstream saw.

let origin: Origin
let gateway: TestGateway
const mount = '/index.php/site-json'
const upstreamRoot = '/index.php/wp-json'

beforeAll(async () => {
  origin = await startOrigin()
  gateway = await startTestGateway({
    services: { site: siteService(origin.origin, { cache: { rules: [] } }) },
  })
})
closeAfterAll(() => [gateway, origin])
beforeEach(() => {
  origin.received.length = 0
})

type Sent = {
  readonly method?: string
  readonly path: string
  readonly headers?: Readonly<Record<string, string>>
  readonly content?: string
}

const send = async ({ method = 'GET', path, headers = {}, content }: Sent): Promise<string> => {
  const lines = Object.entries({
    Host: 'a',
    Connection: 'close',
    ...headers,
    ...(content === undefined ? {} : { 'Content-Length': String(content.length) }),
  })
  const head = lines.map(([name, value]) => `${name}: ${value}\r\n`).join('')
  return exchangeBytes(
    gateway.publicAddress,
    `${method} ${mount}${path} HTTP/1.1\r\n${head}\r\n${content ?? ''}`,
  )
}

const json = { 'Content-Type': 'application/json' }

describe('understood: the upstream sees what is meant, in one spelling', () => {
  test.each<[string, Sent, string]>([
    [
      'an override that names the method itself',
      { path: '/site/v2/posts/5?_method=GET' },
      'GET /wp/v2/posts/5',
    ],
    ['names that PHP folds', { path: '/site/v2/posts?per.page=5' }, 'GET /wp/v2/posts?per_page=5'],
    ['names with a space', { path: '/site/v2/posts?per%20page=5' }, 'GET /wp/v2/posts?per_page=5'],
    ['names with an open bracket', { path: '/site/v2/posts?per[page=5' }, 'GET /wp/v2/posts?per_page=5'],
    ['names that end at NUL', { path: '/site/v2/posts?per_page%00x=5' }, 'GET /wp/v2/posts?per_page=5'],
    [
      'duplicate scalars: the last one',
      { path: '/site/v2/posts?per_page=4&per_page=5' },
      'GET /wp/v2/posts?per_page=5',
    ],
    ['upper case path', { path: '/SITE/V2/Posts' }, 'GET /wp/v2/posts'],
    ['doubled slash', { path: '/site//v2/posts' }, 'GET /wp/v2/posts'],
    ['trailing slash', { path: '/site/v2/posts/' }, 'GET /wp/v2/posts'],
    ['leading zeros', { path: '/site/v2/posts/0005' }, 'GET /wp/v2/posts/5'],
    ['the identifier of the path once more', { path: '/site/v2/posts/5?id=5' }, 'GET /wp/v2/posts/5'],
    ['a tracking parameter', { path: '/site/v2/posts?utm_source=x' }, 'GET /wp/v2/posts'],
    [
      'a parameter that no route declares',
      { path: '/site/v2/posts?zone=1&foo.bar=b%61z' },
      'GET /wp/v2/posts?foo_bar=baz&zone=1',
    ],
  ])('%s', async (_, sent, seen) => {
    expect(await send(sent)).toMatch(/^HTTP\/1\.1 200 /)
    expect(
      origin.received.map(({ method, target }) => `${method} ${target.slice(upstreamRoot.length)}`),
    ).toEqual([seen])
  })
})

const formOf = (...parts: readonly string[]): string =>
  `${parts.map((part) => `--b\r\nContent-Disposition: form-data; ${part}\r\n`).join('')}--b--\r\n`
const multipart = { 'Content-Type': 'multipart/form-data; boundary=b' }
const override = (method: string) => ({ 'X-HTTP-Method-Override': method })

describe('a POST that names another method is sent as it came, and counts as that method', () => {
  const parts = formOf('name="title"\r\n\r\nx')
  test.each<[string, Sent, string]>([
    [
      'by header',
      { path: '/site/v2/posts/5', headers: { ...json, ...override('PUT') }, content: '{}' },
      '/wp/v2/posts/5',
    ],
    ['by header, lower case', { path: '/site/v2/posts/5', headers: override('delete') }, '/wp/v2/posts/5'],
    [
      'by parameter',
      { path: '/site/v2/posts/5?_method=PATCH', headers: json, content: '{}' },
      '/wp/v2/posts/5?_method=PATCH',
    ],
    [
      'by a folded parameter',
      { path: '/site/v2/posts/5?.method=put', headers: json, content: '{}' },
      '/wp/v2/posts/5?_method=put',
    ],
    [
      'by both',
      { path: '/site/v2/posts/5?_method=PUT', headers: { ...json, ...override('DELETE') }, content: '{}' },
      '/wp/v2/posts/5?_method=PUT',
    ],
    [
      'a form with parts',
      { path: '/site/v2/posts/5', headers: { ...multipart, ...override('PUT') }, content: parts },
      '/wp/v2/posts/5',
    ],
    [
      'a form with parts for media',
      { path: '/site/v2/media/5', headers: { ...multipart, ...override('PUT') }, content: parts },
      '/wp/v2/media/5',
    ],
    [
      'on a route that no table has',
      { path: '/acme/v1/a?_method=DELETE', headers: multipart, content: parts },
      '/acme/v1/a?_method=DELETE',
    ],
    [
      'its own method',
      { path: '/site/v2/posts?_method=POST', headers: { ...json, ...override('PUT') }, content: '{}' },
      '/wp/v2/posts?_method=POST',
    ],
  ])('%s', async (_, sent, target) => {
    expect(await send({ method: 'POST', ...sent })).toMatch(/^HTTP\/1\.1 200 /)
    expect(
      origin.received.map((request) => [request.method, request.target, request.content.toString()]),
    ).toEqual([['POST', upstreamRoot + target, sent.content ?? '']])
    expect(origin.received[0]?.headers['x-http-method-override']).toBe(
      sent.headers?.['X-HTTP-Method-Override'],
    )
  })
})

describe('refused: the upstream sees nothing', () => {
  test.each<[string, Sent]>([
    ['_method on GET', { path: '/site/v2/posts/5?_method=DELETE' }],
    ['_method on GET, folded', { path: '/site/v2/posts/5?.method=DELETE' }],
    ['_method on GET, escaped', { path: '/site/v2/posts/5?%5Fmethod=DELETE' }],
    ['the field on GET', { path: '/site/v2/posts/5', headers: { 'X-HTTP-Method-Override': 'DELETE' } }],
    [
      'the field on HEAD',
      { method: 'HEAD', path: '/site/v2/posts/5', headers: { 'X-HTTP-Method-Override': 'DELETE' } },
    ],
    [
      'an override with a method that is none',
      { method: 'POST', path: '/site/v2/posts/5', headers: { 'X-HTTP-Method-Override': 'FOO' } },
    ],
    ['an override to GET', { method: 'POST', path: '/site/v2/posts/5?_method=GET' }],
    ['an override to a list of methods', { method: 'POST', path: '/site/v2/posts/5?_method[]=PUT' }],
    ['rest_route', { path: '/site/v2/posts/5?rest_route=/wp/v2/users' }],
    ['rest_route, folded', { path: '/site/v2/posts/5?rest.route=/wp/v2/users' }],
    ['rest_route, escaped', { path: '/site/v2/posts/5?rest%5Froute=/wp/v2/users' }],
    [
      'rest_route on POST',
      { method: 'POST', path: '/site/v2/posts?rest_route=/wp/v2/users', headers: json, content: '{}' },
    ],
    ...['rest_route', 'rest.route', 'rest%5Broute', '+rest_route', 'rest_route%00x', 'rest_route%5B%5D'].map(
      (name): [string, Sent] => [
        `${name} in a form`,
        {
          method: 'POST',
          path: '/site/v2/posts/5',
          headers: { 'Content-Type': 'application/x-www-form-urlencoded' },
          content: `title=a&${name}=%2Fwp%2Fv2%2Fposts%2F6`,
        },
      ],
    ),
    ['JSON content on GET', { path: '/site/v2/posts/5', headers: json, content: '{"id":6}' }],
    [
      'form content on GET',
      {
        path: '/site/v2/posts/5',
        headers: { 'Content-Type': 'application/x-www-form-urlencoded' },
        content: 'id=6',
      },
    ],
    ['another id in the query', { path: '/site/v2/posts/5?id=6' }],
    [
      'another id in the content',
      { method: 'PUT', path: '/site/v2/posts/5', headers: json, content: '{"id":6}' },
    ],
    ['another parent in the query', { path: '/site/v2/posts/5/revisions?parent=6' }],
    ['more parameters than are read', { path: `/site/v2/posts?${'a=1&'.repeat(400)}` }],
    ['dot segments', { path: '/site/v2/posts/../users' }],
    ['encoded dot segments', { path: '/site/v2/posts/%2e%2e/users' }],
    ['encoded slash', { path: '/site/v2/posts%2f5' }],
    ['backslash', { path: '/site/v2/posts\\5' }],
    ['raw bytes in the path', { path: '/site/v2/posts/\xe4' }],
    ['raw bytes in the query', { path: '/site/v2/posts?search=\xe4' }],
  ])('%s', async (_, sent) => {
    expect(await send(sent)).toMatch(/^HTTP\/1\.1 4\d\d /)
    expect(origin.received).toEqual([])
  })
})

describe('a form that is not read', () => {
  const urlencoded = { 'Content-Type': 'application/x-www-form-urlencoded' }
  const unlisted = '/acme/v1/a%20b'
  const refusal = /^HTTP\/1\.1 400 .*trellis_ambiguous_request.*rest_route/s

  test.each<[string, Sent]>([
    [
      'an upload',
      {
        path: '/site/v2/media',
        headers: multipart,
        content: formOf('name="file"; filename="rest_route"\r\n\r\nx'),
      },
    ],
    [
      'a part whose content speaks of the route',
      { path: unlisted, headers: multipart, content: formOf('name="a"\r\n\r\nname="rest_route"') },
    ],
    [
      'a method, which WordPress does not read in a form',
      { path: unlisted, headers: multipart, content: formOf('name="_method"\r\n\r\nDELETE') },
    ],
    ['JSON that is sent as a form', { path: unlisted, headers: urlencoded, content: '{"rest_route":1}' }],
    [
      'another name with the beginning of this one',
      { path: unlisted, headers: urlencoded, content: 'rest_routes=1&x=rest_route' },
    ],
    [
      'a picture',
      { path: '/site/v2/media', headers: { 'Content-Type': 'image/png' }, content: 'rest_route=' },
    ],
    [
      'a form of PUT, which PHP does not read',
      { method: 'PUT', path: unlisted, headers: multipart, content: formOf('name="rest_route"\r\n\r\n/x') },
    ],
  ])('%s is sent as it came, and nothing is added to its target', async (_, sent) => {
    expect(await send({ method: 'POST', ...sent })).toMatch(/^HTTP\/1\.1 200 /)
    expect(origin.received.map(({ target }) => target)).toEqual([
      upstreamRoot + sent.path.replace('/site/', '/wp/'),
    ])
    expect(origin.received[0]?.content.toString()).toBe(sent.content)
  })

  test.each<[string, string, Readonly<Record<string, string>>, string]>([
    ['a part', '/site/v2/media', multipart, formOf('name="rest_route"\r\n\r\n/x')],
    ['a part on a route that no table has', unlisted, multipart, formOf('name="rest_route"\r\n\r\n/x')],
    ['a pair on a route that no table has', unlisted, urlencoded, 'a=1&rest.route=/x'],
    ['a pair without a value', unlisted, urlencoded, 'a=1&rest_route'],
    [
      'another type that PHP reads as a form',
      unlisted,
      { 'Content-Type': 'application/x-www-form-urlencoded, a' },
      '+rest[route=1',
    ],
  ])('%s with rest_route is refused, and nothing is sent', async (_, path, headers, content) => {
    expect(await send({ method: 'POST', path, headers, content })).toMatch(refusal)
    expect(origin.received).toEqual([])
  })

  test('with another identifier than the path is refused', async () => {
    const content = formOf('name="id"\r\n\r\n6')
    expect(await send({ method: 'POST', path: '/site/v2/posts/5', headers: multipart, content })).toMatch(
      /^HTTP\/1\.1 400 .*The parameter id of the path/s,
    )
    expect(origin.received).toEqual([])
  })

  test('in a content coding is refused, since the server in front of PHP may decode it', async () => {
    const headers = { ...multipart, 'Content-Encoding': 'gzip' }
    expect(await send({ method: 'POST', path: unlisted, headers, content: 'x' })).toMatch(/^HTTP\/1\.1 415 /)
    expect(origin.received).toEqual([])
  })

  test('a large one ends where the part begins: the upstream never gets it whole, nor that part', async () => {
    const before = formOf(`name="file"; filename="a"\r\n\r\n${'x'.repeat(100_000)}`).replace('--b--\r\n', '')
    const content = before + formOf('name="rest_route"\r\n\r\n/x')
    expect(await send({ method: 'POST', path: unlisted, headers: multipart, content })).toMatch(refusal)
    expect(origin.received).toEqual([])
  })
})

test('a target that was fine before is refused when a header gives it another meaning', async () => {
  expect(await send({ path: '/site/v2/posts/5' })).toMatch(/^HTTP\/1\.1 200 /)
  const headers = { 'X-HTTP-Method-Override': 'DELETE' }
  expect(await send({ path: '/site/v2/posts/5', headers })).toMatch(/^HTTP\/1\.1 400 /)
  expect(origin.received).toHaveLength(1)
})

describe('never kept', () => {
  test.each(['_wpnonce=abc', 'password=secret', 'context=edit', 'status=draft'])('%s', async (query) => {
    const response = await fetch(`${gateway.publicAddress}${mount}/site/v2/posts?${query}`)
    expect(response.headers.get('cache-status')).toContain('fwd=bypass')
  })
})

describe('headers by which a client could choose its own address, host or scheme', () => {
  test('are made anew or removed', async () => {
    await send({
      path: '/site/v2/posts/5',
      headers: {
        'X-Forwarded-Host': 'evil.test',
        'X-Forwarded-For': '6.6.6.6',
        'X-Forwarded-Proto': 'https',
        Forwarded: 'for=6.6.6.6;host=evil.test',
        'X-Original-URL': '/admin',
        'X-Rewrite-URL': '/admin',
        'X-Real-IP': '6.6.6.6',
        X_Forwarded_For: '6.6.6.6',
        Connection: 'close, X-Forwarded-For, Via',
      },
    })
    const { headers = {}, head = '' } = origin.received[0] ?? {}
    expect(head).not.toContain('evil.test')
    expect(head).not.toContain('6.6.6.6')
    expect(head).not.toContain('/admin')
    expect(headers['host']).toBe(new URL(origin.origin).host)
    expect(headers['x-forwarded-for']).toBe('127.0.0.1')
    expect(headers['x-forwarded-host']).toBe(new URL(gateway.publicAddress).host)
    expect(headers['via']).toMatch(/^1\.1 trellis-/)
  })
})
