import { describe, expect, test } from 'vitest'
import { plantRows } from '../support/plants.ts'

const rows = plantRows({ limitParameter: 'limit' })

describe('the rows of the plant store', () => {
  test('three operations on two paths', () => {
    const operations = rows.flatMap((row) =>
      row.endpoints.flatMap((endpoint) => endpoint.methods.map((method) => `${method} ${row.template}`)),
    )
    expect(operations).toEqual(['GET /plants', 'POST /plants', 'DELETE /plants/{id}'])
  })

  test('a new plant needs a name and a 64-bit identifier, and may have a tag', () => {
    const body = rows[0]?.endpoints[1]?.arguments
    expect(body).toMatchObject({
      name: { type: 'string', required: true },
      tag: { type: 'string' },
      id: { type: 'integer', format: 'int64', required: true },
    })
    expect(body?.['tag']).not.toHaveProperty('required')
  })

  test('the name of the parameter that bounds the list is a setting', () => {
    expect(Object.keys(rows[0]?.endpoints[0]?.arguments ?? {})).toEqual(['limit'])
    const renamed = plantRows({ limitParameter: 'max' })
    expect(Object.keys(renamed[0]?.endpoints[0]?.arguments ?? {})).toEqual(['max'])
  })
})
