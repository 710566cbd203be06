import { describe, expect, test } from 'vitest'
import { described } from './described.ts'

const max = { type: 'integer', maximum: 100 }
const list = { type: 'array', items: max }
const filter = { type: 'object', properties: { size: max }, additionalProperties: true }
const form = (properties: object, encoding: object = {}): object => ({
  content: {
    'application/x-www-form-urlencoded': { schema: { type: 'object', properties }, encoding },
  },
})

const document = {
  openapi: '3.1.0',
  info: { title: 'x', version: '1' },
  paths: {
    '/x': {
      get: {
        parameters: [
          { name: 'i', in: 'query', schema: max },
          { name: 'page_size', in: 'query', schema: max },
          { name: 'ids', in: 'query', schema: list },
          { name: 'filter', in: 'query', style: 'deepObject', schema: filter },
          { name: 'sort[by]', in: 'query', schema: { enum: ['name'] } },
          { name: 'role', in: 'cookie', schema: { enum: ['user'] } },
        ],
        responses: {},
      },
      post: {
        requestBody: form(
          { i: max, role_name: { enum: ['user'] }, ids: list, address: filter },
          { address: { style: 'deepObject', explode: true } },
        ),
        responses: {},
      },
    },
  },
}

const { validate } = described(document)
const urlencoded = { 'content-type': 'application/x-www-form-urlencoded' }

describe('an undeclared name that servers may read as a declared one is refused', () => {
  test.each([
    'i[]=500',
    'i%5B%5D=500',
    'i[0]=500',
    'i[a][b]=500',
    'i[=500',
    '%20i=500',
    '+i=500',
    'i%00=500',
    'i%00x=500',
    '[i]=500',
    '%69%5b]=500',
    'I=500',
    'page.size=500',
    'page+size=500',
    'page[size=500',
    'page_size[]=500',
    '+filter[size]=500',
    'Filter[size]=500',
    'sort[by][]=x',
    'sort][by]=x',
    '+ids[]=500',
  ])('in a query: %s', (undeclared) => {
    expect(validate({ query: `i=5&${undeclared}` })).toMatchObject({
      kind: 'invalid',
      status: 400,
      code: 'invalid_parameter',
    })
  })

  test.each([
    'i[]=500',
    '+i=500',
    'I=500',
    'role.name=admin',
    'role%20name=admin',
    'role[name=admin',
    '[i]=500',
  ])('in a form: %s', (undeclared) => {
    expect(
      validate({ method: 'POST', content: `i=5&role_name=user&${undeclared}`, headers: urlencoded }),
    ).toMatchObject({ kind: 'invalid', status: 400, code: 'invalid_body' })
  })

  test.each(['role[]=admin', '%72ole=admin', 'role%5b%5d=admin', 'Role=admin', 'role%00=admin'])(
    'in a cookie: %s',
    (undeclared) => {
      expect(validate({ headers: { cookie: `role=user; ${undeclared}` } })).toMatchObject({
        kind: 'invalid',
        status: 400,
      })
    },
  )
})

describe('a name with brackets is accepted', () => {
  test.each([
    ['of a deepObject', 'filter[size]=5&filter[other]=x'],
    ['of a list, in the manner of PHP', 'ids[]=5&ids[]=6'],
    ['that is declared', 'sort[by]=name'],
    ['beside a declared one with the same beginning', 'sort[by]=name&sort[order]=x'],
    ['that no server reads as a declared one', 'x[i]=500&id=5&page=3&i2=5&page-size=500'],
  ])('%s: %s', (_whose, query) => {
    expect(validate({ query }).kind).toBe('valid')
  })

  test.each(['ids[]=5&ids[]=6', 'address[size]=5&address[city]=x', 'x[i]=500'])(
    'in a form: %s',
    (content) => {
      expect(validate({ method: 'POST', content, headers: urlencoded }).kind).toBe('valid')
    },
  )

  test('in a cookie that no server reads as a declared one', () => {
    expect(validate({ headers: { cookie: 'role=user; role.sig=x; theme[]=dark' } }).kind).toBe('valid')
  })

  test('and its items are checked', () => {
    expect(validate({ query: 'ids[]=500' }).kind).toBe('invalid')
    expect(validate({ query: 'ids=5&ids[]=6' }).kind).toBe('invalid')
  })
})
