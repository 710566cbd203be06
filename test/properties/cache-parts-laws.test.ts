import fc from 'fast-check'
import { expect, test } from 'vitest'
import {
  combined,
  isWhole,
  missingRange,
  type PartialContent,
  sliceOf,
} from '../../src/http/conditional/ranges.ts'

const whole = Buffer.from('abcdefghijklmnopqrstuvwxyz0123456789ABCD')
const total = whole.length

const ranges = fc
  .tuple(fc.integer({ min: 0, max: total - 1 }), fc.integer({ min: 0, max: total - 1 }))
  .map(([a, b]) => ({ first: Math.min(a, b), last: Math.max(a, b) }))

const partOf = (range: { first: number; last: number }): PartialContent => ({
  partial: { ranges: [range], total },
  content: whole.subarray(range.first, range.last + 1),
})

/** Bytes that were ever part of something, or nothing for those that were not. */
const has = (held: PartialContent, at: number): boolean =>
  sliceOf(held, { first: at, last: at }) !== undefined

test('parts combined in any order contain the bytes of each, and no others', () => {
  fc.assert(
    fc.property(fc.array(ranges, { minLength: 1, maxLength: 8 }), ranges, (list, wanted) => {
      const [first, ...others] = list.map(partOf)
      const held = others.reduce((sum, part) => combined(sum, part) ?? sum, first as PartialContent)
      const covered = (at: number): boolean => list.some((one) => one.first <= at && at <= one.last)
      for (let at = 0; at < total; at += 1) expect(has(held, at)).toBe(covered(at))
      const slice = sliceOf(held, wanted)
      const all = Array.from({ length: wanted.last - wanted.first + 1 }, (_, i) => wanted.first + i)
      expect(slice !== undefined).toBe(all.every(covered))
      if (slice !== undefined) expect(slice.equals(whole.subarray(wanted.first, wanted.last + 1))).toBe(true)
      expect(isWhole(held.partial)).toBe(Array.from({ length: total }, (_, at) => at).every(covered))
    }),
    { numRuns: 1000 },
  )
})

test('the missing range completes the content, and its first and last byte are missing', () => {
  fc.assert(
    fc.property(fc.array(ranges, { minLength: 1, maxLength: 8 }), (list) => {
      const [first, ...others] = list.map(partOf)
      const held = others.reduce((sum, part) => combined(sum, part) ?? sum, first as PartialContent)
      const missing = missingRange(held.partial)
      if (missing === undefined) {
        expect(isWhole(held.partial)).toBe(true)
        return
      }
      expect([has(held, missing.first), has(held, missing.last)]).toEqual([false, false])
      const all = combined(held, partOf(missing))
      expect(all !== undefined && isWhole(all.partial) && all.content.equals(whole)).toBe(true)
    }),
    { numRuns: 1000 },
  )
})

test('parts of too many ranges, or of two total lengths, are not combined', () => {
  const pieces = Array.from({ length: 17 }, (_, i) => partOf({ first: i * 2, last: i * 2 }))
  const [first, ...others] = pieces
  let held: PartialContent | undefined = first
  for (const piece of others) held = held === undefined ? undefined : combined(held, piece)
  expect(held).toBeUndefined()
  const short = { ...partOf({ first: 0, last: 1 }), partial: { ranges: [{ first: 0, last: 1 }], total: 4 } }
  expect(combined(short, partOf({ first: 2, last: 3 }))).toBeUndefined()
  const open = { ...short, partial: { ...short.partial, total: undefined } }
  expect(combined(open, partOf({ first: 2, last: 3 }))?.partial).toEqual({
    ranges: [{ first: 0, last: 3 }],
    total,
  })
})
