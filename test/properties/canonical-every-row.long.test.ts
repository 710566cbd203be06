import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { Endpoint, Row } from '../../src/service/row.ts'
import { createSiteValidator } from '../../src/wordpress/arguments/site-validator.ts'
import { siteRows } from '../../src/wordpress/routes/route-table.ts'
import { anyText } from '../support/any-text.ts'
import { times } from '../support/breadth.ts'

const runs = Math.ceil(Number(process.env['PROPERTY_RUNS'] ?? times(3_000, 10_000)) / 2)
const timeout = 30_000 + 5 * runs

const validators = (['strip', 'forward'] as const).map((unknownParameters) =>
  createSiteValidator({
    limits: { queryParameters: 256, jsonDepth: 64 },
    unknownParameters,
    trackingParameters: [],
  }),
)

type Target = { readonly row: Row; readonly endpoint: Endpoint }

const targets = siteRows.flatMap((row) => row.endpoints.map((endpoint): Target => ({ row, endpoint })))

const pathOf = (row: Row): Record<string, string> =>
  Object.fromEntries(Array.from(row.template.matchAll(/\{(\w+)\}/g), ([, name]) => [name, '5']))

const brackets = fc.constantFrom(
  '',
  '',
  '',
  '[]',
  '[0]',
  '[1]',
  '[terms]',
  '[operator]',
  '[raw]',
  '[0][path]',
  '[a][b]',
  '[',
)
const plausible = fc.constantFrom(
  '1',
  '5',
  '0',
  '',
  'true',
  'view',
  'edit',
  'publish',
  'OR',
  'AND',
  'a,b',
  '1,2',
  ',',
  '2026-02-01T00:00:00Z',
  '%FF',
  '%5B',
  'x%00',
  '-1',
  '1e3',
)
const value = fc.oneof(plausible, anyText({ maxLength: 5 }))

const queriesFor = ({ endpoint, row }: Target): fc.Arbitrary<string> => {
  const names = [
    ...Object.keys(endpoint.arguments),
    ...Object.keys(pathOf(row)),
    '_fields',
    '_embed',
    '_jsonp',
    '_wpnonce',
    'x',
    '__proto__',
  ]
  const pair = fc.tuple(fc.constantFrom(...names), brackets, value)
  return fc.array(pair, { maxLength: 6 }).map((pairs) => pairs.map(([n, b, v]) => `${n}${b}=${v}`).join('&'))
}

const asked = fc
  .constantFrom(...targets)
  .chain((target) => queriesFor(target).map((query) => ({ ...target, query })))

describe('every row', () => {
  test('refuses a query or gives it a form that stands for itself', { timeout }, () => {
    let valid = 0
    fc.assert(
      fc.property(asked, fc.constantFrom(...validators), ({ row, endpoint, query }, validator) => {
        const validate = (text: string) =>
          validator.validate({
            method: endpoint.methods[0] ?? 'GET',
            row,
            endpoint,
            pathParameters: pathOf(row),
            query: text,
            contentType: undefined,
            content: undefined,
          })
        const response = validate(query)
        if (response.kind === 'invalid') {
          expect(response.status).toBe(400)
          return
        }
        valid += 1
        const names = new URLSearchParams(response.query)
        expect(Object.keys(pathOf(row)).filter((name) => names.has(name))).toEqual([])
        expect(response.query).toMatch(/^[\x21-\x7e]*$/)
        expect(validate(response.query)).toMatchObject({ kind: 'valid', query: response.query })
      }),
      { numRuns: runs },
    )
    expect(valid).toBeGreaterThan(runs / 10)
  })

  test('answers any JSON at all', { timeout }, () => {
    const bodies = fc.constantFrom(...targets).chain((target) => {
      const names = fc.constantFrom(
        ...Object.keys(target.endpoint.arguments),
        '__proto__',
        'constructor',
        'x',
      )
      return fc
        .dictionary(names, fc.jsonValue({ maxDepth: 3 }), { maxKeys: 5 })
        .map((body) => ({ ...target, body }))
    })
    fc.assert(
      fc.property(bodies, fc.constantFrom(...validators), ({ row, endpoint, body }, validator) => {
        const response = validator.validate({
          method: endpoint.methods.find((method) => method !== 'GET') ?? 'GET',
          row,
          endpoint,
          pathParameters: pathOf(row),
          query: '',
          contentType: 'application/json',
          content: Buffer.from(JSON.stringify(body)),
        })
        if (response.kind === 'invalid') expect(JSON.stringify(response.body)).toContain(response.code)
        else expect(response.query).toBe('')
      }),
      { numRuns: runs },
    )
  })
})
