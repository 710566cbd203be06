import { filled, type Made, numbered } from './costly-bodies.ts'

// Bodies for the operations of an OpenAPI document of which each octet costs as much as it can.

const formType = 'application/x-www-form-urlencoded'
const jsonType = 'application/json'

const list = (items: object, more: object = {}): object => ({ type: 'array', items, ...more })
const text = { type: 'string' }
const integer = { type: 'integer' }

/** By the name of the path whose operation takes them. */
const schemas: Readonly<Record<string, object>> = {
  any: {},
  integers: list(integer),
  int64: list({ type: 'integer', format: 'int64' }),
  numbers: list({ type: 'number' }),
  multiples: list({ type: 'number', multipleOf: 0.01 }),
  unique: list({}, { uniqueItems: true }),
  texts: list({ enum: Array.from({ length: 10_000 }, (_, at) => `value ${at}`) }),
  objects: list({ enum: Array.from({ length: 10_000 }, (_, at) => ({ a: at })) }),
  patterns: list({ type: 'string', pattern: '^(?:[a-z]+[0-9]?)+$' }),
  names: {
    type: 'object',
    patternProperties: { '^(?:[a-z]+|[0-9])+x$': integer },
    additionalProperties: false,
  },
  forms: list({
    oneOf: Array.from({ length: 10 }, (_, at) => ({
      type: 'object',
      required: [`k${at}`],
      properties: { [`k${at}`]: integer },
    })),
  }),
  tree: { $ref: '#/components/schemas/Tree' },
  members: {
    type: 'object',
    anyOf: [{ properties: { a: integer } }, { properties: { b: {} } }],
    unevaluatedProperties: integer,
  },
  items: {
    type: 'array',
    anyOf: [{ prefixItems: [integer] }, { contains: integer }],
    unevaluatedItems: integer,
  },
  dates: list({ type: 'string', format: 'date-time' }),
}

const tree = {
  anyOf: [
    integer,
    { type: 'array', items: { $ref: '#/components/schemas/Tree' } },
    { type: 'object', additionalProperties: { $ref: '#/components/schemas/Tree' } },
  ],
}

const operation = (mediaType: string, schema: object, encoding: object = {}) => ({
  post: { requestBody: { content: { [mediaType]: { schema, encoding } } }, responses: {} },
})

/** The document of all of them. */
export const costlyDocument = {
  openapi: '3.1.0',
  info: { title: 'Costly bodies', version: '1' },
  components: { schemas: { Tree: tree } },
  paths: {
    '/form': operation(
      formType,
      { type: 'object', properties: { content: text, list: list(text), filter: { type: 'object' } } },
      { filter: { style: 'deepObject' } },
    ),
    ...Object.fromEntries(
      Object.entries(schemas).map(([name, schema]) => [`/${name}`, operation(jsonType, schema)]),
    ),
  },
}

/** Ten characters for each level: a megabyte has as many of them as may be read. */
const deep = (open: string, close: string): string =>
  `${open.padEnd(10 - close.length).repeat(60)}1${close.repeat(60)},`
const json = (path: string, title: string, made: Made): Costly => [title, jsonType, made, `/${path}`]
const listed = (path: string, title: string, piece: (at: number) => string): Costly =>
  json(path, title, (bytes) => numbered(bytes, '[', piece, '1]'))
const form = (title: string, made: Made): Costly => [title, formType, made, '/form']

type Costly = readonly [title: string, type: string, made: Made, path: string]

/** At most 10,000 pairs of a form are read. */
const pairs = (piece: (at: number) => string): Made => {
  return (bytes) => numbered(bytes - 5_000, '', piece, 'z=1')
}

export const costlyForDocuments: readonly Costly[] = [
  form('a form of plus signs', (bytes) => filled(bytes, 'content=', '+')),
  form('a form of words with plus signs', (bytes) => filled(bytes, 'content=', 'a+')),
  form('a form of escapes', (bytes) => filled(bytes, 'content=', '%2B')),
  form('a form of umlauts in escapes', (bytes) => filled(bytes, 'content=', '%C3%A4')),
  form('a form of octets that are no UTF-8', (bytes) => filled(bytes, 'content=', '\xff')),
  form('a form of nothing but ampersands', (bytes) => filled(bytes, '', '&')),
  form('a form of short pairs', (bytes) => filled(bytes, '', 'a&')),
  form(
    'a form of undeclared pairs',
    pairs((at) => `n${at}x=${'a+'.repeat(50)}&`),
  ),
  form(
    'a form of members in brackets',
    pairs((at) => `filter[n${at}]=${'a+'.repeat(50)}&`),
  ),
  form('a form of one long name', (bytes) => filled(bytes, '', 'a+', '=1')),
  form('a form of brackets', (bytes) => filled(bytes, 'filter[', 'a[', ']=1')),
  form(
    'a form of a repeated list',
    pairs(() => `list=${'+'.repeat(100)}&`),
  ),
  listed('integers', 'integers of 23 digits', () => '12345678901234567890123,'),
  listed('any', 'undescribed integers of 23 digits', () => '12345678901234567890123,'),
  listed('int64', 'integers of 17 digits', () => '12345678901234567,'),
  listed('numbers', 'large exponents', () => '1e300,'),
  listed('numbers', 'exponents beyond a double', () => '1e999,'),
  listed('integers', 'integers with exponents', () => '1e5,'),
  listed('multiples', 'multiples of a hundredth', () => '0.13,'),
  listed('unique', 'different objects', (at) => `{"a":${at}},`),
  listed('unique', 'different objects of many members', (at) =>
    JSON.stringify(Object.fromEntries(Array.from({ length: 20 }, (_, name) => [`n${name}`, at]))).concat(','),
  ),
  listed('unique', 'different objects in one another', (at) => `{"b":{"c":${at}},"a":1},`),
  listed('unique', 'different integers of 22 digits', (at) => `100000000000000${at + 1_000_000},`),
  listed('unique', 'different texts', (at) => `"${at}",`),
  listed('texts', 'the last of ten thousand texts', () => '"value 9999",'),
  listed('objects', 'the last of ten thousand objects', () => '{"a":9999},'),
  listed('patterns', 'texts with a pattern', () => '"abcabcabcabc",'),
  listed('patterns', 'long texts with a pattern', () => `"${'abc'.repeat(1_000)}",`),
  json('names', 'names with a pattern', (bytes) =>
    numbered(bytes, '{', (at) => `"a${at}x":1${' '.repeat(60)},`, '"ax":1}'),
  ),
  listed('forms', 'the last of ten forms', () => '{"k9":1},'),
  listed('tree', 'a tree of objects', () => deep('{"a":', '}')),
  listed('tree', 'a tree of lists', () => deep('[', ']')),
  listed('any', 'deep objects', () => deep('{"a":', '}')),
  json('members', 'members that are evaluated by nothing', (bytes) =>
    numbered(bytes, '{', (at) => `"a${at}":1${' '.repeat(60)},`, '"b":1}'),
  ),
  listed('items', 'items that are evaluated by nothing', () => '1,'),
  listed('dates', 'dates', () => '"2024-02-29T23:59:60.123+01:00",'),
  json('any', 'long names', (bytes) =>
    numbered(bytes, '{', (at) => `"${'k'.repeat(100)}${at}":1,`, '"b":1}'),
  ),
  json('any', 'long names of escapes', (bytes) =>
    numbered(bytes, '{', (at) => `"${'\\u0041'.repeat(100)}${at}":1,`, '"b":1}'),
  ),
  json('any', 'many names', (bytes) => numbered(bytes, '{', (at) => `"${at}x":1,`, '"y":1}')),
  json('any', 'a text of escapes', (bytes) => filled(bytes, '["', '\\u0041', '"]')),
  listed('any', 'texts of escapes', () => '"\\n",'),
  listed('any', 'escaped surrogates', () => '"\\ud83d\\ude00",'),
  listed('any', 'empty texts', () => '"",'),
  listed('any', 'short texts', (at) => `"${at.toString(36)}",`),
  listed('any', 'objects of a colon', () => '{"a":":"},'),
  json('any', 'white space', (bytes) => filled(bytes, '[', '\n', '1]')),
]
