import type { Moment } from '../../clock.ts'
import { formatHttpDate } from '../../http/conditional/dates.ts'
import { matchesWeakly, parseEntityTag } from '../../http/conditional/preconditions.ts'
import { tagOfDecoded } from '../../http/content-coding.ts'
import {
  type Directives,
  deltaSeconds,
  parseCacheControl,
  type SelectingHeaders,
  varyKey,
} from '../../http/headers/caching-headers.ts'
import { endToEndHeaders } from '../../http/headers/forwardable-headers.ts'
import {
  headerValue,
  type RequestHeaders,
  requestHeader,
  withHeader,
  withoutHeaders,
} from '../../http/headers/header-lines.ts'
import type { ResponseHead, ResponseHints } from '../../http/message.ts'
import type { CacheRead } from '../cache-read.ts'
import type { CacheProfile } from '../decide-caching.ts'
import type { ForwardReason } from '../events.ts'
import type { MemoryStore } from '../store/memory-store.ts'
import type { StoredResponse } from '../store/stored-response.ts'

/** How a read is answered (RFC 9111 §4): the step that follows its lookup. */
export type Reuse =
  | { readonly step: 'hit'; readonly stored: StoredResponse; readonly ageMs: number }
  /** Within stale-while-revalidate, or as stale as the reader accepts: served now, and fetched in the background. */
  | { readonly step: 'stale-while-revalidate'; readonly stored: StoredResponse }
  | { readonly step: 'join'; readonly reason: ForwardReason; readonly stored: StoredResponse | undefined }
  /** only-if-cached, and no stored response can be reused. */
  | { readonly step: 'only-if-cached' }

/** The stored response whose selecting headers the request matches, the newest one if several do (RFC 9111 §4.1). */
const selectVariant = (
  variants: readonly StoredResponse[],
  selecting: SelectingHeaders,
): StoredResponse | undefined => {
  let selected: StoredResponse | undefined
  let names: readonly string[] | undefined
  let key = ''
  for (const stored of variants) {
    const { varyNames } = stored
    // Variants mostly share one list of names: the secondary key is then made once.
    if (varyNames.length > 0 && varyNames !== names) {
      names = varyNames
      key = varyKey(varyNames, selecting)
    }
    const matches = varyNames.length === 0 || key === stored.varyKey
    if (matches && (selected === undefined || stored.order > selected.order)) selected = stored
  }
  return selected
}

const noControl = {
  validate: false,
  maxAgeMs: Number.POSITIVE_INFINITY,
  minFreshMs: 0,
  maxStaleMs: 0,
  onlyIfCached: false,
}

/** Of Cache-Control in the request. */
type RequestControl = Readonly<typeof noControl>

const milliseconds = (directives: Directives, name: string, absent: number, invalid: number): number => {
  const seconds = deltaSeconds(directives, name)
  if (seconds === undefined) return absent
  return seconds === 'invalid' ? invalid : seconds * 1000
}

/**
 * Request directives are advisory (RFC 9111 §5.2.1). `safe` ignores them: HTTP clients send no-cache by themselves (fetch with
 * `cache: 'no-store'`), and freshness after writes does not depend on them.
 */
const requestControl = (headers: RequestHeaders, profile: CacheProfile): RequestControl => {
  if (profile === 'safe' || headers['cache-control'] === undefined) return noControl
  const directives = parseCacheControl(requestHeader(headers, 'cache-control'))
  const anyStaleness = directives.has('max-stale') && directives.get('max-stale') === undefined
  return {
    validate: directives.has('no-cache'),
    maxAgeMs: milliseconds(directives, 'max-age', Number.POSITIVE_INFINITY, 0),
    minFreshMs: milliseconds(directives, 'min-fresh', 0, 0),
    maxStaleMs: anyStaleness ? Number.POSITIVE_INFINITY : milliseconds(directives, 'max-stale', 0, 0),
    onlyIfCached: directives.has('only-if-cached'),
  }
}

const fetchOrUnavailable = (
  control: RequestControl,
  reason: ForwardReason,
  stored: StoredResponse | undefined,
): Reuse => (control.onlyIfCached ? { step: 'only-if-cached' } : { step: 'join', reason, stored })

/**
 * current_age (RFC 9111 §4.2.3). The larger of both clocks' resident times: the wall clock may be set back,
 * the monotonic one stands still while a machine is suspended, and neither may make a response younger.
 */
export const currentAgeMs = (
  { initialAgeMs, received }: Pick<StoredResponse, 'initialAgeMs' | 'received'>,
  at: Moment,
): number => initialAgeMs + Math.max(0, at.now - received.now, at.monotonic - received.monotonic)

/** How long a response is fresh at that moment. */
export const lifetimeAt = ({ lifetimeMs, feedLifetime }: StoredResponse, at: Moment): number =>
  feedLifetime?.feed.isCurrent(at) === true ? feedLifetime.lifetimeMs : lifetimeMs

/** A stale response may be served when the upstream allows it (RFC 5861) or the reader (max-stale). */
const mayServeStale = (
  stored: StoredResponse,
  ageMs: number,
  control: RequestControl,
  lifetimeMs: number,
): boolean => {
  // A reader that requires a minimum of freshness gets nothing stale.
  if (control.minFreshMs > 0 || ageMs > control.maxAgeMs) return false
  const staleMs = ageMs - lifetimeMs
  if (staleMs < stored.staleWhileRevalidateMs) return true
  return !stored.neverStale && control.maxStaleMs > 0 && staleMs <= control.maxStaleMs
}

const decideStored = (
  stored: StoredResponse,
  ageMs: number,
  control: RequestControl,
  lifetimeMs: number,
): Reuse => {
  const fresh = lifetimeMs > ageMs
  if (control.validate) return fetchOrUnavailable(control, fresh ? 'request' : 'stale', stored)
  if (stored.validateAlways) return fetchOrUnavailable(control, 'stale', stored)
  if (!fresh) {
    return mayServeStale(stored, ageMs, control, lifetimeMs)
      ? { step: 'stale-while-revalidate', stored }
      : fetchOrUnavailable(control, 'stale', stored)
  }
  const enough = lifetimeMs >= ageMs + control.minFreshMs && ageMs <= control.maxAgeMs
  return enough ? { step: 'hit', stored, ageMs } : fetchOrUnavailable(control, 'request', stored)
}

const decideReuse = (
  variants: readonly StoredResponse[],
  selecting: SelectingHeaders & { readonly headers: RequestHeaders },
  profile: CacheProfile,
  at: Moment,
): Reuse => {
  const control = requestControl(selecting.headers, profile)
  const stored = selectVariant(variants, selecting)
  if (stored === undefined)
    return fetchOrUnavailable(control, variants.length === 0 ? 'uri-miss' : 'vary-miss', undefined)
  const ageMs = currentAgeMs(stored, at)
  return decideStored(stored, ageMs, control, lifetimeAt(stored, at))
}

/** How long a stored response without its own window is served when the upstream cannot be reached (RFC 9111 §4.2.4). */
const disconnectedMs = 86_400_000

/** With a change feed it was fresh until the last successful poll: an upstream that fails also ends its feed. */
const staleForMs = ({ lifetimeMs, feedLifetime }: StoredResponse, ageMs: number, at: Moment): number =>
  feedLifetime === undefined
    ? ageMs - lifetimeMs
    : Math.min(ageMs - lifetimeMs, Math.max(ageMs - feedLifetime.lifetimeMs, feedLifetime.feed.endedMs(at)))

/** `unreachable`: there is no response at all, as opposed to a 5xx. */
export const mayServeOnError = (
  stored: StoredResponse,
  failure: 'unreachable' | 'server-error',
  profile: CacheProfile,
  at: Moment,
): boolean => {
  if (stored.validateAlways) return false
  const staleMs = staleForMs(stored, currentAgeMs(stored, at), at)
  if (staleMs < stored.staleIfErrorMs) return true
  const disconnected = failure === 'unreachable' && profile === 'rfc-shared-cache' && !stored.neverStale
  return disconnected && staleMs < disconnectedMs
}

/** While it is current this process receives every write; without it, another process may have changed what is stored here. */
export type Lease = { isCurrent(at: Moment): boolean }

/** Decides by what is stored for a read; without a current lease as if nothing were stored, not even for a validation or on error. */
export const createReuse = (
  store: Pick<MemoryStore, 'variants' | 'peek'>,
  lease: Lease | undefined,
): ((read: CacheRead, at: Moment) => Reuse) => {
  const ofStored = (read: CacheRead, at: Moment): Reuse => {
    // A build reads everything once: what readers use stays the most recently used.
    const variants = read.build === undefined ? store.variants(read.key) : store.peek(read.key)
    return decideReuse(variants, read, read.policy.profile, at)
  }
  return (read, at) => {
    // What is stored for a token that has expired is for nobody any more.
    const isOver = read.policy.endsAt !== undefined && read.policy.endsAt <= at.now
    if (!isOver && (lease === undefined || lease.isCurrent(at))) return ofStored(read, at)
    const reuse = decideReuse([], read, read.policy.profile, at)
    return reuse.step === 'join' ? { ...reuse, reason: 'bypass' } : reuse
  }
}

/** Headers of a conditional request that validates a stored response (RFC 9111 §4.3.1); empty when it has no validator. */
export const validationHeaders = (stored: StoredResponse): Readonly<Record<string, string>> => {
  const headers: Record<string, string> = {}
  if (stored.upstreamTag !== undefined) headers['if-none-match'] = stored.upstreamTag
  const modified = headerValue(stored.headers, 'last-modified')
  if (modified !== undefined) headers['if-modified-since'] = modified
  return headers
}

/** Is a 304 about this stored response (RFC 9111 §4.3.4)? Without an entity tag it cannot be about another. */
export const confirmsStored = (response: ResponseHead, stored: StoredResponse): boolean => {
  const responseTag = parseEntityTag(headerValue(response.headers, 'etag') ?? '')
  const storedTag = parseEntityTag(stored.upstreamTag ?? '')
  return responseTag === undefined || storedTag === undefined || matchesWeakly(responseTag, storedTag)
}

/** Does the response to a HEAD describe the stored content? Only headers that it has can contradict (RFC 9111 §4.3.5). */
export const describesStored = (response: ResponseHead, stored: StoredResponse): boolean => {
  const length = headerValue(response.headers, 'content-length')
  const modified = headerValue(response.headers, 'last-modified')
  const tag = headerValue(response.headers, 'etag')
  return (
    (length === undefined || length === String(stored.content.length)) &&
    (modified === undefined || modified === headerValue(stored.headers, 'last-modified')) &&
    (tag === undefined || tag === stored.upstreamTag) &&
    headerValue(response.headers, 'content-encoding') === headerValue(stored.headers, 'content-encoding')
  )
}

/** Headers that a 304 cannot change: they describe the stored content (RFC 9111 §3.2), or the empty one of the 304. */
const notUpdated: ReadonlySet<string> = new Set([
  ...['content-length', 'content-encoding', 'content-range'],
  ...['content-digest', 'repr-digest', 'content-md5', 'digest'],
])

const isDecoded = ({ upstreamTag, headers }: StoredResponse): boolean => {
  const decoded = tagOfDecoded(upstreamTag ?? '')
  return decoded !== upstreamTag && headerValue(headers, 'etag') === decoded
}

const freshenedHints = (
  stored: ResponseHints | undefined,
  given: ResponseHints | undefined,
): ResponseHints | undefined =>
  given === undefined ? stored : { tags: given.tags ?? stored?.tags, maxAge: given.maxAge ?? stored?.maxAge }

/** Head of the stored response with the headers of the 304 in place of its own (RFC 9111 §3.2, §4.3.4). */
export const freshenedHead = (
  stored: StoredResponse,
  response: ResponseHead,
  receivedAt: number,
): ResponseHead => {
  let updates = withoutHeaders(endToEndHeaders(response.headers), notUpdated)
  // A 304 without a Date was made when it arrived (RFC 9110 §6.6.1); the stored Date would make the response old at once.
  if (headerValue(updates, 'date') === undefined) updates.push('Date', formatHttpDate(receivedAt))
  const tag = headerValue(updates, 'etag')
  // The stored content was decoded: the tag of the upstream's coded form would name other bytes.
  if (tag !== undefined && isDecoded(stored)) updates = withHeader(updates, 'ETag', tagOfDecoded(tag))
  const updated = new Set(updates.filter((_, i) => i % 2 === 0).map((name) => name.toLowerCase()))
  const headers = [...withoutHeaders(stored.headers, updated), ...updates]
  return { status: stored.status, headers, hints: freshenedHints(stored.hints, response.hints) }
}
