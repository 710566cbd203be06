import { createRequire } from 'node:module'
import { beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { closeAfterAll } from '../support/close.ts'
import { startTestGateway, type TestGateway } from '../support/gateway.ts'
import { type GraphqlServer, startGraphqlServer } from '../support/graphql-server.ts'

// Not imported: the types of these packages bring the DOM into all of the source.
const require = createRequire(import.meta.url)

let server: GraphqlServer
let gateway: TestGateway

beforeAll(async () => {
  server = await startGraphqlServer()
  gateway = await startTestGateway({
    services: {
      graph: {
        contract: 'graphql',
        upstream: { targets: [server.origin] },
        cache: { rules: [{ match: 'query *', ttl: '1h' }] },
      },
    },
  })
})
closeAfterAll(() => [gateway, server])

const url = (): string => `${gateway.publicAddress}/graphql`
const text = 'query Titles($first: Int) { posts(first: $first) { id title } }'
const variables = { first: 2 }
const change = 'mutation Change($title: String!) { setTitle(id: "1", title: $title) { id title } }'

type Client = {
  readonly read: () => Promise<unknown>
  readonly write: (title: string) => Promise<unknown>
}

const fetchJson = async (body: unknown): Promise<unknown> => {
  const response = await fetch(url(), {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify(body),
  })
  return ((await response.json()) as { readonly data: unknown }).data
}

type Apollo = {
  readonly ApolloClient: new (
    options: unknown,
  ) => {
    query(options: unknown): Promise<{ readonly data: unknown }>
    mutate(options: unknown): Promise<{ readonly data: unknown }>
  }
  readonly HttpLink: new (options: unknown) => unknown
  readonly InMemoryCache: new () => unknown
  gql(text: string): unknown
}

type Urql = {
  readonly Client: new (
    options: unknown,
  ) => {
    query(text: string, variables: unknown): { toPromise(): Promise<{ readonly data: unknown }> }
    mutation(text: string, variables: unknown): { toPromise(): Promise<{ readonly data: unknown }> }
  }
  readonly fetchExchange: unknown
}

const apolloClient = (): Client => {
  const { ApolloClient, HttpLink, InMemoryCache, gql } = require('@apollo/client') as Apollo
  const client = new ApolloClient({
    link: new HttpLink({ uri: url() }),
    cache: new InMemoryCache(),
    clientAwareness: { name: 'front', version: '1' },
  })
  return {
    read: async () => (await client.query({ query: gql(text), variables, fetchPolicy: 'no-cache' })).data,
    write: async (title) => (await client.mutate({ mutation: gql(change), variables: { title } })).data,
  }
}

const urqlClient = (preferGetMethod: unknown): Client => {
  const { Client: Urql, fetchExchange } = require('@urql/core') as Urql
  const client = new Urql({ url: url(), exchanges: [fetchExchange], preferGetMethod })
  return {
    read: async () => (await client.query(text, variables).toPromise()).data,
    write: async (title) => (await client.mutation(change, { title }).toPromise()).data,
  }
}

type GraphqlRequest = {
  readonly GraphQLClient: new (url: string) => { request(text: string, variables: unknown): Promise<unknown> }
}

const graphqlRequest = (): Client => {
  const { GraphQLClient } = require('graphql-request') as GraphqlRequest
  const client = new GraphQLClient(url())
  return { read: () => client.request(text, variables), write: (title) => client.request(change, { title }) }
}

const clients: readonly (readonly [string, () => Client])[] = [
  ['Apollo Client', apolloClient],
  ['urql', () => urqlClient(false)],
  ['urql by GET', () => urqlClient('force')],
  ['graphql-request', graphqlRequest],
  [
    'fetch, as in Next.js',
    () => ({
      read: () => fetchJson({ query: text, variables }),
      write: (title) => fetchJson({ query: change, variables: { title } }),
    }),
  ],
]

describe.each(clients)('%s', (_, create) => {
  beforeEach(() => server.forget())

  test('reads from the cache, and its own change at once', async () => {
    const client = create()
    await client.write('Before')
    const first = await client.read()
    expect(first).toMatchObject({ posts: [{ title: 'Before' }, {}] })
    const asked = server.requests.length
    expect(await client.read()).toEqual(first)
    expect(server.requests).toHaveLength(asked)
    await client.write('After')
    expect(await client.read()).toMatchObject({ posts: [{ title: 'After' }, {}] })
  })
})

test('clients of all kinds share what is stored', async () => {
  const results = []
  await fetchJson({ query: change, variables: { title: 'Shared' } })
  server.forget()
  for (const [, create] of clients) results.push(await create().read())
  for (const result of results) expect(result).toMatchObject({ posts: [{ title: 'Shared' }, {}] })
  // One for each set of media types that they accept, and one where a client asks for more headers (__typename).
  expect(server.requests.length).toBeLessThan(clients.length)
})
