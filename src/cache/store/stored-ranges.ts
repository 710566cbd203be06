import type { ByteRange } from '../../http/conditional/ranges.ts'

/** Which bytes of a representation an incomplete stored response has: its content is these ranges, one after the other. */
export type StoredRanges = {
  /** In order, and with a gap between any two. */
  readonly ranges: readonly ByteRange[]
  readonly total: number | undefined
}

export type PartialContent = { readonly partial: StoredRanges; readonly content: Buffer }

/** Readers choose the ranges: scattered ones must not make a list that takes longer to search than the upstream takes to answer. */
const mostRanges = 16

const lengthOf = ({ first, last }: ByteRange): number => last - first + 1

/** The bytes of a range, or undefined when not all of them are stored. */
export const sliceOf = ({ partial, content }: PartialContent, wanted: ByteRange): Buffer | undefined => {
  let at = 0
  for (const range of partial.ranges) {
    if (wanted.first >= range.first && wanted.last <= range.last) {
      const start = at + wanted.first - range.first
      return content.subarray(start, start + lengthOf(wanted))
    }
    at += lengthOf(range)
  }
  return undefined
}

/** Ranges that touch or overlap, as one. */
const joined = (ranges: readonly ByteRange[]): readonly ByteRange[] => {
  const result: ByteRange[] = []
  for (const range of [...ranges].sort((a, b) => a.first - b.first)) {
    const before = result.at(-1)
    if (before === undefined || range.first > before.last + 1) result.push(range)
    else result[result.length - 1] = { first: before.first, last: Math.max(before.last, range.last) }
  }
  return result
}

const copyInto = (target: Buffer, { ranges }: StoredRanges, { partial, content }: PartialContent): void => {
  let from = 0
  for (const range of partial.ranges) {
    let to = 0
    for (const wide of ranges) {
      if (range.first >= wide.first && range.last <= wide.last) {
        content.copy(target, to + range.first - wide.first, from, from + lengthOf(range))
      }
      to += lengthOf(wide)
    }
    from += lengthOf(range)
  }
}

/**
 * Both together (RFC 9111 §3.4); the caller has checked that they share a strong validator. undefined when they contradict each
 * other all the same, or would be in too many ranges.
 */
export const combined = (old: PartialContent, young: PartialContent): PartialContent | undefined => {
  const total = young.partial.total ?? old.partial.total
  if (old.partial.total !== undefined && old.partial.total !== total) return undefined
  const ranges = joined([...old.partial.ranges, ...young.partial.ranges])
  const isBeyond = total !== undefined && (ranges.at(-1)?.last ?? 0) >= total
  if (isBeyond || ranges.length > mostRanges) return undefined
  const partial = { ranges, total }
  const content = Buffer.allocUnsafeSlow(ranges.reduce((sum, range) => sum + lengthOf(range), 0))
  copyInto(content, partial, old)
  copyInto(content, partial, young)
  return { partial, content }
}

/** The one range that completes it; undefined when the total length is unknown or nothing is missing. */
export const missingRange = ({ ranges, total }: StoredRanges): ByteRange | undefined => {
  if (total === undefined) return undefined
  const [first] = ranges
  const last = ranges.at(-1)
  if (first === undefined || last === undefined) return undefined
  const begin = first.first > 0 ? 0 : first.last + 1
  const end = last.last < total - 1 ? total - 1 : last.first - 1
  return begin > end ? undefined : { first: begin, last: end }
}

export const isWhole = ({ ranges, total }: StoredRanges): boolean =>
  ranges.length === 1 && ranges[0]?.first === 0 && ranges[0].last + 1 === total
