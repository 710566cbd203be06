import { randomUUID } from 'node:crypto'
import {
  headerValue,
  type RequestHeaders,
  requestHeader,
  withHeader,
  withoutHeaders,
} from '../headers/header-lines.ts'
import type { ResponseHead } from '../message.ts'
import { parseHttpDate } from './dates.ts'
import { digestsOfContent, matchesStrongly, parseEntityTag } from './preconditions.ts'

/** First and last byte position, both included (RFC 9110 §14.1.2). */
type ByteRange = { readonly first: number; readonly last: number }

/** The part of a content of known length that a Range header selects. */
export type RangeSelection =
  | { readonly kind: 'whole' }
  | { readonly kind: 'parts'; readonly ranges: readonly ByteRange[] }
  | { readonly kind: 'unsatisfiable' }

/** More parts than this, or parts that overlap, are an attack and not a reader (RFC 9110 §17.15): the whole is sent. */
const maxRanges = 16

const whole: RangeSelection = { kind: 'whole' }

type ParsedRange = ByteRange | 'outside' | undefined

const parseSpec = (spec: string, length: number): ParsedRange => {
  const match = /^(\d{0,15})-(\d{0,15})$/.exec(spec)
  if (match === null) return undefined
  const [, from = '', to = ''] = match
  if (from === '') {
    if (to === '') return undefined
    const suffix = Number(to)
    return suffix === 0 || length === 0
      ? 'outside'
      : { first: Math.max(0, length - suffix), last: length - 1 }
  }
  const first = Number(from)
  if (to !== '' && Number(to) < first) return undefined
  if (first >= length) return 'outside'
  return { first, last: to === '' ? length - 1 : Math.min(Number(to), length - 1) }
}

const overlap = (ranges: readonly ByteRange[]): boolean => {
  const sorted = [...ranges].sort((a, b) => a.first - b.first)
  return sorted.some((range, i) => i > 0 && range.first <= (sorted[i - 1]?.last ?? -1))
}

/** An invalid or unknown range is ignored (RFC 9110 §14.2): the reader gets the whole. */
export const selectRanges = (value: string, length: number): RangeSelection => {
  const match = /^bytes=(.*)$/i.exec(value)
  if (match === null) return whole
  const specs = (match[1] ?? '')
    .split(',')
    .map((spec) => spec.trim())
    .filter((spec) => spec !== '')
  if (specs.length === 0 || specs.length > maxRanges) return whole
  const ranges: ByteRange[] = []
  for (const spec of specs) {
    const range = parseSpec(spec, length)
    if (range === undefined) return whole
    if (range !== 'outside') ranges.push(range)
  }
  if (ranges.length === 0) return { kind: 'unsatisfiable' }
  return overlap(ranges) ? whole : { kind: 'parts', ranges }
}

/** If-Range holds only for the very same bytes: strong tag, or exactly the date (RFC 9110 §13.1.5). */
const sameRepresentation = (condition: string, response: ResponseHead, now: number): boolean => {
  const tag = parseEntityTag(condition)
  if (tag !== undefined) {
    const current = parseEntityTag(headerValue(response.headers, 'etag') ?? '')
    return current !== undefined && matchesStrongly(tag, current)
  }
  const date = parseHttpDate(condition, now)
  const modified = parseHttpDate(headerValue(response.headers, 'last-modified') ?? '', now)
  if (date === undefined || date !== modified) return false
  // A date is a strong validator only when the origin made it at least a second before the response (§8.8.2.2).
  const responseDate = parseHttpDate(headerValue(response.headers, 'date') ?? '', now)
  return responseDate !== undefined && responseDate - modified >= 1000
}

/** The part of a complete 200 response that a GET asks for (RFC 9110 §14.2). */
export const rangeOf = (
  headers: RequestHeaders,
  response: ResponseHead,
  length: number,
  now: number,
): RangeSelection => {
  const range = requestHeader(headers, 'range')
  if (range === undefined || response.status !== 200) return whole
  const condition = requestHeader(headers, 'if-range')
  if (condition !== undefined && !sameRepresentation(condition, response, now)) return whole
  return selectRanges(range, length)
}

const replaced: ReadonlySet<string> = new Set([
  ...digestsOfContent,
  'content-length',
  'content-type',
  'content-range',
  'transfer-encoding',
])

const multipart = (
  head: ResponseHead,
  content: Buffer,
  ranges: readonly ByteRange[],
): { readonly head: ResponseHead; readonly content: Buffer } => {
  const boundary = randomUUID()
  const type = headerValue(head.headers, 'content-type')
  const pieces: Buffer[] = []
  for (const { first, last } of ranges) {
    const typeLine = type === undefined ? '' : `Content-Type: ${type}\r\n`
    const range = `Content-Range: bytes ${first}-${last}/${content.length}`
    pieces.push(Buffer.from(`--${boundary}\r\n${typeLine}${range}\r\n\r\n`, 'latin1'))
    pieces.push(content.subarray(first, last + 1), Buffer.from('\r\n'))
  }
  pieces.push(Buffer.from(`--${boundary}--\r\n`))
  const body = Buffer.concat(pieces)
  const headers = [
    ...withoutHeaders(head.headers, replaced),
    'Content-Type',
    `multipart/byteranges; boundary=${boundary}`,
    'Content-Length',
    String(body.length),
  ]
  return { head: { status: 206, headers }, content: body }
}

/** A 206 with the selected parts of a complete content (RFC 9110 §15.3.7). */
export const partialContent = (
  head: ResponseHead,
  content: Buffer,
  ranges: readonly ByteRange[],
): { readonly head: ResponseHead; readonly content: Buffer } => {
  const [only, ...others] = ranges
  if (only === undefined || others.length > 0) return multipart(head, content, ranges)
  const part = content.subarray(only.first, only.last + 1)
  const whole = withoutHeaders(head.headers, digestsOfContent)
  const headers = withHeader(whole, 'Content-Length', String(part.length))
  headers.push('Content-Range', `bytes ${only.first}-${only.last}/${content.length}`)
  return { head: { status: 206, headers }, content: part }
}

/** The 416 with the length (RFC 9110 §15.5.17). */
export const rangeNotSatisfiable = (head: ResponseHead, length: number): ResponseHead => ({
  status: 416,
  headers: [
    ...withoutHeaders(head.headers, replaced),
    'Content-Range',
    `bytes */${length}`,
    'Content-Length',
    '0',
  ],
})
