import { createHash } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { closeAfterAll } from '../support/close.ts'
import { startTestGateway, type TestGateway } from '../support/gateway.ts'
import { type GraphqlServer, startGraphqlServer } from '../support/graphql-server.ts'

let server: GraphqlServer
let gateway: TestGateway

const start = (graphql: Record<string, unknown>): Promise<TestGateway> =>
  startTestGateway({
    services: {
      graph: {
        contract: 'graphql',
        upstream: { targets: [server.origin] },
        graphql,
        cache: {
          rules: [
            { match: 'query Never', ttl: '0s' },
            { match: 'query *', ttl: '1h' },
          ],
        },
      },
    },
  })

beforeAll(async () => {
  server = await startGraphqlServer()
  gateway = await start({ maxDepth: 6, maxAliases: 5, batch: 3 })
})
closeAfterAll(() => [gateway, server])

type Asked = { readonly status: string; readonly code: number; readonly type: string; readonly body: unknown }

const read = async (response: Response): Promise<Asked> => ({
  code: response.status,
  status: response.headers.get('cache-status') ?? '',
  type: response.headers.get('content-type') ?? '',
  body: await response.json().catch(() => undefined),
})

const clientOf = (gatewayOf: () => TestGateway) => {
  const url = (): string => `${gatewayOf().publicAddress}/graphql`
  const post = async (body: unknown, headers: Record<string, string> = {}): Promise<Asked> =>
    read(
      await fetch(url(), {
        method: 'POST',
        headers: { 'Content-Type': 'application/json', ...headers },
        body: typeof body === 'string' ? body : JSON.stringify(body),
      }),
    )
  const get = async (
    parameters: Record<string, string>,
    headers: Record<string, string> = {},
  ): Promise<Asked> => read(await fetch(`${url()}?${new URLSearchParams(parameters)}`, { headers }))
  return { url, post, get }
}

const { url, post, get } = clientOf(() => gateway)

const drop = () => post({ query: 'mutation { setTitle(id: "none", title: "x") { id } }' })

beforeEach(async () => {
  await drop()
  server.forget()
})

const posts = '{ posts { id title } }'

describe('a query', () => {
  test('by POST, GET and QUERY is one stored response', async () => {
    const first = await post({ query: posts })
    expect(first.status).toMatch(/fwd=uri-miss.*stored/)
    expect((await post({ query: posts })).status).toContain('hit')
    expect(await get({ query: posts })).toMatchObject({
      status: expect.stringContaining('hit'),
      body: first.body,
    })
    const asked = await fetch(url(), {
      method: 'QUERY',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify({ query: posts }),
    })
    expect((await read(asked)).status).toContain('hit')
    expect(server.requests).toHaveLength(1)
  })

  test.each([
    ['spaces and comments', { query: '{ # a mutation\n posts { id,title, } }' }],
    ['extensions of a client library', { query: posts, extensions: { clientLibrary: { name: 'x' } } }],
    ['empty members', { query: posts, variables: {}, operationName: null, extensions: {} }],
    ['undeclared variables', { query: posts, variables: { nothing: 1 } }],
  ])('is the same with other %s', async (_, body) => {
    await post({ query: posts })
    expect((await post(body)).status).toContain('hit')
  })

  test('is another with other variables, in any order and spelling', async () => {
    const query = 'query P($first: Int, $ids: [ID!]) { posts(first: $first, ids: $ids) { id } }'
    expect((await post({ query, variables: { first: 1, ids: ['1'] } })).status).toContain('miss')
    expect(
      (await post(`{"query":${JSON.stringify(query)},"variables":{ "ids":[ "1" ],"first":1}}`)).status,
    ).toContain('hit')
    expect((await post({ query, variables: { first: 2, ids: ['1'] } })).status).toContain('miss')
    expect((await get({ query, variables: '{"first":1,"ids":["1"]}' })).status).toContain('hit')
  })

  test('is another with the other of two operations', async () => {
    const query = 'query A { posts { id } } query B { posts { title } }'
    const a = await post({ query, operationName: 'A' })
    const b = await post({ query, operationName: 'B' })
    expect(a.body).not.toEqual(b.body)
    expect((await post({ query, operationName: 'A' })).status).toContain('hit')
    expect((await post({ query })).status).toContain('fwd=bypass')
  })

  test('is sent as it is keyed', async () => {
    await post({ query: '{ posts { id } } # c', variables: { x: 1 }, extensions: { other: [1] } })
    expect(server.requests[0]?.body).toBe('{"query":"{posts{id}}","extensions":{"other":[1]}}')
  })

  test('with errors, with data: null and with a cookie is not stored', async () => {
    for (let i = 0; i < 2; i += 1) expect((await post({ query: '{ fails }' })).status).not.toContain('stored')
    server.headers = { 'Set-Cookie': 'a=b' }
    for (let i = 0; i < 2; i += 1) expect((await post({ query: posts })).status).not.toMatch(/stored|hit/)
    server.headers = { 'Cache-Control': 'no-store' }
    for (let i = 0; i < 2; i += 1) expect((await post({ query: posts })).status).not.toMatch(/stored|hit/)
  })

  test('with a credential, a cookie or a session is not shared', async () => {
    await post({ query: '{ me }' })
    for (const headers of [
      { Authorization: 'Bearer a' },
      { Cookie: 'session=1' },
      { 'woocommerce-session': 'Session abc' },
    ])
      expect((await post({ query: '{ me }' }, headers)).status).toContain('fwd=bypass')
    expect((await get({ query: '{ me }' }, { Authorization: 'Bearer b' })).body).toEqual({
      data: { me: 'Bearer b' },
    })
  })

  test('is stored by the rule for its name', async () => {
    const query = 'query Never { posts { id } }'
    for (let i = 0; i < 2; i += 1) expect((await post({ query })).status).not.toContain('hit')
  })

  test('gets the media type that it accepts', async () => {
    const accept = { Accept: 'application/graphql-response+json' }
    const [json, response] = [
      await post({ query: posts }, { Accept: 'application/json' }),
      await post({ query: posts }, accept),
    ]
    expect(json.type).toContain('application/json')
    expect(response.type).toContain('application/graphql-response+json')
    expect((await post({ query: posts }, accept)).type).toContain('application/graphql-response+json')
  })
})

describe('a mutation', () => {
  test('drops every response before it is acknowledged', async () => {
    await post({ query: posts })
    await post({ query: 'mutation { setTitle(id: "1", title: "Changed") { id } }' })
    expect((await post({ query: posts })).body).toMatchObject({ data: { posts: [{ title: 'Changed' }, {}] } })
    await post({ query: 'mutation { setTitle(id: "1", title: "First") { id } }' })
  })

  test('that is not valid executes nothing and drops nothing', async () => {
    await post({ query: posts })
    await post({ query: 'mutation { unknownField }' })
    expect((await post({ query: posts })).status).toContain('hit')
  })

  test('by GET and QUERY is 405', async () => {
    const mutation = 'mutation { setTitle(id: "1", title: "By GET") { id } }'
    expect(await get({ query: mutation })).toMatchObject({
      code: 405,
      body: { errors: [{ extensions: { code: 'MUTATION_BY_GET' } }] },
    })
    expect(server.requests).toHaveLength(0)
  })

  test.each([
    [
      'beside a query',
      { query: 'query A { me } mutation B { setTitle(id: "1", title: "B") { id } }', operationName: 'B' },
    ],
    ['in a list', [{ query: posts }, { query: 'mutation { setTitle(id: "1", title: "L") { id } }' }]],
    [
      'by a hash that is not known',
      { extensions: { persistedQuery: { version: 1, sha256Hash: 'a'.repeat(64) } } },
    ],
    ['by the id of a stored document', { queryId: 'abc', query: posts }],
    ['that cannot be parsed', { query: 'mutation {' }],
    ['in a list of which nothing can be parsed', [{ query: '{' }, { query: 'mutation {' }]],
    [
      'in a list of which one cannot be parsed',
      [{ query: '{' }, { query: 'mutation { setTitle(id: "1", title: "P") { id } }' }],
    ],
    ['under a repeated name', '{"query":"{me}","query":"mutation{setTitle(id:\\"1\\",title:\\"R\\"){id}}"}'],
    ['with variables in a string', { query: posts, variables: '{}' }],
  ])('%s counts as a write', async (_, body) => {
    await post({ query: posts })
    const written = await post(body)
    expect(written.status).toContain('fwd=method')
    const isExecuted = JSON.stringify(written.body).includes('"data"')
    expect((await post({ query: posts })).status.includes('hit')).toBe(!isExecuted)
    await post({ query: 'mutation { setTitle(id: "1", title: "First") { id } }' })
  })
})

describe('a document over a limit', () => {
  const deep = (levels: number): string =>
    `${'{ author(id: 1) { posts '.repeat(levels)}{ id }${'} }'.repeat(levels)}`
  test.each([
    [
      'too deep',
      `query { author(id: "7") { posts { author { posts { author { posts { id } } } } } } }`,
      'DOCUMENT_TOO_DEEP',
    ],
    [
      'of a fragment that spreads itself',
      '{ posts { ...F } } fragment F on Post { author { posts { ...F } } }',
      'DOCUMENT_TOO_DEEP',
    ],
    [
      'of many aliases',
      `{ ${Array.from({ length: 6 }, (_, i) => `a${i}: me`).join(' ')} }`,
      'TOO_MANY_ALIASES',
    ],
    [
      'of aliases in fragments',
      '{ ...A x: me ...B } fragment A on Query { a: me ...B } fragment B on Query { b: me c: me }',
      'TOO_MANY_ALIASES',
    ],
    ['of many tokens', `{ ${'me '.repeat(3000)} }`, 'TOO_MANY_TOKENS'],
    ['of many octets', `{ me } #${'x'.repeat(70_000)}`, 'DOCUMENT_TOO_LARGE'],
  ])('%s is 400', async (_, query, code) => {
    const response = await post({ query }, { Accept: 'application/graphql-response+json' })
    expect(response).toMatchObject({ code: 400, body: { errors: [{ extensions: { code } }] } })
    expect(response.type).toContain('application/graphql-response+json')
    expect(server.requests).toHaveLength(0)
  })
  test('an unusual one is refused, not executed', async () => {
    expect((await post({ query: deep(400) })).code).toBe(400)
  })
  test('a list that is too long is 400', async () => {
    expect((await post(Array.from({ length: 4 }, () => ({ query: '{ me }' })))).body).toMatchObject({
      errors: [{ extensions: { code: 'BATCH_TOO_LONG' } }],
    })
  })
})

const notFound = {
  errors: [{ message: 'PersistedQueryNotFound', extensions: { code: 'PERSISTED_QUERY_NOT_FOUND' } }],
}

describe('a persisted document', () => {
  const sha256Hash = createHash('sha256').update(posts).digest('hex')
  const extensions = { persistedQuery: { version: 1, sha256Hash } }

  test('is the same stored response as its document, once that is known', async () => {
    await post({ query: posts })
    expect((await post({ query: posts, extensions })).status).toContain('hit')
    expect((await post({ extensions })).status).toContain('hit')
    expect((await get({ extensions: JSON.stringify(extensions) })).status).toContain('hit')
  })
  test('is forwarded as a write where `persisted` is off', async () => {
    const other = await start({ persisted: false })
    onTestFinished(() => other.close())
    const client = clientOf(() => other)
    await client.post({ query: posts, extensions })
    expect((await client.post({ extensions })).status).toContain('fwd=method')
  })

  test('with the hash of another document is none', async () => {
    const other = { persistedQuery: { version: 1, sha256Hash: 'b'.repeat(64) } }
    await post({ query: posts, extensions: other })
    expect((await post({ extensions: other })).status).toContain('fwd=method')
  })

  test.each([
    ['mutation', 'mutation { setTitle(id: "none", title: "known") { id } }'],
    ['query with a comment', '{ posts { title } } # known'],
  ])('with the known hash of a %s is no read: servers may execute either', async (_, document) => {
    const known = {
      persistedQuery: { version: 1, sha256Hash: createHash('sha256').update(document).digest('hex') },
    }
    await post({ query: document, extensions: known })
    await post({ query: posts })
    expect((await post({ query: posts, extensions: known })).status).toContain('fwd=method')
  })
})

describe('with `persisted: ask`, a hash that Trellis does not know, as after a restart', () => {
  let asking: TestGateway
  const client = clientOf(() => asking)
  beforeAll(async () => {
    asking = await start({ persisted: 'ask' })
  })
  afterAll(() => asking.close())

  const hashed = (document: string) => ({
    extensions: {
      persistedQuery: { version: 1, sha256Hash: createHash('sha256').update(document).digest('hex') },
    },
  })
  const documents = {
    query: '{ posts { title } }',
    mutation: 'mutation { setTitle(id: "none", title: "hashed") { id } }',
    'query with a comment': '{ posts { title } } # é',
    'document that cannot be parsed': 'query @@ {',
  }

  test.each(Object.entries(documents))('of a %s is asked for, and drops nothing', async (_, document) => {
    await client.post({ query: posts })
    server.forget()
    expect(await client.post(hashed(document))).toMatchObject({ code: 200, body: notFound })
    expect((await client.get({ extensions: JSON.stringify(hashed(document).extensions) })).body).toEqual(
      notFound,
    )
    expect(server.requests).toHaveLength(0)
    expect((await client.post({ query: posts })).status).toContain('hit')
    // The client sends both, and the hash alone from then on.
    await client.post({ query: document, ...hashed(document) })
    server.forget()
    expect((await client.post(hashed(document))).body).not.toEqual(notFound)
    expect(server.requests.length).toBe(document === documents.query ? 0 : 1)
  })

  test('in a list of hashes is asked for with all of them; beside documents the list is forwarded', async () => {
    const unknown = hashed('{ me }')
    expect((await client.post([hashed(posts), unknown])).body).toEqual([notFound, notFound])
    expect(server.requests).toHaveLength(0)
    await client.post([{ query: posts }, unknown])
    expect(server.requests).toHaveLength(1)
  })
})

describe('a list of queries', () => {
  test('is answered in its order, hits without the upstream', async () => {
    await post({ query: posts })
    server.forget()
    const list = await post([{ query: '{ author(id: "7") { name } }' }, { query: posts }])
    expect(list.body).toEqual([
      { data: { author: { name: 'Author 7' } } },
      {
        data: {
          posts: [
            { id: '1', title: 'First' },
            { id: '2', title: 'Second' },
          ],
        },
      },
    ])
    expect(server.requests).toHaveLength(1)
    expect((await post({ query: '{author(id:"7"){name}}' })).status).toContain('hit')
  })
  test('with a credential is forwarded whole', async () => {
    const list = await post([{ query: '{ me }' }, { query: posts }], { Authorization: 'Bearer x' })
    expect(list.body).toMatchObject([{ data: { me: 'Bearer x' } }, {}])
    expect(server.requests).toHaveLength(1)
  })
})

test('an upload is forwarded as a write', async () => {
  await post({ query: posts })
  const form = new FormData()
  form.set('operations', JSON.stringify({ query: '{ me }' }))
  await (await fetch(url(), { method: 'POST', body: form })).text()
  expect((await post({ query: posts })).status).not.toContain('hit')
})

test('other paths below the mount are 404 in the shape of GraphQL', async () => {
  expect(await read(await fetch(`${url()}/other`))).toMatchObject({ code: 404, body: { errors: [{}] } })
})
