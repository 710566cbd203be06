import { Validator } from '@seriousme/openapi-schema-validator'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { describe, expect, test } from 'vitest'
import type { DescribedService } from '../../../../src/openapi/served/openapi-document.ts'
import { openApiDocument } from '../../../../src/openapi/served/openapi-document.ts'
import { openRows } from '../../../../src/service/open.ts'
import type { Row } from '../../../../src/service/row.ts'
import { siteRows } from '../../../../src/wordpress/routes/route-table.ts'
import { plantRows } from '../../../support/plants.ts'

type Schema = { readonly [keyword: string]: unknown }
type Operation = {
  readonly operationId: string
  readonly tags: readonly string[]
  readonly security?: readonly Schema[]
  readonly parameters: readonly {
    readonly name: string
    readonly in: string
    readonly [key: string]: unknown
  }[]
  readonly requestBody?: { readonly content: Record<string, { readonly schema?: Schema }> }
  readonly responses: Record<string, { readonly content?: Record<string, unknown> }>
}
type Document = {
  readonly servers: readonly { readonly url: string }[]
  readonly paths: Record<string, Record<string, Operation>>
  readonly components: { readonly schemas: Record<string, Schema> }
  readonly 'x-paths-of-the-same-shape'?: unknown
}

const learned: Row = {
  id: 'acme/v1/odd/{name}',
  template: '/acme/v1/odd/{name}',
  pattern: '/acme/v1/odd/(?P<name>.+)',
  namespace: 'acme/v1',
  collection: 'acme/v1/odd',
  kind: 'item',
  handledBy: 'upstream',
  endpoints: [
    {
      methods: ['GET'],
      arguments: {
        tax: { type: 'object', properties: { terms: { type: 'array', items: { type: 'integer' } } } },
        above: { type: 'number', minimum: 1, exclusiveMinimum: true, maximum: 9, exclusiveMaximum: false },
        php: { type: 'string', pattern: '^(?<=x)[[:alpha:]]++$' },
        anything: {},
        one: { required: true, type: ['integer', 'null'], readonly: true, context: ['view'] },
      },
    },
  ],
}

const services: readonly DescribedService[] = [
  { name: 'plants', contract: 'plants', mount: '', rows: plantRows({ limitParameter: 'limit' }) },
  { name: 'site', contract: 'site', mount: '/index.php/site-json', rows: [...siteRows, learned] },
  { name: 'legacy', contract: 'open', mount: '/legacy', rows: openRows },
]
const built = openApiDocument({ publicUrl: 'https://api.example.org', version: '1.2.3', services })
// As it is sent.
const document = JSON.parse(JSON.stringify(built)) as Document

const resolved = (schema: Schema | undefined): Schema => {
  const reference = schema?.['$ref']
  if (typeof reference !== 'string') return schema ?? {}
  return document.components.schemas[reference.replace('#/components/schemas/', '')] ?? {}
}

const operationAt = (path: string, method: string): Operation => {
  const operation = document.paths[path]?.[method]
  if (operation === undefined) throw new Error(`no ${method} ${path}`)
  return operation
}

test('a validator of OpenAPI 3.1 finds no fault', async () => {
  const validator = new Validator()
  const result = await validator.validate(JSON.parse(JSON.stringify(built)) as Record<string, unknown>)
  expect(result.errors ?? []).toEqual([])
  expect(result.valid).toBe(true)
  expect(validator.version).toBe('3.1')
})

test('every schema is one of JSON Schema 2020-12', () => {
  const ajv = new Ajv2020({ strict: false, allErrors: true })
  const schemas = [
    ...Object.values(document.components.schemas),
    ...Object.values(document.paths).flatMap((operations) =>
      Object.values(operations).flatMap(({ parameters }) => parameters.map((one) => one['schema'] as Schema)),
    ),
  ]
  expect(schemas.length).toBeGreaterThan(300)
  const faulty = schemas.filter((schema) => ajv.validateSchema(schema) !== true)
  expect(faulty).toEqual([])
})

test('every reference leads somewhere, every operation has its own name', () => {
  const references = [...JSON.stringify(document).matchAll(/"\$ref":"#\/components\/schemas\/([^"]+)"/g)]
  expect(references.length).toBeGreaterThan(100)
  for (const [, name] of references) expect(document.components.schemas).toHaveProperty([name as string])
  const ids = Object.values(document.paths).flatMap((operations) =>
    Object.values(operations).map(({ operationId }) => operationId),
  )
  expect(new Set(ids).size).toBe(ids.length)
})

/** Every argument that the tables list: path, method, name. */
const listed = services
  .filter(({ contract }) => contract !== 'open')
  .flatMap(({ mount, rows }) =>
    rows.flatMap(({ template, endpoints }) =>
      endpoints.flatMap((endpoint) =>
        endpoint.methods.map((method) => ({
          path: mount + template,
          method: method.toLowerCase(),
          names: Object.keys(endpoint.arguments),
        })),
      ),
    ),
  )

const namesIn = ({ parameters, requestBody }: Operation): string[] => {
  const body = resolved(requestBody?.content['application/json']?.schema)
  return [...parameters.map(({ name }) => name), ...Object.keys((body['properties'] ?? {}) as object)]
}

test('every row, method and argument is in it', () => {
  for (const { path, method, names } of listed) {
    expect(namesIn(operationAt(path, method)), `${method} ${path}`).toEqual(expect.arrayContaining(names))
  }
  expect(listed.length).toBeGreaterThan(100)
  expect(listed.flatMap(({ names }) => names).length).toBeGreaterThan(800)
  expect(document['x-paths-of-the-same-shape']).toBeUndefined()
})

test('each parameter of a path is declared as one', () => {
  for (const [path, operations] of Object.entries(document.paths)) {
    const names = [...path.matchAll(/\{([^}]+)\}/g)].map(([, name]) => name)
    for (const { parameters } of Object.values(operations)) {
      const declared = parameters.filter((one) => one.in === 'path').map(({ name }) => name)
      expect(declared).toEqual(names)
    }
  }
})

describe('schemas', () => {
  const schemaOf = (name: string): unknown =>
    operationAt('/index.php/site-json/acme/v1/odd/{name}', 'get').parameters.find((one) => one.name === name)

  test.each([
    [
      'a bound that a boolean makes exclusive',
      'above',
      { name: 'above', in: 'query', schema: { type: 'number', exclusiveMinimum: 1, maximum: 9 } },
    ],
    [
      'a pattern that is not JavaScript',
      'php',
      { name: 'php', in: 'query', schema: { type: 'string', 'x-php-pattern': '^(?<=x)[[:alpha:]]++$' } },
    ],
    ['an argument of which nothing is known', 'anything', { name: 'anything', in: 'query', schema: {} }],
    [
      'required inside the argument, and a union',
      'one',
      {
        name: 'one',
        in: 'query',
        required: true,
        schema: { type: ['integer', 'null'], readOnly: true, 'x-context': ['view'] },
      },
    ],
    [
      'an object in the query',
      'tax',
      {
        name: 'tax',
        in: 'query',
        style: 'deepObject',
        explode: true,
        schema: { type: 'object', properties: { terms: { type: 'array', items: { type: 'integer' } } } },
      },
    ],
    [
      'an identifier that takes slashes',
      'name',
      {
        name: 'name',
        in: 'path',
        required: true,
        description: 'May contain slashes, which are sent as they are and not as %2F.',
        schema: { type: 'string' },
        'x-takes-slashes': true,
      },
    ],
  ])('%s', (_description, name, expected) => {
    expect(schemaOf(name)).toEqual(expected)
  })

  test('required members are listed by their object, however they were marked', () => {
    const plant = resolved(operationAt('/plants', 'post').requestBody?.content['application/json']?.schema)
    expect(plant).toMatchObject({
      required: ['name', 'id'],
      properties: { id: { type: 'integer', format: 'int64' } },
    })
    const edit = operationAt('/index.php/site-json/site/v2/media/{id}/edit', 'post')
    const modifiers = resolved(edit.requestBody?.content['application/json']?.schema)['properties']
    expect(modifiers).toMatchObject({ modifiers: { items: { required: ['type', 'args'] } } })
  })

  test('template identifiers take slashes, numbers do not', () => {
    const marked = (path: string): boolean =>
      operationAt(path, 'get').parameters.some((one) => one['x-takes-slashes'] === true)
    expect(marked('/index.php/site-json/site/v2/templates/{id}')).toBe(true)
    expect(marked('/index.php/site-json/site/v2/posts/{id}')).toBe(false)
  })
})

describe('each contract', () => {
  test('has its own errors and its own authentication', () => {
    const facts = ['/plants', '/index.php/site-json/site/v2/posts', '/legacy/{path}'].map((path) => {
      const { responses, security } = operationAt(path, 'get')
      return [JSON.stringify(responses['4XX']?.content), security]
    })
    expect(facts).toEqual([
      ['{"application/json":{"schema":{"$ref":"#/components/schemas/PlantError"}}}', [{ bearer: [] }]],
      ['{"application/json":{"schema":{"$ref":"#/components/schemas/SiteError"}}}', [{}, { basic: [] }]],
      ['{"application/problem+json":{"schema":{"$ref":"#/components/schemas/Problem"}}}', undefined],
    ])
  })

  test('what takes uploads says so', () => {
    const { requestBody } = operationAt('/index.php/site-json/site/v2/media', 'post')
    expect(Object.keys(requestBody?.content ?? {})).toEqual([
      'application/json',
      'application/x-www-form-urlencoded',
      'multipart/form-data',
      'application/octet-stream',
    ])
    expect(requestBody).not.toHaveProperty('required')
  })

  test('paths begin with the mount, behind the public URL', () => {
    expect(document.servers).toEqual([{ url: 'https://api.example.org' }])
    expect(Object.keys(document.paths)).toEqual(
      expect.arrayContaining(['/plants/{id}', '/index.php/site-json/', '/legacy/{path}']),
    )
  })
})

test('two rows that differ in the name of a parameter only: the first is described, the second is named', () => {
  const rows = [learned, { ...learned, id: 'other', template: '/acme/v1/odd/{slug}' }]
  const { paths, 'x-paths-of-the-same-shape': hidden } = openApiDocument({
    publicUrl: 'http://x',
    version: '1',
    services: [{ name: 'site', contract: 'site', mount: '', rows }],
  }) as unknown as Document
  expect(Object.keys(paths)).toEqual(['/acme/v1/odd/{name}'])
  expect(hidden).toEqual([{ path: '/acme/v1/odd/{slug}', methods: ['get'] }])
})
