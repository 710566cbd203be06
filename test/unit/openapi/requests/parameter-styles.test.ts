import { describe, expect, test } from 'vitest'
import { described, oneGet } from './described.ts'

const list = { type: 'array', items: { type: 'string' } }
const numbers = { type: 'array', items: { type: 'integer' } }
const object = { type: 'object', properties: { R: { type: 'integer' }, G: { type: 'integer' } } }
const withList = { type: 'object', properties: { ...object.properties, L: list } }
const closed = { ...object, additionalProperties: false }
const text = { type: 'string' }
const number = { type: 'integer' }

type Row = readonly [
  location: string,
  style: string | undefined,
  explode: boolean | undefined,
  schema: object,
  written: string,
  /** `refused`, or the value. */
  value: unknown,
]

const rgb = { R: 100, G: 200 }

/** The table of the specification (OpenAPI 3.1 §4.8.12.4) and what it leaves out. */
const rows: readonly Row[] = [
  ['path', 'simple', false, text, 'blue', 'blue'],
  ['path', 'simple', false, text, 'a%2Fb%20c', 'a/b c'],
  ['path', 'simple', false, text, 'a+b', 'a+b'],
  ['path', 'simple', false, list, 'blue,black', ['blue', 'black']],
  ['path', 'simple', true, list, 'blue,black', ['blue', 'black']],
  ['path', 'simple', false, list, 'a%2Cb,c', ['a,b', 'c']],
  ['path', 'simple', false, object, 'R,100,G,200', rgb],
  ['path', 'simple', true, object, 'R=100,G=200', rgb],
  ['path', 'simple', false, object, 'R,100,G', 'refused'],
  ['path', 'simple', true, object, 'R=100,G', 'refused'],
  ['path', 'label', false, text, '.blue', 'blue'],
  ['path', 'label', false, text, 'blue', 'refused'],
  ['path', 'label', false, list, '.blue,black', ['blue', 'black']],
  ['path', 'label', true, list, '.blue.black', ['blue', 'black']],
  ['path', 'label', false, object, '.R,100,G,200', rgb],
  ['path', 'label', true, object, '.R=100.G=200', rgb],
  ['path', 'matrix', false, text, ';p=blue', 'blue'],
  ['path', 'matrix', false, text, ';q=blue', 'refused'],
  ['path', 'matrix', false, text, ';p', ''],
  ['path', 'matrix', false, list, ';p=blue,black', ['blue', 'black']],
  ['path', 'matrix', true, list, ';p=blue;p=black', ['blue', 'black']],
  ['path', 'matrix', false, object, ';p=R,100,G,200', rgb],
  ['path', 'matrix', true, object, ';R=100;G=200', rgb],
  ['query', undefined, undefined, text, 'p=blue', 'blue'],
  ['query', undefined, undefined, text, 'p=a+b', 'a b'],
  ['query', undefined, undefined, text, 'p=a%2Bb', 'a+b'],
  ['query', undefined, undefined, text, 'p', ''],
  ['query', undefined, undefined, text, 'p=a&p=b', 'refused'],
  ['query', undefined, undefined, text, 'p=%zz', 'refused'],
  ['query', undefined, undefined, list, 'p=blue&p=black', ['blue', 'black']],
  ['query', undefined, undefined, list, 'p=blue,black', ['blue,black']],
  ['query', 'form', false, list, 'p=blue,black', ['blue', 'black']],
  ['query', 'form', false, list, 'p=blue%2Cblack', ['blue,black']],
  ['query', 'form', false, list, 'p=blue&p=black', 'refused'],
  ['query', 'form', false, list, 'p=', []],
  ['query', 'form', false, numbers, 'p=1,2', [1, 2]],
  ['query', 'form', false, numbers, 'p=1,,2', 'refused'],
  ['query', 'form', true, object, 'R=100&G=200', rgb],
  ['query', 'form', true, object, 'R=x', 'refused'],
  ['query', 'form', false, object, 'p=R,100,G,200', rgb],
  ['query', 'spaceDelimited', false, list, 'p=blue%20black', ['blue', 'black']],
  ['query', 'spaceDelimited', false, list, 'p=blue+black', ['blue', 'black']],
  ['query', 'pipeDelimited', false, list, 'p=blue|black', ['blue', 'black']],
  ['query', 'pipeDelimited', false, list, 'p=blue%7Cblack', ['blue', 'black']],
  ['query', 'deepObject', true, object, 'p[R]=100&p[G]=200', rgb],
  ['query', 'deepObject', true, object, 'p%5BR%5D=100&p[G]=200', rgb],
  ['query', 'deepObject', true, object, 'p[R]=100&p[R]=200', 'refused'],
  ['query', 'deepObject', true, object, 'p[R]=x', 'refused'],
  // Servers nest members in brackets; what they would read in place of a number is no number.
  ['query', 'deepObject', true, object, 'p[R][x]=5', 'refused'],
  ['query', 'deepObject', true, object, 'p[R]x=y', 'refused'],
  ['query', 'deepObject', true, object, 'p=x', 'refused'],
  ['query', 'deepObject', true, withList, 'p[L][]=a&p[R]=1', undefined],
  ['query', 'deepObject', true, withList, 'p[L][]=a&p[R]=x', 'refused'],
  ['query', 'deepObject', true, withList, 'p[L]=a&p[R]=x', 'refused'],
  ['query', 'deepObject', true, closed, 'p[x][y]=1', 'refused'],
  ['query', 'deepObject', true, { oneOf: [object, closed] }, 'p[R][x]=1', undefined],
  ['query', 'form', true, object, 'R=5&R=6', 'refused'],
  ['query', 'form', true, withList, 'L=5&L=6&R=x', 'refused'],
  ['query', 'form', true, withList, 'L=5&L=6&R=1', undefined],
  ['header', 'simple', false, text, 'blue', 'blue'],
  ['header', 'simple', false, text, 'a%20b', 'a%20b'],
  ['header', 'simple', false, list, 'blue, black', ['blue', 'black']],
  ['header', 'simple', false, object, 'R,100,G,200', rgb],
  ['header', 'simple', true, object, 'R=100,G=200', rgb],
  ['cookie', undefined, undefined, number, 'p=5', 5],
  ['cookie', undefined, undefined, text, 'p=YWI+Yw==', 'YWI+Yw=='],
  ['cookie', undefined, undefined, text, 'p=a%20b', 'a b'],
  ['cookie', undefined, undefined, text, 'p=100%', '100%'],
  ['cookie', 'form', false, list, 'p=blue,black', ['blue', 'black']],
  ['query', undefined, undefined, number, 'p=', 'refused'],
  ['query', undefined, undefined, number, 'p= 5', 'refused'],
  ['query', undefined, undefined, number, 'p=05', 'refused'],
  ['query', undefined, undefined, number, 'p=+5', 'refused'],
  ['query', undefined, undefined, number, 'p=-0', -0],
  ['query', undefined, undefined, { type: 'number' }, 'p=1e3', 1000],
  ['query', undefined, undefined, { type: 'number' }, 'p=Infinity', 'refused'],
  ['query', undefined, undefined, { type: 'number' }, 'p=1e999', 'refused'],
  ['query', undefined, undefined, { type: 'boolean' }, 'p=TRUE', 'refused'],
  ['query', undefined, undefined, { type: 'boolean' }, 'p=1', 'refused'],
  ['query', undefined, undefined, { type: 'boolean' }, 'p=false', false],
  ['query', undefined, undefined, { type: ['string', 'integer'], maxLength: 3 }, 'p=007', '007'],
  [
    'query',
    undefined,
    undefined,
    { anyOf: [{ type: 'integer', maximum: 9 }, { type: 'string' }] },
    'p=10',
    '10',
  ],
  ['query', undefined, undefined, { enum: [1, 2] }, 'p=2', 2],
  [
    'query',
    undefined,
    undefined,
    { type: 'string', format: 'date-time' },
    'p=2026-01-02T03:04:05Z',
    '2026-01-02T03:04:05Z',
  ],
  ['query', undefined, undefined, { type: 'string', format: 'date' }, 'p=2026-02-30', 'refused'],
]

describe('parameters are read by their style', () => {
  test.each(rows)('%s %s, explode %s, %j: %s', (location, style, explode, schema, written, value) => {
    const service = described(
      oneGet(location === 'path' ? '/x/{p}' : '/x', [
        {
          name: 'p',
          in: location,
          required: location === 'path',
          schema,
          ...(style && { style }),
          ...(explode !== undefined && { explode }),
        },
      ]),
    )
    const result = service.validate({
      path: location === 'path' ? `/x/${written}` : '/x',
      query: location === 'query' ? written.replaceAll(' ', '%20') : '',
      headers: location === 'header' ? { p: written } : location === 'cookie' ? { cookie: written } : {},
    })
    expect(result.kind === 'valid' ? result.arguments[`${location}.p`] : 'refused').toEqual(value)
  })
})

test('one name may stand in path, query, header and cookie', () => {
  const service = described(
    oneGet('/x/{id}', [
      { name: 'id', in: 'path', required: true, schema: number },
      { name: 'id', in: 'query', schema: { type: 'boolean' } },
      { name: 'id', in: 'header', schema: text },
      { name: 'id', in: 'cookie', schema: list },
    ]),
  )
  const result = service.validate({ path: '/x/5', query: 'id=true', headers: { id: 'h', cookie: 'id=c' } })
  expect(result.kind === 'valid' && result.arguments).toEqual({
    'path.id': 5,
    'query.id': true,
    'header.id': 'h',
    'cookie.id': ['c'],
  })
})

test('a parameter with content is parsed and validated', () => {
  const content = {
    'application/json': {
      schema: { type: 'object', required: ['a'], properties: { a: { type: 'integer', format: 'int64' } } },
    },
  }
  const service = described(oneGet('/x', [{ name: 'p', in: 'query', content }]))
  const kindOf = (value: string) => service.validate({ query: `p=${encodeURIComponent(value)}` }).kind
  expect([
    kindOf('{"a":1}'),
    kindOf('{"a":"1"}'),
    kindOf('{}'),
    kindOf('{'),
    kindOf('{"a":9223372036854775808}'),
  ]).toEqual(['valid', 'invalid', 'invalid', 'invalid', 'invalid'])
})

test('allowEmptyValue accepts an empty integer, and no other text', () => {
  const service = described(oneGet('/x', [{ name: 'p', in: 'query', allowEmptyValue: true, schema: number }]))
  expect(service.validate({ query: 'p=' }).kind).toBe('valid')
  expect(service.validate({ query: 'p=x' }).kind).toBe('invalid')
})

test('a nesting without a style is forwarded unchecked', () => {
  const schema = { type: 'array', items: { type: 'object' } }
  const service = described(
    oneGet('/x', [{ name: 'lines', in: 'query', style: 'deepObject', explode: true, schema }]),
  )
  const result = service.validate({ query: 'lines[1][b]=2&lines[0][a]=1' })
  expect(result.kind === 'valid' && result.query).toBe('lines[1][b]=2&lines[0][a]=1')
})
