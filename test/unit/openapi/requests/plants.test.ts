import { describe, expect, test } from 'vitest'
import { createPlantsValidator, plantRows } from '../../../support/plants.ts'

const rows = plantRows({ limitParameter: 'limit' })
const options = {
  limits: { queryParameters: 8, jsonDepth: 8 },
  limitParameter: 'limit',
  unknownParameters: 'strip',
  trackingParameters: ['utm_*'],
} as const
const plants = await createPlantsValidator(options)

const ask = (
  method: 'GET' | 'POST' | 'DELETE',
  asked: { query?: string; content?: string; contentType?: string; id?: string },
  validator = plants,
) => {
  const row = rows.find(({ kind }) => kind === (asked.id === undefined ? 'collection' : 'item'))
  const endpoint = row?.endpoints.find(({ methods }) => methods.includes(method))
  if (row === undefined || endpoint === undefined) throw new Error('no such endpoint')
  return validator.validate({
    method,
    row,
    endpoint,
    pathParameters: asked.id === undefined ? {} : { id: asked.id },
    query: asked.query ?? '',
    contentType: asked.contentType ?? 'application/json',
    content: asked.content === undefined ? undefined : Buffer.from(asked.content),
  })
}

const refused = (status: number, code: string) => ({
  kind: 'invalid',
  status,
  code,
  body: { error: status, message: expect.any(String) },
})

describe('a new plant', () => {
  test.each(['0', '-1', '9007199254740993', '9223372036854775807', '-9223372036854775808'])(
    'with id %s is accepted',
    (source) => {
      const content = `{"name":"fern","id": ${source} ,"tag":"green"}`
      expect(ask('POST', { content })).toMatchObject({ kind: 'valid', query: '' })
    },
  )

  test.each([
    '1.0',
    '1e3',
    '"5"',
    'null',
    'true',
    '[1]',
    '{"id":1}',
    '-0',
    '9223372036854775808',
    '-9223372036854775809',
    '1E400',
  ])('with id %s is refused', (source) => {
    expect(ask('POST', { content: `{"name":"fern","id":${source}}` })).toEqual(refused(400, 'invalid_id'))
  })

  test.each([
    ['no content', '', 'invalid_json'],
    ['no JSON', '{id:1}', 'invalid_json'],
    ['JSON that is too deep', `{"name":"a","id":1,"x":${'['.repeat(9)}${']'.repeat(9)}}`, 'invalid_json'],
    ['an array', '[]', 'not_an_object'],
    ['a scalar', '5', 'not_an_object'],
    ['null', 'null', 'not_an_object'],
    ['no name', '{"id":1}', 'invalid_name'],
    ['a name that is no text', '{"id":1,"name":5}', 'invalid_name'],
    ['no id', '{"name":"a"}', 'invalid_id'],
    ['a tag that is no text', '{"id":1,"name":"a","tag":null}', 'invalid_tag'],
    ['a repeated member', '{"id":1,"name":"a","id":2}', 'repeated_member'],
    ['a member repeated in another spelling', '{"id":1,"name":"a","\\u0069d":2}', 'repeated_member'],
    ['an id further inside', '{"name":"a","x":{"id":1}}', 'invalid_id'],
    ['a name that looks inherited', '{"id":1,"__proto__":{"name":"a"}}', 'invalid_name'],
    ['what looks like an answer of ours', '{"kind":"plant","name":1,"id":"2"}', 'invalid_name'],
  ])('with %s is refused', (_, content, code) => {
    expect(ask('POST', { content })).toEqual(refused(400, code))
  })

  test.each([
    '{"id":1,"name":"a } , \\" b"}',
    '{ "x" : [ {"id":"}"} , "," ] ,\n"name":"a","id":1\t}',
    '{"a\\"b":{},"name":"a","id":1}',
  ])('may be written as %s', (content) => {
    expect(ask('POST', { content })).toMatchObject({ kind: 'valid' })
  })

  test.each(['text/plain', 'application/x-www-form-urlencoded', ''])(
    'of type "%s" is refused',
    (contentType) => {
      expect(ask('POST', { content: '{"id":1,"name":"a"}', contentType })).toEqual(
        refused(415, 'unsupported_content_type'),
      )
    },
  )
})

describe('a list of plants', () => {
  test.each([
    ['', ''],
    ['limit=5', 'limit=5'],
    ['limit=005', 'limit=5'],
    ['%6Cimit=5&utm_source=x&foo=1', 'limit=5'],
  ])('%s is %s', (query, expected) => {
    expect(ask('GET', { query })).toMatchObject({ kind: 'valid', query: expected })
  })

  test.each([
    'limit=0',
    'limit=-1',
    'limit=',
    'limit=1.0',
    'limit=1e1',
    'limit=x',
    'limit=1&limit=1',
    'limit=99999999999999999999',
  ])('%s is refused', (query) => {
    expect(ask('GET', { query })).toEqual(refused(400, 'invalid_limit'))
  })

  test('names of parameters are not normalised as in PHP', async () => {
    const forwarding = await createPlantsValidator({ ...options, unknownParameters: 'forward' })
    expect(ask('GET', { query: 'b=2&lim.it=3&a=1&utm_x=1&limit=4&b=1' }, forwarding)).toMatchObject({
      query: 'a=1&b=2&b=1&lim.it=3&limit=4',
    })
  })

  test('a query beyond the bounds is refused', () => {
    expect(ask('GET', { query: 'a&b&c&d&e&f&g&h&i' })).toEqual(refused(400, 'too_many_parameters'))
    expect(ask('GET', { query: 'a=%FF' })).toEqual(refused(400, 'unreadable_query'))
  })
})

describe('deleting a plant', () => {
  test.each(['5', '-1', '9223372036854775807'])('by id %s', (id) => {
    expect(ask('DELETE', { id })).toMatchObject({ kind: 'valid', query: '' })
  })

  test.each(['x', '1.0', '1e3', '05', '+5', ' 5', '-0', '9223372036854775808', ''])(
    'not by id "%s"',
    (id) => {
      expect(ask('DELETE', { id })).toEqual(refused(400, 'invalid_path_id'))
    },
  )
})

test('a refused list bound names the parameter that the configuration names', async () => {
  const options = {
    limitParameter: 'max',
    limits: { queryParameters: 256, jsonDepth: 64 },
    trackingParameters: [],
    unknownParameters: 'strip' as const,
  }
  const endpoint = plantRows({ limitParameter: 'max' }).find(({ template }) => template === '/plants')
    ?.endpoints[0]
  const row = plantRows({ limitParameter: 'max' })[0]
  if (row === undefined || endpoint === undefined) throw new Error('no list')
  const input = { method: 'GET', row, endpoint, pathParameters: {}, query: 'max=0' }
  const response = (await createPlantsValidator(options)).validate({
    ...input,
    contentType: undefined,
    content: undefined,
  })
  expect(response).toMatchObject({
    body: { error: 400, message: 'The query parameter max must be one integer of at least 1.' },
  })
})
