import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { stringify } from 'yaml'
import type { Config } from '../../src/config/config.ts'
import { explainLearned } from '../../src/gateway/explain.ts'
import { checkConfig } from '../../src/gateway/load-config.ts'
import {
  allUpstreamIssues,
  describeLearnedRoutes,
  upstreamHints,
  upstreamIssues,
} from '../../src/gateway/upstream-issues.ts'
import { keyPair, pem } from '../support/certificates.ts'
import { startGatewayProcess } from '../support/gateway-process.ts'
import { type Origin, startOrigin } from '../support/origin.ts'

const publicUrl = 'http://shop.example'
const json = { 'Content-Type': 'application/json; charset=UTF-8' }

let origin: Origin
beforeAll(async () => {
  origin = await startOrigin()
})
afterAll(() => origin.close())
beforeEach(() => {
  origin.received.length = 0
})

const index = (home: string): string =>
  JSON.stringify({
    name: 'Shop',
    home,
    url: home,
    namespaces: ['wp/v2', 'shop/v1'],
    routes: {
      '/shop/v1/carts': {
        namespace: 'shop/v1',
        methods: ['GET'],
        endpoints: [{ methods: ['GET'], args: {} }],
      },
    },
  })

type Reply = { status?: number; headers?: Record<string, string>; content?: string }

/** Answers each path from the table, and 404 elsewhere. */
const serve = (responses: Readonly<Record<string, Reply>>): void => {
  origin.script = ({ target }, wire) =>
    wire.respond({ headers: json, status: 404, content: '{}', ...asFound(responses[target]) })
}
const asFound = (response: Reply | undefined): Reply =>
  response === undefined ? {} : { status: 200, ...response }

const configOf = async (changes: {
  basePath?: string
  mount?: string
  host?: string
  pages?: boolean
  targets?: readonly string[]
  rule?: object
}): Promise<Config> => {
  const { basePath = '/wp-json', mount = '/wp-json', host = 'preserve' } = changes
  const targets = changes.targets ?? [origin.origin]
  const checked = await checkConfig(
    stringify({
      publicUrl,
      services: {
        wordpress: {
          contract: 'site',
          names: 'same',
          mount,
          upstream: { targets, basePath, host },
          ...(changes.rule === undefined ? {} : { cache: { rules: [changes.rule] } }),
        },
        ...(changes.pages === false
          ? {}
          : { pages: { contract: 'open', mount: '/', upstream: { targets, host } } }),
      },
    }),
    {},
  )
  if (checked.kind === 'faults') throw new Error(JSON.stringify(checked.faults))
  return checked.config
}

const found = async (changes: Parameters<typeof configOf>[0] = {}) =>
  (await upstreamIssues(await configOf(changes))).map(({ service, kind, text }) => [service, kind, text])

describe('checks of upstreams', () => {
  test('a WordPress that fits gives no issue, with three requests', async () => {
    serve({ '/wp-json/': { content: index(publicUrl) }, '/': { content: 'welcome' } })
    expect(await found()).toEqual([])
    expect(origin.received.map(({ method, target }) => `${method} ${target}`).sort()).toEqual([
      'GET /',
      'GET /wp-json/',
      'GET /wp-json/wp/v2/posts?per_page=1&_fields=id',
    ])
    for (const { headers } of origin.received) {
      expect(headers['host']).toBe('shop.example')
      expect(headers['x-forwarded-proto']).toBe('http')
    }
  })

  describe('a list that a rule caches', () => {
    const list = '/wp-json/wp/v2/posts?per_page=1&_fields=id'
    const rule = { match: 'GET /**', ttl: '1m' }
    const served = (headers: Record<string, string>) =>
      serve({ '/wp-json/': { content: index(publicUrl) }, [list]: { content: '[]', headers } })

    test.each<[string, Record<string, string>, string]>([
      [
        'sets a cookie',
        { 'Set-Cookie': 'lp_session_guest=x; path=/' },
        'it sets a cookie (lp_session_guest)',
      ],
      ['is no-store', { 'Cache-Control': 'no-cache, no-store' }, '(Cache-Control: no-cache, no-store)'],
      ['is private', { 'Cache-Control': 'private' }, 'set override: true in the rule'],
      ['varies with everything', { Vary: '*' }, '(Vary: *)'],
      ['carries a token', { 'Cart-Token': 'x' }, 'list it in cache.harmlessFields'],
    ])('and that %s is named, with the cause', async (_what, headers, cause) => {
      served({ ...json, ...headers })
      expect(await found({ rule, pages: false })).toEqual([
        ['wordpress', 'not-stored', expect.stringContaining(cause)],
      ])
    })

    test('and that is stored is no issue, nor is one that an override stores', async () => {
      served(json)
      expect(await found({ rule, pages: false })).toEqual([])
      served({ ...json, 'Cache-Control': 'no-store' })
      expect(await found({ rule: { ...rule, override: true }, pages: false })).toEqual([])
    })

    test('by no rule is not asked for', async () => {
      served({ ...json, 'Set-Cookie': 'a=b' })
      expect(await found({ rule: { match: 'GET /wp/v2/pages', ttl: '1m' }, pages: false })).toEqual([])
    })
  })

  test('a front page that redirects to itself because of host: target', async () => {
    serve({
      '/wp-json/': { content: index(publicUrl) },
      '/': { status: 301, headers: { Location: `${publicUrl}/` } },
    })
    expect(await found({ host: 'target' })).toEqual([
      ['pages', 'redirect-loop', expect.stringContaining('Set upstream.host: preserve')],
    ])
    expect(await found({ host: 'preserve' })).toEqual([
      ['pages', 'redirect-loop', expect.stringContaining('X-Forwarded-Proto')],
    ])
    expect(await found({ host: 'target', pages: false })).toEqual([])
  })

  test('a front page that redirects elsewhere is no loop', async () => {
    serve({
      '/wp-json/': { content: index(publicUrl) },
      '/': { status: 302, headers: { Location: '/de/' } },
    })
    expect(await found()).toEqual([])
  })

  test('a home that bypasses the gateway', async () => {
    serve({ '/wp-json/': { content: index('http://10.0.0.9:8000') }, '/': {} })
    expect(await found()).toEqual([
      [
        'wordpress',
        'home-elsewhere',
        expect.stringContaining(`Set WP_HOME and WP_SITEURL to ${publicUrl} in wp-config.php`),
      ],
    ])
  })

  test.each([
    [publicUrl, '/wp-json'],
    [`${publicUrl}/`, '/index.php/wp-json'],
    [`${publicUrl}/blog`, '/blog/wp-json'],
    ['HTTP://SHOP.example:80', '/api'],
  ])('a home of %s fits a mount of %s', async (home, mount) => {
    serve({ '/wp-json/': { content: index(home) }, '/': {} })
    expect(await found({ mount })).toEqual([])
  })

  test.each([
    ['/wp-json', '/index.php/wp-json/', 'wrong-base-path', 'set upstream.basePath to /index.php/wp-json,'],
    ['/api', '/wp-json/', 'wrong-base-path', 'set upstream.basePath to /wp-json,'],
    ['/blog/wp-json', '/blog/index.php/wp-json/', 'wrong-base-path', 'to /blog/index.php/wp-json,'],
    ['/wp-json', '/?rest_route=/', 'plain-permalinks', 'Choose another structure in Settings, Permalinks'],
    ['/', '/wp-json/', 'wrong-base-path', 'set upstream.basePath to /wp-json,'],
  ])('basePath %s where the index is at %s', async (basePath, where, kind, text) => {
    serve({ [where]: { content: index(publicUrl) }, '/': { content: '<html>' } })
    const issues = await found({ basePath })
    expect(issues).toEqual([['wordpress', kind, expect.stringContaining(text)]])
    expect(origin.received.length).toBeLessThanOrEqual(8)
  })

  test('of a WordPress that takes ?rest_route= on every path, the permalinks are tried first', async () => {
    serve({
      '/api/?rest_route=/': { content: index(publicUrl) },
      '/?rest_route=/': { content: index(publicUrl) },
      '/index.php/wp-json/': { content: index(publicUrl) },
    })
    expect(await found({ basePath: '/api' })).toEqual([
      ['wordpress', 'wrong-base-path', expect.stringContaining('to /index.php/wp-json,')],
    ])
  })

  test.each<[string, Reply, string, string]>([
    ['a page', { content: '<html>' }, 'no-wordpress', 'is not a WordPress'],
    ['JSON without namespaces', { content: '{"routes":{}}' }, 'no-wordpress', 'is not a WordPress'],
    ['maintenance', { status: 503, content: '<p>Briefly unavailable' }, 'maintenance', '.maintenance'],
    [
      'a security plugin',
      { status: 401, content: '{"code":"rest_cannot_access"}' },
      'index-refused',
      '401 rest_cannot_access',
    ],
    ['a login in front', { status: 403, content: 'no' }, 'index-refused', '(GET /wp-json/: 403)'],
    [
      'a redirect',
      { status: 301, headers: { Location: 'https://shop.example/wp-json/' } },
      'index-redirected',
      'to https://shop.example/wp-json/, but Trellis does not follow redirects',
    ],
  ])('%s at the root of the interface', async (_, response, kind, text) => {
    serve({ '/wp-json/': response, '/': {} })
    expect(await found()).toEqual([['wordpress', kind, expect.stringContaining(text)]])
  })

  test('an upstream that does not answer', async () => {
    expect(await found({ targets: ['http://127.0.0.1:9'] })).toEqual([
      ['wordpress', 'no-answer', expect.stringContaining('does not respond (ECONNREFUSED)')],
    ])
  })

  test('an upstream that takes the connection and does not answer', async () => {
    origin.script = () => {}
    expect(await found()).toEqual([
      ['wordpress', 'no-answer', expect.stringContaining('does not respond (no response in time)')],
    ])
  })
})

test.each([1, 2])(
  'the start of %i processes logs each finding once, and is ready all the same',
  async (workers) => {
    serve({
      '/wp-json/': { content: index('http://elsewhere.example') },
      '/': { status: 301, headers: { Location: '/' } },
    })
    const targets = [origin.origin]
    const gateway = await startGatewayProcess({
      workers,
      services: {
        wordpress: {
          contract: 'site',
          names: 'same',
          mount: '/wp-json',
          upstream: { targets, basePath: '/wp-json' },
        },
        pages: { contract: 'open', mount: '/', upstream: { targets } },
      },
    })
    onTestFinished(async () => {
      await gateway.stop()
    })
    const logged = (): string[] =>
      gateway.program
        .output()
        .split('\n')
        .filter((line) => line.includes('upstream-finding'))
        .map((line) => JSON.parse(line).finding)
        .sort()
    await expect.poll(logged).toEqual(['home-elsewhere', 'redirect-loop'])
  },
)

describe('check --upstreams', () => {
  const checked = async (services: object): Promise<Config> => {
    const result = await checkConfig(stringify({ publicUrl, services }), {})
    if (result.kind === 'faults') throw new Error(JSON.stringify(result.faults))
    return result.config
  }
  const kinds = async (services: object) =>
    (await allUpstreamIssues(await checked(services))).map(({ service, kind }) => `${service} ${kind}`)
  const site = (more: object = {}) => ({
    contract: 'site',
    names: 'same',
    mount: '/wp-json',
    upstream: { targets: [origin.origin], basePath: '/wp-json', host: 'preserve' },
    ...more,
  })
  const dead = 'http://127.0.0.1:1'

  test('asks every server of every service', async () => {
    serve({ '/v1/health': { status: 404 } })
    const health = { path: '/health' }
    expect(
      await kinds({
        one: { contract: 'open', mount: '/one', upstream: { targets: ['http://nosuchhost.invalid'] } },
        two: {
          contract: 'open',
          mount: '/two',
          upstream: { targets: [origin.origin, dead], basePath: '/v1', health },
        },
      }),
    ).toEqual(['one unreachable', 'two unhealthy', 'two unreachable'])
    expect(origin.received.map(({ target }) => target)).toEqual(['/v1/health'])
  })

  test.each([
    ['of an unknown authority', 'good', 'https', 'upstream.tls.ca'],
    ['that has expired', 'expired', 'https', 'renew it'],
    ['for another name', 'wrong-name', 'https', 'upstream.tls.serverName'],
    ['that nobody asks for', 'good', 'http', 'https://'],
  ])('says what to do about a certificate %s', async (_, name, scheme, remedy) => {
    const server = await startOrigin(undefined, { tls: keyPair(name) })
    onTestFinished(() => server.close())
    const targets = [server.origin.replace('https', scheme)]
    const tls = name === 'good' ? {} : { tls: { ca: pem('ca.pem') } }
    const [issue] = await allUpstreamIssues(
      await checked({ api: { contract: 'open', mount: '/', upstream: { targets, ...tls } } }),
    )
    expect(issue?.text).toContain(remedy)
    expect(issue?.text).not.toContain('start it')
  })

  test('says what to do about https where the server speaks http', async () => {
    const server = createServer().listen(0, '127.0.0.1')
    onTestFinished(() => void server.close())
    await once(server, 'listening')
    const targets = [`https://127.0.0.1:${(server.address() as AddressInfo).port}`]
    const [issue] = await allUpstreamIssues(
      await checked({ api: { contract: 'open', mount: '/', upstream: { targets } } }),
    )
    expect(issue?.text).toContain('does not speak TLS (ERR_SSL_WRONG_VERSION_NUMBER): write http://')
  })

  test('finds that the site announces another root of its interface', async () => {
    const content = JSON.stringify({
      ...JSON.parse(index(publicUrl)),
      routes: { '/': { _links: { self: [{ href: `${publicUrl}/index.php/wp-json/` }] } } },
    })
    serve({ '/wp-json/': { content } })
    expect(await kinds({ site: site() })).toEqual(['site root-elsewhere'])
    serve({ '/wp-json/': { content: content.replace('index.php/', '') } })
    expect(await kinds({ site: site() })).toEqual([])
  })

  test.each<[string, Reply, readonly string[]]>([
    ['the front page in its place', { content: '<html>' }, ['site no-companion']],
    ['no page', { status: 404 }, ['site no-companion']],
    ['a refusal', { status: 401, content: '' }, ['site wrong-token']],
    ['a log', { content: '{"rows":[]}' }, []],
  ])('asks the companion once: %s', async (_what, response, expected) => {
    const polls: string[] = []
    origin.script = ({ target, headers }, wire) => {
      if (!target.startsWith('/?trellis-changes='))
        return wire.respond({ headers: json, content: index(publicUrl) })
      polls.push(headers['trellis-signature'] ?? '')
      wire.respond({ status: 200, ...response })
    }
    expect(
      await kinds({ site: site({ changes: { token: 'a-token-of-at-least-32-characters-x' } }) }),
    ).toEqual(expected)
    expect(polls).toEqual([expect.stringContaining('hmac=')])
  })

  test('notes the arguments that the site announces otherwise, and the routes that it cannot read', async () => {
    const args = { per_page: { type: 'integer', default: 24, minimum: 1, maximum: 1000 } }
    const posts = { namespace: 'wp/v2', endpoints: [{ methods: ['GET'], args }] }
    const routes = { '/wp/v2/posts': posts, '/shop/(.*)': posts }
    serve({ '/wp-json/': { content: JSON.stringify({ ...JSON.parse(index(publicUrl)), routes }) } })
    const texts = (await upstreamHints(await checked({ site: site() }))).map(({ text }) => text)
    expect(texts).toEqual([
      expect.stringContaining('per_page of GET /wp/v2/posts'),
      expect.stringContaining('pattern-unreadable /shop/(.*)'),
    ])
  })
})

describe('rows that are learned from an upstream', () => {
  test('are listed as learned, and explained', async () => {
    serve({ '/wp-json/': { content: index(publicUrl) } })
    const config = await configOf({})
    const { lines, unread } = await describeLearnedRoutes(config)
    expect(unread).toEqual([])
    expect(lines.filter(({ source }) => source === 'learned')).toEqual([
      {
        method: 'GET',
        path: '/wp-json/shop/v1/carts',
        hosts: [],
        service: 'wordpress',
        cached: '-',
        batchable: false,
        source: 'learned',
      },
    ])
    const asked = { method: 'GET', target: '/wp-json/shop/v1/carts', headers: {} }
    expect(await explainLearned(config, asked)).toMatchObject({
      row: '/shop/v1/carts',
      rowFrom: 'learned from the index of the upstream',
    })
  })

  test('are none where the index cannot be read, which is said', async () => {
    serve({})
    const { unread } = await describeLearnedRoutes(await configOf({}))
    expect(unread).toEqual([{ service: 'wordpress', reason: expect.stringContaining('basePath') }])
  })
})
