import { beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { closeAfterAll } from '../../support/close.ts'
import { costOfRequest } from '../../support/cost.ts'
import { siteService, startTestGateway, type TestGateway } from '../../support/gateway.ts'
import { type Origin, startOrigin } from '../../support/origin.ts'
import { talk } from '../../support/talk.ts'

// A write may change resources of another service of the same origin, and its response names them (RFC 9111 §4.4).

let origin: Origin
let other: Origin
let gateway: TestGateway

const rules = { rules: [{ match: 'GET /**', ttl: '1h', scope: 'public' }] }

beforeAll(async () => {
  origin = await startOrigin()
  other = await startOrigin()
  const targets = [origin.origin]
  gateway = await startTestGateway({
    services: {
      all: { contract: 'open', mount: '/', upstream: { targets }, cache: rules },
      admin: { contract: 'open', mount: '/admin', upstream: { targets, basePath: '/admin' }, cache: rules },
      api: { contract: 'open', mount: '/api', upstream: { targets, basePath: '/v1' }, cache: rules },
      site: siteService(other.origin, {
        mount: '/wp-json',
        names: 'same',
        cache: { rules: [{ match: 'GET /wp/v2/**', ttl: '1h' }] },
      }),
      content: siteService(origin.origin, { mount: '/content', upstream: { targets, basePath: '/rest' } }),
      shop: { contract: 'open', mount: '/', hosts: ['shop.test'], upstream: { targets }, cache: rules },
      preserving: {
        contract: 'open',
        mount: '/m',
        hosts: ['kept.test', 'other.kept.test'],
        publicUrl: 'https://kept.test',
        upstream: { targets, basePath: '/v2', host: 'preserve' },
        cache: rules,
      },
      intern: {
        contract: 'open',
        mount: '/in',
        hosts: ['*.shop.test', 'shop.test'],
        upstream: { targets },
        cache: rules,
      },
    },
  })
  other.script = (_, wire) =>
    wire.respond({ headers: { 'Content-Type': 'application/json' }, content: '{"id":1}' })
})
closeAfterAll(() => [gateway, origin, other])

const ask = async (method: string, target: string, host: string, headers = ''): Promise<string> => {
  const request = `${method} ${target} HTTP/1.1\r\nHost: ${host}\r\n${headers}Content-Length: 0\r\nConnection: close\r\n\r\n`
  const { bytes } = await talk(gateway.publicAddress, Buffer.from(request), { enough: '', silenceMs: 10_000 })
  return bytes.toString('latin1')
}
const read = (target: string, host = 'a'): Promise<string> => ask('GET', target, host)

const respondToWrites = (headers: Readonly<Record<string, string>>): void => {
  origin.script = ({ method }, wire) =>
    wire.respond(method === 'GET' ? { content: 'stored' } : { status: 201, headers, content: '{}' })
}

/** Is the response to `target` stored after a write whose response has the headers? */
const isKept = async (
  [path, headers]: readonly [path: string, fields: Readonly<Record<string, string>>],
  target: string,
  host?: string,
): Promise<boolean> => {
  respondToWrites(headers)
  await read(target, host)
  expect(await read(target, host)).toContain('; hit')
  expect(await ask('POST', path, host ?? 'a')).toMatch(/^HTTP\/1\.1 201 /)
  return (await read(target, host)).includes('; hit')
}

test.each(['MOVE', 'COPY'])('%s invalidates the URL of its Destination', async (method) => {
  respondToWrites({})
  for (const [path, destination] of [
    ['/admin/b', 'http://a/admin/b'],
    ['/api/b', 'https://other.test/api/b'],
    ['/c/d?e=1', '/c/d?e=1'],
  ] as const) {
    await read(path)
    expect(await read(path)).toContain('; hit')
    await ask(method, '/users/7', 'a', `Destination: ${destination}\r\n`)
    expect(await read(path)).not.toContain('; hit')
  }
})

test.each(['"a",', 'a b ', '\u00e9'])(
  'a URL of 60,000 characters %j is not read to its end',
  async (part) => {
    respondToWrites({ Location: part.repeat(60_000 / part.length) })
    const maxMs = 20
    expect(await costOfRequest(() => ask('POST', '/api/users', 'a'), maxMs)).toBeLessThan(maxMs)
  },
)

describe('a write invalidates what its response names', () => {
  beforeEach(() => {
    origin.received.length = 0
  })

  test.each([
    ['in a service below its own', '/users', { Location: '/admin/users/7' }, '/admin/users/7'],
    ['with an empty query', '/users', { Location: '/admin/users/7?' }, '/admin/users/7'],
    ['with a query', '/users', { Location: '/admin/users?page=2' }, '/admin/users?page=2'],
    [
      'with a query that URL objects escape',
      '/users',
      { Location: "/admin/users?q='a'" },
      "/admin/users?q='a'",
    ],
    ['with that query escaped', '/users', { Location: "/admin/users?q='a'" }, '/admin/users?q=%27a%27'],
    ['with a path that they escape', '/users', { Location: '/admin/{7}^|' }, '/admin/{7}^|'],
    ['with a path in bytes of UTF-8', '/users', { Location: '/admin/caf\u00c3\u00a9' }, '/admin/caf%C3%A9'],
    ['at the mount of that service', '/users', { 'Content-Location': '/admin?page=2' }, '/admin?page=2'],
    ['relative to its URL', '/users/7', { 'Content-Location': '../admin/x' }, '/admin/x'],
    ['in a service above its own', '/admin/users', { Location: '/users/7' }, '/users/7'],
    ['in a service beside its own', '/admin/users', { Location: '/api/users/7' }, '/api/users/7'],
    ['in its own, by the URL for clients', '/api/users', { Location: '/api/users/7' }, '/api/users/7'],
    ['in its own, by the URL at the upstream', '/api/users', { Location: '/v1/users/7' }, '/api/users/7'],
    [
      'in a service of another contract and upstream',
      '/users',
      { Location: '/wp-json/wp/v2/posts/1' },
      '/wp-json/wp/v2/posts/1',
    ],
  ])('%s', async (_, path, headers, target) => {
    expect(await isKept([path, headers as Record<string, string>], target)).toBe(false)
  })

  test('by an absolute URL for clients', async () => {
    const named = { Location: `${gateway.publicAddress}/admin/users/9` }
    expect(await isKept(['/users', named], '/admin/users/9')).toBe(false)
  })

  test('by an absolute URL at the upstream', async () => {
    expect(await isKept(['/users', { Location: `${origin.origin}/admin/users/9` }], '/admin/users/9')).toBe(
      false,
    )
  })

  test.each([
    'http://kept.test/v2/list',
    'https://kept.test/v2/list',
    'http://kept.test/m/list',
    'https://kept.test/m/list',
  ])('by an absolute URL with the host that the upstream receives: %s', async (Location) => {
    expect(await isKept(['/m/users', { Location }], '/m/list', 'kept.test')).toBe(false)
  })

  test('in a service of the same host', async () => {
    expect(await isKept(['/users', { Location: '/in/5' }], '/in/5', 'shop.test')).toBe(false)
    expect(await isKept(['/users', { Location: '/admin/5' }], '/admin/5', 'a')).toBe(false)
  })
})

test.each([
  ['its own, at another mount', '/api/users', {}, '/v1/users', undefined],
  ['its own, at a mount in front of it', '/v1/users', {}, '/api/users', undefined],
  ['its own, at another host', '/users', {}, '/users', 'shop.test'],
  ['its own, with a query that URL objects escape', "/api/users?q='a'", {}, "/v1/users?q='a'", undefined],
  ['its own, by another name', '/content/site/v2/posts/1', {}, '/rest/wp/v2/posts/1', undefined],
  ['that its response names', '/users', { Location: '/v1/users/7' }, '/api/users/7', undefined],
])('a write invalidates a URL that several services have: %s', async (_, path, headers, target, host) => {
  respondToWrites(headers)
  await read(target, host)
  expect(await read(target, host)).toContain('; hit')
  expect(await ask('POST', path, 'a')).toMatch(/^HTTP\/1\.1 201 /)
  expect(await read(target, host)).not.toContain('; hit')
})

test.each([
  ['on another origin', { Location: 'http://other.test/admin/users/7' }],
  ['on another port', { Location: 'http://127.0.0.1:1/admin/users/7' }],
  ['that is no URL', { Location: 'http://[bad' }],
])('a URL %s invalidates nothing', async (_, headers) => {
  expect(await isKept(['/users', headers], '/admin/users/7')).toBe(true)
})

test('a URL that a service at another host has too invalidates nothing there', async () => {
  respondToWrites({ Location: '/in/5' })
  await read('/in/5', 'shop.test')
  await ask('POST', '/users', 'a')
  expect(await read('/in/5', 'shop.test')).toContain('; hit')
})
