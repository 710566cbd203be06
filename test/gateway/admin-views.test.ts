import { readFile } from 'node:fs/promises'
import { beforeAll, describe, expect, test } from 'vitest'
import { stringify } from 'yaml'
import { checkConfig } from '../../src/gateway/load-config.ts'
import { driftReport } from '../../src/gateway/upstream-issues.ts'
import { closeAfterAll } from '../support/close.ts'
import { startTestGateway, type TestGateway } from '../support/gateway.ts'
import { type Origin, startOrigin } from '../support/origin.ts'

const mount = '/index.php/site-json'
const json = { 'Content-Type': 'application/json; charset=UTF-8' }
const token = 'T0ken-of-the-test'

type Index = { routes: Record<string, { endpoints: { args: Record<string, Record<string, unknown>> }[] }> }

const fixture = new URL('../contracts/fixtures/discovery-wordpress-6.9.json', import.meta.url)

/** A real WordPress's index that lacks a route, and lets lists be longer. */
const differingIndex = async (): Promise<string> => {
  const index = JSON.parse(await readFile(fixture, 'utf8')) as Index
  delete index.routes['/wp/v2/blocks']
  const perPage = index.routes['/wp/v2/posts']?.endpoints[0]?.args['per_page']
  if (perPage === undefined) throw new Error('the fixture has no such argument')
  perPage['maximum'] = 500
  return JSON.stringify(index)
}

let origin: Origin
let gateway: TestGateway
let services: Record<string, unknown>

beforeAll(async () => {
  origin = await startOrigin()
  const index = await differingIndex()
  origin.script = ({ target }, wire) => {
    const isIndex = target === '/index.php/wp-json/'
    wire.respond({ headers: json, content: isIndex ? index : `[{"id":7,"type":"post","pad":"${target}"}]` })
  }
  services = {
    site: {
      contract: 'site',
      mount,
      upstream: { targets: [origin.origin], basePath: '/index.php/wp-json' },
      cache: { rules: [{ match: 'GET /**', ttl: '60s' }] },
    },
    plants: {
      contract: 'plants',
      mount: '/',
      upstream: { targets: [origin.origin] },
      cache: { rules: [{ match: 'GET /plants', ttl: '60s', scope: 'credential' }] },
    },
  }
  gateway = await startTestGateway({ services, admin: { port: 0, token } })
  // Everything behind the index is known once it has been asked for.
  await (await fetch(`${gateway.publicAddress}${mount}/`)).arrayBuffer()
})
closeAfterAll(() => [gateway, origin])

const look = (path: string, headers: Record<string, string> = {}): Promise<Response> =>
  fetch(gateway.adminAddress + path, { headers: { Authorization: `Bearer ${token}`, ...headers } })
const view = async (path: string): Promise<Record<string, unknown>> =>
  (await (await look(path)).json()) as Record<string, unknown>
const explain = (url: string, more: Record<string, string> = {}): Promise<Record<string, unknown>> =>
  view(`/explain?${new URLSearchParams({ url, ...more })}`)

describe('/cache/entries', () => {
  beforeAll(async () => {
    await (await fetch(`${gateway.publicAddress}${mount}/site/v2/posts?search=first`)).arrayBuffer()
    const headers = { Authorization: 'Bearer secret-of-a-reader' }
    await (await fetch(`${gateway.publicAddress}/plants?limit=3`, { headers })).arrayBuffer()
    await (await fetch(`${gateway.publicAddress}${mount}/site/v2/pages`)).arrayBuffer()
  })

  test('shows public URLs; for responses to a credential only that there is one', async () => {
    const { entries } = (await view('/cache/entries?sort=age')) as { entries: Record<string, unknown>[] }
    expect(entries.map(({ url, partition }) => [url, partition])).toEqual([
      [`${mount}/site/v2/posts?search=first`, 'public'],
      ['/plants', 'credential'],
      [`${mount}/site/v2/pages`, 'public'],
    ])
    expect(entries[0]?.['tags']).toContain('site/any/posts')
    expect(entries[1]?.['tags']).toEqual([])
    const told = JSON.stringify(entries)
    expect(told).not.toContain('secret-of-a-reader')
    expect(told).not.toContain('limit=3')
    expect(told).not.toContain('pad')
  })

  test('the largest first, up to the limit', async () => {
    const { entries } = (await view('/cache/entries?sort=size&limit=2')) as { entries: { bytes: number }[] }
    expect(entries).toHaveLength(2)
    expect(entries[0]?.bytes).toBeGreaterThanOrEqual(entries[1]?.bytes ?? 0)
  })

  test('those that answered most first', async () => {
    await (await fetch(`${gateway.publicAddress}${mount}/site/v2/pages`)).arrayBuffer()
    const { entries } = (await view('/cache/entries?sort=hits&limit=1')) as { entries: object[] }
    expect(entries).toMatchObject([{ url: `${mount}/site/v2/pages`, hits: 1 }])
  })

  test.each([
    '?sort=name',
    '?limit=0',
    '?limit=5000',
    '?limit=1e2',
    '?sort=size&sort=age',
    '?limit=2&limit=3',
  ])('%s is refused', async (query) => {
    expect((await look(`/cache/entries${query}`)).status).toBe(400)
  })
})

describe('/explain', () => {
  test('tells row, canonical form, key, tags, rule and what is stored', async () => {
    const url = `${gateway.publicAddress}${mount}/site/v2/posts?page=1&search=explained`
    expect(await explain(url)).toEqual({
      inWords: [
        `GET ${url} is for the service site, route /site/v2/posts.`,
        'The upstream and the cache see /site/v2/posts?search=explained.',
        'It is a read. Its response comes from the cache, and is stored for all clients together.',
        'Its rule says: ttl 1m, staleWhileRevalidate 0s, staleIfError 0s.',
      ],
      service: 'site',
      method: 'GET',
      row: '/site/v2/posts',
      canonicalTarget: '/site/v2/posts?search=explained',
      cache: 'read, public',
      rule: 'ttl 1m, staleWhileRevalidate 0s, staleIfError 0s',
      profile: 'safe',
      cacheKey: 'site, /site/v2/posts?search=explained, public',
      tags: expect.arrayContaining(['site/all', 'site/any/posts']),
      stepsOfAHit: 'lookup, hit',
      stepsOfAMiss: 'lookup, join, fetch, wait, store, outcome, respond',
      storedResponses: 0,
    })
    await (await fetch(url)).arrayBuffer()
    expect(await explain(url)).toMatchObject({ storedResponses: 1 })
  })

  test('names the parameters that the row does not declare, and the tag by which every write reaches the response', async () => {
    expect(await explain(`${mount}/site/v2/posts?lang=de&utm_source=x&my.area=1`)).toMatchObject({
      canonicalTarget: '/site/v2/posts?lang=de&my_area=1',
      undeclaredParametersSent: 'lang, my_area',
      tags: expect.arrayContaining(['site/unknown']),
    })
    expect(await explain(`${mount}/site/v2/posts?page=2`)).not.toHaveProperty('undeclaredParametersSent')
  })

  test('includes the routes that were learned from the upstream', async () => {
    expect(await explain(`${mount}/site/v2/categories?per_page=5`)).toMatchObject({
      row: '/site/v2/categories',
      canonicalTarget: '/site/v2/categories?per_page=5',
    })
  })

  test.each([
    ['another method', { method: 'DELETE' }, { cache: 'write: invalidates' }],
    ['a credential', { header: 'Authorization: Basic YTpi' }, { cache: 'bypass: authorization' }],
  ])('with %s', async (_description, more, expected) => {
    expect(
      await explain(`${mount}/site/v2/posts/7`, more as unknown as Record<string, string>),
    ).toMatchObject(expected)
  })

  test('takes several lines of one header for the one header that they are', async () => {
    const cookies = ['Cookie: wordpress_logged_in_1=someone', 'Cookie: _ga=1']
    const query = cookies.map((line) => `&header=${encodeURIComponent(line)}`).join('')
    expect(await view(`/explain?url=${mount}/site/v2/posts${query}`)).toMatchObject({
      cache: 'bypass: cookie',
    })
  })

  test.each([
    ['no URL', ''],
    ['a method that is none', '?url=/&method=get%20it'],
    ['a header that is none', '?url=/&header=a%20b'],
    ['a header with a line break', '?url=/&header=a:b%0d%0ac:d'],
  ])('%s is refused', async (_description, query) => {
    expect((await look(`/explain${query}`)).status).toBe(400)
  })
})

test('/config shows what is in force, without the token', async () => {
  const text = await (await look('/config')).text()
  expect(JSON.parse(text)).toMatchObject({ admin: { token: '[redacted]' }, cache: { maxBytes: '256MiB' } })
  expect(text).not.toContain(token)
})

describe('/openapi.json', () => {
  test('has the rows of every service and the learned ones, under their mounts', async () => {
    const { paths, servers } = (await view('/openapi.json')) as { paths: object; servers: { url: string }[] }
    expect(Object.keys(paths)).toEqual(
      expect.arrayContaining(['/plants', `${mount}/site/v2/posts/{id}`, `${mount}/site/v2/categories`]),
    )
    expect(servers).toEqual([{ url: gateway.publicAddress }])
  })

  test('is not sent again to a client that has it', async () => {
    const first = await look('/openapi.json')
    const etag = first.headers.get('etag') ?? ''
    await first.arrayBuffer()
    const second = await look('/openapi.json', { 'If-None-Match': etag })
    expect([second.status, await second.text(), second.headers.get('etag')]).toEqual([304, '', etag])
    expect((await look('/openapi.json', { 'If-None-Match': '"other"' })).status).toBe(200)
  })
})

describe('drift', () => {
  const expected = expect.arrayContaining([
    { kind: 'route-missing', matters: true, route: '/site/v2/blocks' },
    {
      kind: 'argument-changed',
      matters: true,
      route: '/site/v2/posts',
      method: 'GET',
      argument: 'per_page',
      keyword: 'maximum',
      ours: 100,
      theirs: 500,
    },
  ])

  test('/drift lists how the upstream differs from the contract', async () => {
    expect(await view('/drift')).toEqual({ services: [{ service: 'site', differences: expected }] })
  })

  const configured = async (site: object): Promise<Parameters<typeof driftReport>[0]> => {
    const checked = await checkConfig(stringify({ services: { ...services, site } }), {})
    if (checked.kind === 'faults') throw new Error(JSON.stringify(checked.faults))
    return checked.config
  }

  test('the command fetches the index once, also with a configured identity', async () => {
    const asked = origin.received.length
    const site = {
      ...(services['site'] as object),
      discovery: { source: 'static', identity: { name: 'Mine' } },
    }
    expect(await driftReport(await configured(site))).toEqual([
      { service: 'site', outcome: { kind: 'compared', differences: expected } },
    ])
    expect(origin.received.slice(asked).map(({ target }) => target)).toEqual(['/index.php/wp-json/'])
  })

  test.each([
    ['with contact forms', () => true, {}],
    ['without contact forms', (text: string) => !text.includes('contact-form-7/v1'), {}],
    ['in front of which batches are smaller', () => true, { maxItems: 5 }],
  ])('a stock WordPress does not differ: one %s', async (_, isThere, batch) => {
    const index = JSON.parse(await readFile(fixture, 'utf8')) as Index & { namespaces: string[] }
    index.namespaces = index.namespaces.filter(isThere)
    index.routes = Object.fromEntries(Object.entries(index.routes).filter(([pattern]) => isThere(pattern)))
    const stock = await startOrigin((__, wire) =>
      wire.respond({ headers: json, content: JSON.stringify(index) }),
    )
    try {
      const upstream = { targets: [stock.origin], basePath: '/index.php/wp-json' }
      const site = { ...(services['site'] as object), upstream, batch }
      for (const names of ['wordpress', 'same']) {
        const [{ outcome } = {}] = await driftReport(await configured({ ...site, names }))
        if (outcome?.kind !== 'compared') throw new Error('not compared')
        // The languages of a site are its own; the schemas of the other two differ between versions.
        const left = ['locale', 'app_id', 'meta']
        const others = outcome.differences.filter(
          ({ argument = '', matters }) => !left.includes(argument) || matters,
        )
        expect([names, others]).toEqual([names, []])
      }
    } finally {
      await stock.close()
    }
  })

  test('the demo service has no differences', async () => {
    const site = { contract: 'site', upstream: { targets: ['embedded'] } }
    expect(await driftReport(await configured(site))).toEqual([
      { service: 'site', outcome: { kind: 'compared', differences: [] } },
    ])
  })

  test('an invalid index does not count as one without differences', async () => {
    const site = {
      ...(services['site'] as object),
      upstream: { targets: [origin.origin], basePath: '/elsewhere' },
    }
    expect(await driftReport(await configured(site))).toEqual([
      {
        service: 'site',
        outcome: { kind: 'unread', reason: expect.stringMatching(/has no routes.*upstream\.basePath/) },
      },
    ])
  })
})

test('an unknown path is a problem document, and no response may be stored', async () => {
  const response = await look('/nowhere')
  expect(response.status).toBe(404)
  expect(response.headers.get('content-type')).toContain('application/problem+json')
  expect(response.headers.get('cache-control')).toBe('no-store')
})
