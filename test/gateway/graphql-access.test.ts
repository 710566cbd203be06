import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startTestGateway, type TestGateway } from '../support/gateway.ts'
import { type GraphqlServer, startGraphqlServer } from '../support/graphql-server.ts'
import { keyLine } from '../support/issuer.ts'

let folder: string
let server: GraphqlServer
let gateway: TestGateway

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'graphql-access-'))
  const file = join(folder, 'keys')
  await writeFile(file, keyLine('app', 'secret'))
  server = await startGraphqlServer()
  const graph = {
    contract: 'graphql',
    upstream: { targets: [server.origin] },
    cache: { rules: [{ match: 'query *', ttl: '1h' }] },
  }
  gateway = await startTestGateway({
    services: {
      writes: { ...graph, access: { apiKeys: { file, required: 'writes' } } },
      all: { ...graph, mount: '/all', access: { apiKeys: { file, required: 'all' } } },
    },
  })
})
afterAll(async () => {
  await gateway.close()
  await server.close()
  await rm(folder, { recursive: true })
})

const send = async (body: unknown, headers: Record<string, string> = {}, path = '/graphql') => {
  const response = await fetch(gateway.publicAddress + path, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', ...headers },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  })
  await response.arrayBuffer()
  return response.status
}

const query = { query: '{ __typename }' }
const mutation = { query: 'mutation { setTitle(id: "none", title: "x") { id } }' }
const key = { 'X-Api-Key': 'secret' }

// What may write and cannot be read counts as a write, whatever it turns out to be.
test.each<[string, unknown, number]>([
  ['a query by POST', query, 200],
  ['a list of queries', [query, query], 200],
  ['a query that is refused by a limit', { query: `{ ${'a{'.repeat(40)}b${'}'.repeat(40)} }` }, 400],
  ['a mutation', mutation, 401],
  ['a list with a mutation', [query, mutation], 401],
  ['a document that cannot be parsed', { query: '{ a' }, 401],
  ['two operations and no name', { query: 'query A { __typename } mutation B { __typename }' }, 401],
  ['a stored document by its id', { queryId: 'abc' }, 401],
  ['no JSON', '{', 401],
])('required: writes: %s without a key', async (_, body, status) => {
  expect(await send(body)).toBe(status)
})

test('an upload without a key is a write', async () => {
  const body = new FormData()
  body.set('operations', JSON.stringify(query))
  const response = await fetch(`${gateway.publicAddress}/graphql`, { method: 'POST', body })
  expect(response.status).toBe(401)
})

test('a mutation with a key is carried out, and required: all covers queries too', async () => {
  expect(await send(mutation, key)).toBe(200)
  expect(await send(query, {}, '/all')).toBe(401)
  expect(await send(query, key, '/all')).toBe(200)
})
