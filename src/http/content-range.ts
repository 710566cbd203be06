import type { ByteRange } from './ranges.ts'

/** What a 206 with a single part says of itself; `total` undefined where the complete length is not known. */
export type ContentRange = ByteRange & { readonly total: number | undefined }

/** Fifteen digits are safe integers. */
const pattern = /^bytes (\d{1,15})-(\d{1,15})\/(?:(\d{1,15})|\*)$/i

/** undefined for what is not in bytes, is malformed or contradicts itself (RFC 9110 §14.4): it must not be recombined. */
export const parseContentRange = (value: string): ContentRange | undefined => {
  const found = pattern.exec(value)
  if (found === null) return undefined
  const first = Number(found[1])
  const last = Number(found[2])
  const total = found[3] === undefined ? undefined : Number(found[3])
  return last < first || (total !== undefined && last >= total) ? undefined : { first, last, total }
}

/** The Content-Range of a part (RFC 9110 §14.4). */
export const formatContentRange = ({ first, last, total }: ContentRange): string =>
  `bytes ${first}-${last}/${total ?? '*'}`
