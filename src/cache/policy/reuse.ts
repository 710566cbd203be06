import { type Directives, deltaSeconds, parseCacheControl } from '../../http/cache-control.ts'
import { type RequestFields, requestField } from '../../http/fields.ts'
import { type SelectingFields, varyKey } from '../../http/vary.ts'
import type { CacheRead } from '../cache-read.ts'
import type { ForwardReason } from '../cache-status.ts'
import type { CacheProfile } from '../decide-caching.ts'
import type { MemoryStore } from '../store/memory-store.ts'
import type { StoredResponse } from '../store/stored-response.ts'
import { currentAgeMs, type Moment } from './freshness.ts'

/** What is to be done for a reader (RFC 9111 §4). */
export type Reuse =
  | { readonly kind: 'fresh'; readonly stored: StoredResponse; readonly ageMs: number }
  /** Within stale-while-revalidate, or as stale as the reader accepts: served now, fetched anew beside it. */
  | { readonly kind: 'stale'; readonly stored: StoredResponse; readonly ageMs: number }
  | { readonly kind: 'fetch'; readonly reason: ForwardReason; readonly stored: StoredResponse | undefined }
  /** only-if-cached, and there is nothing to reuse. */
  | { readonly kind: 'unavailable' }

/** The stored response whose selecting fields the request matches; the newest one if several do. */
export const selectVariant = (
  variants: readonly StoredResponse[],
  selecting: SelectingFields,
): StoredResponse | undefined => {
  let selected: StoredResponse | undefined
  let names: readonly string[] | undefined
  let key = ''
  for (const stored of variants) {
    const { varyNames } = stored
    // Mostly one list for all of them: a long value is read once, not once for each.
    if (varyNames.length > 0 && varyNames !== names) {
      names = varyNames
      key = varyKey(varyNames, selecting)
    }
    const matches = varyNames.length === 0 || key === stored.varyKey
    if (matches && (selected === undefined || stored.order > selected.order)) selected = stored
  }
  return selected
}

type Wishes = {
  readonly validate: boolean
  readonly maxAgeMs: number
  readonly minFreshMs: number
  readonly maxStaleMs: number
  readonly onlyIfCached: boolean
}

const noWishes: Wishes = {
  validate: false,
  maxAgeMs: Number.POSITIVE_INFINITY,
  minFreshMs: 0,
  maxStaleMs: 0,
  onlyIfCached: false,
}

const milliseconds = (directives: Directives, name: string, absent: number, invalid: number): number => {
  const seconds = deltaSeconds(directives, name)
  if (seconds === undefined) return absent
  return seconds === 'invalid' ? invalid : seconds * 1000
}

/**
 * Request directives are advisory (RFC 9111 §5.2.1). `safe` does not follow them: HTTP clients send no-cache on their
 * own account (fetch with `cache: 'no-store'`), and freshness after writes does not depend on them.
 */
const wishesOf = (fields: RequestFields, profile: CacheProfile): Wishes => {
  if (profile === 'safe' || fields['cache-control'] === undefined) return noWishes
  const directives = parseCacheControl(requestField(fields, 'cache-control'))
  const anyStaleness = directives.has('max-stale') && directives.get('max-stale') === undefined
  return {
    validate: directives.has('no-cache'),
    maxAgeMs: milliseconds(directives, 'max-age', Number.POSITIVE_INFINITY, 0),
    minFreshMs: milliseconds(directives, 'min-fresh', 0, 0),
    maxStaleMs: anyStaleness ? Number.POSITIVE_INFINITY : milliseconds(directives, 'max-stale', 0, 0),
    onlyIfCached: directives.has('only-if-cached'),
  }
}

const fetchAnew = (wishes: Wishes, reason: ForwardReason, stored: StoredResponse | undefined): Reuse =>
  wishes.onlyIfCached ? { kind: 'unavailable' } : { kind: 'fetch', reason, stored }

/** Is a stale response good enough for now: by the upstream's leave (RFC 5861), or by the reader's (max-stale)? */
const mayServeStale = (stored: StoredResponse, ageMs: number, wishes: Wishes): boolean => {
  // A reader who asked for a minimum of freshness gets nothing stale.
  if (wishes.minFreshMs > 0 || ageMs > wishes.maxAgeMs) return false
  const staleMs = ageMs - stored.lifetimeMs
  if (staleMs < stored.staleWhileRevalidateMs) return true
  return !stored.neverStale && wishes.maxStaleMs > 0 && staleMs <= wishes.maxStaleMs
}

const decideStored = (stored: StoredResponse, ageMs: number, wishes: Wishes): Reuse => {
  const fresh = stored.lifetimeMs > ageMs
  if (wishes.validate) return fetchAnew(wishes, fresh ? 'request' : 'stale', stored)
  if (stored.validateAlways) return fetchAnew(wishes, 'stale', stored)
  if (!fresh) {
    return mayServeStale(stored, ageMs, wishes)
      ? { kind: 'stale', stored, ageMs }
      : fetchAnew(wishes, 'stale', stored)
  }
  const enough = stored.lifetimeMs >= ageMs + wishes.minFreshMs && ageMs <= wishes.maxAgeMs
  return enough ? { kind: 'fresh', stored, ageMs } : fetchAnew(wishes, 'request', stored)
}

/** Reuse without asking, reuse while asking, or ask: from the stored variants, the request and one reading of the clock. */
export const decideReuse = (
  variants: readonly StoredResponse[],
  selecting: SelectingFields & { readonly fields: RequestFields },
  profile: CacheProfile,
  at: Moment,
): Reuse => {
  const wishes = wishesOf(selecting.fields, profile)
  const stored = selectVariant(variants, selecting)
  if (stored === undefined)
    return fetchAnew(wishes, variants.length === 0 ? 'uri-miss' : 'vary-miss', undefined)
  return decideStored(stored, currentAgeMs(stored.initialAgeMs, stored.received, at), wishes)
}

/** Without a window of its own a stored response still helps when the upstream cannot be reached (RFC 9111 §4.2.4), for so long. */
const disconnectedMs = 86_400_000

/** May it be served because the upstream failed? `unreachable`: no answer at all, as opposed to an answer with 5xx. */
export const mayServeOnError = (
  stored: StoredResponse,
  failure: 'unreachable' | 'server-error',
  profile: CacheProfile,
  at: Moment,
): boolean => {
  if (stored.validateAlways) return false
  const staleMs = currentAgeMs(stored.initialAgeMs, stored.received, at) - stored.lifetimeMs
  if (staleMs < stored.staleIfErrorMs) return true
  const disconnected = failure === 'unreachable' && profile === 'rfc-shared-cache' && !stored.neverStale
  return disconnected && staleMs < disconnectedMs
}

/** Whether what is stored here may be believed at this moment: others may have written without this process knowing. */
export type Trust = { mayTrust(at: Moment): boolean }

/** What may be done with what is stored for a read; without trust as if nothing were stored, and nothing is validated or served on error either. */
export const createReuse = (
  store: Pick<MemoryStore, 'variants'>,
  trust: Trust | undefined,
): ((read: CacheRead, at: Moment) => Reuse) => {
  const ofStored = (read: CacheRead, at: Moment): Reuse =>
    decideReuse(store.variants(read.key), read, read.policy.profile, at)
  if (trust === undefined) return ofStored
  const ofNothing = (read: CacheRead, at: Moment): Reuse => {
    const reuse = decideReuse([], read, read.policy.profile, at)
    return reuse.kind === 'fetch' ? { ...reuse, reason: 'bypass' } : reuse
  }
  return (read, at) => (trust.mayTrust(at) ? ofStored(read, at) : ofNothing(read, at))
}
