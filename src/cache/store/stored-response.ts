import { type FieldLines, fieldValue, ownText, withField } from '../../http/fields.ts'
import type { ResponseHead } from '../../http/message.ts'
import { parseVary, type SelectingFields, varyKey } from '../../http/vary.ts'
import { isPublicKey } from '../cache-key.ts'
import type { CacheAnswer } from '../conditional-response.ts'
import type { CachePolicy } from '../decide-caching.ts'
import type { Extent } from '../fetch/stored-ranges.ts'
import { type ExchangeTimes, type Moment, reuseTerms } from '../policy/freshness.ts'
import { keptFields } from '../policy/kept-fields.ts'
import { responseControl } from '../policy/response-control.ts'
import { type Coding, isCodable } from '../respond/compress.ts'

/** Forms of an answer that depend on nothing else of their reader. */
export type SharedForm = 'whole' | 'bare' | 'confirmed'

/** The answers of one second of one stored response, by their form. */
export type ReadyAnswers = {
  /** The record that they were made of: a copy of it that says something else must not answer with them. */
  readonly of: object
  readonly ageSeconds: number
  readonly ttlSeconds: number
  /** Readers it has served. */
  given: number
} & Record<SharedForm, CacheAnswer | undefined>

/** The content of a stored response in another coding; undefined: tried, and it saves nothing. */
export type CodedForm = { readonly coding: Coding; readonly content: Buffer | undefined }

/** A response as it is kept: its field lines are ready to be sent, but for Age and Cache-Status. */
export type StoredResponse = ResponseHead & {
  readonly key: string
  readonly content: Buffer
  /** Which bytes the content is; undefined when it is all of them. */
  readonly extent: Extent | undefined
  /** Names of the selecting fields and the secondary key they make (RFC 9111 §4.1). */
  readonly varyNames: readonly string[]
  readonly varyKey: string
  readonly received: Moment
  readonly initialAgeMs: number
  readonly lifetimeMs: number
  readonly staleWhileRevalidateMs: number
  readonly staleIfErrorMs: number
  /** no-cache: validated before each reuse. */
  readonly validateAlways: boolean
  /** must-revalidate, proxy-revalidate or s-maxage: not served stale unless it says so itself. */
  readonly neverStale: boolean
  /** The upstream's own entity tag; a tag that the gateway made is of no use to the upstream. */
  readonly upstreamTag: string | undefined
  readonly tags: readonly string[]
  /** May be given in other content codings: Vary then says so. */
  readonly codable: boolean
  readonly forms: readonly CodedForm[]
  /** Of everything it holds: content, fields, key, tags, bookkeeping. */
  readonly bytes: number
  /** Forwards are numbered in the order they began: an older one never replaces the answer of a newer one. */
  readonly order: number
  /** Answers given from it while it was fresh: counted for the admin side, nothing is decided by it. */
  hits: number
  /**
   * What is ready for the readers of this second (answers.ts); a number says in which second of its age it was read last, by one
   * reader whose answer was not worth keeping.
   */
  ready: ReadyAnswers | number
}

/** One that holds parts only (RFC 9111 §3.3). */
export type IncompleteResponse = StoredResponse & { readonly extent: Extent }

/** What a stored response is made of. */
export type StoredParts = {
  readonly key: string
  readonly head: ResponseHead
  readonly content: Buffer
  readonly extent: Extent | undefined
  readonly selecting: SelectingFields
  readonly times: ExchangeTimes
  readonly policy: CachePolicy
  readonly upstreamTag: string | undefined
  readonly order: number
  /** Contents from this length on may be given in other codings too. */
  readonly codedFrom: number
  /** Of the same content, made before it was validated. */
  readonly forms: readonly CodedForm[]
}

/** Measured: objects, array headers and index entries of one stored response and of one tag on a 64-bit Node. */
const overheadBytes = 640
const overheadOfTag = 96
const overheadOfLine = 24
const overheadOfForm = 480

type Counted = Pick<
  StoredResponse,
  'key' | 'varyNames' | 'varyKey' | 'upstreamTag' | 'fields' | 'content' | 'tags' | 'forms'
>

const sizeOf = (counted: Counted): number => {
  const { key, fields, content, tags, forms } = counted
  let bytes = overheadBytes + key.length + content.buffer.byteLength
  bytes += counted.varyKey.length + (counted.upstreamTag?.length ?? 0)
  for (const name of counted.varyNames) bytes += name.length + overheadOfLine
  // The index finds it by its target too: memory-store.ts.
  if (!isPublicKey(key)) bytes += overheadOfTag
  for (const text of fields) bytes += text.length + overheadOfLine
  for (const tag of tags) bytes += tag.length + overheadOfTag
  for (const form of forms)
    bytes += overheadOfForm + (form.content?.buffer.byteLength ?? 0) + 8 * fields.length
  return bytes
}

/** Up to so much beside a content, and up to a quarter of it, may stay with it: less than another copy costs. */
const mostBesides = 1024

/**
 * Small buffers are often a slice of a pool that they would keep alive; what came in one read of a socket has no more than
 * its own head before it.
 */
export const ownBytes = (content: Buffer): Buffer => {
  const besides = content.buffer.byteLength - content.length
  if (besides <= mostBesides && besides * 4 <= content.length) return content
  const copy = Buffer.allocUnsafeSlow(content.length)
  content.copy(copy)
  return copy
}

/** Every form says that there are others (RFC 9110 §12.5.5). */
export const withVaryByCoding = (fields: string[]): string[] => {
  const vary = fieldValue(fields, 'vary')
  if (vary === undefined) return [...fields, 'Vary', 'Accept-Encoding']
  return /accept-encoding/i.test(vary) ? fields : withField(fields, 'Vary', `${vary}, Accept-Encoding`)
}

/** A permission for one origin is of no use to another, also where the upstream forgets Vary (Fetch standard, CORS protocol and HTTP caches). */
const namesOneOrigin = (fields: FieldLines): boolean =>
  (fieldValue(fields, 'access-control-allow-origin') ?? '*') !== '*'

// Most records have none, and each list of its own is something for the collector to visit.
const noNames: readonly string[] = []
const noTags: readonly string[] = []
const noForms: readonly CodedForm[] = []

/** Codings are made here: the upstream is always asked for none, so that none selects what is stored. */
const selectingNames = (fields: FieldLines): readonly string[] => {
  const vary = parseVary(fields)
  if (vary.kind === 'any') return []
  const coded = vary.names.includes('accept-encoding')
  const names = coded ? vary.names.filter((name) => name !== 'accept-encoding') : vary.names
  if (namesOneOrigin(fields) && !names.includes('origin')) return [...names, 'origin']
  return names.length === 0 ? noNames : names
}

/** Makes the record of a response. Whether it may be kept is decided elsewhere. */
export const makeStored = (parts: StoredParts): StoredResponse => {
  const { key, head, policy, times } = parts
  const content = ownBytes(parts.content)
  const control = responseControl(head.fields)
  const kept = keptFields(head, content, control, times.received.now)
  const codable = isCodable({ status: head.status, fields: kept }, content.length, parts.codedFrom)
  const fields = codable ? withVaryByCoding(kept) : kept
  const varyNames = selectingNames(fields)
  const terms = reuseTerms(head, control, policy, times)
  return {
    status: head.status,
    fields,
    key,
    content,
    extent: parts.extent,
    varyNames,
    varyKey: varyNames.length === 0 ? '' : ownText(varyKey(varyNames, parts.selecting)),
    received: times.received,
    initialAgeMs: terms.initialAgeMs,
    lifetimeMs: terms.lifetimeMs,
    staleWhileRevalidateMs: terms.staleWhileRevalidateMs,
    staleIfErrorMs: terms.staleIfErrorMs,
    validateAlways: terms.validateAlways,
    neverStale: terms.neverStale,
    upstreamTag: parts.upstreamTag,
    tags: noTags,
    codable,
    forms: codable && parts.forms.length > 0 ? parts.forms : noForms,
    // Known when the tags are: `tagged` counts.
    bytes: 0,
    order: parts.order,
    hits: 0,
    ready: -1,
  }
}

/** Writable before it is kept: nobody else has it yet. */
type Growing = { -readonly [Name in keyof StoredResponse]: StoredResponse[Name] }

/** Says which tags invalidate it, on the record itself, and counts it: a record that `makeStored` has just made is nobody's. */
export const tagged = (made: StoredResponse, tags: readonly string[]): StoredResponse => {
  const known: Growing = made
  known.tags = tags.length === 0 ? noTags : tags
  known.bytes = sizeOf(made)
  return known
}

/** Stale from that age on, on the record itself: of all that a purge means none is made anew. */
export const agedOut = (stored: StoredResponse, ageMs: number): void => {
  const known: Growing = stored
  known.lifetimeMs = Math.min(stored.lifetimeMs, ageMs)
}

/** The same texts in lists that take less room, on the record itself. */
export const compacted = (
  stored: StoredResponse,
  intern: (text: string) => string,
  canonical: (tag: string) => string,
): StoredResponse => {
  const known: Growing = stored
  known.fields = stored.fields.map(intern)
  if (stored.tags.length > 0) known.tags = stored.tags.map(canonical)
  return known
}

/**
 * The same with its coded forms. Member by member, in the order of `makeStored`: all records then have one shape, and to
 * spread one of so many members takes as long as all else that is done with it.
 */
export const withForms = (stored: StoredResponse, forms: readonly CodedForm[]): StoredResponse => ({
  status: stored.status,
  fields: stored.fields,
  key: stored.key,
  content: stored.content,
  extent: stored.extent,
  varyNames: stored.varyNames,
  varyKey: stored.varyKey,
  received: stored.received,
  initialAgeMs: stored.initialAgeMs,
  lifetimeMs: stored.lifetimeMs,
  staleWhileRevalidateMs: stored.staleWhileRevalidateMs,
  staleIfErrorMs: stored.staleIfErrorMs,
  validateAlways: stored.validateAlways,
  neverStale: stored.neverStale,
  upstreamTag: stored.upstreamTag,
  tags: stored.tags,
  codable: stored.codable,
  forms,
  bytes: sizeOf({
    key: stored.key,
    varyNames: stored.varyNames,
    varyKey: stored.varyKey,
    upstreamTag: stored.upstreamTag,
    fields: stored.fields,
    content: stored.content,
    tags: stored.tags,
    forms,
  }),
  order: stored.order,
  hits: stored.hits,
  ready: -1,
})
