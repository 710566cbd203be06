import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { Validation } from '../../src/service/contract.ts'
import { createSiteValidator } from '../../src/wordpress/arguments/site-validator.ts'
import { siteRows } from '../../src/wordpress/routes/route-table.ts'
import { anyText } from '../support/any-text.ts'
import { times } from '../support/breadth.ts'
import { type Meaning, meaningKey, meanings } from './list-meanings.ts'
import { chooserOf, spellQuery } from './list-spellings.ts'

/** Pairs of meanings to try; 1000000 for a long run. */
const runs = Number(process.env['PROPERTY_RUNS'] ?? times(1_000, 10_000))
const fewerRuns = Math.ceil(runs / 4)
const timeout = 30_000 + 5 * runs

const validator = createSiteValidator({
  limits: { queryParameters: 256, jsonDepth: 64 },
  unknownParameters: 'strip',
  trackingParameters: ['utm_*'],
})

const row = siteRows.find(({ id }) => id === 'posts.collection')
const endpoint = row?.endpoints[0]
if (row === undefined || endpoint === undefined) throw new Error('no list of posts')

const validate = (query: string): Validation =>
  validator.validate({
    method: 'GET',
    row,
    endpoint,
    pathParameters: {},
    query,
    contentType: undefined,
    content: undefined,
  })

const canonical = (query: string): string => {
  const response = validate(query)
  if (response.kind === 'invalid') throw new Error(`${query} is refused: ${JSON.stringify(response.body)}`)
  return response.query
}

const choices = fc.array(fc.nat(1000), { minLength: 20, maxLength: 40 })
const spellings = fc
  .tuple(meanings, choices)
  .map(([meaning, numbers]) => spellQuery(meaning, chooserOf(numbers)))

describe('canonical queries', () => {
  test('canonicalising twice changes nothing', { timeout }, () => {
    fc.assert(
      fc.property(spellings, (query) => {
        const once = canonical(query)
        expect(canonical(once)).toBe(once)
      }),
      { numRuns: fewerRuns },
    )
  })

  test('two spellings of one meaning give one form, and the same arguments', { timeout }, () => {
    fc.assert(
      fc.property(meanings, choices, choices, (meaning: Meaning, one, other) => {
        const left = spellQuery(meaning, chooserOf(one))
        const right = spellQuery(meaning, chooserOf(other))
        expect(canonical(left), `${left}\n${right}`).toBe(canonical(right))
      }),
      { numRuns: fewerRuns },
    )
  })

  test('two meanings never share a form', { timeout }, () => {
    let different = 0
    fc.assert(
      fc.property(meanings, meanings, choices, (a, b, numbers) => {
        const choose = chooserOf(numbers)
        const same = meaningKey(a) === meaningKey(b)
        different += same ? 0 : 1
        const left = spellQuery(a, choose)
        const right = spellQuery(b, choose)
        expect(canonical(left) === canonical(right), `${left}\n${right}`).toBe(same)
      }),
      { numRuns: runs },
    )
    expect(different).toBeGreaterThan(runs / 2)
  })

  test('two meanings that differ in one respect never share a form', { timeout }, () => {
    fc.assert(
      fc.property(meanings, meanings, choices, (a, b, numbers) => {
        const names = Object.keys(b) as (keyof Meaning)[]
        const name = names[(numbers[0] ?? 0) % Math.max(names.length, 1)]
        const changed: Meaning = name === undefined ? a : { ...a, [name]: b[name] }
        const choose = chooserOf(numbers)
        const left = spellQuery(a, choose)
        const right = spellQuery(changed, choose)
        expect(canonical(left) === canonical(right), `${left}\n${right}`).toBe(
          meaningKey(a) === meaningKey(changed),
        )
      }),
      { numRuns: runs },
    )
  })

  test('any text at all is refused or has a form that stands for itself', { timeout }, () => {
    const names = fc.constantFrom(
      'page',
      'include',
      'include[]',
      'slug[]',
      'search',
      'categories[terms]',
      '_fields',
      'after',
      'x',
      '__proto__',
      'a[',
    )
    const pair = fc.tuple(fc.oneof(names, anyText()), anyText())
    const queries = fc
      .array(pair, { maxLength: 5 })
      .map((pairs) => pairs.map(([n, v]) => `${n}=${v}`).join('&'))
    fc.assert(
      fc.property(queries, (query) => {
        const response = validate(query)
        if (response.kind === 'invalid') return
        expect(response.query).toMatch(/^[\x21-\x7e]*$/)
        expect(validate(response.query)).toMatchObject({ kind: 'valid', query: response.query })
      }),
      { numRuns: fewerRuns },
    )
  })
})
