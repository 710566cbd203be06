import { fileURLToPath } from 'node:url'
import { beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { closeAfterAll } from '../support/close.ts'
import { type Companion, postChange, startCompanion } from '../support/companion.ts'
import { siteService, startTestGateway, type TestGateway } from '../support/gateway.ts'
import { type Origin, startOrigin } from '../support/origin.ts'

const site = '/index.php/site-json/site/v2'
const shopToken = 'token-of-the-shop-service'

let companion: Companion
let shop: Origin
let gateway: TestGateway

beforeAll(async () => {
  companion = await startCompanion()
  shop = await startOrigin((request, wire) =>
    wire.respond({
      headers: {
        'Content-Type': 'text/plain',
        'Cache-Control': 'max-age=600',
        'Surrogate-Key': `all-of-it key-${request.target.replaceAll(/\W/g, '')}`,
        'Trellis-Tags': 'v1;n=0;blogs=1;complete',
        'Trellis-Max-Age': '60',
      },
      content: request.target,
    }),
  )
  gateway = await startTestGateway({
    services: {
      blog: siteService(companion.origin.origin, {
        cache: { rules: [{ match: 'GET /site/v2/**', ttl: '1h' }] },
        // Only pushes: a poll would drop what a refused push names.
        changes: { token: companion.token, poll: '0s' },
      }),
      shop: {
        contract: 'open',
        mount: '/shop',
        upstream: { targets: [shop.origin] },
        cache: { profile: 'rfc-shared-cache' },
        changes: { token: shopToken },
      },
      stores: {
        contract: 'openapi',
        mount: '/stores',
        document: fileURLToPath(new URL('./openapi/structural.yaml', import.meta.url)),
        upstream: { targets: [shop.origin] },
        cache: { rules: [{ match: 'GET /**', ttl: '1h' }] },
        changes: { token: 'token-of-the-stores-service' },
      },
      garden: {
        contract: 'plants',
        mount: '/garden',
        upstream: { targets: [shop.origin] },
        cache: { rules: [{ match: 'GET /**', ttl: '1h', scope: 'credential' }] },
        changes: { token: 'token-of-the-garden-service' },
      },
    },
  })
})
closeAfterAll(() => [gateway, shop, companion])

const read = async (path: string): Promise<string> => {
  const headers = path.startsWith('/garden') ? { Authorization: 'Bearer one' } : {}
  const response = await fetch(gateway.publicAddress + path, { headers })
  await response.text()
  return response.headers.get('cache-status') ?? ''
}

/** Stores the response, so that a later read of it is a hit. */
const store = async (...paths: readonly string[]): Promise<void> => {
  for (const path of paths) await read(path)
  for (const path of paths) expect(await read(path)).toContain('hit')
}

const post = async (body: string, headers: Readonly<Record<string, string>>): Promise<[number, unknown]> => {
  const response = await fetch(`${gateway.adminAddress}/changes`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', ...headers },
    body,
  })
  return [response.status, await response.json()]
}

const pushBody = (more: object = {}): string =>
  JSON.stringify({
    incarnation: companion.incarnation,
    site: 1,
    sequence: 7,
    previous: 6,
    fingerprint: 'f1',
    changes: [postChange(1)],
    overflow: false,
    ...more,
  })

const signed = (body: string, target = '/changes') => ({
  'Trellis-Signature': companion.sign('POST', target, body),
})

describe('a push', () => {
  beforeEach(() => store(`${site}/posts/1`, `${site}/posts/3`, '/shop/a'))

  const seconds = (): number => Math.floor(Date.now() / 1000)

  test.each<[string, (body: string) => Readonly<Record<string, string>>, string]>([
    ['without a signature', () => ({}), 'no-credential'],
    ['with a signature of another form', () => ({ 'Trellis-Signature': 'x' }), 'malformed'],
    ['that was signed for another body', () => signed(pushBody({ sequence: 8 })), 'wrong-hmac'],
    ['that was signed for another path', (body) => signed(body, '/changes?x=1'), 'wrong-hmac'],
    [
      'that was signed for another method',
      (body) => ({ 'Trellis-Signature': companion.sign('GET', '/changes', body) }),
      'wrong-hmac',
    ],
    [
      'that was signed too long ago',
      (body) => ({ 'Trellis-Signature': companion.sign('POST', '/changes', body, seconds() - 301) }),
      'expired',
    ],
    [
      'that was signed for a later time',
      (body) => ({ 'Trellis-Signature': companion.sign('POST', '/changes', body, seconds() + 302) }),
      'expired',
    ],
    [
      'of an unknown key',
      (body) => ({
        'Trellis-Signature': companion.sign('POST', '/changes', body).replace(/key=.{4}/, 'key=0000'),
      }),
      'unknown-key',
    ],
    [
      'with the token of the service as a bearer of another',
      () => ({ Authorization: 'Bearer x' }),
      'unknown-key',
    ],
  ])('%s is refused, and drops nothing', async (_, headers, code) => {
    const body = pushBody()
    const [status, problem] = await post(body, headers(body))
    expect([status, problem]).toMatchObject([401, { code }])
    expect(await read(`${site}/posts/1`)).toContain('hit')
  })

  test('drops what it names, once', async () => {
    const body = pushBody()
    const copied = signed(body)
    expect(await post(body, copied)).toEqual([200, { sequence: 7, dropped: 1 }])
    expect(await read(`${site}/posts/1`)).toContain('fwd=uri-miss')
    expect(await read(`${site}/posts/3`)).toContain('hit')
    expect(await post(body, copied)).toEqual([200, { sequence: 7, dropped: 0 }])
    expect(await read(`${site}/posts/1`)).toContain('hit')
    const more = pushBody({ changes: [postChange(3)] })
    expect(await post(more, signed(more))).toEqual([200, { sequence: 7, dropped: 1 }])
  })

  test.each<[string, object]>([
    ['a member that is not known', { token: 'x' }],
    ['a change of an unknown kind', { changes: [{ kind: 'menu', id: 1 }] }],
    ['a change with an unknown member', { changes: [{ ...postChange(1), author: 1 }] }],
    ['an id that is none', { changes: [{ ...postChange(1), id: 'x' }] }],
    ['a sequence that is none', { sequence: -1 }],
  ])('with %s is refused, and everything of the service is dropped', async (_, more) => {
    const body = pushBody(more)
    expect(await post(body, signed(body))).toMatchObject([400, { code: 'unreadable' }])
    expect(await read(`${site}/posts/3`)).not.toContain('hit')
    expect(await read('/shop/a')).toContain('hit')
  })

  test('with more changes than it can name drops everything of its service and nothing of another', async () => {
    const body = pushBody({ sequence: 9, overflow: true, changes: [] })
    expect(await post(body, signed(body))).toMatchObject([200, { sequence: 9 }])
    expect(await read(`${site}/posts/3`)).not.toContain('hit')
    expect(await read('/shop/a')).toContain('hit')
  })

  test('of more than 256 KiB is refused before it is verified', async () => {
    const body = pushBody({ fingerprint: 'x'.repeat(300 * 1024) })
    expect(await post(body, signed(body))).toMatchObject([413, { code: 'invalid-request' }])
    expect(await read(`${site}/posts/3`)).toContain('hit')
  })

  test('that is no JSON is refused by its media type', async () => {
    const init = { method: 'POST', headers: signed('x'), body: 'x' }
    const response = await fetch(`${gateway.adminAddress}/changes`, init)
    await response.text()
    expect(response.status).toBe(415)
  })
})

describe('the plain form', () => {
  beforeEach(() => store(`${site}/posts/1`, '/shop/a', '/shop/a/b', '/shop/c'))
  const bearer = { Authorization: `Bearer ${shopToken}` }
  const tell = (change: object, headers: Readonly<Record<string, string>> = bearer) =>
    post(JSON.stringify(change), headers)
  const hits = async (...paths: readonly string[]): Promise<readonly boolean[]> => {
    const statuses: boolean[] = []
    for (const path of paths) statuses.push((await read(path)).includes('hit'))
    return statuses
  }

  test.each<[string, object, readonly boolean[]]>([
    ['a tag of the upstream', { tags: ['key-a'] }, [false, true, true]],
    ['a URL', { urls: ['/shop/c'] }, [true, true, false]],
    ['a prefix', { prefixes: ['/shop/a'] }, [false, false, true]],
    ['a prefix in another spelling', { prefixes: ['/sh%6Fp/%61'] }, [false, false, true]],
    [
      'what is spelled as a hidden secret, beside another one',
      { tags: ['key-a', 'a[redacted]'] },
      [false, true, true],
    ],
    ['several at once', { tags: ['key-c'], urls: ['/shop/a/b'] }, [true, false, false]],
    ['everything', { all: true }, [false, false, false]],
    ['everything of a named service', { service: 'shop', all: true }, [false, false, false]],
  ])('drops what is named by %s', async (_, change, left) => {
    const [status, response] = await tell({ ...change, sequence: 4, incarnation: 'any' })
    expect([status, response]).toEqual([200, { sequence: 4, dropped: left.filter((hit) => !hit).length }])
    expect(await hits('/shop/a', '/shop/a/b', '/shop/c', `${site}/posts/1`)).toEqual([...left, true])
  })

  test.each<[string, object, number]>([
    ['names nothing', {}, 400],
    ['has an unknown member', { tag: ['a'], all: true }, 400],
    ['names another service', { service: 'blog', all: true }, 400],
    ['names a URL of another service', { urls: [`${site}/posts/1`] }, 400],
    ['names no text', { urls: [1] }, 400],
    ['names a prefix that is no path', { prefixes: ['https://example.org/shop'] }, 400],
    ['names a prefix that no path has', { prefixes: ['/shop/%'] }, 400],
  ])('is refused when it %s', async (_, change, status) => {
    expect((await tell(change))[0]).toBe(status)
    expect(await hits(`${site}/posts/1`, '/shop/c')).toEqual([true, true])
  })

  test.each([
    ['an OpenAPI document', 'stores', ['/stores/shops/1', '/stores/shops/2']],
    ['the contract of plants', 'garden', ['/garden/plants?limit=1', '/garden/plants?limit=2']],
  ])('drops what is named of a service with %s', async (_, service, paths) => {
    await store(...paths)
    const authorization = { Authorization: `Bearer token-of-the-${service}-service` }
    const [first = ''] = paths
    const key = `key-${first.slice(service.length + 1).replaceAll(/\W/g, '')}`
    expect(await tell({ tags: [key] }, authorization)).toEqual([200, { dropped: 1 }])
    expect(await hits(...paths, '/shop/a')).toEqual([false, true, true])
    expect(await tell({ urls: [first] }, authorization)).toEqual([200, { dropped: 1 }])
    expect(await hits(...paths, '/shop/a')).toEqual([false, true, true])
    expect(await tell({ all: true }, authorization)).toEqual([200, { dropped: 2 }])
    expect(await hits(...paths, '/shop/a')).toEqual([false, false, true])
  })

  test('with the token of one service drops nothing of another', async () => {
    const [status] = await tell(
      { service: 'shop', all: true },
      { Authorization: `Bearer ${companion.token}` },
    )
    expect(status).toBe(400)
    expect(await hits('/shop/a')).toEqual([true])
  })

  test('the token of a service opens nothing else on the admin side', async () => {
    const guarded = await startTestGateway({
      admin: { port: 0, token: 'token-of-the-operator-1' },
      services: {
        shop: {
          contract: 'open',
          mount: '/shop',
          upstream: { targets: [shop.origin] },
          changes: { token: shopToken },
        },
      },
    })
    try {
      const ask = async (path: string, method: string, token: string): Promise<number> => {
        const response = await fetch(guarded.adminAddress + path, {
          method,
          headers: { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' },
          ...(method === 'GET' ? {} : { body: '{"all":true}' }),
        })
        await response.text()
        return response.status
      }
      expect(await ask('/changes', 'POST', shopToken)).toBe(200)
      expect(await ask('/cache/purge', 'POST', shopToken)).toBe(401)
      expect(await ask('/config', 'GET', shopToken)).toBe(401)
      expect(await ask('/changes', 'POST', 'token-of-the-operator-1')).toBe(401)
    } finally {
      await guarded.close()
    }
  })
})

test('no client gets Trellis-Tags or Trellis-Max-Age, whatever the service and the method', async () => {
  for (const [method, path] of [
    ['GET', '/shop/hidden'],
    ['GET', '/shop/hidden'],
    ['HEAD', '/shop/other'],
    ['POST', '/shop/other'],
    ['OPTIONS', '/shop/other'],
  ]) {
    const response = await fetch(gateway.publicAddress + path, { method: method ?? '' })
    await response.text()
    expect([...response.headers.keys()].filter((name) => name.startsWith('trellis'))).toEqual([])
  }
})

test('Trellis-Max-Age bounds how long a response is used', async () => {
  expect(await read('/shop/bounded')).toMatch(/ttl=(?:59|60);/)
})

test('/config shows no token', async () => {
  const shown = await (await fetch(`${gateway.adminAddress}/config`)).text()
  expect(shown).toContain('"ttlWhileHeard":"7d"')
  expect(shown).not.toContain(shopToken)
})
