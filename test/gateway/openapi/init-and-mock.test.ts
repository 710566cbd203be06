import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { startDocumentMock } from '../../../demo/document-mock.ts'
import { sampleOf } from '../../../demo/document-sample.ts'
import type { CliPorts } from '../../../src/cli/cli-ports.ts'
import { readDocument } from '../../../src/cli/document-config.ts'
import { checkConfig, configWarnings } from '../../../src/gateway/load-config.ts'
import type { ApiDocument } from '../../../src/openapi/document/api-document.ts'
import { runCommand } from '../../support/command.ts'
import { startTestGateway, type TestGateway } from '../../support/gateway.ts'

/* biome-ignore-start lint/suspicious/noTemplateCurlyInString: references that a document may have in its texts */

const pathOf = (path: string): string => fileURLToPath(new URL(path, import.meta.url))
const pets = pathOf('../../../config/pets.example.yaml')
const petstore = pathOf('../../contracts/openapi/petstore.yaml')

let folder: string
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'trellis-document-'))
})
afterEach(() => rm(folder, { recursive: true }))

const init = async (...operands: readonly string[]) => {
  const initFile = join(folder, 'trellis.yaml')
  const ports: Partial<CliPorts> = {
    initFile,
    siteFacts: () => Promise.reject(new Error('there is no site')),
    upstreamIssues: async () => [],
    upstreamFreshness: async () => 'unknown',
  }
  const { end, stdout, stderr } = await runCommand(['init', 'openapi', ...operands], ports)
  return { end, stdout, stderr, text: end === 0 ? await readFile(initFile, 'utf8') : '' }
}

const configOf = async (text: string) => {
  const result = await checkConfig(text, {}, folder)
  if (result.kind === 'faults') throw new Error(JSON.stringify(result.faults))
  return result.config
}

const activated = (text: string): string =>
  text.replace(
    /^ {4}# (cache:\n)((?: {4}# .*\n)+)/m,
    (_, first: string, rules: string) => `    ${first}${rules.replaceAll(/^ {4}# /gm, '    ')}`,
  )

describe('trellis init openapi writes a configuration for a document', () => {
  test('with its operations, and rules that check accepts once they are in force', async () => {
    const { end, text, stdout } = await init(petstore)
    expect(end).toBe(0)
    expect(stdout).toMatch(
      /Next:\n {2}choose what to cache: .*\n {2}trellis check --upstreams\n {2}trellis start\n$/,
    )
    const config = await configOf(text)
    expect(configWarnings(config)).toEqual([])
    expect(config.services).toMatchObject([
      {
        name: 'swagger-petstore-openapi-3-0',
        contract: 'openapi',
        mount: '/api/v3',
        upstream: { targets: ['https://eu.petstore.example'], basePath: '/api/v3' },
        cache: { rules: [] },
      },
    ])
    expect(text).toContain(
      [
        '    #   METHOD  PATH                    KIND   CREDENTIAL                OPERATION',
        '    #   POST    /pet                    write  bearer                    addPet',
        '    #   GET     /pet/findByStatus       read   -                         findPetsByStatus',
        '    #   GET     /pet/{petId}            item   header api_key or bearer  getPetById',
        '    #   DELETE  /pet/{petId}            write  bearer                    deletePet',
        '    #   GET     /store/inventory        read   query key                 getInventory',
        '    #   GET     /store/order            list   none or header api_key    listOrders',
        '    #   GET     /store/order/{orderId}  item   -                         order # by id',
      ].join('\n'),
    )
    const { cache } = (await configOf(activated(text))).services[0] ?? {}
    expect(cache?.rules.map(({ match, ttlMs }) => [match.text, ttlMs])).toEqual([
      ['GET /pet/findByStatus', 60_000],
      ['GET /pet/{petId}', 60_000],
      ['GET /store/order', 30_000],
      ['GET /store/order/*', 60_000],
    ])
  })

  test('suggests no rule for what logs in or out, gives a token or sets a cookie', async () => {
    const get = (more: object) => ({ get: { responses: { 200: { description: 'ok' } }, ...more } })
    const setsCookie = { headers: { 'Set-Cookie': { schema: { type: 'string' } } }, description: 'ok' }
    const paths = {
      '/user/login': get({ operationId: 'loginUser' }),
      '/user/leave': get({ operationId: 'logoutUser' }),
      '/oauth/authorize': get({}),
      '/v1/api-keys': get({}),
      '/me/sessions': get({}),
      '/access': get({ operationId: 'getAccessToken' }),
      '/sign-in': get({}),
      '/visit': get({ responses: { 200: { $ref: '#/components/responses/Visit' } } }),
      '/authors': get({ operationId: 'listAuthors' }),
      '/blogs/{login}': get({ operationId: 'getBlog' }),
      '/tokenizers': get({}),
    }
    const components = { responses: { Visit: setsCookie } }
    const document = { openapi: '3.1.0', info: { title: 'a', version: '1' }, paths, components }
    await writeFile(join(folder, 'api.json'), JSON.stringify(document))
    const { text } = await init(join(folder, 'api.json'))
    expect(text.match(/^ {4}#\s+GET.* session /gm)).toHaveLength(8)
    const { cache } = (await configOf(activated(text))).services[0] ?? {}
    expect(cache?.rules.map(({ match }) => match.text)).toEqual([
      'GET /authors',
      'GET /blogs/{login}',
      'GET /tokenizers',
    ])
  })

  test('of the shipped example, with the URL of its upstream', async () => {
    const { end, text } = await init(pets, 'http://10.0.0.7:8080/v1')
    expect(end).toBe(0)
    expect((await configOf(activated(text))).services).toMatchObject([
      { name: 'pets', mount: '/v1', upstream: { targets: ['http://10.0.0.7:8080'], basePath: '/v1' } },
    ])
    expect(text).toContain('#     - { operation: "listPets", ttl: 30s }')
  })

  test('without servers, it says that the upstream is to be set', async () => {
    const { stdout } = await init(pets)
    expect(stdout).toContain('set upstream.targets, now http://127.0.0.1:3000')
  })

  test.each([
    ['http://a.example/v1/', '/v1', 'http://a.example'],
    ['http://a.example', '/', 'http://a.example'],
    ['/v1', '/v1', 'http://127.0.0.1:3000'],
    ['/', '/', 'http://127.0.0.1:3000'],
    ['http://a.example/v1:x', '/', 'http://a.example'],
  ])('clients keep the URLs that they have with the server %s', async (url, mount, target) => {
    const paths = { '/a': { get: {} } }
    const document = { openapi: '3.1.0', info: { title: 'a', version: '1' }, servers: [{ url }], paths }
    await writeFile(join(folder, 'api.json'), JSON.stringify(document))
    const { services } = await configOf((await init(join(folder, 'api.json'))).text)
    expect(services).toMatchObject([{ mount, upstream: { targets: [target] } }])
    expect(services[0]?.upstream.health.path).toBe('/')
  })

  test.each(['/health', '/admin/healthz', '/livez', '/readyz'])(
    'the health check asks for %s, and no rule is suggested for it',
    async (path) => {
      const paths = { '/a': { get: {} }, [path]: { get: {} } }
      const document = { openapi: '3.1.0', info: { title: 'a', version: '1' }, paths }
      await writeFile(join(folder, 'api.json'), JSON.stringify(document))
      const { text } = await init(join(folder, 'api.json'))
      const { services } = await configOf(activated(text))
      expect(services[0]?.upstream.health.path).toBe(path)
      expect(services[0]?.cache.rules.map(({ match }) => match.text)).toEqual(['GET /a'])
    },
  )

  test('a relative document is named relative to the configuration', async () => {
    await writeFile(join(folder, 'api.yaml'), await readFile(pets))
    const { text } = await init(join(folder, 'api.yaml'))
    expect(text).toContain(`document: ${JSON.stringify(join(folder, 'api.yaml'))}`)
    const before = process.cwd()
    const relative = await init('nothing.yaml')
    expect(relative).toMatchObject({ end: 1 })
    expect(process.cwd()).toBe(before)
  })

  test('texts of the document cannot add lines, keys or references to the environment', async () => {
    const paths = {
      '/a\nadmin: { token: x }\r\u2028/{x}': { get: { operationId: 'one\ntwo: 3' } },
      '/${HOME}/{x}': { get: { operationId: '${HOME}' } },
      '/**/{x}/..': { get: {} },
      '/a//b': { get: { operationId: 'x'.repeat(600) } },
    }
    const title = '"${HOME}\nlisten: {}'
    const servers = [{ url: 'http://a.example/${HOME}' }]
    const document = { openapi: '3.1.0', info: { title, version: '1' }, servers, paths }
    await writeFile(join(folder, 'api.json'), JSON.stringify(document))
    const { text } = await init(join(folder, 'api.json'))
    for (const one of [text, activated(text)]) {
      const config = await configOf(one)
      expect(config.services.map(({ name }) => name)).toEqual(['home-listen'])
      expect(config.admin.token.isSet).toBe(false)
    }
  })

  test.each([
    ['no document', [], "missing required argument 'file'"],
    ['no URL', [pets, 'ftp://a'], 'Expected the http or https URL of the upstream'],
  ])('%s is a wrong command line', async (_title, operands, message) => {
    const { end, stderr } = await init(...operands)
    expect(end).toBe(2)
    expect(stderr).toContain(message)
  })

  test('faults of the document are listed with their line, and nothing is written', async () => {
    await writeFile(join(folder, 'api.yaml'), 'openapi: 3.1.0\npaths:\n  x: { get: {} }\n')
    const { end, stderr } = await init(join(folder, 'api.yaml'))
    expect(end).toBe(1)
    expect(stderr).toBe(
      'api.yaml:3:3 a path starts with "/"\nCorrect the document, or name another one: trellis init openapi FILE\n',
    )
    await expect(readFile(join(folder, 'trellis.yaml'))).rejects.toThrow('ENOENT')
  })
})

const documentOf = async (file: string): Promise<ApiDocument> => {
  const read = await readDocument(file, '.')
  if (read.kind === 'faults') throw new Error(read.messages.join('\n'))
  return read.document
}

describe('trellis start --demo openapi answers with the examples of the document', () => {
  let gateway: TestGateway
  beforeAll(async () => {
    gateway = await startTestGateway({
      services: {
        petstore: {
          contract: 'openapi',
          mount: '/',
          document: petstore,
          upstream: { targets: ['embedded'] },
          cache: { rules: [{ match: 'GET /**', ttl: '30s' }] },
        },
      },
    })
  })
  afterAll(() => gateway.close())

  const get = async (path: string, headers: Record<string, string> = {}) => {
    const response = await fetch(gateway.publicAddress + path, { headers })
    const text = await response.text()
    return {
      status: response.status,
      body: text === '' ? undefined : JSON.parse(text),
      cacheStatus: response.headers.get('cache-status'),
    }
  }
  const key = { api_key: 'k' }

  test.each([
    ['the first of several examples', {}, 200, { id: 1, name: 'Tom', photoUrls: [] }],
    ['a named example', { Prefer: 'example=dog' }, 200, { id: 2, name: 'Rex', photoUrls: [] }],
    ['a status', { Prefer: 'code=404' }, 404, { code: 400, message: 'stringxxxxxx' }],
    [
      'a status and a name in quotes',
      { Prefer: 'code="200", example="dog"' },
      200,
      { id: 2, name: 'Rex', photoUrls: [] },
    ],
    ['a status without content', { Prefer: 'code=503' }, 503, undefined],
    [
      'an unknown example',
      { Prefer: 'example=bird' },
      404,
      { status: 404, detail: 'the document has no example with this name' },
    ],
  ])('Prefer chooses %s, and each choice is stored apart', async (_title, prefer, status, body) => {
    for (let round = 0; round < 2; round += 1)
      expect(await get('/pet/7', { ...key, ...prefer })).toMatchObject({ status, body })
  })

  test('values are made from schemas where there is no example', async () => {
    expect((await get('/pet/findByStatus')).body).toMatchObject([
      {
        id: 1,
        name: 'doggie',
        photoUrls: ['https://example.com/'],
        status: 'available',
        category: { id: 1 },
      },
    ])
    expect((await get('/store/order/3')).body).toEqual({
      id: 10,
      shipDate: '2026-01-31T12:00:00Z',
      complete: false,
    })
  })

  test('the gateway in front checks and stores', async () => {
    expect((await get('/pet/1e3', key)).status).toBe(400)
    expect((await get('/pet/1')).status).toBe(401)
    expect((await get('/nope')).status).toBe(404)
    await get('/store/order')
    expect((await get('/store/order')).cacheStatus).toMatch(/^trellis; hit/)
  })

  test('a changed document is answered by a mock of the changed document', async () => {
    const file = join(folder, 'api.json')
    const write = async (value: string): Promise<void> => {
      const content = { 'application/json': { example: value } }
      const get = { responses: { 200: { description: '', content } } }
      await writeFile(file, JSON.stringify({ openapi: '3.1.0', info: {}, paths: { '/a': { get } } }))
    }
    await write('old')
    const services = {
      api: { contract: 'openapi', mount: '/', document: file, upstream: { targets: ['embedded'] } },
    }
    const changing = await startTestGateway({ services })
    const read = async () => (await fetch(`${changing.publicAddress}/a`)).json()
    expect(await read()).toBe('old')
    await write('new')
    await changing.put({ services })
    expect(await read()).toBe('new')
    await changing.close()
  })
})

describe('the command line of the demo with a document', () => {
  const run = async (...argv: readonly string[]) => {
    let started: unknown
    const watched: string[] = []
    const { end, stderr } = await runCommand(argv, {
      env: { TRELLIS_PORT: '8081' },
      demoFile: 'config/gateway.yaml',
      startGateway: async (config) => {
        started = config.services.map(({ contract, upstream: { targets } }) => `${contract} ${targets}`)
        return {
          publicAddress: `http://127.0.0.1:${config.listen.port}`,
          adminAddress: 'http://127.0.0.1:9090',
          reload: async () => ({ kind: 'unchanged', hash: '' }),
          warn: () => {},
          faulted: () => {},
          drain: async () => 'finished',
        }
      },
      upstreamIssues: async () => [],
      reloadOnChange: (_gateway, files) => watched.push(...files()),
      stopOnSignal: () => {},
    })
    return { end, stderr, started, watched }
  }

  test('starts a gateway in front of the mock, watches the document, and says what to try', async () => {
    const { end, stderr, started, watched } = await run('start', '--demo', 'openapi', petstore)
    expect([end, started]).toEqual(['running', ['openapi embedded']])
    expect(watched).toEqual([petstore])
    expect(stderr).toContain("curl -i 'http://127.0.0.1:8081/pet/findByStatus'")
    expect(stderr).toContain('Prefer: code=404')
  })

  test.each([
    [['start', 'openapi', petstore]],
    [['start', '--demo', 'openapi']],
    [['start', '--demo', 'open', petstore]],
  ])('%j is a wrong command line', async (argv) => {
    const { end, stderr } = await run(...argv)
    expect(end).toBe(2)
    expect(stderr).toContain(
      'name a configuration with -c FILE, or an OpenAPI document with --demo openapi FILE',
    )
  })

  test('faults of the document are listed', async () => {
    const { end, stderr } = await run('start', '--demo', 'openapi', join(folder, 'none.yaml'))
    expect(end).toBe(1)
    expect(stderr).toContain('none.yaml: the file cannot be read, it does not exist (ENOENT)')
  })
})

describe('values made from schemas', () => {
  const sample = (schema: unknown, more: object = {}) => {
    const root = 'a.json'
    const files = { [root]: { schema, ...more } }
    return sampleOf({ root, files }, { file: root, path: ['schema'], node: schema })
  }

  test.each([
    [{ type: 'integer', minimum: 3, exclusiveMinimum: true }, 4],
    [{ type: 'integer', exclusiveMinimum: 3 }, 4],
    [{ type: 'integer', maximum: -2 }, -2],
    [{ type: 'number', minimum: 1, maximum: 2, multipleOf: 0.5 }, 1],
    [{ type: ['null', 'string'], maxLength: 3 }, 'str'],
    [{ type: 'null' }, null],
    [{ enum: ['b', 'a'] }, 'b'],
    [{ allOf: [{ properties: { a: { const: 1 } } }, { properties: { b: { default: 2 } } }] }, { a: 1, b: 2 }],
    [{ oneOf: [{ type: 'null' }, { type: 'boolean' }] }, true],
    [{ type: 'array', prefixItems: [{ const: 1 }], items: { const: 2 }, minItems: 3 }, [1, 2, 2]],
    [{ type: 'array', maxItems: 0, items: {} }, []],
    [true, {}],
    [{ $ref: '#/none' }, null],
    [{ type: 'object', required: ['a'] }, { a: 'string' }],
  ])('of %j', (schema, expected) => {
    expect(sample(schema)).toEqual(expected)
  })

  test('name the chosen alternative where a discriminator asks for it', () => {
    const schema = {
      oneOf: [{ $ref: '#/cat' }],
      discriminator: { propertyName: 'kind', mapping: { CAT: '#/cat' } },
    }
    const cat = { type: 'object', properties: { kind: { type: 'string' } } }
    expect(sample(schema, { cat })).toEqual({ kind: 'CAT' })
  })

  test('end, for schemas that require themselves and schemas that double at each level', () => {
    const self = { type: 'object', required: ['a'], properties: { a: { $ref: '#/schema' } } }
    expect(JSON.stringify(sample(self)).length).toBeLessThan(1_000)
    const two = { allOf: [{ $ref: '#/schema' }, { $ref: '#/schema' }] }
    expect(sample(two)).toBe(null)
  })

  test('have their members in the order of the document', async () => {
    const document = await documentOf(petstore)
    const mock = await startDocumentMock({ basePath: '/', document })
    const response = await fetch(`${mock.origin}/pet/findByStatus`)
    const [first] = (await response.json()) as object[]
    const names = Object.keys(first ?? {})
    await mock.close()
    expect(names).toEqual(['id', 'name', 'category', 'photoUrls', 'status'])
  })
})

/* biome-ignore-end lint/suspicious/noTemplateCurlyInString: references that a document may have in its texts */
