import { mkdir, mkdtemp, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeAll, describe, expect, test } from 'vitest'
import type { OpenApiConfig } from '../../../src/config/config.ts'
import { filledAsData } from '../../../src/config/load.ts'
import { checkConfig, configFromData } from '../../../src/gateway/load-config.ts'
import { logReload } from '../../../src/gateway/snapshot/reload.ts'
import { apiDocumentOf } from '../../../src/openapi/document/api-document.ts'
import { documentHints } from '../../../src/openapi/hints.ts'
import { startTestGateway } from '../../support/gateway.ts'
import { startOrigin } from '../../support/origin.ts'

let folder = ''

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'documents-'))
  await mkdir(join(folder, 'api/parts'), { recursive: true })
})

const head = 'openapi: 3.1.0\ninfo: { title: x, version: "1" }\npaths:\n'

const write = async (name: string, text: string): Promise<void> => writeFile(join(folder, name), text)

const configOf = (more = '', document = 'api/api.yaml'): string =>
  `services:\n  api:\n    contract: openapi\n    mount: /\n    document: ${document}\n    upstream: { targets: ["http://127.0.0.1:9"] }\n${more}`

const faultsOf = async (text: string, more = ''): Promise<string[]> => {
  await write('api/api.yaml', text)
  const result = await checkConfig(configOf(more), {}, folder)
  return result.kind === 'faults'
    ? result.faults.map(({ line, path, message }) => `${line} ${path}: ${message}`)
    : []
}

describe('faults of a document are named with their line', () => {
  const nowhere = 'the reference leads to nothing in this document or below its folder'
  const cases: readonly (readonly [string, string, string])[] = [
    [
      'another format',
      'swagger: "2.0"',
      'api.yaml:1:1 expected an OpenAPI document of version 3.0, 3.1 or 3.2',
    ],
    ['YAML with a fault', 'openapi: 3.1.0\npaths: {', 'api.yaml:2:9 not YAML or JSON: '],
    ['a path without a slash', `${head}  x: { get: {} }`, 'api.yaml:4:3 a path starts with "/"'],
    [
      'a parameter that is not there',
      `${head}  /a:\n    get:\n      parameters:\n        - $ref: '#/nope'`,
      `api.yaml:7:11 ${nowhere}`,
    ],
    [
      'a schema that is not there',
      `${head}  /a:\n    get:\n      parameters:\n        - { name: a, in: query, schema: { $ref: '#/nope' } }`,
      `api.yaml:7:33 ${nowhere}`,
    ],
    ['a file above the folder', `${head}  /a: { $ref: '../secret.yaml#/a' }`, `api.yaml:4:3 ${nowhere}`],
    ['an absolute file', `${head}  /a: { $ref: '/etc/passwd' }`, `api.yaml:4:3 ${nowhere}`],
    [
      'an extension that names no path of the document',
      `${head}  /a:\n    post: { x-trellis-invalidates: [/b] }`,
      'api.yaml:5:5 the document has no path that is or begins with /b',
    ],
    [
      'an extension of another type',
      `${head}  /a:\n    post: { x-trellis-invalidates: /a }`,
      'api.yaml:5:13 expected a list of paths of the document',
    ],
    [
      'a resource with a member of another name',
      `${head}  /a:\n    x-trellis-resource: { collections: /a }\n    post: {}`,
      'api.yaml:5:5 expected collection, id (with collection) and members (JSON Pointers with collections)',
    ],
    [
      'a resource whose id is no parameter of the path',
      `${head}  /a/{x}:\n    x-trellis-resource: { collection: /a, id: y }\n    post: {}`,
      'api.yaml:6:5 the path has no parameter {y}',
    ],
    ['a URL', `${head}  /a: { $ref: 'https://example.com/a.yaml' }`, `api.yaml:4:3 ${nowhere}`],
  ]

  test.each(cases)('%s', async (_title, text, expected) => {
    await write('secret.yaml', 'a: { get: {} }')
    expect(await faultsOf(text)).toEqual([expect.stringContaining(`5 services.api.document: ${expected}`)])
  })

  test('a document that does not exist', async () => {
    const result = await checkConfig(configOf('', 'api/none.yaml'), {}, folder)
    expect(result.kind === 'faults' && result.faults.map(({ message }) => message)).toEqual([
      'none.yaml: the file cannot be read, it does not exist (ENOENT)',
    ])
  })

  test('a rule for an operation that the document does not have, or that is no GET', async () => {
    const rules =
      '    cache: { rules: [{ operation: none, ttl: 1s }, { operation: write, ttl: 1s }, { ttl: 1s }] }\n'
    expect(await faultsOf(`${head}  /a: { post: { operationId: write } }`, rules)).toEqual([
      '7 services.api.cache.rules[2]: expected either match or operation',
    ])
    const named = rules.replace(', { ttl: 1s }', '')
    expect(await faultsOf(`${head}  /a: { post: { operationId: write } }`, named)).toEqual([
      '7 services.api.cache.rules[0].operation: the document has no operation with this operationId',
      '7 services.api.cache.rules[1].operation: only responses to GET, HEAD and QUERY are stored',
    ])
  })
})

describe('a document of more than a megabyte, which a thread of its own reads', () => {
  const padding = `  /long: { get: { description: ${'long '.repeat(220_000)} } }\n`

  test('has the same faults', async () => {
    expect(await faultsOf(`${head}${padding}  x: { get: {} }`)).toEqual([
      '5 services.api.document: api.yaml:5:3 a path starts with "/"',
    ])
  })

  test('has the same operations, and is the same document for a worker process', async () => {
    const shared = 'schema: { $ref: "#/components/schemas/n" }'
    const parameters = `parameters: [{ name: n, in: query, ${shared} }]`
    const components = 'components: { schemas: { n: { type: integer } } }\n'
    await write(
      'api/api.yaml',
      `${head}${padding}  /a: { get: { operationId: a, ${parameters} } }\n${components}`,
    )
    const result = await checkConfig(configOf(), {}, folder)
    if (result.kind !== 'ok') throw new Error(JSON.stringify(result.faults))
    const [service] = result.config.services
    const document = apiDocumentOf(service as OpenApiConfig)
    expect(document.contract.operations.map(({ operationId }) => operationId)).toEqual(['', 'a'])
    expect(document.title).toBe('x')
    const handed = configFromData(JSON.parse(JSON.stringify(filledAsData(result.filled))))
    if (handed.kind !== 'ok') throw new Error(JSON.stringify(handed.faults))
    expect(handed.hash).toBe(result.hash)
    const [same] = handed.config.services
    expect(apiDocumentOf(same as OpenApiConfig).contract).toEqual(document.contract)
    expect(apiDocumentOf(same as OpenApiConfig).bundle).toEqual(document.bundle)
  })
})

test('references lead to files below the folder of the document, and data named $ref is not a reference', async () => {
  await write(
    'api/parts/item.json',
    JSON.stringify({ get: { parameters: [{ $ref: 'shared.yaml#/limit' }] } }),
  )
  await write(
    'api/parts/shared.yaml',
    'limit: { name: limit, in: query, schema: { $ref: "#/number" } }\nnumber: { type: integer }\n',
  )
  await write('api/api.yaml', `${head}  /a: { $ref: 'parts/item.json', x-example: { $ref: none.yaml } }\n`)
  const result = await checkConfig(configOf(), {}, folder)
  expect(result.kind === 'ok' && result.files.map((file) => file.slice(folder.length))).toEqual([
    '/api/api.yaml',
    '/api/parts/item.json',
    '/api/parts/shared.yaml',
  ])
})

test('check lists what is accepted and not checked, with its lines', async () => {
  const body =
    'requestBody: { content: { application/xml: {}, application/json: { schema: { pattern: "(?=a)" } } } }'
  await write('api/parts/c.json', '{\n "get": {}\n}')
  await write(
    'api/api.yaml',
    `${head}  /c/{x}: { get: { security: [{ none: [] }] } }\n  /c/{y}: { $ref: parts/c.json }\n  /a#one: { post: {} }\n  /a#two: { post: {} }\n  /b: { post: { ${body} } }\n  /d/{x}: { get: {} }\n  /d/{y}: { put: {}, post: {} }\n`,
  )
  const result = await checkConfig(configOf(), {}, folder)
  if (result.kind !== 'ok') throw new Error(JSON.stringify(result.faults))
  expect((await documentHints(result.config)).map(({ text }) => text)).toEqual([
    'api.yaml:4:13 GET /c/{x} takes a credential that is not described: its responses are not stored',
    'parts/c.json:2:2 GET /c/{y} matches the same requests as /c/{x}, because the two differ in names only: neither parameters nor bodies are checked; the first is at api.yaml:4:13',
    'api.yaml:7:13 POST /a stands for several operations: neither parameters nor bodies are checked; the first is at api.yaml:6:13',
    'api.yaml:10:22 /d/{y} differs from /d/{x} in names only, which OpenAPI does not allow: requests are checked by their method; the first is at api.yaml:9:13',
    'GET /c/{x}: bodies of */* are checked by size only',
    'POST /a: bodies of */* are checked by size only',
    'the pattern "(?=a)" is not checked: it cannot be run in linear time with the same result',
    'POST /b: bodies of application/xml are checked by size only',
  ])
})

test('a document in JSON has its lines too', async () => {
  await write(
    'api/api.json',
    JSON.stringify({ openapi: '3.1.0', paths: { '/é/{x}': { get: {} }, '/é/{y}': { get: {} } } }, null, 1),
  )
  const result = await checkConfig(configOf('', 'api/api.json'), {}, folder)
  if (result.kind !== 'ok') throw new Error(JSON.stringify(result.faults))
  expect((await documentHints(result.config)).map(({ text }) => text)).toEqual([
    expect.stringMatching(/^api\.json:8:4 GET .*; the first is at api\.json:5:4$/),
    'GET /é/{x}: bodies of */* are checked by size only',
  ])
})

test('a changed document holds for the next request, drops what is stored, and the log names the operations', async () => {
  const origin = await startOrigin((_request, wire) =>
    wire.respond({ headers: { ETag: '"1"' }, content: 'x' }),
  )
  const document = join(folder, 'api/api.yaml')
  const operation = 'get: { x-trellis-cache: { ttl: 60s } }'
  const config = {
    services: { api: { contract: 'openapi', mount: '/', document, upstream: { targets: [origin.origin] } } },
  }
  await write('api/api.yaml', `${head}  /a: { ${operation} }\n  /old: { get: {} }\n`)
  const gateway = await startTestGateway(config)
  const send = async (path: string) => {
    const response = await fetch(gateway.publicAddress + path)
    await response.text()
    return [response.status, response.headers.get('cache-status')] as const
  }
  try {
    await send('/a')
    expect((await send('/a'))[1]).toContain('hit')
    await write('api/api.yaml', `${head}  /a: { ${operation} }\n  /new: { get: {} }\n`)
    const outcome = await gateway.reload()
    const lines: object[] = []
    logReload({ info: (facts) => lines.push(facts), error: () => {} }, outcome)
    expect(lines).toEqual([
      {
        outcome: 'applied',
        changed: ['services.api.document'],
        hash: expect.any(String),
        documents: [{ service: 'api', added: 1, removed: 1, operations: ['+ GET /new', '- GET /old'] }],
      },
    ])
    expect([(await send('/old'))[0], (await send('/new'))[0]]).toEqual([404, 200])
    expect((await send('/a'))[1]).toContain('fwd=uri-miss')
    await write('api/api.yaml', 'openapi: 4.0.0')
    expect((await gateway.reload()).kind).toBe('invalid')
    expect((await send('/new'))[0]).toBe(200)
  } finally {
    await gateway.close()
    await origin.close()
  }
})
