import type { ByteRange, ContentRange } from '../../http/conditional/ranges.ts'

/** Which bytes of a representation an incomplete stored response holds; its content is these, one after the other. */
export type Extent = {
  /** In order, and with a gap between any two. */
  readonly ranges: readonly ByteRange[]
  readonly total: number | undefined
}

/** The bytes that a stored response holds, and which they are. */
export type HeldParts = { readonly extent: Extent; readonly content: Buffer }

/** Readers choose the ranges: scattered ones must not make a list that takes longer to search than the upstream to ask. */
const mostRanges = 16

const lengthOf = ({ first, last }: ByteRange): number => last - first + 1

/** One part, as it came. */
export const extentOf = ({ first, last, total }: ContentRange): Extent => ({
  ranges: [{ first, last }],
  total,
})

/** The bytes of a range, or undefined when not all of them are held. */
export const sliceOf = ({ extent, content }: HeldParts, wanted: ByteRange): Buffer | undefined => {
  let at = 0
  for (const range of extent.ranges) {
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

const copyInto = (target: Buffer, extent: Extent, { extent: held, content }: HeldParts): void => {
  let from = 0
  for (const range of held.ranges) {
    let to = 0
    for (const wide of extent.ranges) {
      if (range.first >= wide.first && range.last <= wide.last) {
        content.copy(target, to + range.first - wide.first, from, from + lengthOf(range))
      }
      to += lengthOf(wide)
    }
    from += lengthOf(range)
  }
}

/**
 * Both together (RFC 9111 §3.4); the caller has made sure that they share a strong validator. undefined when they
 * contradict each other all the same, or would be in too many pieces.
 */
export const combined = (old: HeldParts, young: HeldParts): HeldParts | undefined => {
  const total = young.extent.total ?? old.extent.total
  if (old.extent.total !== undefined && old.extent.total !== total) return undefined
  const ranges = joined([...old.extent.ranges, ...young.extent.ranges])
  const beyond = total !== undefined && (ranges.at(-1)?.last ?? 0) >= total
  if (beyond || ranges.length > mostRanges) return undefined
  const extent = { ranges, total }
  const content = Buffer.allocUnsafeSlow(ranges.reduce((sum, range) => sum + lengthOf(range), 0))
  copyInto(content, extent, old)
  copyInto(content, extent, young)
  return { extent, content }
}

/** The one range that, asked for, leaves nothing missing; undefined when the length is not known or nothing is. */
export const missingRange = ({ ranges, total }: Extent): ByteRange | undefined => {
  if (total === undefined) return undefined
  const [first] = ranges
  const last = ranges.at(-1)
  if (first === undefined || last === undefined) return undefined
  const begin = first.first > 0 ? 0 : first.last + 1
  const end = last.last < total - 1 ? total - 1 : last.first - 1
  return begin > end ? undefined : { first: begin, last: end }
}

/** Is nothing missing? */
export const isWhole = ({ ranges, total }: Extent): boolean =>
  ranges.length === 1 && ranges[0]?.first === 0 && ranges[0].last + 1 === total
