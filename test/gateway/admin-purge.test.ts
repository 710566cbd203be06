import { beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { closeAfterAll } from '../support/close.ts'
import { siteService, startTestGateway, type TestGateway } from '../support/gateway.ts'
import { type Origin, startOrigin } from '../support/origin.ts'

let origin: Origin
let gateway: TestGateway
const mount = '/index.php/site-json'
const json = { 'Content-Type': 'application/json; charset=UTF-8' }

beforeAll(async () => {
  origin = await startOrigin()
  gateway = await startTestGateway({
    services: {
      site: siteService(origin.origin),
      legacy: {
        contract: 'open',
        mount: '/legacy',
        upstream: { targets: [origin.origin] },
        cache: { profile: 'rfc-shared-cache' },
      },
      plants: {
        contract: 'plants',
        mount: '/',
        upstream: { targets: [origin.origin] },
        cache: { rules: [{ match: 'GET /plants', ttl: '60s', scope: 'credential' }] },
      },
    },
  })
})
closeAfterAll(() => [gateway, origin])

const purge = async (body: unknown): Promise<{ status: number; response: Record<string, unknown> }> => {
  const response = await fetch(`${gateway.adminAddress}/cache/purge`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify(body),
  })
  return { status: response.status, response: (await response.json()) as Record<string, unknown> }
}
const cacheStatus = async (path: string, headers: Record<string, string> = {}): Promise<string> => {
  const response = await fetch(`${gateway.publicAddress}${path}`, { headers })
  await response.arrayBuffer()
  return response.headers.get('cache-status') ?? ''
}
const isStored = async (path: string, headers: Record<string, string> = {}): Promise<boolean> =>
  (await cacheStatus(path, headers)).startsWith('trellis; hit')

beforeEach(async () => {
  origin.script = (_, wire) => wire.respond({ headers: json, content: '[{"id":7,"type":"post"}]' })
  expect((await purge({ all: true })).status).toBe(200)
})

describe('by URL', () => {
  const stored = `${mount}/site/v2/posts?per_page=2&categories=3,7`
  test.each([
    ['as it was asked', stored],
    ['with its origin', `http://127.0.0.1:1${stored}`],
    ['in another order', `${mount}/site/v2/posts?categories=3,7&per_page=2`],
    ['in another spelling', `${mount}/SITE/v2//posts/?categories[]=7&categories[]=3&per_page=%32&page=1`],
    ['with a tracking parameter and a fragment', `${stored}&utm_source=mail#top`],
  ])('%s: the entry is gone', async (_description, url) => {
    await cacheStatus(stored)
    await cacheStatus(`${mount}/site/v2/posts?per_page=3`)
    expect(await purge({ url })).toEqual({
      status: 200,
      response: { entries: 1, mode: 'hard', dryRun: false },
    })
    expect(await isStored(stored)).toBe(false)
    expect(await isStored(`${mount}/site/v2/posts?per_page=3`)).toBe(true)
  })

  test('of an open service, and of a route that no row lists', async () => {
    const headers = { ...json, 'Cache-Control': 'max-age=60' }
    origin.script = (_, wire) => wire.respond({ headers, content: '{}' })
    for (const path of ['/legacy/a/b?x=1&y=2', `${mount}/site/v2/things?b=1`]) {
      await cacheStatus(path)
      expect([path, await isStored(path)]).toEqual([path, true])
      expect((await purge({ url: path })).response).toMatchObject({ entries: 1 })
      expect([path, await isStored(path)]).toEqual([path, false])
    }
  })

  test('with the public URL of the configuration', async () => {
    await cacheStatus(stored)
    expect((await purge({ url: gateway.publicAddress + stored })).response).toMatchObject({ entries: 1 })
  })

  test('all variants and all partitions are removed', async () => {
    origin.script = (_, wire) => wire.respond({ headers: { ...json, Vary: 'Origin' }, content: '[]' })
    for (const bearer of ['one', 'two']) {
      for (const from of ['https://a.example', 'https://b.example']) {
        const headers = { Authorization: `Bearer ${bearer}`, Origin: from }
        await cacheStatus('/plants', headers)
        expect(await isStored('/plants', headers)).toBe(true)
      }
    }
    expect((await purge({ url: '/plants', service: 'plants' })).response).toMatchObject({ entries: 4 })
    expect(await isStored('/plants', { Authorization: 'Bearer one', Origin: 'https://a.example' })).toBe(
      false,
    )
  })

  test.each([
    [
      'a URL that no request is answered for',
      { url: `${mount}/site/v2/posts?per_page=1000` },
      'rest_invalid_param',
    ],
    ['a path that means two things', { url: `${mount}/site/v2/%2e%2e/posts` }, 'refused'],
    ['a route override', { url: `${mount}/?rest_route=/site/v2/posts` }, 'rest_route is not accepted here'],
    ['a URL of another service', { url: '/plants', service: 'site' }, 'another service'],
  ])('%s is refused with the reason', async (_description, body, reason) => {
    const { status, response } = await purge(body)
    expect(status).toBe(400)
    expect(response['detail']).toContain(reason)
  })
})

describe('by tag, by prefix, all', () => {
  const posts = `${mount}/site/v2/posts?search=a`
  const pages = `${mount}/site/v2/pages?search=a`
  const fill = async (): Promise<void> => {
    for (const path of [posts, pages]) await cacheStatus(path)
  }

  test.each([
    ['a tag', { tag: 'site/any/posts' }, 1, [false, true]],
    ['a tag that nothing carries', { tag: 'site/any/none' }, 0, [true, true]],
    ['a prefix inside a service', { prefix: `${mount}/site/v2/po` }, 1, [false, true]],
    ['a prefix of a mount', { prefix: '/index' }, 2, [false, false]],
    ['a prefix narrowed to another service', { prefix: '/', service: 'plants' }, 0, [true, true]],
    ['all of one service', { all: true, service: 'site' }, 2, [false, false]],
    ['all of another service', { all: true, service: 'plants' }, 0, [true, true]],
    ['all', { all: true }, 2, [false, false]],
  ])('%s', async (_description, body, entries, left) => {
    await fill()
    expect((await purge({ ...body, dryRun: true })).response).toEqual({ entries, mode: 'hard', dryRun: true })
    expect((await purge(body)).response).toEqual({ entries, mode: 'hard', dryRun: false })
    expect([await isStored(posts), await isStored(pages)]).toEqual(left)
  })

  test.each([
    ['/legacy/caf%c3%a9', '/legacy/caf%C3%A9/menu'],
    ['/legacy/café', '/legacy/caf%C3%A9/menu'],
    ['/legacy/a|b', '/legacy/a%7Cb/c?d'],
    ['/legacy/x?q=é', '/legacy/x?q=%C3%A9'],
    ['/legacy/\ud800', '/legacy/%EF%BF%BD'],
  ])('a prefix reaches what is below it however it is spelled: %s', async (prefix, path) => {
    origin.script = (_, wire) =>
      wire.respond({ headers: { ...json, 'Cache-Control': 'max-age=60' }, content: '{}' })
    await cacheStatus(path)
    expect(await isStored(path)).toBe(true)
    expect((await purge({ prefix })).response).toMatchObject({ entries: 1 })
    expect(await isStored(path)).toBe(false)
  })

  test.each([
    ['several URLs', { urls: [posts, pages] }, 2, [false, false]],
    ['several tags', { tags: ['site/any/posts', 'site/any/none'] }, 1, [false, true]],
    ['several prefixes', { prefixes: [`${mount}/site/v2/po`, `${mount}/site/v2/pa`] }, 2, [false, false]],
    ['a URL and a tag', { url: pages, tag: 'site/any/posts' }, 2, [false, false]],
  ])('%s in one request', async (_description, body, entries, left) => {
    await fill()
    expect((await purge(body)).response).toEqual({ entries, mode: 'hard', dryRun: false })
    expect([await isStored(posts), await isStored(pages)]).toEqual(left)
  })

  test('one refused URL of several refuses the whole request, and nothing is removed', async () => {
    await fill()
    const bad = `${mount}/site/v2/posts?per_page=1000`
    const { status, response } = await purge({ urls: [posts, bad] })
    expect(status).toBe(400)
    expect(response['detail']).toContain(`${bad}: `)
    expect(await isStored(posts)).toBe(true)
  })

  test('a tag of the upstream, by the name that the upstream gave it', async () => {
    const headers = { ...json, 'Cache-Control': 'max-age=60', 'Surrogate-Key': 'product-7 all-products' }
    origin.script = (_, wire) => wire.respond({ headers, content: '{}' })
    for (const path of ['/legacy/p/7', `${mount}/site/v2/things?p=7`]) await cacheStatus(path)
    expect((await purge({ tag: 'product-7', dryRun: true })).response).toMatchObject({ entries: 2 })
    expect((await purge({ tag: 'product-7', service: 'legacy' })).response).toMatchObject({ entries: 1 })
    expect(await isStored('/legacy/p/7')).toBe(false)
  })

  test('a soft purge allows one stale response while a newer one is fetched', async () => {
    await fill()
    expect((await purge({ all: true, mode: 'soft' })).response).toEqual({
      entries: 2,
      mode: 'soft',
      dryRun: false,
    })
    expect(await cacheStatus(posts)).toMatch(/^trellis; hit; ttl=(-\d|0); detail=revalidating$/)
    await expect.poll(() => cacheStatus(posts)).toMatch(/^trellis; hit; ttl=(60|5\d)$/)
  })

  test('a response that was in flight during a purge of everything is not stored', async () => {
    let release = (): void => {}
    const held = new Promise<void>((resolve) => {
      release = resolve
    })
    origin.script = async (_, wire) => {
      await held
      wire.respond({ headers: json, content: '[]' })
    }
    const before = origin.received.length
    const slow = cacheStatus(posts)
    await origin.until(() => origin.received.length > before)
    await purge({ prefix: mount })
    release()
    await slow
    expect(await isStored(posts)).toBe(false)
  })
})

describe('an invalid purge is refused', () => {
  test.each([
    ['a list', [], 'expected a JSON object'],
    ['no selector', {}, 'at least one of url, urls, tag, tags, prefix, prefixes, all'],
    ['another selector beside all', { all: true, tag: 'x' }, 'all: it includes everything else'],
    ['an empty list', { tags: [] }, 'tags: expected a list with at least one entry'],
    ['a text in place of a list', { urls: '/a' }, 'urls: expected a list'],
    ['a wrong entry in a list', { tags: ['a', 7] }, 'tags[1]: expected a text'],
    ['a tag as it is shown', { tag: '6:legacy11:/a?token=[redacted]' }, 'in place of a secret'],
    ['a URL as it is shown', { url: '/legacy/a?token=[redacted]' }, 'in place of a secret'],
    ['a prefix as it is shown', { prefix: '/legacy/a?token=[redacted]' }, 'in place of a secret'],
    ['a relative prefix in a list', { prefixes: ['/a', 'b'] }, 'prefixes[1]: expected a path'],
    [
      'more selectors than allowed',
      { tags: Array.from({ length: 1001 }, (_, at) => `t${at}`) },
      'at most 1000 selectors',
    ],
    ['a negative number to warm', { all: true, warm: -1 }, 'warm: expected true, false or a number'],
    ['more to warm than allowed', { all: true, warm: 1001 }, 'warm: expected true, false or a number'],
    ['warm with dryRun', { all: true, warm: true, dryRun: true }, 'warm: nothing is removed with dryRun'],
    ['all: false', { all: false }, 'all: expected true'],
    ['a misspelt member', { url: '/x', dryrun: true }, 'unknown member'],
    ['an unknown mode', { all: true, mode: 'gentle' }, 'mode: expected'],
    ['a dryRun that is no boolean', { all: true, dryRun: 'yes' }, 'dryRun: expected'],
    ['a prefix without a slash', { prefix: 'posts' }, 'prefix: expected'],
    ['an empty URL', { url: '' }, 'url: expected'],
    ['an unknown service', { all: true, service: 'none' }, 'no service has this name'],
    ['a tag of another service', { tag: 'site/any/posts', service: 'plants' }, 'another service'],
  ])('%s', async (_description, body, detail) => {
    const { status, response } = await purge(body)
    expect([status, response['code']]).toEqual([400, 'invalid-purge'])
    expect(response['detail']).toContain(detail)
  })

  test('content that is no JSON', async () => {
    const response = await fetch(`${gateway.adminAddress}/cache/purge`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: '{all: true}',
    })
    expect(response.status).toBe(400)
    expect(response.headers.get('content-type')).toContain('application/problem+json')
  })
})

test('a purge is counted', async () => {
  await cacheStatus(`${mount}/site/v2/posts`)
  const before = await gateway.metric('trellis_cache_invalidated_entries_total', 'by="purge"')
  await purge({ all: true })
  expect(await gateway.metric('trellis_cache_invalidated_entries_total', 'by="purge"')).toBe(before + 1)
})

test('a thousand prefixes go through the stored responses once', async () => {
  await cacheStatus(`${mount}/site/v2/posts?search=a`)
  const prefixes = Array.from({ length: 999 }, (_, index) => `${mount}/site/v2/none-${index}`)
  const before = await gateway.metric('trellis_cache_invalidations_total', 'by="purge"')
  const { response } = await purge({ prefixes: [...prefixes, `${mount}/site/v2/po`], service: 'site' })
  expect(response).toMatchObject({ entries: 1 })
  expect(await gateway.metric('trellis_cache_invalidations_total', 'by="purge"')).toBe(before + 1)
})
