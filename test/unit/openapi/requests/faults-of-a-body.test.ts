import { describe, expect, test } from 'vitest'
import type { RequestSchema } from '../../../../src/openapi/document/request-schema.ts'
import { createSchemaChecker, noExactIntegers } from '../../../../src/openapi/requests/schema-checker.ts'
import { maxFaults } from '../../../../src/openapi/requests/schema-faults.ts'
import { described, onePost } from './described.ts'

const item = {
  type: 'object',
  required: ['name', 'price'],
  properties: {
    name: { type: 'string', minLength: 2 },
    price: { type: 'number', minimum: 0 },
    tags: { type: 'array', items: { type: 'string', pattern: '^[a-z]+$' } },
    owner: { $ref: '#/components/schemas/Owner' },
    kind: { enum: ['tree', 'herb'] },
  },
}
const components = {
  components: {
    schemas: {
      Owner: {
        type: 'object',
        required: ['id'],
        properties: { id: { type: 'integer' }, since: { type: 'string', format: 'date' } },
      },
    },
  },
}

type Reply = { readonly errors?: readonly { readonly pointer: string; readonly detail: string }[] }

const faultsOf = (document: object, content: string, contentType = 'application/json'): readonly string[] => {
  const response = described(document).validate({
    method: 'POST',
    content,
    headers: { 'content-type': contentType },
  })
  if (response.kind !== 'invalid') return []
  return ((response.body as Reply).errors ?? []).map(({ pointer, detail }) => `${pointer} ${detail}`)
}

const withSchema = (schema: object): object => onePost(schema, '3.1.0', components)
const owner = { $ref: '#/components/schemas/Owner' }

describe('a refusal names every fault of a body', () => {
  test.each([
    [
      'a member that is missing and one that does not fit',
      item,
      { price: -3 },
      ['# lacks name', '#/price must be at least 0'],
    ],
    [
      'members, items and what is behind a reference',
      item,
      { name: 'x', price: 'y', tags: ['a', 'B', 'c', 'D'], owner: { since: 'now' }, kind: 'moss' },
      [
        '#/name must have at least 2 characters',
        '#/price must be number',
        '#/tags/1 does not match the pattern',
        '#/tags/3 does not match the pattern',
        '#/owner lacks id',
        '#/owner/since is not a valid date',
        '#/kind must be one of the listed values',
      ],
    ],
    [
      'a value of another type has no further faults',
      { type: 'string', enum: ['a'] },
      5,
      ['# must be string'],
    ],
    [
      'schemas that hold together',
      { allOf: [owner, { type: 'object', required: ['name'] }] },
      {},
      ['# lacks id', '# lacks name'],
    ],
    [
      'members that are not declared are one fault of their object',
      { type: 'object', properties: { a: { type: 'integer' } }, additionalProperties: false },
      { a: 'x', b: 1, c: 2 },
      ['# has a member that is not declared', '#/a must be integer'],
    ],
    [
      'so are those that no schema evaluates',
      { properties: { a: true }, unevaluatedProperties: false },
      { a: 1, b: 1, c: 2 },
      ['# has a member that is not declared'],
    ],
    [
      'whether a member is declared is not known while its schema does not fit',
      { allOf: [owner], unevaluatedProperties: false },
      { id: 'x' },
      ['#/id must be integer'],
    ],
    [
      'names of members',
      { type: 'object', propertyNames: { maxLength: 1 } },
      { ab: 1, cd: 2 },
      ['# has a member whose name does not fit'],
    ],
    [
      'several forms are one fault, the faults of each form are none',
      {
        type: 'object',
        properties: { a: { oneOf: [owner, { type: 'array', items: owner }] }, b: { type: 'null' } },
      },
      { a: [{}, {}], b: 1 },
      ['#/a matches none of the allowed forms', '#/b must be null'],
    ],
    [
      'a form or null has the faults of the form',
      { anyOf: [owner, { type: 'null' }] },
      { since: 1 },
      ['# lacks id', '#/since must be string'],
    ],
    [
      'so has exactly one of both',
      { oneOf: [owner, { type: 'null' }] },
      { since: 1 },
      ['# lacks id', '#/since must be string'],
    ],
    ['which null fits', { oneOf: [owner, { type: 'null' }] }, null, []],
    [
      'and which null does not fit where it has both',
      { oneOf: [{}, { type: 'null' }] },
      null,
      ['# has a form that is not allowed'],
    ],
    [
      'a condition has the faults of what follows from it',
      // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema
      { if: { required: ['a'] }, then: { required: ['b', 'c'] } },
      { a: 1 },
      ['# lacks b', '# lacks c'],
    ],
    [
      'items of which some must fit',
      { type: 'array', contains: owner },
      [{}, {}],
      ['# has too few or too many items of a required form'],
    ],
    [
      'more items than are described',
      { type: 'array', prefixItems: [{ type: 'integer' }], items: false },
      ['x', 2],
      ['#/0 must be integer', '# must have at most 1 item'],
    ],
  ])('%s', (_, schema, value, expected) => {
    const faults = faultsOf(withSchema(schema), JSON.stringify(value))
    expect(faults.toSorted()).toEqual(expected.toSorted())
  })

  test('members of a form', () => {
    const document = {
      openapi: '3.1.0',
      info: { title: 'x', version: '1' },
      paths: {
        '/x': {
          post: {
            requestBody: {
              content: {
                'application/x-www-form-urlencoded': {
                  schema: {
                    type: 'object',
                    properties: {
                      a: { type: 'integer' },
                      b: { type: 'boolean' },
                      c: { type: 'string', maxLength: 1 },
                    },
                    additionalProperties: { type: 'integer' },
                  },
                },
              },
            },
          },
        },
      },
    }
    const type = 'application/x-www-form-urlencoded'
    expect(faultsOf(document, 'a=x&b=y&c=zz&d=w', type)).toEqual([
      '#/a must be integer',
      '#/b must be boolean',
      '#/c must have at most 1 character',
      '#/d must be integer',
    ])
    const many = Array.from({ length: 9_000 }, (_, at) => `x${at}=y`).join('&')
    expect(faultsOf(document, many, type)).toHaveLength(maxFaults)
  })
})

const check = (schema: RequestSchema, value: unknown) =>
  createSchemaChecker(new Map()).check(schema, value, noExactIntegers)

test('of a body of a thousand values twenty faults are named, of a longer one the first', () => {
  const schema = { type: 'array', items: { type: 'integer' } }
  const list = (length: number): string[] => Array.from({ length }, () => 'x')
  expect(check(schema, list(999))).toHaveLength(maxFaults)
  expect(check(schema, list(1_000))).toEqual([{ pointer: '/0', detail: 'must be integer' }])
  const lists = Array.from({ length: 400 }, () => ['x', 'y'])
  expect(check({ type: 'array', items: schema }, lists)).toHaveLength(1)
})
