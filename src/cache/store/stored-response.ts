import type { Moment } from '../../clock.ts'
import { parseEntityTag } from '../../http/conditional/preconditions.ts'
import { type Coding, mayBeCoded, withVaryByCoding } from '../../http/content-coding.ts'
import {
  downstreamHeaders,
  parseVary,
  type SelectingHeaders,
  varyKey,
} from '../../http/headers/caching-headers.ts'
import { allowsOneOrigin } from '../../http/headers/cors.ts'
import { type HeaderLines, headerValue, withoutHeaders } from '../../http/headers/header-lines.ts'
import { memoize } from '../../http/memo.ts'
import type { ResponseHead } from '../../http/message.ts'
import type { HeadText } from '../../http/response-text.ts'
import { ownBytes, ownText } from '../../http/retained.ts'
import { isPublicKey } from '../cache-key.ts'
import type { CacheResponse } from '../cache-read.ts'
import type { CachePolicy, FeedLifetime } from '../decide-caching.ts'
import { type ExchangeTimes, reuseTerms } from '../policy/freshness.ts'
import { responseControl } from '../policy/response-control.ts'
import { storedHeaders } from '../policy/storability.ts'

/** Responses that are the same for every reader that gets this form: a GET, a HEAD, a 304. */
export type SharedForm = 'whole' | 'head' | 'not-modified'

/** The hits of one stored response within one second, by their form. */
export type PreparedResponses = {
  /** The stored response that they were made of: a changed copy must not be answered with them. */
  readonly of: object
  readonly ageSeconds: number
  readonly ttlSeconds: number
  readers: number
} & Record<SharedForm, CacheResponse | undefined>

/** The content of a stored response in another coding. */
export type CodedForm = {
  readonly coding: Coding
  /** Undefined: tried, and it saves nothing. */
  readonly content: Buffer | undefined
  /** The stored response in this form, made for its first reader: the same object each time has the prepared hits. */
  response?: StoredResponse
}

/** A response as it is stored: its header lines are ready to be sent, except Age and Cache-Status. */
export type StoredResponse = ResponseHead & {
  readonly key: string
  readonly content: Buffer
  /** Names of the selecting headers and the secondary key they make (RFC 9111 §4.1). */
  readonly varyNames: readonly string[]
  readonly varyKey: string
  readonly received: Moment
  /** By the monotonic clock. */
  readonly requestedAt: number
  readonly initialAgeMs: number
  readonly lifetimeMs: number
  readonly staleWhileRevalidateMs: number
  readonly staleIfErrorMs: number
  /** no-cache: validated before each reuse. */
  readonly validateAlways: boolean
  /** must-revalidate, proxy-revalidate or s-maxage: not served stale outside the windows that the response itself states. */
  readonly neverStale: boolean
  /** While its lease is current this lifetime holds in place of `lifetimeMs`; undefined where there is no change feed. */
  readonly feedLifetime: FeedLifetime | undefined
  /** The upstream's own entity tag; a tag that the gateway made is of no use to the upstream. */
  readonly upstreamTag: string | undefined
  readonly tags: readonly string[]
  /** Its header lines with those for caches in front of the gateway, sent in place of `headers`; undefined: they must not store it. */
  readonly sentHeaders: HeaderLines | undefined
  /** May be sent in other content codings: Vary then lists Accept-Encoding. */
  readonly codable: boolean
  readonly forms: readonly CodedForm[]
  /** Memory of all it consists of: content, headers, key, tags, objects. */
  readonly bytes: number
  /** Fetches are numbered as they start: the response of an older one never replaces that of a newer one. */
  readonly order: number
  /** For the admin side only. */
  hits: number
  /**
   * Hits of the current second, kept for its next readers (respond/responder.ts). A number: the second of its age in which it was
   * last read, once.
   */
  prepared: PreparedResponses | number
  /** Its lines as they are sent, from the second hit on. */
  headText: HeadText | undefined
}

export type StoredResponseParts = {
  readonly key: string
  readonly head: ResponseHead
  readonly content: Buffer
  readonly selecting: SelectingHeaders
  readonly times: ExchangeTimes
  readonly policy: CachePolicy
  readonly upstreamTag: string | undefined
  readonly order: number
  /** Contents from this length on may be sent in other content codings. */
  readonly codedFrom: number
  /** Of the same content, made before the response was validated. */
  readonly forms: readonly CodedForm[]
}

/**
 * Measured: objects, array headers and index entries of one stored response and of one tag on a 64-bit Node. Names and values that
 * several responses share are counted for each, which outweighs what is kept for its hits (bench/memory.ts).
 */
const overheadBytes = 720
const overheadOfTag = 96
const overheadOfLine = 24
const overheadOfForm = 1600

/** Memory of one form of a stored response with these headers. */
export const bytesOfForm = ({ content }: CodedForm, headers: HeaderLines): number =>
  overheadOfForm + (content?.buffer.byteLength ?? 0) + 8 * headers.length

const sizeOf = (stored: StoredResponse): number => {
  const { key, headers, content, tags, forms } = stored
  let bytes = overheadBytes + key.length + content.buffer.byteLength
  bytes += stored.varyKey.length + (stored.upstreamTag?.length ?? 0)
  // As long as the upstream likes, though clients never see them.
  for (const hint of Object.values(stored.hints ?? {})) bytes += hint?.length ?? 0
  for (const name of stored.varyNames) bytes += name.length + overheadOfLine
  // The tag index also holds its target: see memory-store.ts.
  if (!isPublicKey(key)) bytes += overheadOfTag
  for (const text of headers) bytes += text.length + overheadOfLine
  for (const tag of tags) bytes += tag.length + overheadOfTag
  for (const form of forms) bytes += bytesOfForm(form, headers)
  return bytes
}

/** Its part in the JavaScript heap: all but the contents, whose octets lie outside. */
export const heapBytesOf = ({ bytes, content, forms }: StoredResponse): number => {
  let heapBytes = bytes - content.buffer.byteLength
  for (const form of forms) heapBytes -= form.content?.buffer.byteLength ?? 0
  return heapBytes
}

/**
 * May a complete stored response be sent in other content codings? A 2xx not without an entity tag, by which the forms differ (RFC
 * 9110 §8.8.3.3).
 */
export const isCodable = (head: ResponseHead, contentBytes: number, minBytes: number): boolean => {
  if (contentBytes < minBytes || head.status === 206) return false
  const isSuccess = head.status >= 200 && head.status < 300
  const hasTag = parseEntityTag(headerValue(head.headers, 'etag') ?? '') !== undefined
  return (hasTag || !isSuccess) && mayBeCoded(head)
}

// One list for all, since most stored responses have none: many lists cost the garbage collector time.
const noNames: readonly string[] = []
const noTags: readonly string[] = []
const noForms: readonly CodedForm[] = []

/** Without Accept-Encoding: the upstream is never sent it, and content codings are made here. */
const selectingNames = (headers: HeaderLines): readonly string[] => {
  const vary = parseVary(headers)
  if (vary.kind === 'any') return []
  const coded = vary.names.includes('accept-encoding')
  const names = coded ? vary.names.filter((name) => name !== 'accept-encoding') : vary.names
  if (allowsOneOrigin(headers) && !names.includes('origin')) return [...names, 'origin']
  return names.length === 0 ? noNames : names
}

/** A form that was made for an earlier response with the same content. */
const ownForm = ({ coding, content }: CodedForm): CodedForm => ({ coding, content })

/** Whether it may be stored is decided elsewhere. */
export const createStoredResponse = (parts: StoredResponseParts): StoredResponse => {
  const { key, head, policy, times } = parts
  const content = ownBytes(parts.content)
  const control = responseControl(head.headers)
  const plain = storedHeaders(head, content, control, times.received.now)
  // What the upstream coded may be small.
  const codedFrom = parts.forms.length > 0 ? 0 : parts.codedFrom
  const codable = isCodable({ status: head.status, headers: plain }, content.length, codedFrom)
  const headers = codable ? withVaryByCoding(plain) : plain
  const varyNames = selectingNames(headers)
  const terms = reuseTerms(head, control, policy, times)
  return {
    status: head.status,
    headers,
    key,
    content,
    varyNames,
    varyKey: varyNames.length === 0 ? '' : ownText(varyKey(varyNames, parts.selecting)),
    received: times.received,
    requestedAt: times.requested.monotonic,
    initialAgeMs: terms.initialAgeMs,
    lifetimeMs: terms.lifetimeMs,
    staleWhileRevalidateMs: terms.staleWhileRevalidateMs,
    staleIfErrorMs: terms.staleIfErrorMs,
    validateAlways: terms.validateAlways,
    neverStale: terms.neverStale,
    feedLifetime: terms.feedLifetime,
    hints: head.hints,
    upstreamTag: parts.upstreamTag,
    tags: noTags,
    sentHeaders: undefined,
    codable,
    forms: codable && parts.forms.length > 0 ? parts.forms.map(ownForm) : noForms,
    // Counted with the tags, by `setTags`.
    bytes: 0,
    order: parts.order,
    hits: 0,
    prepared: -1,
    headText: undefined,
  }
}

/** Writable: only before it is stored, when nothing else refers to it, except by `limitLifetime` and `addForm`. */
type Writable = { -readonly [Name in keyof StoredResponse]: StoredResponse[Name] }

/** Sets the tags that invalidate it, and counts its bytes. Changes the record itself. */
export const setTags = (stored: StoredResponse, tags: readonly string[]): StoredResponse => {
  const writable: Writable = stored
  writable.tags = tags.length === 0 ? noTags : tags
  writable.bytes = sizeOf(stored)
  return writable
}

/** Sets what caches in front of the gateway get, and counts its bytes. Changes the record itself. */
export const setForDownstream = (stored: StoredResponse, lines: HeaderLines): void => {
  const writable: Writable = stored
  writable.sentHeaders = [...withoutHeaders(stored.headers, downstreamHeaders), ...lines]
  writable.bytes += 8 * writable.sentHeaders.length
  for (const text of lines) writable.bytes += text.length + overheadOfLine
}

/** Stale from that age on. Changes the record itself: a purge of many must not copy each. */
export const limitLifetime = (stored: StoredResponse, ageMs: number): void => {
  const writable: Writable = stored
  writable.lifetimeMs = Math.min(stored.lifetimeMs, ageMs)
  writable.feedLifetime = undefined
}

/** Longer texts are seldom the same in two responses. */
const longestShared = 64

/** Gives equal short texts one string: header names and most values are the same in all responses, each with its copy from the wire. */
export const createIntern = (): ((text: string) => string) => {
  const shared = memoize((text) => text, 2048)
  return (text) => (text.length > longestShared ? text : shared(text))
}

/** Replaces equal texts by one string, in lists without spare capacity. Changes the record itself. */
export const compact = (
  stored: StoredResponse,
  intern: (text: string) => string,
  canonical: (tag: string) => string,
): StoredResponse => {
  const writable: Writable = stored
  writable.headers = stored.headers.map(intern)
  writable.sentHeaders = stored.sentHeaders?.map(intern)
  if (stored.tags.length > 0) writable.tags = stored.tags.map(canonical)
  return writable
}

/** Adds a content coding, and counts its bytes. Changes the record itself: its prepared hits stay valid. */
export const addForm = (stored: StoredResponse, form: CodedForm): void => {
  const writable: Writable = stored
  writable.forms = [...stored.forms, form]
  writable.bytes += bytesOfForm(form, stored.headers)
}
