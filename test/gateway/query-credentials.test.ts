import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { siteService, startTestGateway, type TestGateway } from '../support/gateway.ts'
import { type Origin, startOrigin } from '../support/origin.ts'

// A credential in the query is one, whichever contract a service has: a signed URL may be valid once, a key may be revoked.

let origin: Origin
let gateway: TestGateway
let folder: string

beforeAll(async () => {
  origin = await startOrigin(({ target }, wire) =>
    wire.respond({
      headers: { 'Content-Type': 'application/json', 'Cache-Control': 'max-age=60' },
      content: target.includes('query=') ? '{"data":{"a":1}}' : '[]',
    }),
  )
  const rules = [{ match: 'GET /**', ttl: '60s' }]
  const open = (mount: string, cache: object) => ({
    contract: 'open',
    mount,
    upstream: { targets: [origin.origin] },
    cache: { rules, ...cache },
  })
  folder = await mkdtemp(join(tmpdir(), 'trellis-query-'))
  const document = join(folder, 'openapi.json')
  const operation = { get: { responses: { 200: { description: 'a' } } } }
  await writeFile(
    document,
    JSON.stringify({ openapi: '3.1.0', info: { title: 'a', version: '1' }, paths: { '/a': operation } }),
  )
  gateway = await startTestGateway({
    services: {
      described: {
        contract: 'openapi',
        mount: '/described',
        document,
        upstream: { targets: [origin.origin] },
        parameters: { unknown: 'forward' },
        cache: { rules },
      },
      graph: {
        contract: 'graphql',
        mount: '/graph',
        upstream: { targets: [origin.origin] },
        cache: { rules: [{ match: 'query *', ttl: '60s' }] },
      },
      open: open('/open', {}),
      own: open('/own', { rules: [{ ...rules[0], scope: 'credential' }] }),
      listed: open('/listed', { harmlessParameters: ['session_type'] }),
      site: siteService(origin.origin, { cache: { rules } }),
    },
  })
})
afterAll(async () => {
  await gateway.close()
  await rm(folder, { recursive: true, force: true })
  await origin.close()
})

const statusOf = async (target: string, headers: Record<string, string> = {}) => {
  const response = await fetch(gateway.publicAddress + target, { headers })
  await response.arrayBuffer()
  return response.headers.get('cache-status')
}

const credentials = [
  ...['consumer_key=ck_1&consumer_secret=cs_1', 'oauth_consumer_key=a&oauth_signature=b', 'oauth_nonce=a'],
  ...['access_token=a', 'api_key=a', 'apikey=a', 'apiKey=a', 'token=a', 'token[]=a', 'signature=a', 'sig=a'],
  ...['X-Amz-Signature=a&X-Amz-Date=b', 'X-Goog-Credential=a', 'AWSAccessKeyId=a', 'Key-Pair-Id=a', 'jwt=a'],
  ...[
    'session=a',
    'sessionId=a',
    'PHPSESSID=a&sid=b',
    'consumer.key=a',
    'consumer%5Fkey=a',
    'key=a',
    'auth=a',
  ],
  ...['application_password=a', 'client_secret=a', 'ticket=a', 'sig%00x=a', '+token=a'],
]

test.each(credentials)('%s bypasses the cache, in every contract', async (query) => {
  for (const path of [
    '/open/a',
    '/own/a',
    '/index.php/site-json/site/v2/posts',
    '/index.php/site-json/acme/v1/a',
    '/described/a',
  ]) {
    await statusOf(`${path}?${query}`)
    expect(await statusOf(`${path}?${query}`)).not.toContain('hit')
  }
  const document = encodeURIComponent('{ a }')
  await statusOf(`/graph?query=${document}&${query}`)
  expect(await statusOf(`/graph?query=${document}&${query}`)).not.toContain('hit')
  expect(await statusOf(`/open/a?${query}`)).toContain('detail=api-key')
  await statusOf(`/own/a?${query}`, { Authorization: 'Basic YTpi' })
  expect(await statusOf(`/own/a?${query}`, { Authorization: 'Basic YTpi' })).toContain('fwd=bypass')
})

test.each([
  'page_token=a',
  'nextPageToken=a',
  'cursor=a',
  'author=1',
  'meta_key=a',
  'sort_key=a',
  'user=1',
  'keyword=a',
])('%s is none', async (query) => {
  await statusOf(`/open/b?${query}`)
  expect(await statusOf(`/open/b?${query}`)).toContain('hit')
})

test('cache.harmlessParameters names exceptions', async () => {
  for (const mount of ['/open', '/listed']) await statusOf(`${mount}/c?session_type=talk`)
  expect(await statusOf('/open/c?session_type=talk')).toContain('fwd=bypass')
  expect(await statusOf('/listed/c?session_type=talk')).toContain('hit')
  expect(await statusOf('/listed/c?session_id=1')).toContain('fwd=bypass')
})

test('the same requests without one are hits of a document and of GraphQL', async () => {
  for (const target of ['/described/a?page=1', `/graph?query=${encodeURIComponent('{ a }')}`]) {
    await statusOf(target)
    expect(await statusOf(target)).toContain('hit')
  }
})
