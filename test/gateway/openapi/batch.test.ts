import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Validator } from '@seriousme/openapi-schema-validator'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { checkConfig } from '../../../src/gateway/load-config.ts'
import { startTestGateway, type TestGateway } from '../../support/gateway.ts'
import { type Origin, startOrigin } from '../../support/origin.ts'

const document = `openapi: 3.1.0
info: { title: Items, version: "1" }
components:
  securitySchemes: { key: { type: apiKey, in: header, name: X-Key } }
paths:
  /items:
    get: {}
    post: { requestBody: { content: { application/json: { schema: { type: object, required: [name] } } } } }
  /items/{id}:
    parameters: [{ name: id, in: path, required: true, schema: { type: integer } }]
    get: { parameters: [{ name: X-Tenant, in: header, schema: { type: string } }] }
    put: { requestBody: { content: { application/merge-patch+json: {} } } }
    delete: { security: [{ key: [] }] }
  /items/{id}/close:
    parameters: [{ name: id, in: path, required: true, schema: { type: integer } }]
    post: {}
  /jobs: { post: {} }
`

let folder: string
let origin: Origin
let gateway: TestGateway
/** Requests in the order in which they began and ended. */
let steps: string[] = []

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'openapi-batch-'))
  await writeFile(join(folder, 'items.yaml'), document)
  origin = await startOrigin(async ({ method, target, headers, content }, wire) => {
    steps.push(`+${method} ${target}`)
    // Long enough that the other writes, and reads that do not wait, begin on a busy machine too.
    await new Promise((resolve) => setTimeout(resolve, method === 'PUT' ? 300 : 20))
    steps.push(`-${method} ${target}`)
    wire.respond({
      headers: { 'Content-Type': 'application/json' },
      content: JSON.stringify({
        id: 7,
        key: headers['x-key'],
        tenant: headers['x-tenant'],
        type: headers['content-type'],
        sent: content.toString(),
      }),
    })
  })
  const service = {
    contract: 'openapi',
    document: join(folder, 'items.yaml'),
    upstream: { targets: [origin.origin] },
    batch: { maxItems: 5 },
  }
  gateway = await startTestGateway({
    services: {
      api: {
        ...service,
        mount: '/api',
        invalidation: 'structural',
        cache: { rules: [{ match: 'GET /**', ttl: '1h' }] },
      },
      plain: { ...service, mount: '/plain' },
      none: { ...service, mount: '/none', batch: undefined },
      plants: {
        contract: 'plants',
        mount: '/store',
        upstream: { targets: [origin.origin] },
        batch: { maxItems: 5 },
      },
      'plants-alone': { contract: 'plants', mount: '/alone', upstream: { targets: [origin.origin] } },
    },
  })
})

beforeEach(() => {
  steps = []
})

afterAll(async () => {
  await gateway.close()
  await origin.close()
  await rm(folder, { recursive: true })
})

type Part = { readonly status: number; readonly body: Record<string, unknown> }

const send = async (
  mount: string,
  requests: readonly object[],
  headers: Record<string, string> = {},
  more: object = {},
) => {
  const response = await fetch(`${gateway.publicAddress}/${mount}/batch`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', ...headers },
    body: JSON.stringify({ ...more, requests }),
  })
  return { response, body: (await response.json()) as { responses: Part[] } & Record<string, unknown> }
}

const put = (id: number) => ({ method: 'PUT', path: `/items/${id}`, body: { a: 1 } })
const get = (path: string) => ({ method: 'GET', path })

/** For each request the number of those before it in the batch that it waited for. */
const waited = (): Record<string, string[]> =>
  Object.fromEntries(
    steps.flatMap((step, at) =>
      step.startsWith('+')
        ? [
            [
              step.slice(1),
              steps
                .slice(0, at)
                .filter((one) => one.startsWith('-'))
                .map((one) => one.slice(1)),
            ],
          ]
        : [],
    ),
  )

describe('the batch route of a service with a document', () => {
  test('answers each item in order, with the responses of the upstream', async () => {
    const { response, body } = await send('api', [
      put(1),
      get('/items'),
      { path: '/items', body: { name: 'x' } },
    ])
    expect(response.status).toBe(207)
    expect(body.responses.map(({ status }) => status)).toEqual([200, 200, 200])
    expect(body.responses[0]?.body).toMatchObject({ type: 'application/merge-patch+json', sent: '{"a":1}' })
  })

  test('runs writes to different items at once, and reads after the writes that reach them', async () => {
    const close = { path: '/items/2/close' }
    await send('api', [put(1), put(2), get('/items/1'), get('/items/3'), close])
    expect(waited()).toMatchObject({
      'PUT /items/1': [],
      'PUT /items/2': [],
      'GET /items/3': [],
      'GET /items/1': expect.arrayContaining(['PUT /items/1']),
      'POST /items/2/close': expect.arrayContaining(['PUT /items/2']),
    })
  })

  test('runs a write of unknown reach alone', async () => {
    await send('api', [put(1), { path: '/jobs' }, put(2)])
    expect(waited()).toEqual({
      'PUT /items/1': [],
      'POST /jobs': ['PUT /items/1'],
      'PUT /items/2': ['PUT /items/1', 'POST /jobs'],
    })
  })

  test('runs every write alone with invalidation: service, and reads between writes at once', async () => {
    await send('plain', [put(1), get('/items/8'), get('/items/9'), put(2)])
    const { 'GET /items/8': eight, 'GET /items/9': nine, ...writes } = waited()
    expect(new Set([...(eight ?? []), ...(nine ?? [])])).toContain('PUT /items/1')
    expect(eight?.includes('PUT /items/2') || nine?.includes('PUT /items/2')).toBe(false)
    expect(writes['PUT /items/1']).toEqual([])
    expect(writes['PUT /items/2']?.toSorted()).toEqual(['GET /items/8', 'GET /items/9', 'PUT /items/1'])
  })

  test('sends items with the API key of the batch, and removes their own', async () => {
    const remove = { method: 'DELETE', path: '/items/1', headers: { 'X-Key': 'own' } }
    const { body } = await send('api', [remove], { 'X-Key': 'secret' })
    expect(body.responses[0]?.body).toMatchObject({ key: 'secret' })
    const { body: without } = await send('api', [remove])
    expect(without.responses[0]).toMatchObject({ status: 401, body: { code: expect.any(String) } })
  })

  test('stores a response for each value of a declared header', async () => {
    const read = (tenant: string) => ({ ...get('/items/50'), headers: { 'X-Tenant': tenant } })
    const { body } = await send('api', [read('a'), read('b')])
    expect(body.responses.map((one) => one.body['tenant'])).toEqual(['a', 'b'])
    const { body: again } = await send('api', [read('b'), read('a')])
    expect(again.responses.map((one) => one.body['tenant'])).toEqual(['b', 'a'])
  })

  test('errors have the shape of the service', async () => {
    const { body } = await send('api', [{ path: '/none' }, { path: '/items', body: {} }, get('/items/x')])
    expect(body.responses).toMatchObject([
      { status: 404, body: { type: 'about:blank', status: 404, code: 'no_route' } },
      { status: 400, body: { status: 400, code: 'invalid_body' } },
      { status: 400, body: { status: 400, code: 'invalid_parameter' } },
    ])
    expect(steps).toEqual([])
    const { response, body: refused } = await send('api', Array(6).fill(put(1)))
    expect([response.status, response.headers.get('content-type'), refused]).toMatchObject([
      400,
      'application/problem+json',
      { type: 'about:blank', status: 400 },
    ])
    const { response: wrong } = await send('none', [put(1)])
    expect(wrong.status).toBe(404)
    expect((await fetch(`${gateway.publicAddress}/api/batch`)).status).toBe(405)
  })

  test('two clients with the same Idempotency-Key and different API keys get their own responses', async () => {
    const remove = { method: 'DELETE', path: '/items/1' }
    const headers = { 'Idempotency-Key': '"a"' }
    const one = await send('api', [remove], { ...headers, 'X-Key': 'one' })
    const two = await send('api', [remove], { ...headers, 'X-Key': 'two' })
    expect([one, two].map(({ body }) => body.responses[0]?.body['key'])).toEqual(['one', 'two'])
  })

  test.each(['3.0.3', '3.1.0'])(
    'is described in the document that is served, of version %s',
    async (openapi) => {
      const items = { get: { responses: { 200: { description: 'All.' } } } }
      const text = { openapi, info: { title: 'x', version: '1' }, paths: { '/items': items } }
      await writeFile(join(folder, 'described.json'), JSON.stringify(text))
      const service = {
        contract: 'openapi',
        document: join(folder, 'described.json'),
        upstream: { targets: [origin.origin] },
      }
      const described = await startTestGateway({
        services: {
          api: { ...service, mount: '/api', batch: { maxItems: 7 } },
          none: { ...service, mount: '/none' },
        },
      })
      const served = async (name: string) =>
        (await (await fetch(`${described.adminAddress}/openapi/${name}.json`)).json()) as {
          paths: Record<string, { post: { requestBody: { content: Record<string, { schema: unknown }> } } }>
        }
      try {
        const { paths, ...rest } = await served('api')
        expect(Object.keys(paths)).toEqual(['/items', '/batch'])
        expect(paths['/batch']?.post.requestBody.content['application/json']?.schema).toMatchObject({
          required: ['requests'],
          properties: {
            requests: { maxItems: 7, items: { required: ['path'] } },
          },
        })
        const result = await new Validator().validate({ paths, ...rest })
        expect(result.errors ?? []).toEqual([])
        expect(result.valid).toBe(true)
        expect(Object.keys((await served('none')).paths)).toEqual(['/items'])
      } finally {
        await described.close()
      }
    },
  )

  test('a path of the document may not be that of the batch route', async () => {
    await writeFile(join(folder, 'taken.yaml'), `${document}  /batch: { get: {} }\n`)
    const text = `services: { api: { contract: openapi, mount: /, document: ./taken.yaml, upstream: { targets: ["http://127.0.0.1:9"] }, batch: {} } }`
    const result = await checkConfig(text, {}, folder)
    expect(result.kind === 'faults' && result.faults.map(({ message }) => message)).toEqual([
      'the document already has a path /batch',
    ])
  })
})

describe('the batch route of a plant store', () => {
  const bearer = { Authorization: 'Bearer secret' }
  const plant = (id: string) => `{"path":"/plants","body":{"name":"Fern","id":${id}}}`

  test('creates plants in order, with all digits of their ids, and lists them from the cache', async () => {
    const response = await fetch(`${gateway.publicAddress}/store/batch`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', ...bearer },
      body: `{"requests":[${plant('9223372036854775807')},${plant('9223372036854775806')},{"method":"GET","path":"/plants?limit=05"}]}`,
    })
    const { responses } = (await response.json()) as { responses: Part[] }
    expect([response.status, responses.map(({ status }) => status)]).toEqual([207, [200, 200, 200]])
    expect(responses[0]?.body['sent']).toBe('{"name":"Fern","id":9223372036854775807}')
    expect(steps).toEqual(
      ['POST /plants', 'POST /plants', 'GET /plants?limit=5'].flatMap((one) => [`+${one}`, `-${one}`]),
    )
    await send('store', [get('/plants?limit=5')], bearer)
    expect(steps.filter((step) => step.startsWith('+GET'))).toHaveLength(1)
  })

  test('needs a bearer token, which all items have', async () => {
    const { response, body } = await send('store', [{ path: '/plants', body: { name: 'Fern', id: 1 } }])
    expect([response.status, body]).toMatchObject([401, { error: 401 }])
    const remove = { method: 'DELETE', path: '/plants/1', headers: { Authorization: 'Bearer other' } }
    await send('store', [remove], bearer)
    expect(origin.received.at(-1)).toMatchObject({
      target: '/plants/1',
      headers: { authorization: 'Bearer secret' },
    })
  })

  test('errors have the shape of the plant store', async () => {
    const items = [
      { path: '/none' },
      { path: '/plants', body: {} },
      { method: 'DELETE', path: '/plants/05' },
      { path: '/batch' },
    ]
    const { body } = await send('store', items, bearer)
    expect(body.responses).toEqual(
      [404, 400, 400, 400].map((error) => ({
        body: { error, message: expect.any(String) },
        status: error,
        headers: expect.anything(),
      })),
    )
    expect(steps).toEqual([])
    const { response, body: refused } = await send('store', Array(6).fill(get('/plants')), bearer)
    expect([response.status, refused]).toEqual([400, { error: 400, message: expect.any(String) }])
    expect((await send('alone', [get('/plants')], bearer)).response.status).toBe(404)
  })

  test('is in the document of all services', async () => {
    const response = await fetch(`${gateway.adminAddress}/openapi.json`)
    const { paths } = (await response.json()) as { paths: Record<string, { post?: { responses: object } }> }
    expect(Object.keys(paths).filter((path) => path.endsWith('/batch'))).toEqual(['/store/batch'])
    expect(Object.keys(paths['/store/batch']?.post?.responses ?? {})).toContain('207')
  })
})
