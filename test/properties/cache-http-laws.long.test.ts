import fc from 'fast-check'
import { expect, test } from 'vitest'
import { cacheKey, partsOfKey, targetKey, targetKeyOf } from '../../src/cache/cache-key.ts'
import { freshnessLifetime } from '../../src/cache/policy/freshness.ts'
import { responseControl } from '../../src/cache/policy/response-control.ts'
import { formatHttpDate, parseHttpDate } from '../../src/http/conditional/dates.ts'
import { parseEntityTagList } from '../../src/http/conditional/preconditions.ts'
import { selectRanges } from '../../src/http/conditional/ranges.ts'
import { deltaSeconds, parseCacheControl, varyKey } from '../../src/http/headers/caching-headers.ts'
import { readDictionary, readList } from '../../src/http/headers/structured-fields.ts'
import { uncacheableReasonOf } from '../../src/wordpress/tags/uncacheable.ts'
import { cost } from '../support/cost.ts'

const pieces = [
  ...['max-age', 'no-cache', 's-maxage', '=', '"', ',', ' ', '\\', ';', '(', ')', '?', ':', '@', 'W/', '*'],
  ...['-', '1', '0'],
]

/** Text made of what matters to these grammars, so that near misses are common. */
const headerText = fc
  .array(fc.oneof(fc.constantFrom(...pieces), fc.string({ maxLength: 4 })), { maxLength: 40 })
  .map((texts) => texts.join(''))

test('no field text makes a parser throw', () => {
  fc.assert(
    fc.property(headerText, (text) => {
      parseCacheControl(text)
      readDictionary(text)
      readList(text)
      parseEntityTagList(text)
      parseHttpDate(text, 0)
      selectRanges(`bytes=${text}`, 10)
      uncacheableReasonOf(text, text)
      const headers = [
        'Cache-Control',
        text,
        'CDN-Cache-Control',
        text,
        'Expires',
        text,
        'Date',
        text,
        'Age',
        text,
      ]
      const control = responseControl(headers)
      const policy = { profile: 'rfc-shared-cache', rule: undefined } as const
      const { lifetimeMs } = freshnessLifetime({ status: 200, headers }, control, policy, 0)
      expect(lifetimeMs).toBeGreaterThanOrEqual(0)
    }),
    { numRuns: 2000 },
  )
})

test('a directive is never more than 2^31 seconds', () => {
  fc.assert(
    fc.property(fc.bigInt({ min: 0n, max: 10n ** 40n }), (seconds) => {
      const read = deltaSeconds(parseCacheControl(`max-age=${seconds}`), 'max-age')
      expect(read).toBe(Number(seconds < 2_147_483_648n ? seconds : 2_147_483_648n))
    }),
  )
})

test('a formatted date parses to the same date', () => {
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 4_102_444_800 }), (second) => {
      expect(parseHttpDate(formatHttpDate(second * 1000), 0)).toBe(second * 1000)
    }),
  )
})

const keyParts = fc.record({
  service: fc.string({ maxLength: 5 }),
  target: fc.oneof(fc.string(), headerText),
  partition: fc.string({ maxLength: 5 }),
  host: fc.string({ maxLength: 3 }),
  scheme: fc.string({ maxLength: 3 }),
})

test('different parts have different keys, and a key gives its parts back', () => {
  fc.assert(
    fc.property(keyParts, keyParts, (a, b) => {
      expect(partsOfKey(cacheKey(a))).toEqual(a)
      expect(targetKeyOf(cacheKey(a))).toBe(targetKey(a.service, a.target))
      expect(cacheKey(a) === cacheKey(b)).toBe(JSON.stringify(a) === JSON.stringify(b))
    }),
    { numRuns: 1000 },
  )
})

const selecting = fc.record(
  { a: fc.string({ maxLength: 3 }), b: fc.string({ maxLength: 3 }) },
  { requiredKeys: [] },
)

test('requests have the same secondary key exactly when their selecting fields are the same', () => {
  fc.assert(
    fc.property(selecting, selecting, (x, y) => {
      const same = x.a === y.a && x.b === y.b
      const key = (headers: typeof x) =>
        varyKey(['a', 'b'], { sentHeader: (name) => headers[name as 'a' | 'b'] })
      expect(key(x) === key(y)).toBe(same)
    }),
    { numRuns: 1000 },
  )
})

test('long hostile fields are parsed in linear time', () => {
  const shapes: readonly (readonly [string, number])[] = [
    ['"', 60_000],
    ['W/"', 20_000],
    ['\\"', 30_000],
    [', ', 30_000],
    ['(', 60_000],
  ]
  const parseAll = (): void => {
    for (const [piece, count] of shapes) {
      const text = piece.repeat(count)
      parseCacheControl(`a="${text}`)
      readDictionary(`a="${text}`)
      readDictionary(text)
      parseEntityTagList(text)
      selectRanges(`bytes=${text}`, 10)
      parseHttpDate(text, 0)
    }
  }
  expect(cost(parseAll, 500)).toBeLessThan(500)
})
