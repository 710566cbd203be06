import { Agent, request } from 'node:http'
import { text } from 'node:stream/consumers'
import { beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { stringify } from 'yaml'
import { explain } from '../../src/gateway/explain.ts'
import { checkConfig } from '../../src/gateway/load-config.ts'
import { describeRoutes } from '../../src/gateway/upstream-issues.ts'
import { closeAfterAll, closeAfterEach } from '../support/close.ts'
import { startTestGateway, type TestGateway } from '../support/gateway.ts'
import { type Origin, startOrigin } from '../support/origin.ts'
import { exchangeBytes } from '../support/raw-client.ts'

type Tree = { readonly [key: string]: unknown }

/** Tells in its response which upstream it is and what it received. */
const startNamed = (name: string): Promise<Origin> =>
  startOrigin(({ target, headers, method }, wire) =>
    wire.respond({
      headers: {
        'Content-Type': 'text/plain',
        'Cache-Control': method === 'GET' ? 'max-age=60' : 'no-store',
      },
      content: [name, target, headers['host'], headers['x-forwarded-host']].join(' '),
    }),
  )

let blog: Origin
let shop: Origin
let rest: Origin
let gateway: TestGateway
beforeAll(async () => {
  blog = await startNamed('blog')
  shop = await startNamed('shop')
  rest = await startNamed('rest')
})
closeAfterAll(() => [blog, shop, rest])
beforeEach(() => {
  for (const origin of [blog, shop, rest]) origin.received.length = 0
})

const shared = { cache: { profile: 'rfc-shared-cache' } }
const open = (origin: Origin, more: Tree = {}): Tree => ({
  contract: 'open',
  mount: '/',
  upstream: { targets: [origin.origin] },
  ...shared,
  ...more,
})
const start = async (services: Tree, more: Tree = {}): Promise<void> => {
  gateway = await startTestGateway({ services, publicUrl: 'https://gateway.example', ...more })
}

type Reply = { readonly status: number; readonly head: string; readonly body: string }

/** Sends a request as it is written, and closes. */
const send = async (request: string): Promise<Reply> => {
  const bytes = await exchangeBytes(gateway.publicAddress, request)
  const end = bytes.indexOf('\r\n\r\n')
  return { status: Number(bytes.slice(9, 12)), head: bytes.slice(0, end), body: bytes.slice(end + 4) }
}
const get = (host: string, path = '/x', lines: readonly string[] = []): Promise<Reply> =>
  send([`GET ${path} HTTP/1.1`, `Host: ${host}`, ...lines, 'Connection: close', '', ''].join('\r\n'))
const post = (host: string, path: string): Promise<Reply> =>
  send(`POST ${path} HTTP/1.1\r\nHost: ${host}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n`)
const nameIn = ({ body }: Reply): string => body.split(' ')[0] ?? ''
const isHit = ({ head }: Reply): boolean => /^cache-status: .*hit/im.test(head)
const header = ({ head }: Reply, name: string): string | undefined =>
  new RegExp(`^${name}: (.*)$`, 'im').exec(head)?.[1]?.trim()

describe('which service answers', () => {
  // Nothing is stored: each response is of an upstream.
  const cache = {}
  beforeAll(() =>
    start({
      blog: open(blog, { hosts: ['blog.example', 'a.b.shop.example'], cache }),
      shop: open(shop, { hosts: ['*.shop.example'], cache }),
      rest: open(rest, { mount: '/rest', cache }),
    }),
  )
  closeAfterAll(() => [gateway])

  test.each<[title: string, host: string, path: string, name: string]>([
    ['an exact host', 'blog.example', '/x', 'blog'],
    ['upper case', 'BLOG.Example', '/x', 'blog'],
    ['a port', 'blog.example:8443', '/x', 'blog'],
    ['an empty port', 'blog.example:', '/x', 'blog'],
    ['a trailing dot', 'blog.example.', '/x', 'blog'],
    ['a trailing dot and a port', 'blog.example.:80', '/x', 'blog'],
    ['one label below a wildcard', 'one.shop.example', '/x', 'shop'],
    ['two labels below a wildcard', 'one.two.shop.example', '/x', 'shop'],
    ['an exact host below a wildcard', 'a.b.shop.example', '/x', 'blog'],
    ['an unknown host and a mount without hosts', 'other.example', '/rest/x', 'rest'],
    ['a host whose service has the shorter mount', 'blog.example', '/rest/x', 'blog'],
  ])('%s', async (_, host, path, name) => {
    const response = await get(host, path)
    expect(response.status).toBe(200)
    expect(nameIn(response)).toBe(name)
  })

  test.each<[title: string, host: string, path: string, status: number]>([
    ['the bare name of a wildcard is another host', 'shop.example', '/x', 404],
    ['an empty label is no label', '.shop.example', '/x', 404],
    ['a name that only ends alike is another host', 'evilshop.example', '/x', 404],
    ['a host behind another one is not looked at', 'blog.example.evil.test', '/x', 404],
    ['a second trailing dot is another name', 'blog.example..', '/x', 404],
    ['an unknown host and a path without service', 'other.example', '/x', 404],
    ['an address', '127.0.0.1', '/x', 404],
    ['userinfo', 'blog.example@evil.test', '/x', 400],
    ['userinfo in front', 'evil@blog.example', '/x', 400],
    ['two hosts in one line', 'blog.example, evil.test', '/x', 400],
    ['a path behind the host', 'blog.example/x', '/x', 400],
    ['a host outside ASCII', 'bl\u00f6g.example', '/x', 400],
    ['an empty host', '', '/x', 400],
  ])('%s', async (_, host, path, status) => {
    expect((await get(host, path)).status).toBe(status)
    expect([blog, shop, rest].flatMap(({ received }) => received)).toEqual([])
  })

  test.each<[title: string, lines: readonly string[], status: number, name: string]>([
    ['two Host lines that differ', ['Host: blog.example', 'Host: a.shop.example'], 400, ''],
    ['two Host lines that are the same', ['Host: blog.example', 'Host: blog.example'], 400, ''],
    ['no Host line', [], 400, ''],
    ['a folded Host line', ['Host: blog.example', '\ta.shop.example'], 400, ''],
    ['X-Forwarded-Host', ['Host: blog.example', 'X-Forwarded-Host: a.shop.example'], 200, 'blog'],
    ['Forwarded', ['Host: blog.example', 'Forwarded: host=a.shop.example'], 200, 'blog'],
    ['X-Host', ['Host: blog.example', 'X-Host: a.shop.example'], 200, 'blog'],
    ['X-Original-Host', ['Host: blog.example', 'X-Original-Host: a.shop.example'], 200, 'blog'],
    [
      'a field with the name of a pseudo field',
      ['Host: blog.example', 'authority: a.shop.example'],
      200,
      'blog',
    ],
  ])('beside the host: %s', async (_, lines, status, name) => {
    const response = await send(['GET /x HTTP/1.1', ...lines, 'Connection: close', '', ''].join('\r\n'))
    expect(response.status).toBe(status)
    if (name !== '')
      expect(response.body).toBe('blog /x 127.0.0.1:PORT blog.example'.replace('PORT', String(blog.port)))
    expect(shop.received).toEqual([])
  })

  test.each<[title: string, target: string, host: string, name: string]>([
    ['wins over Host', 'http://blog.example/x', 'a.shop.example', 'blog'],
    [
      'wins over Host with another scheme, case and port',
      'HTTPS://BLOG.example:1/x',
      'a.shop.example',
      'blog',
    ],
    ['may agree with Host', 'http://a.shop.example/x', 'a.shop.example', 'shop'],
    ['wins where Host is unknown', 'http://a.shop.example', 'unknown.example', 'shop'],
  ])('a target in absolute form %s', async (_, target, host, name) => {
    const response = await get(host, target)
    expect(response.status).toBe(200)
    expect(nameIn(response)).toBe(name)
  })

  test('TRACE reaches no service', async () => {
    const request = 'TRACE /x HTTP/1.1\r\nHost: blog.example\r\nConnection: close\r\n\r\n'
    expect((await send(request)).status).toBe(404)
    expect(blog.received).toEqual([])
  })

  test('HTTP/1.0 without a Host reaches only services without hosts', async () => {
    expect((await send('GET /rest/x HTTP/1.0\r\n\r\n')).status).toBe(200)
    expect((await send('GET /x HTTP/1.0\r\n\r\n')).status).toBe(404)
    expect((await send('GET /x HTTP/1.0\r\nHost: blog.example\r\n\r\n')).status).toBe(200)
  })
})

describe('a gateway whose services all have hosts', () => {
  closeAfterEach(() => [gateway])

  test('answers an unknown host with 421 in problem+json, and forwards nothing', async () => {
    await start({ blog: open(blog, { hosts: ['blog.example'] }) })
    for (const host of ['other.example', '127.0.0.1', '[::1]', 'localhost:80', 'a.blog.example']) {
      const response = await get(host)
      expect(response.status).toBe(421)
      expect(header(response, 'content-type')).toBe('application/problem+json')
      expect(JSON.parse(response.body)).toMatchObject({ status: 421, code: 'misdirected_request' })
    }
    expect(blog.received).toEqual([])
    expect(await gateway.metric('trellis_refusals_total', 'misdirected_request')).toBe(5)
  })

  test('answers a host that no URL can have with 421, also before its request is parsed', async () => {
    const upstream = { targets: [shop.origin], host: 'preserve' }
    await start({ shop: open(shop, { hosts: ['*.shop.example'], websockets: true, upstream }) })
    // The URL standard accepts this name since 2025: Node 20 does not, Node 26 does.
    const status = URL.canParse('http://xn--a.shop.example') ? 200 : 421
    const host = 'Host: xn--a.shop.example'
    const upgrade = ['Connection: Upgrade', 'Upgrade: websocket', 'Sec-WebSocket-Version: 13']
    const key = 'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=='
    for (const lines of [
      ['GET /x HTTP/1.1', host, 'Connection: close'],
      ['GET http://xn--a.shop.example/x HTTP/1.1', 'Host: a.shop.example', 'Connection: close'],
      ['GET /x HTTP/1.1', host, ...upgrade, key, 'Connection: close'],
    ]) {
      expect((await send([...lines, '', ''].join('\r\n'))).status).toBe(status)
    }
    expect((await get('a.shop.example')).status).toBe(200)
  })

  test('answers a known host at a path without service with 404', async () => {
    await start({ blog: open(blog, { mount: '/blog', hosts: ['blog.example'] }) })
    expect((await get('blog.example', '/other')).status).toBe(404)
    expect((await get('blog.example', '/blogger')).status).toBe(404)
    expect((await get('blog.example', '/blog?a=1')).body).toMatch(/^blog \/\?a=1 /)
    expect((await get('other.example', '/blog/x')).status).toBe(421)
  })

  test('finds the longest mount among the services of one host', async () => {
    await start({
      blog: open(blog, { hosts: ['one.example'] }),
      shop: open(shop, { hosts: ['one.example'], mount: '/shop' }),
      rest: open(rest, { hosts: ['*.example'], mount: '/shop/deep' }),
    })
    expect(nameIn(await get('one.example', '/x'))).toBe('blog')
    expect(nameIn(await get('one.example', '/shop/x'))).toBe('shop')
    expect(nameIn(await get('one.example', '/shop/deep/x'))).toBe('shop')
    expect(nameIn(await get('two.example', '/shop/deep/x'))).toBe('rest')
  })
})

describe('the cache keeps hosts apart', () => {
  closeAfterEach(() => [gateway])

  test('the authority of an absolute target is what the upstream and the cache see', async () => {
    await start({ shop: open(shop, { hosts: ['*.shop.example'] }) })
    await get('a.shop.example', '/x')
    const other = await get('a.shop.example', 'http://b.shop.example/x')
    expect(isHit(other)).toBe(false)
    expect(other.body).toMatch(/ b\.shop\.example$/)
    expect(isHit(await get('b.shop.example', '/x'))).toBe(true)
  })

  test.each<[title: string, more: Tree]>([
    ['with links that differ', {}],
    ['with an upstream that sees the host', { publicUrl: 'https://shop.example' }],
  ])('of one service %s', async (_, more) => {
    const upstream = { targets: [shop.origin], host: 'preserve' }
    await start({ shop: open(shop, { hosts: ['*.shop.example'], ...more, upstream }) })
    const first = await get('a.shop.example')
    expect(first.body).toBe('shop /x a.shop.example a.shop.example')
    const second = await get('b.shop.example:99')
    expect(second.body).toBe('shop /x b.shop.example b.shop.example')
    expect(shop.received).toHaveLength(2)
    // Every spelling of a host is one host.
    for (const host of ['A.SHOP.example', 'a.shop.example.', 'a.shop.example:1']) {
      const again = await get(host)
      expect(isHit(again)).toBe(true)
      expect(again.body).toBe(first.body)
    }
    expect(shop.received).toHaveLength(2)
  })

  test('hosts with one public URL share responses where the upstream does not see the host', async () => {
    await start({
      shop: open(shop, { hosts: ['a.example', '*.shop.example'], publicUrl: 'https://shop.example/s' }),
    })
    expect((await get('a.example')).body).toMatch(/ shop\.example$/)
    expect(isHit(await get('b.shop.example'))).toBe(true)
    expect(shop.received).toHaveLength(1)
  })

  test('a write at one host invalidates what is stored for the others', async () => {
    await start({ shop: open(shop, { hosts: ['*.shop.example'] }) })
    for (const host of ['a.shop.example', 'b.shop.example']) {
      await get(host)
      expect(isHit(await get(host))).toBe(true)
    }
    expect((await post('a.shop.example', '/x')).status).toBe(200)
    for (const host of ['a.shop.example', 'b.shop.example']) expect(isHit(await get(host))).toBe(false)
  })

  test('two services at the same path of two hosts share nothing', async () => {
    await start({
      blog: open(blog, { hosts: ['blog.example'] }),
      shop: open(shop, { hosts: ['shop.example'] }),
    })
    for (let i = 0; i < 2; i += 1) {
      expect(nameIn(await get('blog.example'))).toBe('blog')
      expect(nameIn(await get('shop.example'))).toBe('shop')
    }
    expect([blog.received.length, shop.received.length]).toEqual([1, 1])
  })

  test.each([
    'X-Forwarded-Host: evil.test',
    'Forwarded: host=evil.test',
    'X-Host: evil.test',
    'X-Forwarded-Server: evil.test',
    'X-HTTP-Host-Override: evil.test',
    'X-Original-Host: evil.test',
  ])('%s changes neither what is stored nor what the upstream sees', async (line) => {
    await start({ shop: open(shop, { hosts: ['*.shop.example'] }) })
    const poisoned = await get('a.shop.example', '/x', [line])
    expect(poisoned.body).not.toContain('evil')
    expect(shop.received[0]?.head).not.toContain('evil')
    expect(isHit(await get('a.shop.example'))).toBe(true)
  })

  test('a purge by URL removes what is stored for its host, and a path alone is refused', async () => {
    await start({ shop: open(shop, { hosts: ['*.shop.example'] }) })
    const purge = async (content: Tree): Promise<unknown> =>
      (
        await fetch(`${gateway.adminAddress}/cache/purge`, {
          method: 'POST',
          headers: { 'Content-Type': 'application/json' },
          body: JSON.stringify(content),
        })
      ).json()
    await get('a.shop.example')
    await get('b.shop.example')
    expect(await purge({ url: 'https://A.shop.example:8443/x', dryRun: true })).toMatchObject({ entries: 1 })
    expect(await purge({ url: 'https://a.shop.example/x' })).toMatchObject({ entries: 1 })
    expect(isHit(await get('b.shop.example'))).toBe(true)
    expect(isHit(await get('a.shop.example'))).toBe(false)
    expect(JSON.stringify(await purge({ url: '/x' }))).toContain('host')
    expect(JSON.stringify(await purge({ url: 'https://shop.example/x' }))).toContain('host')
    expect(await purge({ prefix: '/', service: 'shop' })).toMatchObject({ entries: 2 })
  })

  test('the admin side lists stored responses with their URLs and explains a URL of a host', async () => {
    await start({ shop: open(shop, { hosts: ['*.shop.example'] }) })
    await get('a.shop.example', '/x?y=1')
    const entries = (await (await fetch(`${gateway.adminAddress}/cache/entries`)).json()) as unknown
    expect(JSON.stringify(entries)).toContain('"https://a.shop.example/x?y=1"')
    const url = encodeURIComponent('https://a.shop.example/x?y=1')
    const explained = await (await fetch(`${gateway.adminAddress}/explain?method=GET&url=${url}`)).json()
    expect(explained).toMatchObject({ service: 'shop', storedResponses: 1 })
    expect(JSON.stringify(explained)).toContain('public, a.shop.example')
  })
})

describe('a reload', () => {
  closeAfterEach(() => [gateway])

  test('changes which service answers a host; connections stay, and links of earlier hosts are gone', async () => {
    const hosts = ['a.example', 'b.example']
    await start({ shop: open(shop, { hosts }) })
    const agent = new Agent({ keepAlive: true, maxSockets: 1 })
    const ask = (host: string): Promise<{ status: number | undefined; reused: boolean; body: string }> =>
      new Promise((resolve, reject) => {
        const sent = request(`${gateway.publicAddress}/x`, { agent, headers: { host } }, async (response) => {
          resolve({ status: response.statusCode, reused: sent.reusedSocket, body: await text(response) })
        })
        sent.once('error', reject)
        sent.end()
      })
    expect(await ask('a.example')).toMatchObject({ status: 200, reused: false })
    expect((await ask('b.example')).body).toMatch(/ b\.example$/)
    const services = {
      shop: open(shop, { hosts: ['b.example', 'c.example'] }),
      blog: open(blog, { hosts: ['a.example'] }),
    }
    expect(await gateway.put({ publicUrl: 'https://gateway.example', services })).toMatchObject({
      kind: 'applied',
    })
    expect(await ask('a.example')).toMatchObject({
      status: 200,
      reused: true,
      body: expect.stringMatching(/^blog /),
    })
    expect((await ask('c.example')).body).toMatch(/^shop .* c\.example$/)
    expect((await ask('d.example')).status).toBe(421)
    const moved = {
      shop: open(shop, { hosts: ['b.example', 'c.example'], publicUrl: 'https://new.example' }),
    }
    expect(await gateway.put({ publicUrl: 'https://gateway.example', services: moved })).toMatchObject({
      kind: 'applied',
    })
    expect((await ask('c.example')).body).toMatch(/ new\.example$/)
    agent.destroy()
  })

  test('changes the host that the upstream sees', async () => {
    const preserved = (hosts: readonly string[]): Tree => ({
      shop: open(shop, { hosts, upstream: { targets: [shop.origin], host: 'preserve' } }),
    })
    await start(preserved(['a.example']))
    expect((await get('a.example')).body).toBe('shop /x a.example a.example')
    const config = { publicUrl: 'https://gateway.example', services: preserved(['b.example']) }
    expect(await gateway.put(config)).toMatchObject({ kind: 'applied' })
    expect((await get('b.example')).body).toBe('shop /x b.example b.example')
    expect((await get('a.example')).status).toBe(421)
  })
})

describe('the command line', () => {
  const configOf = async () => {
    const services = {
      blog: { contract: 'plants', hosts: ['blog.example'], publicUrl: 'https://www.blog.example/p' },
      shops: { contract: 'plants', hosts: ['*.shop.example'] },
      rest: { contract: 'plants', mount: '/rest' },
    }
    const result = await checkConfig(stringify({ services, publicUrl: 'https://gateway.example' }), {})
    if (result.kind === 'faults') throw new Error(JSON.stringify(result.faults))
    return result.config
  }
  test.each<[url: string, host: string | undefined, found: object]>([
    ['https://blog.example/plants', undefined, { service: 'blog', hosts: 'blog.example' }],
    ['HTTPS://BLOG.example.:99/plants?limit=5', undefined, { service: 'blog' }],
    ['https://a.b.shop.example/plants', undefined, { service: 'shops' }],
    ['https://any.example/rest/plants', undefined, { service: 'rest' }],
    ['https://blog.example/rest/plants', undefined, { service: 'blog' }],
    ['/rest/plants', undefined, { service: 'rest' }],
    ['/plants', 'a.shop.example', { service: 'shops' }],
    ['https://blog.example/plants', 'a.shop.example', { service: 'blog' }],
    ['/plants', undefined, { refused: expect.stringMatching(/^404: /) }],
    ['https://shop.example/plants', undefined, { refused: expect.stringMatching(/^404: /) }],
  ])('explains %s, with the Host %s', async (target, host, found) => {
    const headers = { authorization: 'Bearer x', ...(host === undefined ? {} : { host }) }
    expect(await explain(await configOf(), { method: 'GET', target, headers })).toMatchObject(found)
  })

  test('explains that a host has separate stored responses', async () => {
    const headers = { authorization: 'Bearer x' }
    const explained = await explain(await configOf(), {
      method: 'GET',
      target: 'https://A.shop.example/plants',
      headers,
    })
    expect(explained['cacheKey']).toBe('shops, /plants, credential, a.shop.example')
  })

  test('lists routes with the hosts of their services', async () => {
    const { lines } = await describeRoutes(await configOf())
    expect(lines.find(({ service }) => service === 'shops')).toMatchObject({
      hosts: ['*.shop.example'],
      path: '/plants',
    })
    expect(lines.find(({ service }) => service === 'rest')?.hosts).toEqual([])
  })
})
