import { type Clock, type Moment, readClock } from '../clock.ts'
import { varyKey } from '../http/headers/caching-headers.ts'
import { headerValue, withoutHeaders } from '../http/headers/header-lines.ts'
import { hasNoContent } from '../http/message.ts'
import { isGet } from '../http/methods.ts'
import type { FetchFunction, FetchRequest } from './fetch/collapse.ts'
import type { FetchOutcome, StreamEnd } from './fetch/fetch-outcome.ts'
import { responseControl } from './policy/response-control.ts'
import { currentAgeMs } from './policy/reuse.ts'
import { storableHeaders, storageOf } from './policy/storability.ts'
import type { HitForMiss } from './store/hit-for-miss.ts'
import type { ResponseStorage } from './store/response-storage.ts'
import { type StoredResponse, setTags } from './store/stored-response.ts'

/** The position up to which a process has applied invalidations; opaque here. */
export type LedgerPosition = { readonly epoch: string; readonly applied: number }

/** A stored response for the shared tier; nothing in it refers to this process. */
export type TierRecord = {
  readonly key: string
  readonly contentId: string
  readonly tags: readonly string[]
  readonly varyNames: readonly string[]
  readonly varyKey: string
  /** Its age when it is stored in the tier. */
  readonly ageMs: number
  readonly lifetimeMs: number
  /** The rest of the response, as plain data. */
  readonly facts: TierFacts
  readonly content: Buffer
}

/** Without Content-Length, which follows from the content. */
type TierFacts = Pick<StoredResponse, 'status' | 'headers'> & {
  /** The gateway made the entity tag, so the upstream cannot compare it. */
  readonly ownTag: boolean
}

/** An entry of the tier. Another program than this gateway may have written it. */
type TierEntry = Pick<TierRecord, 'tags' | 'varyKey' | 'ageMs' | 'content'> & {
  readonly facts: unknown
}

/**
 * Why an entry is refused. `malformed`: not in the format of a gateway; `fields`: headers that are never stored; `variant`: for other
 * request headers; `not-storable`: the same response of the upstream would not be stored; `stale`: too old.
 */
type ReadRefusal = 'malformed' | 'fields' | 'variant' | 'size' | 'not-storable' | 'stale'

export type TierQuery<Taken> = {
  readonly key: string
  /** See `CacheRead`: the store outlives a configuration, and instances may have different ones. */
  readonly contentId: string
  readonly secondary: (names: readonly string[]) => string
  /** Turns an entry into what `load` returns, or refuses it. */
  readonly take: (entry: TierEntry) => Taken | ReadRefusal
}

/** `mine`: this process sends the request to the upstream. `theirs`: another process does, and this one may wait for the result. */
export type Claim<Taken> =
  | { readonly kind: 'mine'; release(): void }
  | { readonly kind: 'theirs'; wait(): Promise<Taken | undefined> }

export type Tagged = { readonly tags: readonly string[] }

/** Stored responses that several processes share. No method rejects; after a failure the result is absent. */
export type SharedTier = {
  readonly position: LedgerPosition
  /** An entry that `take` accepted and whose tags were not invalidated; undefined while this process cannot receive invalidations. */
  load<Taken extends Tagged>(query: TierQuery<Taken>): Promise<Taken | undefined>
  /** `since`: the position before the response was requested. */
  store(record: TierRecord, since: LedgerPosition): void
  claim<Taken extends Tagged>(query: TierQuery<Taken>): Promise<Claim<Taken>>
}

/** Of use to other processes: complete, and fresh without validation. */
const isForTier = (stored: StoredResponse): boolean =>
  !stored.validateAlways &&
  stored.lifetimeMs > 0 &&
  // Other processes would not get the time at which it changes.
  stored.hints?.maxAge === undefined

const contentLength: ReadonlySet<string> = new Set(['content-length'])

/** Coded forms do not go along: they are made again where they are wanted. */
const toTier = (stored: StoredResponse, ageMs: number, contentId: string): TierRecord => ({
  key: stored.key,
  contentId,
  tags: stored.tags,
  varyNames: stored.varyNames,
  varyKey: stored.varyKey,
  ageMs,
  lifetimeMs: stored.lifetimeMs,
  facts: {
    status: stored.status,
    headers: withoutHeaders(stored.headers, contentLength),
    ownTag: stored.upstreamTag === undefined,
  },
  content: stored.content,
})

/** Names and values that node:http sends (RFC 9110 §5.1 and §5.5). */
const namePattern = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/
const valuePattern = /^[\t\x20-\x7e\x80-\xff]*$/

const areHeaders = (value: unknown): boolean =>
  Array.isArray(value) &&
  value.length % 2 === 0 &&
  value.every((text, i) => typeof text === 'string' && (i % 2 === 0 ? namePattern : valuePattern).test(text))

/** Has it the form that `toTier` writes? */
export const isFacts = (value: unknown): value is TierFacts => {
  if (typeof value !== 'object' || value === null) return false
  const { status, headers, ownTag } = value as Record<keyof TierFacts, unknown>
  return (
    Number.isInteger(status) &&
    Number(status) >= 200 &&
    Number(status) <= 599 &&
    areHeaders(headers) &&
    typeof ownTag === 'boolean'
  )
}

type TierFetchOptions = {
  readonly tier: SharedTier
  readonly fetch: FetchFunction
  readonly storage: ResponseStorage
  readonly hitForMiss: HitForMiss
  readonly clock: Clock
  readonly maxEntryBytes: number
}

/**
 * Treats an entry as if the upstream had sent it to this process as long ago as it is old: the same rules decide whether it may be
 * stored, for how long, and which of its headers.
 */
const fromTier = (
  { ageMs, content, facts, tags, varyKey }: TierEntry,
  fetch: FetchRequest,
  received: Moment,
  { storage, maxEntryBytes }: Pick<TierFetchOptions, 'storage' | 'maxEntryBytes'>,
): StoredResponse | ReadRefusal => {
  if (!isFacts(facts)) return 'malformed'
  if (content.length > maxEntryBytes) return 'size'
  const { headers, status } = facts
  if (storableHeaders(headers, responseControl(headers)).length !== headers.length) return 'fields'
  if (content.length > 0 && hasNoContent('GET', status)) return 'not-storable'
  const { read } = fetch
  const head = { status, headers }
  // It was requested without a credential, or a shared cache was allowed to store the response to one.
  if (storageOf(head, read, received.now, false).kind === 'no-store') return 'not-storable'
  const requested = { now: received.now - ageMs, monotonic: received.monotonic - ageMs }
  const stored = storage.create(
    fetch,
    { head, content },
    { requested, received },
    { upstreamTag: facts.ownTag ? undefined : headerValue(headers, 'etag') },
  )
  if (!isForTier(stored)) return 'not-storable'
  if (stored.varyKey !== varyKey) return 'variant'
  if (stored.initialAgeMs >= stored.lifetimeMs) return 'stale'
  if (storage.describe(read, stored) === undefined) return 'not-storable'
  // Tags follow from the response; those that the entry has besides can only invalidate it earlier.
  const allTags = new Set([...stored.tags, ...tags])
  return allTags.size === stored.tags.length ? stored : setTags(stored, [...allTags])
}

/** Responses to credentials stay in the memory of one process. */
const mayUseTier = ({ read, rangeHeaders }: FetchRequest): boolean =>
  isGet(read.method) &&
  read.partition === 'public' &&
  rangeHeaders['range'] === undefined &&
  read.isOutOfConfiguration?.() !== true

const contentIdOf = ({ contentId = '' }: FetchRequest['read']): string => contentId

/** Makes a fetch that looks into the shared tier first, and stores there what the upstream responded. */
export const createTierFetch = (options: TierFetchOptions): FetchFunction => {
  const { tier, fetch: fetchUpstream, storage, hitForMiss, clock } = options

  const offer = (
    outcome: FetchOutcome | StreamEnd,
    since: SharedTier['position'],
    { read }: FetchRequest,
  ): void => {
    if (outcome.kind !== 'shareable' || outcome.notStored !== undefined || !isForTier(outcome.stored)) return
    const { stored } = outcome
    tier.store(toTier(stored, currentAgeMs(stored, readClock(clock)), contentIdOf(read)), since)
  }

  /** The entry of the tier, or the one that another process is about to store there; otherwise the function that releases the claim. */
  const loadOrClaim = async (fetch: FetchRequest): Promise<StoredResponse | (() => void)> => {
    const { read } = fetch
    const query: TierQuery<StoredResponse> = {
      key: read.key,
      contentId: contentIdOf(read),
      secondary: (names) => varyKey(names, read),
      take: (entry) => fromTier(entry, fetch, readClock(clock), options),
    }
    const stored = await tier.load(query)
    if (stored !== undefined) return stored
    const claim = await tier.claim(query)
    if (claim.kind === 'mine') return claim.release
    return (await claim.wait()) ?? (() => undefined)
  }

  const fetchAndOffer = async (fetch: FetchRequest, release: () => void): Promise<FetchOutcome> => {
    // Read last: responses requested from now on are newer than every invalidation up to this position.
    const since = tier.position
    let isStreaming = false
    try {
      const outcome = await fetchUpstream(fetch)
      offer(outcome, since, fetch)
      if (outcome.kind === 'streaming') {
        isStreaming = true
        void outcome.end.then((end) => offer(end, since, fetch)).finally(release)
      }
      return outcome
    } finally {
      if (!isStreaming) release()
    }
  }

  return async (fetch) => {
    if (!mayUseTier(fetch) || hitForMiss.has(fetch.read.key, clock.monotonic())) return fetchUpstream(fetch)
    const entry = await loadOrClaim(fetch)
    if (typeof entry === 'function') return fetchAndOffer(fetch, entry)
    return {
      kind: 'shareable',
      stored: entry,
      notStored: storage.storeIfCurrent(fetch.read, entry, fetch.since),
      upstreamStatus: entry.status,
      ownHeaders: [],
      validated: false,
      fromTier: true,
    }
  }
}
