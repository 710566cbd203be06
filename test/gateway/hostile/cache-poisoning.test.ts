import { beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { closeAfterAll } from '../../support/close.ts'
import { siteService, startTestGateway, type TestGateway } from '../../support/gateway.ts'
import { type Origin, startOrigin } from '../../support/origin.ts'
import { exchangeBytes } from '../../support/raw-client.ts'

// What one caller sends must not decide what another one gets.

const site = '/index.php/site-json'
let origin: Origin
let gateway: TestGateway

beforeAll(async () => {
  origin = await startOrigin()
  gateway = await startTestGateway({
    services: {
      site: siteService(origin.origin, {
        unlistedRoutes: 'pass',
        cache: { rules: [{ match: 'GET /site/v2/**', ttl: '60s' }] },
      }),
      shared: {
        contract: 'open',
        mount: '/shared',
        upstream: { targets: [origin.origin], basePath: '/base' },
        cache: { profile: 'rfc-shared-cache' },
      },
    },
  })
})
closeAfterAll(() => [gateway, origin])
beforeEach(() => {
  origin.received.length = 0
  origin.script = (request, wire) =>
    wire.respond({
      headers: { 'Content-Type': 'application/json', 'Cache-Control': 'max-age=60' },
      content: JSON.stringify({ saw: request.target }),
    })
})

const send = (
  target: string,
  headers: Readonly<Record<string, string>> = {},
  method = 'GET',
): Promise<string> => {
  const lines = Object.entries({ Host: 'a', ...headers, Connection: `close${headers['Connection'] ?? ''}` })
  const head = lines.map(([name, value]) => `${name}: ${value}\r\n`).join('')
  return exchangeBytes(gateway.publicAddress, `${method} ${target} HTTP/1.1\r\n${head}\r\n`)
}
const statusOf = (response: string): number => Number(response.slice(9, 12))

describe('a header that no key holds reaches no upstream', () => {
  let count = 0
  test.each([
    ['X-Forwarded-Host', 'evil.example'],
    ['X-Forwarded-Proto', 'evil'],
    ['X-Forwarded-Scheme', 'evil'],
    ['X-Forwarded-Port', '6666'],
    ['X-Forwarded-Prefix', '/evil'],
    ['X-Forwarded-Server', 'evil.example'],
    ['X-Forwarded-For', '6.6.6.6'],
    ['X_Forwarded_Host', 'evil.example'],
    ['Forwarded', 'for=6.6.6.6;host=evil.example'],
    ['X-Original-URL', '/evil'],
    ['X-Original-Host', 'evil.example'],
    ['X-Rewrite-URL', '/evil'],
    ['X-Host', 'evil.example'],
    ['X-HTTP-Method', 'DELETE-evil'],
    ['X-Method-Override', 'DELETE-evil'],
    ['X-Real-IP', '6.6.6.6'],
    ['True-Client-IP', '6.6.6.6'],
    ['CF-Connecting-IP', '6.6.6.6'],
    ['X-HTTP-Host-Override', 'evil.example'],
    ['Front-End-Https', 'evil'],
    ['X-Url-Scheme', 'evil'],
    ['X-Scheme', 'evil'],
    ['X-Override-URL', '/evil'],
    ['X-Method', 'DELETE-evil'],
    ['X-Forwarded', 'for=6.6.6.6'],
    ['Forwarded-For', '6.6.6.6'],
    ['Fastly-Client-IP', '6.6.6.6'],
    ['X-Azure-ClientIP', '6.6.6.6'],
    ['X-AppEngine-User-IP', '6.6.6.6'],
    ['X-ProxyUser-Ip', '6.6.6.6'],
    ['WL-Proxy-Client-IP', '6.6.6.6'],
    ['X-Remote-Addr', '6.6.6.6'],
    ['X-Originating-IP', '6.6.6.6'],
    ['Accept_Language', 'evil'],
    ['If_None_Match', '"evil"'],
    ['User_Agent', 'evil'],
    ['Content.Type', 'evil'],
    ['Proxy', 'http://evil.example'],
    ['Proxy-Authorization', 'Basic evil'],
  ])('%s: %s', async (name, value) => {
    count += 1
    const targets = [`${site}/site/v2/posts?page=${count}`, `/shared/x?n=${count}`]
    for (const target of targets) {
      expect(statusOf(await send(target, { [name]: value }))).toBe(200)
      expect(origin.received.at(-1)?.head).not.toContain(value)
      const clean = await send(target)
      expect(clean).toMatch(/cache-status: trellis; hit/i)
      expect(clean).not.toContain(value)
    }
    expect(origin.received).toHaveLength(2)
  })

  test('any Host gives one stored response, and the upstream gets its own name', async () => {
    for (const host of ['evil.example', 'EVIL.example:80', '[::1]', 'a.b.c.d']) {
      expect(statusOf(await send(`${site}/site/v2/posts?page=90`, { Host: host }))).toBe(200)
    }
    expect(origin.received).toHaveLength(1)
    expect(origin.received[0]?.headers['host']).toBe(new URL(origin.origin).host)
    expect(origin.received[0]?.head).not.toMatch(/evil/i)
  })
})

describe('a path that looks like a file is the route, or nothing', () => {
  test.each([
    ['a suffix', `${site}/site/v2/posts/1/x.css`, 200],
    ['a suffix on the identifier', `${site}/site/v2/posts/1.css`, 200],
    ['a parameter in the path', `${site}/site/v2/posts/1;x.js`, 200],
    ['an escaped semicolon', `${site}/site/v2/posts/1%3by.js`, 200],
    ['an escaped question mark', `${site}/site/v2/posts/1%3Fx.css`, 200],
    ['an escaped fragment', `${site}/site/v2/posts/1%23x.css`, 200],
    ['an escaped NUL', `${site}/site/v2/posts/1%00x.css`, 400],
    ['an escaped line end', `${site}/site/v2/posts/1%0ax.css`, 400],
    ['an escaped slash', `${site}/site/v2/posts%2f1`, 400],
    ['a dot segment behind it', `${site}/site/v2/posts/1/..%2fx.css`, 400],
    ['an escaped backslash', `${site}/site/v2/posts/1%5cx.css`, 400],
    ['twice escaped dots', `${site}/site/v2/%252e%252e/posts`, 200],
  ])('%s', async (_, target, status) => {
    const login = { Cookie: 'wordpress_logged_in_abc=1' }
    expect(statusOf(await send(target, login))).toBe(status)
    const sent = origin.received.map((request) => request.target)
    // Forwarded unchanged or not at all, never as the route that it resembles.
    if (status === 400) expect(sent).toEqual([])
    else expect(sent).toEqual([target.replace(`${site}/site`, '/index.php/wp-json/wp').replace(/%3b/, ';')])
    // What the owner of the cookie got is not kept for the next one.
    const stranger = await send(target)
    expect(stranger).not.toMatch(/cache-status: trellis; hit/i)
  })
})

describe('parameters that PHP reads in another way', () => {
  test.each([
    ['a semicolon is no separator', 'page=2;per_page=3', undefined],
    ['escaped twice, which is another name', 'per%255fpage=3', 'per%255fpage=3'],
    ['an escaped name', '%70er_page=3', 'per_page=3'],
    ['a list in brackets for a number', 'per_page[]=3', undefined],
    ['a plus in a name', '+per_page=3', 'per_page=3'],
    ['a NUL in a name', 'per_page%00x=3', 'per_page=3'],
    ['the last one counts', 'per_page=5&per.page=3', 'per_page=3'],
  ])('%s', async (_, query, canonical) => {
    const status = statusOf(await send(`${site}/site/v2/pages?${query}`))
    const sent = origin.received.map(({ target }) => target)
    if (canonical === undefined) {
      expect([status, sent]).toEqual([400, []])
      return
    }
    expect(status).toBe(200)
    const form = `/index.php/wp-json/wp/v2/pages${canonical === '' ? '' : `?${canonical}`}`
    // It may be stored already, under the one form that it has.
    expect(sent.length === 0 || sent[0] === form).toBe(true)
    expect(await send(`${site}/site/v2/pages?${query}`)).toMatch(/cache-status: trellis; hit/i)
    expect(await send(`${site}/site/v2/pages${canonical === '' ? '' : `?${canonical}`}`)).toContain(form)
  })
})

type Said = { readonly status?: number; readonly headers?: Readonly<Record<string, string>> }

describe('a response for one client', () => {
  test.each<[string, Said]>([
    ['a refusal', { status: 403 }],
    ['a missing page', { status: 404 }],
    ['a wrong method', { status: 405 }],
    ['too large', { status: 413 }],
    ['fields too large', { status: 431 }],
    ['a server error', { status: 500 }],
    ['a redirect', { status: 302, headers: { Location: 'https://evil.example/' } }],
    ['private', { headers: { 'Cache-Control': 'private, max-age=60' } }],
    ['no-store', { headers: { 'Cache-Control': 'no-store' } }],
    ['a cookie', { headers: { 'Set-Cookie': 'a=1' } }],
    ['a nonce', { headers: { 'X-WP-Nonce': 'abc' } }],
    ['Vary: *', { headers: { Vary: '*' } }],
    ['Vary: * among others', { headers: { Vary: 'Origin, *' } }],
  ])('%s is not kept', async (what, response) => {
    origin.script = (_, wire) => wire.respond(response)
    const target = `${site}/site/v2/posts?search=${encodeURIComponent(what)}`
    const first = await send(target)
    const second = await send(target)
    expect([statusOf(first), statusOf(second)]).toEqual(Array(2).fill(response.status ?? 200))
    expect(second).not.toMatch(/cache-status: trellis; hit/i)
    expect(origin.received).toHaveLength(2)
  })

  test('a refused override leaves nothing behind', async () => {
    const target = `${site}/site/v2/posts?page=77`
    const refused = await send(target, { 'X-HTTP-Method-Override': 'DELETE' })
    expect(statusOf(refused)).toBe(400)
    expect(statusOf(await send(target))).toBe(200)
    expect(origin.received.map(({ method }) => method)).toEqual(['GET'])
  })

  test('a response for one Origin is not the response for another', async () => {
    origin.script = (request, wire) =>
      wire.respond({
        headers: {
          'Access-Control-Allow-Origin': request.headers['origin'] ?? '*',
          'Access-Control-Allow-Credentials': 'true',
          ...(request.headers['origin'] === undefined ? {} : { Vary: 'Origin' }),
        },
        content: '[]',
      })
    const target = `${site}/site/v2/posts?search=cors`
    expect(await send(target, { Origin: 'https://evil.example' })).toContain('https://evil.example')
    const other = await send(target, { Origin: 'https://good.example' })
    expect(other).toContain('https://good.example')
    expect(other).not.toContain('evil')
    expect(await send(target)).not.toContain('evil')
  })
})

describe('headers of the connection', () => {
  test('Connection names away neither credential nor what the gateway says', async () => {
    const response = await send(`${site}/site/v2/posts?page=78`, {
      Authorization: 'Basic abc',
      Cookie: 'wordpress_logged_in_abc=1',
      'X-Own': '1',
      Connection: ', Authorization, Cookie, Host, X-Own, X-Forwarded-For, Via, X-Request-Id',
    })
    expect(response).toMatch(/cache-status: trellis; fwd=bypass/i)
    const { headers = {} } = origin.received[0] ?? {}
    expect(headers['authorization']).toBe('Basic abc')
    expect(headers['cookie']).toBe('wordpress_logged_in_abc=1')
    expect(headers['x-own']).toBeUndefined()
    expect(headers['x-forwarded-for']).toBe('127.0.0.1')
    expect(headers['via']).toMatch(/^1\.1 trellis-/)
    expect(headers['x-request-id']).toBeDefined()
  })

  test('Max-Forwards and a Via of others pass through', async () => {
    await send('/shared/via', { Via: '1.0 fred', 'Max-Forwards': '3' })
    expect(origin.received[0]?.headers['via']).toMatch(/^1\.0 fred, 1\.1 trellis-/)
    expect(origin.received[0]?.headers['max-forwards']).toBe('3')
  })
})

describe('ranges', () => {
  test.each([
    ['1,000 ranges', `bytes=${Array.from({ length: 1_000 }, (_, i) => `${i}-${i}`).join(',')}`],
    ['the same range many times', `bytes=${'0-,'.repeat(500)}0-`],
    ['ranges that overlap', 'bytes=0-900,1-900,2-900'],
    ['a range in letters', 'bytes=a-b'],
    ['a range beyond all numbers', 'bytes=0-99999999999999999999'],
  ])('%s get the whole, from what is stored', async (_, range) => {
    origin.script = (_request, wire) =>
      wire.respond({ headers: { 'Cache-Control': 'max-age=60' }, content: 'x'.repeat(1_000) })
    await send('/shared/large')
    const response = await send('/shared/large', { Range: range })
    expect(statusOf(response)).toBe(200)
    expect(response.length).toBeLessThan(2_000)
  })

  test('a part is never kept as the whole', async () => {
    origin.script = (request, wire) =>
      request.headers['range'] === undefined
        ? wire.respond({ headers: { 'Cache-Control': 'max-age=60' }, content: '0123456789' })
        : wire.respond({
            status: 206,
            headers: { 'Cache-Control': 'max-age=60', 'Content-Range': 'bytes 0-1/10' },
            content: '01',
          })
    expect(statusOf(await send('/shared/part', { Range: 'bytes=0-1' }))).toBe(206)
    expect(await send('/shared/part')).toMatch(/^HTTP\/1\.1 200 [\s\S]*\r\n\r\n0123456789$/)
  })
})
