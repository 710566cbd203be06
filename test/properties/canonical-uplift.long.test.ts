import fc from 'fast-check'
import { expect, test } from 'vitest'
import { createSiteValidator } from '../../src/wordpress/arguments/site-validator.ts'
import { siteRows } from '../../src/wordpress/routes/route-table.ts'
import { meaningKey, meanings } from './list-meanings.ts'
import { chooserOf, spellQuery } from './list-spellings.ts'

const validator = createSiteValidator({
  limits: { queryParameters: 256, jsonDepth: 64 },
  unknownParameters: 'strip',
  trackingParameters: ['utm_*'],
})

const row = siteRows.find(({ id }) => id === 'posts.collection')
const endpoint = row?.endpoints[0]
if (row === undefined || endpoint === undefined) throw new Error('no list of posts')

const canonical = (query: string): string => {
  const input = {
    method: 'GET',
    row,
    endpoint,
    pathParameters: {},
    query,
    contentType: undefined,
    content: undefined,
  }
  const response = validator.validate(input)
  return response.kind === 'valid' ? response.query : `refused ${query}`
}

/** What a cache does that sorts parameters and knows nothing else. */
const sorted = (query: string): string => query.split('&').filter(Boolean).sort().join('&')

/** Share of requests that find an earlier one under their key, in a cache that never forgets. */
const hitRatio = (keys: readonly string[]): number => 1 - new Set(keys).size / keys.length

test('clients that write one query in several ways share one stored response', async ({ annotate }) => {
  const asked = fc.sample(meanings, { numRuns: 60, seed: 7 })
  // A client writes the same query in the same way each time, and no two clients agree.
  const clients = fc.sample(fc.array(fc.nat(1000), { minLength: 20, maxLength: 40 }), {
    numRuns: 12,
    seed: 11,
  })
  const requests = asked.flatMap((meaning) =>
    clients.flatMap((habits) => {
      const request = { meaning: meaningKey(meaning), query: spellQuery(meaning, chooserOf(habits)) }
      return [request, request, request]
    }),
  )
  const raw = hitRatio(requests.map(({ query }) => query))
  const bySorting = hitRatio(requests.map(({ query }) => sorted(query)))
  const byMeaning = hitRatio(requests.map(({ query }) => canonical(query)))
  const percent = (ratio: number): string => `${(ratio * 100).toFixed(1)} %`
  await annotate(
    `hit ratio: raw ${percent(raw)}, sorted ${percent(bySorting)}, canonical ${percent(byMeaning)}`,
  )
  expect(raw).toBeLessThanOrEqual(bySorting)
  expect(bySorting).toBeLessThan(byMeaning)
  // No key too many, none too few.
  expect(byMeaning).toBe(hitRatio(requests.map(({ meaning }) => meaning)))
})
