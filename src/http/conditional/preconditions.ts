import { createHash } from 'node:crypto'
import { headerValue, type RequestHeaders, requestHeader, withoutHeaders } from '../headers/header-lines.ts'
import type { GatewayRequest, GatewayResponse, ResponseHead } from '../message.ts'
import { isGetOrHead } from '../methods.ts'
import { parseHttpDate } from './dates.ts'

/** An entity tag (RFC 9110 §8.8.3); `opaque` keeps its quotes. */
type EntityTag = { readonly weak: boolean; readonly opaque: string }

/** The value of If-Match or If-None-Match: any current representation, or one of these. */
type EntityTagList = '*' | readonly EntityTag[]

// etagc: visible characters except the double quote, and obs-text (RFC 9110 §8.8.3).
const tagAt = /(W\/)?("[\x21\x23-\x7e\x80-\xff]*")/y

/** One entity tag that fills the whole value, or undefined. */
export const parseEntityTag = (value: string): EntityTag | undefined => {
  tagAt.lastIndex = 0
  const match = tagAt.exec(value)
  if (match === null || tagAt.lastIndex !== value.length) return undefined
  return { weak: match[1] !== undefined, opaque: match[2] ?? '' }
}

/** Members that are no entity tags are passed over: a mistake in one must not hide a match with another. */
const readList = (value: string): EntityTagList => {
  if (value.trim() === '*') return '*'
  const tags: EntityTag[] = []
  let i = 0
  while (i < value.length) {
    tagAt.lastIndex = i
    const match = tagAt.exec(value)
    if (match === null) {
      i += 1
      continue
    }
    tags.push({ weak: match[1] !== undefined, opaque: match[2] ?? '' })
    i = tagAt.lastIndex
  }
  return tags
}

let latest: { readonly value: string; readonly list: EntityTagList } = { value: '', list: [] }

/** Remembers the latest list, which may have thousands of tags: a hit compares it with each form of the stored response. */
export const parseEntityTagList = (value: string): EntityTagList => {
  if (latest.value !== value) latest = { value, list: readList(value) }
  return latest.list
}

/** Strong comparison (RFC 9110 §8.8.3.2): for ranges and If-Match. */
export const matchesStrongly = (a: EntityTag, b: EntityTag): boolean =>
  !a.weak && !b.weak && a.opaque === b.opaque

/** Weak comparison (RFC 9110 §8.8.3.2): for If-None-Match. */
export const matchesWeakly = (a: EntityTag, b: EntityTag): boolean => a.opaque === b.opaque

/** A strong tag made of the content alone: 144 bits of its SHA-256. */
export const contentEntityTag = (content: Buffer): string =>
  `"${createHash('sha256').update(content).digest('base64url').slice(0, 24)}"`

/** Between the tag of a response and the name of the coding that the gateway gave it. */
const mark = '~'

const codedTag = /^(".*)~(?:br|gzip|zstd)"$/
const decodedTag = /^(".*)~identity"$/

/** The tags that a tag of the gateway was made from: of the uncoded form, and of the upstream's coded one. */
const originsOf = (opaque: string): string[] => {
  const coded = codedTag.exec(opaque)?.[1]
  const uncoded = coded === undefined ? [] : [`${coded}"`]
  const decoded = decodedTag.exec(uncoded[0] ?? opaque)?.[1]
  return decoded === undefined ? uncoded : [...uncoded, `${decoded}"`]
}

/**
 * Entity tag of a form in another coding, or with its coding undone (`identity`). A strong tag must differ, since the bytes do (RFC 9110 §8.8.3.3); a weak one says the
 * same of both.
 */
export const tagOfCoded = (tag: string, coding: string): string => {
  const parsed = parseEntityTag(tag)
  return parsed === undefined || parsed.weak ? tag : `${parsed.opaque.slice(0, -1)}${mark}${coding}"`
}

/**
 * An If-Match or If-None-Match for a server that has no coded forms: the tag that such a form was made from
 * is added. Added and not put in its place, since a server's own tags may look the same.
 */
export const withUncodedTags = (list: string): string => {
  if (!list.includes(mark)) return list
  const tags = parseEntityTagList(list)
  if (tags === '*') return list
  return [list, ...new Set(tags.flatMap(({ opaque }) => originsOf(opaque)))].join(', ')
}

/** Headers that make a request conditional or partial (RFC 9110 §13.1, §14.2): the gateway evaluates them itself. */
export const conditionalHeaders: ReadonlySet<string> = new Set([
  'if-match',
  'if-none-match',
  'if-modified-since',
  'if-unmodified-since',
  'if-range',
  'range',
])

/** The effect of the preconditions of a request on its response. */
export type PreconditionOutcome = 'proceed' | 'not-modified' | 'failed'

/** Is any precondition there at all? Cheap, for the way of a hit. */
export const isConditional = (headers: RequestHeaders): boolean =>
  headers['if-none-match'] !== undefined ||
  headers['if-modified-since'] !== undefined ||
  headers['if-match'] !== undefined ||
  headers['if-unmodified-since'] !== undefined

const anyTagMatches = (list: string, response: ResponseHead, matches: typeof matchesWeakly): boolean => {
  const wanted = parseEntityTagList(list)
  if (wanted === '*') return true
  const tag = parseEntityTag(headerValue(response.headers, 'etag') ?? '')
  return tag !== undefined && wanted.some((candidate) => matches(candidate, tag))
}

/** Has the response changed since the date? undefined when either side is no valid date: the header is then ignored (§13.1.3, §13.1.4). */
const modifiedSince = (date: string, response: ResponseHead, now: number): boolean | undefined => {
  const since = parseHttpDate(date, now)
  const modified = parseHttpDate(headerValue(response.headers, 'last-modified') ?? '', now)
  return since === undefined || modified === undefined ? undefined : modified > since
}

const guardApplies = (headers: RequestHeaders, response: ResponseHead, now: number): boolean => {
  const ifMatch = requestHeader(headers, 'if-match')
  if (ifMatch !== undefined) return anyTagMatches(ifMatch, response, matchesStrongly)
  const ifUnmodifiedSince = requestHeader(headers, 'if-unmodified-since')
  return ifUnmodifiedSince === undefined || modifiedSince(ifUnmodifiedSince, response, now) !== true
}

/**
 * Evaluates in the order of RFC 9110 §13.2.2, against the response that the request would get without its preconditions.
 * Only a 2xx answer is subject to them (§13.2.1).
 */
export const evaluatePreconditions = (
  headers: RequestHeaders,
  method: string,
  response: ResponseHead,
  now: number,
): PreconditionOutcome => {
  if (response.status < 200 || response.status > 299) return 'proceed'
  if (!guardApplies(headers, response, now)) return 'failed'
  const ifNoneMatch = requestHeader(headers, 'if-none-match')
  if (ifNoneMatch !== undefined) {
    if (!anyTagMatches(ifNoneMatch, response, matchesWeakly)) return 'proceed'
    return isGetOrHead(method) ? 'not-modified' : 'failed'
  }
  const ifModifiedSince = requestHeader(headers, 'if-modified-since')
  if (ifModifiedSince === undefined || !isGetOrHead(method)) return 'proceed'
  return modifiedSince(ifModifiedSince, response, now) === false ? 'not-modified' : 'proceed'
}

/** Digests of the content of one message; `Repr-Digest` is of the representation, which a part or a HEAD shows too (RFC 9530 §2, §3). */
export const digestsOfContent: ReadonlySet<string> = new Set(['content-digest', 'content-md5'])

/** Headers about a content that a 304 or 412 does not carry (RFC 9110 §15.4.5). */
const contentHeaders: ReadonlySet<string> = new Set([
  ...digestsOfContent,
  'content-length',
  'content-encoding',
  'content-language',
  'content-range',
  'content-type',
  'transfer-encoding',
])

/** The 304 to a client that already has this response. */
export const notModified = (response: ResponseHead): ResponseHead => ({
  status: 304,
  headers: withoutHeaders(response.headers, contentHeaders),
})

/** The 412 for a precondition that does not hold; no content, so that each service's shape stays the edge's business. */
const preconditionFailed = (response: ResponseHead): ResponseHead => ({
  status: 412,
  headers: [...withoutHeaders(response.headers, contentHeaders), 'Content-Length', '0'],
})

/** The 304 or 412 that the preconditions of a request lead to; undefined when they hold. */
export const preconditionResponse = (
  { headers, method }: Pick<GatewayRequest, 'headers' | 'method'>,
  response: ResponseHead,
  now: number,
): GatewayResponse | undefined => {
  if (!isConditional(headers)) return undefined
  switch (evaluatePreconditions(headers, method, response, now)) {
    case 'not-modified':
      return { ...notModified(response), content: undefined }
    case 'failed':
      return { ...preconditionFailed(response), content: undefined }
    case 'proceed':
      return undefined
  }
}
