import { beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { closeAfterAll } from '../support/close.ts'
import { siteService, startTestGateway, type TestGateway } from '../support/gateway.ts'
import { createLatch } from '../support/latch.ts'
import { type Origin, startOrigin } from '../support/origin.ts'
import { exchangeBytes } from '../support/raw-client.ts'

let origin: Origin
let gateway: TestGateway
const json = { 'Content-Type': 'application/json; charset=UTF-8' }
const posts = (mount = '/wp-json'): string => `${gateway.publicAddress}${mount}/wp/v2/posts?per_page=5`

const statusOf = async (url: string): Promise<string | null> => {
  const response = await fetch(url)
  await response.arrayBuffer()
  return response.headers.get('cache-status')
}

const site = (mount: string) =>
  siteService(origin.origin, {
    mount,
    names: 'same',
    upstream: { targets: [origin.origin], basePath: '/wp-json' },
    cache: { rules: [{ match: 'GET /wp/v2/**', ttl: '1h' }] },
  })

beforeAll(async () => {
  origin = await startOrigin()
  gateway = await startTestGateway({
    services: {
      wordpress: site('/wp-json'),
      other: site('/other'),
      pages: { contract: 'open', mount: '/', upstream: { targets: [origin.origin] }, websockets: true },
      spelled: {
        contract: 'open',
        mount: '/spelled',
        upstream: { targets: [origin.origin.replace('127.0.0.1', 'LOCALHOST')] },
      },
      elsewhere: { contract: 'open', mount: '/elsewhere', upstream: { targets: ['http://127.0.0.1:9'] } },
    },
  })
})
closeAfterAll(() => [gateway, origin])
beforeEach(async () => {
  origin.script = (_, wire) => wire.respond({ headers: json, content: '[]' })
  await statusOf(posts())
})

/** An admin screen, or the interface under another of its addresses. */
const write = (path: string, method = 'POST'): Promise<Response> =>
  fetch(`${gateway.publicAddress}${path}`, {
    method,
    body: 'action=inline-save&post_ID=5',
    redirect: 'manual',
  })

const respondToWrites = (status: number, headers: Readonly<Record<string, string>> = json): void => {
  origin.script = ({ method }, wire) =>
    wire.respond(method === 'GET' ? { headers: json, content: '[]' } : { status, headers, content: '{}' })
}

describe('a site whose pages are an open service', () => {
  test.each([
    ['a form of wp-admin', '/wp-admin/admin-ajax.php', 200],
    ['a form that ends in a redirect', '/wp-comments-post.php', 302],
    ['the interface by its parameter', '/?rest_route=/wp/v2/posts/5', 200],
    ['a write that failed', '/wp-admin/post.php', 500],
  ])('%s reaches what the interface has stored', async (_, path, status) => {
    expect(await statusOf(posts())).toContain('hit')
    respondToWrites(status, { ...json, Location: '/' })
    expect((await write(path)).status).toBe(status)
    expect(await statusOf(posts())).toContain('fwd=uri-miss')
  })

  test('a refusal reaches nothing', async () => {
    respondToWrites(403)
    expect((await write('/wp-admin/post.php')).status).toBe(403)
    expect(await statusOf(posts())).toContain('hit')
  })

  test('a link of an admin screen that does something, with a nonce, reaches what is stored', async () => {
    await statusOf(`${gateway.publicAddress}/wp-admin/post.php?post=5&action=trash&_wpnonce=abc`)
    expect(await statusOf(posts())).toContain('fwd=uri-miss')
  })

  test.each([
    ['another method for the interface', 'GET', '/index.php/wp-json/wp/v2/posts/5?_method=DELETE'],
    ['the same by its parameter, in another spelling', 'GET', '/?rest_route=/wp/v2/posts/5&.%6dethod=put'],
    ['the same behind another parameter', 'GET', '/?context=edit&_method=PATCH'],
    ['the same on a method that is safe', 'OPTIONS', '/?rest_route=/wp/v2/posts/5&_method=DELETE'],
    ['a nonce behind another parameter', 'GET', '/wp-admin/post.php?context=edit&action=trash&_wpnonce=abc'],
    ['a route that creates what it shows', 'GET', '/?rest_route=/wp-block-editor/v1/Navigation-fallback'],
  ])('%s reaches what is stored', async (_, method, path) => {
    await fetch(`${gateway.publicAddress}${path}`, { method, headers: { Authorization: 'Basic YTpi' } })
    expect(await statusOf(posts())).toContain('fwd=uri-miss')
  })

  test.each(['/?rest_route=/wp/v2/posts/5&_method=DELETE', '/wp-admin/post.php?action=trash&_wpnonce=abc'])(
    'a request for a WebSocket that acts as a write reaches what is stored: %s',
    async (path) => {
      // A server without WebSockets ignores the header Upgrade (RFC 9110 §7.8).
      const response = await exchangeBytes(
        gateway.publicAddress,
        `GET ${path} HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n`,
      )
      expect(response).toMatch(/^HTTP\/1\.1 200 /)
      expect(await statusOf(posts())).toContain('fwd=uri-miss')
    },
  )

  test('a method in a header reaches no upstream, and so nothing that is stored', async () => {
    const headers = { Authorization: 'Basic YTpi', 'X-HTTP-Method-Override': 'DELETE' }
    await fetch(`${gateway.publicAddress}/index.php/wp-json/wp/v2/posts/5`, { headers })
    expect(origin.received.at(-1)?.head).not.toMatch(/override|DELETE/i)
    expect(await statusOf(posts())).toContain('hit')
  })

  test('the same server in another spelling is the same server', async () => {
    respondToWrites(200)
    expect((await write('/spelled/wp-admin/post.php')).status).toBe(200)
    expect(await statusOf(posts())).toContain('fwd=uri-miss')
  })

  test('a read reaches nothing', async () => {
    await statusOf(`${gateway.publicAddress}/about`)
    expect(await statusOf(posts())).toContain('hit')
  })

  test('a page with the parameter of scheduled tasks runs none, and reaches nothing', async () => {
    await statusOf(`${gateway.publicAddress}/about?doing_wp_cron=1.5`)
    await statusOf(`${gateway.publicAddress}/?doing_wp_cron`)
    expect(await statusOf(posts())).toContain('hit')
  })

  test.each(['/wp-mail.php', '/wp-admin/upgrade.php?step=upgrade_db', '/wp-admin/admin-post.php?action=a'])(
    'a script of WordPress that writes by GET reaches what is stored: %s',
    async (path) => {
      expect((await fetch(gateway.publicAddress + path)).status).toBe(200)
      expect(await statusOf(posts())).toContain('fwd=uri-miss')
    },
  )

  test('a write that goes to another upstream reaches nothing', async () => {
    expect((await write('/elsewhere/form')).status).toBe(502)
    expect(await statusOf(posts())).toContain('hit')
  })
})

test.each([
  ['the request for scheduled tasks', 'GET', '/wp-cron.php'],
  ['the same by the request that WordPress sends itself', 'POST', '/wp-cron.php?doing_wp_cron=1.5'],
  ['the same in another spelling', 'GET', '/blog/WP-Cron%2ephp/x'],
])('%s reaches what is stored', async (_, method, path) => {
  const own = await startTestGateway({
    services: {
      wordpress: site('/wp-json'),
      pages: { contract: 'open', mount: '/', upstream: { targets: [origin.origin] } },
    },
  })
  try {
    const url = `${own.publicAddress}/wp-json/wp/v2/posts`
    await statusOf(url)
    expect(await statusOf(url)).toContain('hit')
    await fetch(own.publicAddress + path, { method })
    expect(await statusOf(url)).not.toContain('hit')
  } finally {
    await own.close()
  }
})

test('a link that does something is not sent again when its connection breaks; one that shows something is', async () => {
  // In a test for itself: after the first one nothing is stored for a while.
  const own = await startTestGateway({
    services: {
      wordpress: site('/wp-json'),
      pages: { contract: 'open', mount: '/', upstream: { targets: [origin.origin] } },
    },
  })
  const timesSent = async (path: string): Promise<number> => {
    origin.received.length = 0
    origin.script = (_, wire, count) => (count === 1 ? wire.reset() : wire.respond({ content: 'x' }))
    await fetch(own.publicAddress + path)
    return origin.received.length
  }
  try {
    expect(await timesSent('/wp-admin/post.php?post=5&action=duplicate&_wpnonce=abc')).toBe(1)
    expect(await timesSent('/wp-admin/post.php?post=5&action=edit')).toBe(2)
  } finally {
    await own.close()
  }
})

test('a route that creates what it shows reaches the lists that may hold it, unless it is refused', async () => {
  const fallback = `${gateway.publicAddress}/wp-json/wp-block-editor/v1/navigation-fallback`
  const list = `${gateway.publicAddress}/wp-json/wp/v2/navigation?per_page=5`
  origin.script = ({ target }, wire) =>
    wire.respond({ headers: json, status: target.includes('fallback') ? 401 : 200, content: '[]' })
  await statusOf(list)
  await fetch(fallback)
  expect(await statusOf(list)).toContain('hit')
  origin.script = (_, wire) => wire.respond({ headers: json, content: '{"id":7,"type":"wp_navigation"}' })
  const response = await fetch(fallback, { headers: { Authorization: 'Basic YTpi' } })
  expect(response.headers.get('cache-status')).toBe('trellis; fwd=bypass; detail=creating-read')
  expect(await statusOf(list)).toContain('fwd=uri-miss')
})

test('a write through one interface to a site reaches what the other has stored', async () => {
  await statusOf(posts('/other'))
  expect(await statusOf(posts('/other'))).toContain('hit')
  const headers = { 'Content-Type': 'application/json', Authorization: 'Basic YTpi' }
  await fetch(`${gateway.publicAddress}/wp-json/wp/v2/posts/5`, {
    method: 'POST',
    headers,
    body: '{"title":"x"}',
  })
  expect(await statusOf(posts('/other'))).toContain('fwd=uri-miss')
})

test('a group that the response to a write invalidates is one of all open services of the same upstream', async () => {
  const groups = (method: string, target: string) => ({
    ...(method === 'PUT' ? { 'Cache-Group-Invalidation': '"stock"' } : {}),
    ...(target === '/list' ? { 'Cache-Groups': '"stock"' } : {}),
  })
  origin.script = ({ method, target }, wire) =>
    wire.respond({ headers: { 'Cache-Control': 'max-age=60', ...groups(method, target) }, content: 'x' })
  const cache = { profile: 'rfc-shared-cache' }
  const upstream = { targets: [origin.origin] }
  const own = await startTestGateway({
    services: {
      pages: { contract: 'open', mount: '/', upstream, cache },
      shop: { contract: 'open', mount: '/shop', upstream: { ...upstream, basePath: '/shop' }, cache },
    },
  })
  try {
    const read = (path: string) => statusOf(own.publicAddress + path)
    await read('/list')
    await read('/other')
    await fetch(`${own.publicAddress}/shop/items/1`, { method: 'PUT', body: 'x' })
    expect(await read('/list')).toContain('fwd=uri-miss')
    expect(await read('/other')).toContain('hit')
  } finally {
    await own.close()
  }
})

test('a write to a service that a reload removes meanwhile reaches what the one in its place has stored', async () => {
  const [written, read] = [createLatch(), createLatch()]
  origin.script = async ({ method, target }, wire) => {
    if (method === 'PUT') await written.opened
    // Keeps the earlier configuration alive.
    if (target === '/long') await read.opened
    wire.respond({ headers: { 'Cache-Control': 'max-age=60' }, content: 'x' })
  }
  const cache = { profile: 'rfc-shared-cache' }
  const upstream = { targets: [origin.origin] }
  const named = (name: string) => ({
    services: { [name]: { contract: 'open', mount: '/', upstream, cache } },
  })
  const own = await startTestGateway(named('before'))
  try {
    const url = `${own.publicAddress}/a`
    const long = statusOf(`${own.publicAddress}/long`)
    const from = origin.received.length
    const writing = fetch(url, { method: 'PUT', body: 'x' })
    await origin.until(() => origin.received.slice(from).some(({ method }) => method === 'PUT'))
    await own.put(named('after'))
    await statusOf(url)
    expect(await statusOf(url)).toContain('hit')
    written.open()
    await (await writing).text()
    expect(await statusOf(url)).toContain('fwd=uri-miss')
    read.open()
    await long
  } finally {
    await own.close()
  }
})

test('services that were configured later see the invalidations of a write', async () => {
  const alone = await startTestGateway({
    services: { pages: { contract: 'open', mount: '/', upstream: { targets: [origin.origin] } } },
  })
  try {
    await alone.put({
      services: {
        pages: { contract: 'open', mount: '/', upstream: { targets: [origin.origin] } },
        wordpress: site('/wp-json'),
      },
    })
    const url = `${alone.publicAddress}/wp-json/wp/v2/posts`
    await statusOf(url)
    expect(await statusOf(url)).toContain('hit')
    await fetch(`${alone.publicAddress}/wp-login.php`, { method: 'POST', body: 'a=1' })
    expect(await statusOf(url)).toContain('fwd=uri-miss')
  } finally {
    await alone.close()
  }
})
