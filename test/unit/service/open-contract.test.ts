import { describe, expect, test } from 'vitest'
import { createOpenValidator, openRows } from '../../../src/service/open.ts'

const validator = createOpenValidator({ limits: { queryParameters: 3 } })

const ask = (query: string) => {
  const [row] = openRows
  const endpoint = row?.endpoints[0]
  if (row === undefined || endpoint === undefined) throw new Error('no open row')
  return validator.validate({
    method: 'GET',
    row,
    endpoint,
    pathParameters: {},
    query,
    contentType: undefined,
    content: undefined,
  })
}

describe('a service without a schema', () => {
  test.each(['', 'a=1', 'b=1&a=%FF&a', 'a[]=%zz&&', '?&='])('"%s" stays byte for byte', (query) => {
    expect(ask(query)).toEqual({ kind: 'valid', query, arguments: {} })
  })

  test('has bounds', () => {
    expect(ask('a&b&c&d')).toEqual({
      kind: 'invalid',
      status: 400,
      code: 'too_many_parameters',
      body: { title: 'Bad Request', status: 400, detail: 'The query has more parameters than allowed.' },
    })
  })
})
