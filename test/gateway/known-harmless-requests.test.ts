import { gzipSync } from 'node:zlib'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { siteService } from '../support/gateway.ts'
import type { Script } from '../support/origin.ts'
import { type StoredRead, startStoredRead } from '../support/stored-read.ts'

let site: StoredRead
const json = { 'Content-Type': 'application/json' }
const form = { 'Content-Type': 'application/x-www-form-urlencoded' }
const testCookie = 'wordpress_test_cookie=WP%20Cookie%20check; path=/'

const script: Script = (request, wire) => {
  const body = request.content.toString()
  const status = /\bstatus=(\d+)/.exec(body)?.[1]
  const session = body.includes('pwd=right')
    ? 'wordpress_logged_in_x=y; path=/'
    : body.includes('pwd=joined')
      ? `${testCookie}, wordpress_logged_in_x=y; path=/`
      : testCookie
  wire.respond({
    status: status === undefined ? 200 : Number(status),
    headers: request.target.includes('wp-login') ? { ...json, 'Set-Cookie': session } : json,
    content: '{"id":1,"type":"post"}',
  })
}

beforeAll(async () => {
  site = await startStoredRead('/blog/wp-json/wp/v2/posts/1', script, (origin) => {
    const upstream = { targets: [origin] }
    return {
      wordpress: siteService(origin, {
        mount: '/blog/wp-json',
        names: 'same',
        upstream: { ...upstream, basePath: '/blog/wp-json' },
        cache: { rules: [{ match: 'GET /wp/v2/**', ttl: '1h' }] },
      }),
      unnamed: { contract: 'open', mount: '/unnamed', upstream },
      pages: {
        contract: 'open',
        mount: '/',
        upstream,
        cache: { harmlessWrites: ['heartbeat', 'failed-login'] },
      },
    }
  })
})
afterAll(() => site?.close())
beforeEach(() => site.store())

type HeaderValues = Readonly<Record<string, string>>
const post = (path: string, body: string | Uint8Array<ArrayBuffer>, headers: HeaderValues = form) =>
  site.post(path, body, headers)

const isKept = async (status: string): Promise<void> => {
  expect(status).toBe('trellis; fwd=method; detail=table')
  expect(await site.isStored()).toBe(true)
}
const isDropped = async (status: string): Promise<void> => {
  expect(status).toBe('trellis; fwd=method')
  expect(await site.isStored()).toBe(false)
}

const ajax = '/blog/wp-admin/admin-ajax.php'
const beat = 'interval=60&_nonce=0123456789&action=heartbeat&screen_id=post&has_focus=true'
const lock =
  'data%5Bwp-refresh-post-lock%5D%5Bpost_id%5D=5&data%5Bwp-refresh-post-lock%5D%5Block%5D=1700000000%3A1'

describe('a heartbeat', () => {
  test.each([
    ['alone', beat],
    ['with the lock of a post', `${lock}&${beat}`],
    [
      'of a list of posts',
      `data%5Bwp-check-locked-posts%5D%5B%5D=post-1&data%5Bwp-check-locked-posts%5D%5B%5D=post-2&${beat}`,
    ],
    ['that renews nonces', `data%5Bwp-refresh-post-nonces%5D%5Bpost_id%5D=5&${beat}`],
  ])('%s drops nothing', async (_, body) => {
    await isKept(await post(ajax, body))
    expect(site.origin.received.at(-1)?.content.toString()).toBe(body)
  })

  test('is counted', async () => {
    const count = () => site.gateway.metric('trellis_cache_writes_total', 'service="pages",taken="table"')
    const before = (await count()) ?? 0
    await post(ajax, beat)
    expect(await count()).toBe(before + 1)
  })

  test.each([
    ['that saves', `data%5Bwp_autosave%5D%5Bpost_id%5D=5&${beat}`],
    ['that saves, in brackets', `data[wp_autosave][post_id]=5&${beat}`],
    ['that saves, half encoded', `d%61ta%5Bwp_autosave%5D=5&${beat}`],
    ['that saves, in a spelling of PHP', `data%5Bwp_autosave%5D=5&.data%5Bx%5D=1&${beat}`],
    ['with a folded name', `data%5Bwp-refresh-post-lock%5D%5Bpost_id%5D%5Bx%5D%5By%5D=5&${beat}`],
    ['with data of a plugin', `data%5Bacme_last_seen%5D=1&${beat}`],
    ['with all data in one', `data=1&${beat}`],
    ['with a parameter of nobody', `acme=1&${beat}`],
    ['with a route', `rest_route=%2Fwp%2Fv2%2Fposts%2F5&${beat}`],
    ['with another action behind', `${beat}&action=acme`],
    ['with another action in front', `action=acme&${beat}`],
    ['with a list of actions', `${beat}&action%5B%5D=acme`],
    ['with an action in capitals', `${beat}&Action=acme`],
    ['with an action in a spelling of PHP', `${beat}&+action=acme`],
    ['with an action behind a semicolon', `${beat};action=acme`],
    ['with an action behind a NUL', `${beat}&action%00=acme`],
    ['with a broken escape', `${beat}&%zz=1`],
    ['with an empty parameter', `${beat}&`],
    ['with two equals signs', `${beat}&screen_id=a=b`],
    ['without an action', 'interval=60&_nonce=0123456789'],
    ['of another action', 'action=acme_heartbeat'],
    ['that is too long to read', `${beat}&screen_id=${'x'.repeat(20_000)}`],
    ['that is empty', ''],
  ])('%s is a write', async (_, body) => isDropped(await post(ajax, body)))

  test.each([
    ['with a query', `${ajax}?action=acme`],
    ['with an empty parameter in the query', `${ajax}?a`],
    ['at another path', '/blog/wp-admin/admin-post.php'],
    ['of another site', '/wp-admin/admin-ajax.php'],
    ['below a script', '/blog/index.php/wp-admin/admin-ajax.php'],
    ['of a service that does not name it', '/unnamed/blog/wp-admin/admin-ajax.php'],
  ])('%s is a write', async (_, path) => isDropped(await post(path, beat)))

  test.each<[string, string | Uint8Array<ArrayBuffer>, HeaderValues]>([
    ['as JSON', '{"action":"heartbeat"}', json],
    [
      'as several parts',
      `--a\r\nContent-Disposition: form-data; name="action"\r\n\r\nheartbeat\r\n--a--`,
      { 'Content-Type': 'multipart/form-data; boundary=a' },
    ],
    ['of two types', beat, { 'Content-Type': 'application/x-www-form-urlencoded, text/plain' }],
    ['without a type', beat, { 'Content-Type': '' }],
    ['in a content coding', gzipSync(beat), { ...form, 'Content-Encoding': 'gzip' }],
  ])('%s is a write', async (_, body, headers) => isDropped(await post(ajax, body, headers)))

  test('whose length nobody declares is a write', async () => {
    const body = new ReadableStream({
      start: (controller) => {
        controller.enqueue(new TextEncoder().encode(beat))
        controller.close()
      },
    })
    await isDropped(
      await site.statusOf(ajax, { method: 'POST', headers: form, body, duplex: 'half' } as RequestInit),
    )
  })

  test('by another method is a write', async () =>
    isDropped(await site.statusOf(ajax, { method: 'PUT', headers: form, body: beat })))
})

describe('a login', () => {
  const login = '/blog/wp-login.php'
  test('that is refused drops nothing', async () =>
    isKept(
      await post(
        login,
        'log=admin&pwd=wrong&wp-submit=Log+In&redirect_to=%2F&testcookie=1&rememberme=forever',
      ),
    ))

  test.each([
    ['that succeeds', 'log=admin&pwd=right'],
    ['that succeeds, with its cookies in one line', 'log=admin&pwd=joined'],
    ['with another answer', 'log=admin&pwd=status=302'],
    ['that fails in WordPress', 'log=admin&pwd=wrong&redirect_to=status=500'],
    ['in a frame', 'log=admin&pwd=wrong&interim-login=1'],
    ['with another action', 'log=admin&pwd=wrong&action=register'],
    ['without a name', 'pwd=wrong'],
    ['with a code of a plugin', 'log=admin&pwd=wrong&authcode=1'],
  ])('%s is a write', async (_, body) => isDropped(await post(login, body)))

  test('with a query is a write', async () =>
    isDropped(await post(`${login}?action=lostpassword`, 'log=a&pwd=b')))
  test('in a service that does not name it is a write', async () =>
    isDropped(await post(`/unnamed${login}`, 'log=a&pwd=b')))
})

describe('a GraphQL document', () => {
  const graphql = '/blog/graphql'
  const send = (body: unknown, path = graphql, headers: HeaderValues = json) =>
    post(path, typeof body === 'string' ? body : JSON.stringify(body), headers)

  test.each([
    ['', { query: '{ posts { id } }' }],
    ['with variables', { query: 'query A($x: ID!) { post(id: $x) { id } }', variables: { x: 'mutation' } }],
    ['with several operations', { query: 'query A { a } query B { b }', operationName: 'B' }],
    ['with fragments', { query: 'fragment F on Post { id } query { posts { ...F } }', operationName: null }],
    [
      'with extensions of a client',
      { query: '{ a }', extensions: { clientLibrary: { name: '@apollo/client' } } },
    ],
    ['with empty extensions', { query: '{ a }', extensions: {} }],
    [
      'with the word in a comment, an alias and a string',
      { query: '{ mutation: a(b: "mutation {") } # mutation' },
    ],
    ['as a list', [{ query: '{ a }' }, { query: 'query B { b }' }]],
    ['about the schema', { query: '{ __schema { mutationType { name } } }' }],
  ])('of queries only %s drops nothing, without a setting', async (_, body) => {
    await isKept(await send(body))
    await isKept(await send(body, `/unnamed${graphql}`))
  })

  test.each<[string, unknown]>([
    ['with a mutation', { query: 'mutation { a }' }],
    ['with a mutation under another name', { query: 'query A { a } mutation B { b }', operationName: 'A' }],
    ['with a mutation behind a comment', { query: '# a\nquery A { a }\nmutation B { b }' }],
    ['with a mutation behind a string', { query: 'query A { a(b: "}") } mutation { b }' }],
    ['with a mutation behind a block string', { query: 'query A { a(b: """\\""" }""") } mutation { b }' }],
    ['with a mutation behind commas', { query: ',,{ a },mutation,{ b }' }],
    ['with a mutation that is escaped in JSON', '{"query":"{ a } \\u006dutation { b }"}'],
    ['that comes twice', '{"query":"{ a }","query":"mutation { b }"}'],
    ['with a subscription', { query: 'subscription { a }' }],
    ['as a list', [{ query: '{ a }' }, { query: 'mutation { b }' }]],
    ['that is stored', { queryId: 'a' }],
    ['that is stored, with a text', { queryId: 'a', query: '{ a }' }],
    ['that is persisted', { query: '{ a }', extensions: { persistedQuery: { sha256Hash: 'a' } } }],
    ['behind a comment that may end elsewhere', { query: '{ a } # \u2028 mutation { b }' }],
    ['with an odd member', { query: '{ a }', 'query ': 'mutation { b }' }],
    ['that is no text', { query: ['{ a }'] }],
    ['that is empty', { query: '' }],
    ['that begins with something else', { query: 'type A { b: C }' }],
    ['that is no JSON', '{ a }'],
    ['behind a byte order mark', '\uFEFF{"query":"{ a }"}'],
    ['that is too long to read', { query: `{ a } #${'x'.repeat(70_000)}` }],
  ])('%s is a write', async (_, body) => isDropped(await send(body)))

  test.each([
    ['as a form', 'query=%7Ba%7D', form],
    ['as text', '{ a }', { 'Content-Type': 'application/graphql' }],
    [
      'with its operations in several parts',
      '--a\r\nContent-Disposition: form-data; name="operations"\r\n\r\n{"query":"mutation { b }"}\r\n--a--',
      { 'Content-Type': 'multipart/form-data; boundary=a' },
    ],
    ['with a type for two', '{"query":"{ a }"}', { 'Content-Type': 'application/json, multipart/form-data' }],
  ] as const)('%s is a write', async (_, body, headers) => isDropped(await send(body, graphql, headers)))

  test('that is no UTF-8 is a write', async () =>
    isDropped(await post(graphql, Buffer.from('{"query":"{ a(b: \\"\xff\\") }"}', 'latin1'), json)))
  test('with a query in the URL is a write', async () =>
    isDropped(await send({ query: '{ a }' }, `${graphql}?queryId=a`)))
  test('at another path is a write', async () => isDropped(await send({ query: '{ a }' }, '/blog/graphql/x')))
})

describe('explain names what decides', () => {
  const explained = async (target: string): Promise<Readonly<Record<string, unknown>>> => {
    const query = new URLSearchParams({ method: 'POST', url: target })
    return (await fetch(`${site.gateway.adminAddress}/explain?${query}`)).json() as never
  }
  test.each([
    [ajax, /^table: heartbeat \(.*since WordPress 3\.6\), if its content fits$/],
    ['/blog/wp-login.php', /^table: failed-login .* if its content and the answer fit$/],
    ['/unnamed/blog/graphql', /^table: GraphQL query /],
  ])('%s', async (target, text) => {
    expect(await explained(target)).toMatchObject({
      cache: 'write: invalidates',
      invalidatesNothing: expect.stringMatching(text),
    })
  })
  test('a write of which nothing is known', async () =>
    expect(await explained('/blog/x')).not.toHaveProperty('invalidatesNothing'))
})
