import { describe, expect, test } from 'vitest'
import { refusalOf } from './support.ts'

describe('only the first failing phase is reported', () => {
  test('missing arguments come before wrong ones', () => {
    expect(refusalOf({ row: 'templates.lookup', query: 'is_custom=maybe' })).toEqual({
      code: 'rest_missing_callback_param',
      message: 'Missing parameter(s): slug',
      data: { status: 400, params: ['slug'] },
    })
  })

  test.each([
    [
      'arguments with callbacks, in the order of the endpoint',
      'per_page=0&order=x&page=0',
      ['page', 'per_page'],
    ],
    [
      'then the others, in the order of the request',
      'orderby=x&order=x&include=a',
      ['orderby', 'order', 'include'],
    ],
  ])('%s', (_, query, names) => {
    const { data } = refusalOf({ query }) as { data: { params: object; details: object } }
    expect(Object.keys(data.params)).toEqual(names)
    expect(Object.keys(data.details)).toEqual(names)
  })

  test('invalid arguments of a write have the order of the endpoint', () => {
    const content = '{"sticky":"x","status":"x","date":"x"}'
    const { data } = refusalOf({ method: 'POST', content }) as { data: { params: object } }
    expect(Object.keys(data.params)).toEqual(['date', 'status', 'sticky'])
  })

  test('a check without its own text gives "Invalid parameter."', () => {
    expect(refusalOf({ method: 'POST', content: '{"meta":"x"}' })).toEqual({
      code: 'rest_invalid_param',
      message: 'Invalid parameter(s): meta',
      data: { status: 400, params: { meta: 'Invalid parameter.' }, details: [] },
    })
  })

  test('too many parameters are refused', () => {
    const query = Array.from({ length: 257 }, (_, i) => `p${i}`).join('&')
    expect(refusalOf({ query })).toMatchObject({ code: 'trellis_too_many_parameters', data: { status: 400 } })
  })
})
