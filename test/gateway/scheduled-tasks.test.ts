import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { siteService, startTestGateway, type TestGateway } from '../support/gateway.ts'
import { type Origin, type Script, startOrigin } from '../support/origin.ts'

// Anyone can have WordPress run its scheduled tasks. Without the companion nothing says what they write.

let origin: Origin
let gateway: TestGateway
const json = { 'Content-Type': 'application/json; charset=UTF-8' }

beforeAll(async () => {
  origin = await startOrigin()
})
afterAll(() => origin.close())
// What is dropped depends on the runs before.
beforeEach(async () => {
  origin.script = (_, wire) => wire.respond({ headers: json, content: '[]' })
  const upstream = { targets: [origin.origin] }
  gateway = await startTestGateway({
    services: {
      wordpress: siteService(origin.origin, {
        mount: '/wp-json',
        names: 'same',
        upstream: { ...upstream, basePath: '/wp-json' },
        cache: { rules: [{ match: 'GET /wp/v2/**', ttl: '1h' }] },
      }),
      pages: { contract: 'open', mount: '/', upstream, cache: { profile: 'rfc-shared-cache' } },
    },
  })
})
afterEach(() => gateway.close())

const ask = async (path: string, init: RequestInit = {}) => {
  const response = await fetch(gateway.publicAddress + path, { redirect: 'manual', ...init })
  await response.arrayBuffer()
  return { status: response.status, cache: response.headers.get('cache-status') ?? '' }
}

const posts = '/wp-json/wp/v2/posts?per_page=5'
const isHit = async (): Promise<boolean> => (await ask(posts)).cache.includes('hit')

const fill = async (): Promise<void> => {
  await ask(posts)
  expect(await isHit()).toBe(true)
}

test.each(['/wp-cron.php', '/?doing_wp_cron'])(
  'a minute with an anonymous request for %s each four seconds leaves 98 of 100 reads hits',
  async (path) => {
    const pages = Array.from({ length: 4 }, (_, at) => `/wp-json/wp/v2/posts?page=${at + 1}`)
    for (const page of pages) await ask(page)
    const reads: boolean[] = []
    const readAll = async (): Promise<void> => {
      const replies = await Promise.all(pages.map((page) => ask(page)))
      reads.push(...replies.map(({ cache }) => cache.includes('hit')))
    }
    for (let times = 0; times < 15; times += 1) {
      await ask(path)
      for (let round = 0; round < 8; round += 1) await readAll()
    }
    expect(reads.length).toBe(480)
    expect(reads.filter(Boolean).length / reads.length).toBeGreaterThanOrEqual(0.98)
  },
)

test.each([
  ['GET', '/wp-cron.php'],
  ['GET', '/wp-cron.php?doing_wp_cron'],
  ['POST', '/wp-cron.php?doing_wp_cron=1.5'],
  ['GET', '/wp-cron.php?a=1'],
])(
  '%s %s: the first run reaches what is stored, the next within the minute waits for its end',
  async (method, path) => {
    await fill()
    await ask(path, { method })
    expect(await isHit()).toBe(false)
    await fill()
    await ask(path, { method })
    expect(await isHit()).toBe(true)
  },
)

test.each([403, 404])('a script that answers %i has run nothing', async (status) => {
  await fill()
  origin.script = (_, wire) => wire.respond({ status, content: '' })
  await ask('/wp-cron.php')
  expect(await isHit()).toBe(true)
})

test('a run that ends with 500 counts', async () => {
  await fill()
  origin.script = ({ target }, wire) =>
    target.includes('cron')
      ? wire.respond({ status: 500, content: '' })
      : wire.respond({ headers: json, content: '[]' })
  expect((await ask('/wp-cron.php')).status).toBe(500)
  expect(await isHit()).toBe(false)
})

test('a run without a response counts', async () => {
  await fill()
  origin.script = ({ target }, wire) =>
    target.includes('cron') ? wire.reset() : wire.respond({ headers: json, content: '[]' })
  expect((await ask('/wp-cron.php')).status).toBe(502)
  expect(await isHit()).toBe(false)
})

test.each([
  ['POST', '/wp-comments-post.php/wp-cron.php'],
  ['POST', '/wp-cron.php?acme=1'],
  ['POST', '/wp-json/acme/v1/wp-cron.php'],
  ['GET', '/wp-admin/admin-post.php/wp-cron.php?action=acme'],
  ['GET', '/wp-cron.php?_wpnonce=abc'],
])('%s %s may do something else, so each one reaches what is stored', async (method, path) => {
  for (let times = 0; times < 2; times += 1) {
    await fill()
    await ask(path, { method, ...(method === 'POST' ? { headers: json, body: '{}' } : {}) })
    expect(await isHit()).toBe(false)
  }
})

describe('ALTERNATE_WP_CRON: tasks run behind a redirect to the same page with the parameter', () => {
  /** Redirects requests for the path as spawn_cron() does. */
  const redirecting =
    (path: string, location: string): Script =>
    ({ target }, wire) =>
      target.split('?')[0] === path
        ? wire.respond({
            status: 302,
            headers: { 'Cache-Control': 'max-age=60', Location: location },
            content: ' ',
          })
        : wire.respond({ headers: json, content: '[]' })

  test.each([
    ['/about', '/about', '/about?doing_wp_cron=1796000000.5'],
    ['/about?a=b', '/about', '/about?a=b&doing_wp_cron=1796000000.5'],
    ['/wp-json/wp/v2/pages', '/wp-json/wp/v2/pages', '/wp-json/wp/v2/pages?doing_wp_cron=1796000000.5'],
  ])('%s reaches what is stored', async (asked, path, location) => {
    await fill()
    origin.script = redirecting(path, location)
    expect((await ask(asked)).status).toBe(302)
    expect(await isHit()).toBe(false)
  })

  test('the redirect is not stored, as another one is', async () => {
    origin.script = redirecting('/about', '/about?doing_wp_cron=1796000000.5')
    await ask('/about')
    expect((await ask('/about')).cache).not.toContain('hit')
    origin.script = redirecting('/old', '/new')
    await ask('/old')
    expect((await ask('/old')).cache).toContain('hit')
  })

  test('it is bounded too', async () => {
    origin.script = redirecting('/about', '/about?doing_wp_cron=1796000000.5')
    await ask('/about')
    await fill()
    await ask('/about')
    expect(await isHit()).toBe(true)
  })

  test.each([
    [
      'a page that had the parameter, and is found at another address',
      '/about?doing_wp_cron=1',
      '/About?doing_wp_cron=1',
    ],
    ['any other redirect', '/about', '/login?to=doing_wp_cron'],
    ['a fragment', '/about', '/login#?doing_wp_cron=1'],
  ])('%s reaches nothing', async (_, asked, location) => {
    await fill()
    origin.script = redirecting('/about', location)
    expect((await ask(asked)).status).toBe(302)
    expect(await isHit()).toBe(true)
  })
})
