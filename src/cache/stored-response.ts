import { formatHttpDate } from '../http/dates.ts'
import { contentEntityTag } from '../http/entity-tags.ts'
import { type FieldLines, fieldValue, withoutFields } from '../http/fields.ts'
import { endToEndFields } from '../http/hop-by-hop.ts'
import type { ResponseHead } from '../http/message.ts'
import { parseVary, type SelectingFields, varyKey } from '../http/vary.ts'
import { correctedInitialAgeMs, type ExchangeTimes, type Moment } from './age.ts'
import { freshnessLifetime } from './freshness.ts'
import type { CachePolicy } from './policy.ts'
import { type ResponseControl, responseControl } from './response-control.ts'

/** A complete response as it is kept: its field lines are ready to be sent, but for Age and Cache-Status. */
export type StoredResponse = ResponseHead & {
  readonly key: string
  readonly content: Buffer
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
  /** Of everything it holds: content, fields, key, tags, bookkeeping. */
  readonly bytes: number
  /** Forwards are numbered in the order they began: an older one never replaces the answer of a newer one. */
  readonly order: number
}

/** What a stored response is made of. */
export type StoredParts = {
  readonly key: string
  readonly head: ResponseHead
  readonly content: Buffer
  readonly selecting: SelectingFields
  readonly times: ExchangeTimes
  readonly policy: CachePolicy
  readonly upstreamTag: string | undefined
  readonly order: number
}

/** Measured: objects, array headers and index entries of one stored response and of one tag on a 64-bit Node. */
const overheadBytes = 640
const overheadOfTag = 96
const overheadOfLine = 24

const sizeOf = (key: string, fields: FieldLines, content: Buffer, tags: readonly string[]): number => {
  let bytes = overheadBytes + key.length + content.length
  for (const text of fields) bytes += text.length + overheadOfLine
  for (const tag of tags) bytes += tag.length + overheadOfTag
  return bytes
}

/** Small buffers are often a slice of a pool that they would keep alive. */
const ownBytes = (content: Buffer): Buffer => {
  if (content.buffer.byteLength === content.length) return content
  const copy = Buffer.allocUnsafeSlow(content.length)
  content.copy(copy)
  return copy
}

const alwaysRemoved: readonly string[] = ['age', 'content-length']

/** Fields as kept: nothing of the connection (RFC 9111 §3.1), nothing that no-cache or private names, and a length, a date and a validator of our own where they lack. */
const keptFields = (
  head: ResponseHead,
  content: Buffer,
  control: ResponseControl,
  receivedAt: number,
): string[] => {
  const removed = new Set([...alwaysRemoved, ...control.unkept])
  const fields = withoutFields(endToEndFields(head.fields), removed)
  if (fieldValue(fields, 'date') === undefined) fields.push('Date', formatHttpDate(receivedAt))
  if (head.status === 200 && fieldValue(fields, 'etag') === undefined)
    fields.push('ETag', contentEntityTag(content))
  // RFC 9110 §8.6: no Content-Length with 204.
  if (head.status !== 204) fields.push('Content-Length', String(content.length))
  return fields
}

const windowMs = (stated: number | 'invalid' | undefined, ruled: number | undefined): number => {
  if (stated === 'invalid') return 0
  return stated === undefined ? (ruled ?? 0) : stated * 1000
}

/** How long and under what conditions it may be reused. */
const reuseTerms = (
  head: ResponseHead,
  control: ResponseControl,
  policy: CachePolicy,
  times: ExchangeTimes,
) => {
  const { rule } = policy
  const freshness = freshnessLifetime(head, control, policy, times.received.now)
  const ruled = freshness.source === 'override' || freshness.source === 'rule'
  const override = freshness.source === 'override'
  const must = control.mustRevalidate && !override
  // s-maxage means proxy-revalidate (RFC 9111 §5.2.2.10), unless the same field grants a window of staleness (RFC 5861).
  const strict = must || (control.sMaxAge !== undefined && !override)
  const swr = override ? undefined : control.staleWhileRevalidate
  const sie = override ? undefined : control.staleIfError
  return {
    lifetimeMs: freshness.lifetimeMs,
    initialAgeMs: correctedInitialAgeMs(head, times, !ruled),
    staleWhileRevalidateMs: must ? 0 : windowMs(swr, strict ? 0 : rule?.staleWhileRevalidateMs),
    staleIfErrorMs: must ? 0 : windowMs(sie, strict ? 0 : rule?.staleIfErrorMs),
    validateAlways: control.noCache && !override,
    neverStale: strict,
  }
}

/** Makes the record of a response. Whether it may be kept is decided elsewhere. */
export const makeStored = (parts: StoredParts): StoredResponse => {
  const { key, head, policy, times } = parts
  const content = ownBytes(parts.content)
  const control = responseControl(head.fields)
  const fields = keptFields(head, content, control, times.received.now)
  const vary = parseVary(fields)
  const varyNames = vary.kind === 'fields' ? vary.names : []
  return {
    key,
    status: head.status,
    fields,
    content,
    varyNames,
    varyKey: varyKey(varyNames, parts.selecting),
    received: times.received,
    ...reuseTerms(head, control, policy, times),
    upstreamTag: parts.upstreamTag,
    tags: [],
    bytes: sizeOf(key, fields, content, []),
    order: parts.order,
  }
}

/** The same with the tags that invalidate it. */
export const withTags = (stored: StoredResponse, tags: readonly string[]): StoredResponse => ({
  ...stored,
  tags,
  bytes: sizeOf(stored.key, stored.fields, stored.content, tags),
})
