import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { loadApiDocument } from '../../../../src/openapi/document/read-document.ts'
import { cost } from '../../../support/cost.ts'
import { contractOf, described, oneGet, onePost } from './described.ts'

type Request = Parameters<ReturnType<typeof described>['validate']>[0]

const json = { 'content-type': 'application/json' }
const body = (value: unknown): Request => ({ method: 'POST', content: JSON.stringify(value), headers: json })
const parameter = (name: string, schema: object, more: object = {}) => ({
  name,
  in: 'query',
  schema,
  ...more,
})
const integer = { type: 'integer' }

const onePath = (item: object, more: object = {}): object => ({
  openapi: '3.1.0',
  paths: { '/x': item },
  ...more,
})

const account = {
  type: 'object',
  additionalProperties: false,
  required: ['id', 'password'],
  properties: {
    id: { type: 'integer', readOnly: true },
    password: { type: 'string', writeOnly: true },
  },
}

const pets = {
  components: {
    schemas: {
      Cat: { type: 'object', required: ['purrs'] },
      Dog: { type: 'object', required: ['barks'] },
    },
  },
}
const pet = {
  oneOf: [{ $ref: '#/components/schemas/Cat' }, { $ref: '#/components/schemas/Dog' }],
  discriminator: { propertyName: 'kind', mapping: { cat: '#/components/schemas/Cat' } },
}

const multipart = onePath({
  post: {
    requestBody: {
      required: true,
      content: { 'multipart/form-data': { schema: { type: 'object', required: ['file'] } } },
    },
  },
})
const form = { 'content-type': 'multipart/form-data; boundary=x' }

const formOf = (schema: object): object =>
  onePath({ post: { requestBody: { content: { 'application/x-www-form-urlencoded': { schema } } } } })
const urlencoded = { 'content-type': 'application/x-www-form-urlencoded' }

type Row = readonly [title: string, document: object, request: Request, expected: string]

const rows: readonly Row[] = [
  [
    'a parameter of an operation replaces that of its path',
    onePath({
      parameters: [parameter('n', integer)],
      get: { parameters: [parameter('n', { type: 'boolean' })] },
    }),
    { query: 'n=true' },
    'valid',
  ],
  [
    'a parameter of a path holds beside those of the operation',
    onePath({ parameters: [parameter('n', integer)], get: { parameters: [parameter('m', integer)] } }),
    { query: 'n=true' },
    'invalid_parameter',
  ],
  [
    'one of another location does not replace it',
    onePath({
      parameters: [parameter('n', integer, { required: true })],
      get: { parameters: [{ name: 'n', in: 'header', schema: integer }] },
    }),
    { headers: { n: '1' } },
    'invalid_parameter',
  ],
  [
    'members beside the $ref of a parameter have no meaning',
    onePath(
      { get: { parameters: [{ $ref: '#/components/parameters/n', description: 'x', required: true }] } },
      { components: { parameters: { n: parameter('n', integer) } } },
    ),
    {},
    'valid',
  ],
  ['type: [string, null] takes null', onePost({ type: ['string', 'null'] }), body(null), 'valid'],
  ['type: [string, null] takes no number', onePost({ type: ['string', 'null'] }), body(1), 'invalid_body'],
  [
    'nullable has no meaning in OpenAPI 3.1',
    onePost({ type: 'string', nullable: true }),
    body(null),
    'invalid_body',
  ],
  [
    'a discriminator is a hint: the first kind',
    onePost(pet, '3.1.0', pets),
    body({ kind: 'dog', purrs: 1 }),
    'valid',
  ],
  ['a value of no kind is refused', onePost(pet, '3.1.0', pets), body({ kind: 'cat' }), 'invalid_body'],
  ['a readOnly member may be left out', onePost(account), body({ password: 'x' }), 'valid'],
  ['a readOnly member may be sent', onePost(account), body({ id: 1, password: 'x' }), 'valid'],
  [
    'a readOnly member that is sent is checked',
    onePost(account),
    body({ id: 'x', password: 'x' }),
    'invalid_body',
  ],
  ['a writeOnly member may be required', onePost(account), body({}), 'invalid_body'],
  [
    'reserved characters are accepted with allowReserved',
    oneGet('/x', [parameter('q', { type: 'string', pattern: '^a/b\\?c:d$' }, { allowReserved: true })]),
    { query: 'q=a/b?c:d' },
    'valid',
  ],
  [
    'and without it',
    oneGet('/x', [parameter('q', { type: 'string', pattern: '^a/b\\?c:d$' })]),
    { query: 'q=a/b?c:d' },
    'valid',
  ],
  [
    'a deprecated operation and a deprecated parameter are served',
    onePath({ get: { deprecated: true, parameters: [parameter('n', integer, { deprecated: true })] } }),
    { query: 'n=1' },
    'valid',
  ],
  [
    'a multipart body is checked by type and size',
    multipart,
    { method: 'POST', content: '--x--', headers: form },
    'valid',
  ],
  ['another type in its place is refused', multipart, body({}), 'unsupported_content_type'],
  ['a required multipart body may not be missing', multipart, { method: 'POST' }, 'missing_body'],
  ['a body that is not required may be missing', onePost(integer), { method: 'POST' }, 'valid'],
  ['a body that is not required is checked', onePost(integer), body('x'), 'invalid_body'],
  [
    'a JSON type with parameters is JSON',
    onePost(integer),
    { ...body('x'), headers: { 'content-type': 'Application/JSON; charset=utf-8' } },
    'invalid_body',
  ],
  ...(
    [
      ['utf-7', 'unsupported_content_type'],
      ['"utf-7"', 'unsupported_content_type'],
      ['Shift_JIS', 'unsupported_content_type'],
      ['utf-8; charset=utf-7', 'unsupported_content_type'],
      ['"UTF-8"; version=1', 'valid'],
      ['ISO-8859-1', 'valid'],
    ] as const
  ).map(
    ([charset, expected]): Row => [
      `a JSON body with charset=${charset}, whose quotation marks may be others`,
      onePost(account),
      {
        method: 'POST',
        content: '{"password":"+ACI-,+ACI-id+ACI-:+ACI-x"}',
        headers: { 'content-type': `application/json; charset=${charset}` },
      },
      expected,
    ],
  ),
  ...(
    [
      ['a=1&x=2', 'valid'],
      ['a=1&x=%32', 'valid'],
      ['a=1&x=no', 'invalid_body'],
      ['a=1&x=no&x=2', 'invalid_body'],
    ] as const
  ).map(
    ([content, expected]): Row => [
      `undeclared members of a form are read by the schema for them: ${content}`,
      formOf({ type: 'object', properties: { a: integer }, additionalProperties: integer }),
      { method: 'POST', content, headers: urlencoded },
      expected,
    ],
  ),
  ...(
    [
      ['x=%61%62', 'valid'],
      ['x=%3C', 'invalid_body'],
    ] as const
  ).map(
    ([content, expected]): Row => [
      `undeclared members of a form are checked decoded: ${content}`,
      formOf({ type: 'object', patternProperties: { '^x': { pattern: '^[^<]*$', maxLength: 2 } } }),
      { method: 'POST', content, headers: urlencoded },
      expected,
    ],
  ),
  [
    'undeclared members of a form may be repeated where nothing describes them',
    formOf({ type: 'object', properties: { a: integer } }),
    { method: 'POST', content: 'tags[]=a&tags[]=b', headers: urlencoded },
    'valid',
  ],
  ...(
    [
      ['0.01', 'valid', ['19.99', '4.35', '0.07', '-1.1', '100', '1e2', '0']],
      ['0.01', 'invalid_body', ['1.005', '0.001', '19.990000000000002']],
      ['0.1', 'valid', ['0.3', '0.7']],
      ['5', 'valid', ['10', '9007199254740995', '-5.0']],
      ['5', 'invalid_body', ['12', '9007199254740993', '2.5']],
      ['2', 'invalid_body', ['9223372036854775807']],
      ['1e-7', 'valid', ['0.0000003', '1']],
    ] as const
  ).flatMap(([of, expected, numbers]) =>
    numbers.map(
      (content): Row => [
        `${content}, with multipleOf ${of}, by its digits`,
        onePost({ type: 'number', multipleOf: Number(of) }),
        { method: 'POST', content, headers: { 'content-type': 'application/json' } },
        expected,
      ],
    ),
  ),
  ...(
    [
      ['[9223372036854775806,9223372036854775807]', 'valid'],
      ['[9223372036854775807,1,9223372036854775807]', 'invalid_body'],
      ['[1,1.0]', 'invalid_body'],
    ] as const
  ).map(
    ([ids, expected]): Row => [
      `${ids} with uniqueItems: long integers that share a double are different`,
      onePost({ type: 'object', properties: { ids: { type: 'array', uniqueItems: true } } }),
      { method: 'POST', content: `{"ids":${ids}}`, headers: { 'content-type': 'application/json' } },
      expected,
    ],
  ),
  [
    'a body without a media type is refused',
    onePost(integer),
    { method: 'POST', content: '1' },
    'unsupported_content_type',
  ],
  [
    'JSON in a parameter is read by its schema',
    oneGet('/x', [{ name: 'f', in: 'query', content: { 'application/json': { schema: account } } }]),
    { query: 'f=%7B%22password%22:1%7D' },
    'invalid_parameter',
  ],
  [
    'a parameter with another content is forwarded unchecked',
    oneGet('/x', [{ name: 'f', in: 'query', content: { 'application/xml': { schema: integer } } }]),
    { query: 'f=%3Ca/%3E' },
    'valid',
  ],
  [
    'HEAD is checked as the GET',
    oneGet('/x', [parameter('n', integer)]),
    { method: 'HEAD', query: 'n=x' },
    'invalid_parameter',
  ],
  [
    'HEAD of its own is checked by its own description',
    onePath({ head: {}, get: { parameters: [parameter('n', integer)] } }),
    { method: 'HEAD', query: 'n=x' },
    'valid',
  ],
  [
    'paths are not below the path of a server',
    onePath({ get: {} }, { servers: [{ url: '/{stage}/v1', variables: { stage: { default: 'live' } } }] }),
    {},
    'valid',
  ],
]

describe('details of OpenAPI', () => {
  test.each(rows)('%s', (_title, document, request, expected) => {
    const result = described(document).validate(request)
    expect(result.kind === 'valid' ? 'valid' : result.code).toBe(expected)
  })

  test('a document with webhooks only has no routes', () => {
    const document = { openapi: '3.1.0', webhooks: { sold: { post: { requestBody: { content: {} } } } } }
    expect(contractOf(document).operations).toEqual([])
    expect(described(document).find('POST', '/sold').kind).toBe('unlisted')
  })
})

describe('a document that is made to cost time', () => {
  test('may list a hundred thousand values, and a request is compared with them in little time', () => {
    const document = onePost({ enum: Array.from({ length: 100_000 }, (_, index) => `value ${index}`) })
    const service = described(document)
    service.validate(body('value 1'))
    expect(service.validate(body('value 99999')).kind).toBe('valid')
    expect(cost(() => service.validate(body('none')), 200)).toBeLessThan(200)
  })

  test('may have long descriptions, which the contract does not hold', () => {
    const document = onePost({ type: 'string', description: 'long '.repeat(2_000_000), maxLength: 3 })
    expect(JSON.stringify(contractOf(document).operations).length).toBeLessThan(1_000)
    expect(described(document).validate(body('long')).kind).toBe('invalid')
  })

  const nested = (depth: number): object => {
    let schema: object = { type: 'string' }
    for (let level = 0; level < depth; level += 1) schema = { allOf: [schema] }
    return schema
  }
  const chained = (length: number): object => ({
    components: {
      schemas: Object.fromEntries(
        Array.from({ length }, (_, index) => [
          `s${index}`,
          index === length - 1
            ? { type: 'string' }
            : { allOf: [{ $ref: `#/components/schemas/s${index + 1}` }] },
        ]),
      ),
    },
  })

  test('may nest schemas, and chain references, a hundred deep', () => {
    expect(described(onePost(nested(100))).validate(body(1)).kind).toBe('invalid')
    const chain = onePost({ $ref: '#/components/schemas/s0' }, '3.1.0', chained(100))
    expect(described(chain).validate(body(1)).kind).toBe('invalid')
  })

  const refusalOf = async (text: string): Promise<unknown> => {
    const folder = await mkdtemp(join(tmpdir(), 'deep-'))
    try {
      await writeFile(join(folder, 'api.json'), text)
      const reading = await loadApiDocument(join(folder, 'api.json'))
      return reading.kind === 'faults' ? reading.messages : []
    } finally {
      await rm(folder, { recursive: true })
    }
  }

  test.each([
    ['nests schemas', '3.0.3', nested(400), {}],
    ['nests schemas, in 3.1', '3.1.0', nested(400), {}],
    ['chains references', '3.1.0', { $ref: '#/components/schemas/s0' }, chained(5_000)],
  ])(
    'is refused with its line if it %s behind more than 300 others',
    async (_title, version, schema, more) => {
      expect(await refusalOf(JSON.stringify(onePost(schema, version, more), null, 1))).toEqual([
        expect.stringMatching(/^api\.json:\d\d+:\d+ the schema is behind more than 300 others/),
      ])
    },
  )

  test.each([
    ['JSON', '{"openapi":"3.1.0","x-a":', ''],
    ['YAML', 'openapi: 3.1.0\nx-a: ', ''],
    ['YAML with a fault', 'openapi: 3.1.0\nx-a: ', ']'],
  ])('is refused if it is %s that is nested deeper than code can follow', async (_title, head, end) => {
    const text = `${head}${'['.repeat(100_000)}${']'.repeat(100_000)}${head.startsWith('{') ? '}' : ''}${end}`
    expect(await refusalOf(text)).toEqual(['api.json:1:1 is nested deeper than 1000 levels'])
  })

  test('may have member names by patterns that hang other engines', () => {
    const hostile = '^(a+)+$'
    const document = onePost({
      patternProperties: { [hostile]: { type: 'integer' } },
      additionalProperties: false,
    })
    const service = described(document)
    const name = `${'a'.repeat(5_000)}!`
    service.validate(body({ a: 1 }))
    expect(cost(() => expect(service.validate(body({ [name]: 1 })).kind).toBe('invalid'), 500)).toBeLessThan(
      500,
    )
    expect(service.validate(body({ aaa: 'x' })).kind).toBe('invalid')
  })
})
