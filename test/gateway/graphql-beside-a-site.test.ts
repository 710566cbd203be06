import { afterAll, beforeAll, describe, expect, test } from 'vitest'
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
      content: target.startsWith('/graphql') ? '{"data":{"posts":[]}}' : '[]',
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
afterAll(async () => {
  await gateway.close()
  await origin.close()
})

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
