import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { closeAfterAll } from '../support/close.ts'
import { siteService, startTestGateway, type TestGateway } from '../support/gateway.ts'
import { type Origin, startOrigin } from '../support/origin.ts'

let origin: Origin
let gateway: TestGateway
const json = { 'Content-Type': 'application/json; charset=UTF-8' }

beforeAll(async () => {
  origin = await startOrigin()
  origin.script = ({ target }, wire) =>
    wire.respond({
      headers: json,
      content: target.endsWith('/graphql') ? '{"data":{"posts":[]}}' : '[]',
    })
  const upstream = { targets: [origin.origin] }
  gateway = await startTestGateway({
    services: {
      wordpress: siteService(origin.origin, {
        mount: '/wp-json',
        names: 'same',
        upstream: { ...upstream, basePath: '/wp-json' },
        cache: { rules: [{ match: 'GET /wp/v2/**', ttl: '1h' }] },
      }),
      graph: { contract: 'graphql', upstream, cache: { rules: [{ match: 'query *', ttl: '1h' }] } },
      pages: { contract: 'open', mount: '/', upstream },
    },
  })
})
closeAfterAll(() => [gateway, origin])

const statusOf = async (path: string, init: RequestInit = {}): Promise<string> => {
  const response = await fetch(gateway.publicAddress + path, { redirect: 'manual', ...init })
  await response.arrayBuffer()
  return response.headers.get('cache-status') ?? ''
}

const send = (query: string): Promise<string> =>
  statusOf('/graphql', { method: 'POST', headers: json, body: JSON.stringify({ query }) })

const posts = (): Promise<string> => statusOf('/wp-json/wp/v2/posts')
const query = (): Promise<string> => send('{ posts { id } }')

describe('a GraphQL endpoint beside a site', () => {
  test.each<[string, () => Promise<string>]>([
    ['a mutation', () => send('mutation { a }')],
    [
      'a write to the interface',
      () => statusOf('/wp-json/wp/v2/posts/1', { method: 'POST', headers: json, body: '{"title":"a"}' }),
    ],
    ['a form of the administration', () => statusOf('/wp-admin/post.php', { method: 'POST', body: 'a=b' })],
  ])('%s drops the responses of both', async (_, write) => {
    for (const read of [posts, query]) {
      await read()
      expect(await read()).toContain('hit')
    }
    await write()
    expect(await query()).not.toContain('hit')
    expect(await posts()).not.toContain('hit')
  })

  test('a query drops none of the site', async () => {
    await posts()
    await send('query Other { posts { title } }')
    expect(await posts()).toContain('hit')
  })
})

describe('a GraphQL endpoint beside the pages of a WordPress, without a site service and without the companion', () => {
  let headless: TestGateway

  beforeAll(async () => {
    const upstream = { targets: [origin.origin] }
    const cache = { rules: [{ match: 'query *', ttl: '1h' }] }
    headless = await startTestGateway({
      services: {
        graph: { contract: 'graphql', upstream: { ...upstream, basePath: '/blog/graphql' }, cache },
        pages: {
          ...{ contract: 'open', mount: '/', upstream },
          cache: { harmlessWrites: ['heartbeat', 'failed-login'] },
        },
      },
    })
  })
  afterAll(() => headless.close())

  const status = async (path: string, init: RequestInit): Promise<string> => {
    const response = await fetch(headless.publicAddress + path, {
      method: 'POST',
      redirect: 'manual',
      ...init,
    })
    await response.arrayBuffer()
    return response.headers.get('cache-status') ?? ''
  }
  const form = (path: string, body: string): Promise<string> =>
    status(path, { headers: { 'Content-Type': 'application/x-www-form-urlencoded' }, body })
  const read = (): Promise<string> =>
    status('/graphql', { headers: json, body: '{"query":"{ posts { id } }"}' })

  test.each([
    ['a heartbeat', '/blog/wp-admin/admin-ajax.php', 'action=heartbeat&_nonce=a&interval=60', true],
    ['a failed login', '/blog/wp-login.php', 'log=admin&pwd=wrong', true],
    ['another request of the administration', '/blog/wp-admin/admin-ajax.php', 'action=save', false],
    [
      'a heartbeat that saves',
      '/blog/wp-admin/admin-ajax.php',
      'action=heartbeat&data[wp_autosave][a]=b',
      false,
    ],
    ['a heartbeat of another WordPress', '/other/wp-admin/admin-ajax.php', 'action=heartbeat', false],
  ])('%s', async (_, path, body, isHarmless) => {
    await read()
    expect(await read()).toContain('hit')
    await form(path, body)
    expect((await read()).includes('hit')).toBe(isHarmless)
  })
})
