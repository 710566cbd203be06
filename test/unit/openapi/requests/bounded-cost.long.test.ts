import { expect, test } from 'vitest'
import { cost } from '../../../support/cost.ts'
import { described, onePost } from './described.ts'

// What one body of a megabyte costs, whatever the document describes.

const bytes = 1_000_000
const filled = (piece: string): string => piece.repeat(Math.floor(bytes / piece.length))
const numbered = (count: number, piece: (at: number) => string): string =>
  Array.from({ length: count }, (_, at) => piece(at)).join('')

const members = (count: number, schema: object): object =>
  Object.fromEntries(Array.from({ length: count }, (_, at) => [`p${at}`, schema]))

const form = (properties: object, encoding: object = {}) => ({
  openapi: '3.1.0',
  info: { title: 'x', version: '1' },
  paths: {
    '/x': {
      post: {
        requestBody: {
          content: {
            'application/x-www-form-urlencoded': { schema: { type: 'object', properties }, encoding },
          },
        },
        responses: {},
      },
    },
  },
})

const text = { type: 'string' }
const codes = Array.from({ length: 1_000 }, (_, at) => `code-${at}`)

const formType = 'application/x-www-form-urlencoded'

const list = (items: object) => onePost({ type: 'array', items })
const listOf = (piece: string): string => `[${filled(`${piece},`)}${piece}]`
const operation = (operator: string) => ({
  type: 'object',
  required: ['operator', 'left', 'right'],
  properties: {
    operator: { const: operator },
    left: { $ref: '#/components/schemas/Term' },
    right: { $ref: '#/components/schemas/Term' },
  },
})
const term = { oneOf: [...['+', '-', '*', '/'].map(operation), { type: 'integer' }] }
const terms = onePost({ $ref: '#/components/schemas/Term' }, '3.1.0', {
  components: { schemas: { Term: term } },
})

test.each([
  ['a form of half a million members', 40, form({ a: text }), formType, filled('a&')],
  [
    'ten thousand members of a form with a thousand others',
    150,
    form(members(1_000, text)),
    formType,
    numbered(9_999, (at) => `x${at}=1&`),
  ],
  [
    'ten thousand members of an object in a form with a thousand others',
    150,
    form(members(1_000, { type: 'object' }), members(1_000, { style: 'deepObject', explode: true })),
    formType,
    numbered(9_999, (at) => `p0[${at}]=1&`),
  ],
  [
    'a list of items from a long enum',
    150,
    onePost({ type: 'array', items: { enum: codes } }),
    'application/json',
    `[${filled('"code-999",')}"code-999"]`,
  ],
  [
    'a dictionary of a hundred thousand names',
    20,
    onePost({ type: 'object', additionalProperties: { type: 'integer' } }),
    'application/json',
    `{${numbered(75_000, (at) => `"k${at}" :1,`)}"k":1}`,
  ],
  [
    'lists of lists that must differ',
    100,
    onePost({ type: 'array', uniqueItems: true }),
    'application/json',
    `[${numbered(110_000, (at) => `[${at}],`)}[]]`,
  ],
  [
    'deep lists that must differ',
    30,
    onePost({ type: 'array', uniqueItems: true }),
    'application/json',
    listOf(`${'['.repeat(58)}${']'.repeat(58)}`),
  ],
  [
    'an integer of a million digits',
    50,
    onePost({ type: 'integer', format: 'int64' }),
    'application/json',
    filled('9'),
  ],
  [
    'multiples of a hundredth that are large',
    100,
    list({ type: 'number', multipleOf: 0.01 }),
    'application/json',
    listOf('1e308'),
  ],
  [
    'short texts with a pattern',
    100,
    list({ type: 'string', pattern: '^[a-z]+$' }),
    'application/json',
    listOf('"a"'),
  ],
  [
    'items of which one must have a form that none has',
    100,
    onePost({ type: 'array', contains: { type: 'string' } }),
    'application/json',
    listOf('1'),
  ],
  [
    'objects without the members of a long description',
    100,
    list({ type: 'object', properties: members(400, text) }),
    'application/json',
    listOf('{"x":1}'),
  ],
  [
    'six hundred octets whose forms hold one another',
    20,
    terms,
    'application/json',
    `${'{"operator":"*","left":1,"right":'.repeat(25)}"x"${'}'.repeat(25)}`,
  ],
  [
    'names of a form that are longer than any declared name',
    150,
    form({ b: text }),
    formType,
    numbered(9_999, (at) => `${'.'.repeat(80)}${at}=&`),
  ],
])('%s takes at most %i ms', (_, maxMs, document, contentType, content) => {
  const { validate } = described(document)
  const request = { method: 'POST', headers: { 'content-type': contentType }, content }
  expect(cost(() => validate(request), maxMs)).toBeLessThan(maxMs)
})
