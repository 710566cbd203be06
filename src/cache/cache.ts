import { type Clock, type Moment, readClock } from '../clock.ts'
import type { ByteBudget, Reservation } from '../http/bounds/byte-budget.ts'
import { contentCodingOf } from '../http/content-coding.ts'
import type { ResponseHead } from '../http/message.ts'
import { redactTarget } from '../http/targets.ts'
import { type CacheRead, type Forward, partsOfKey, targetKeyOf } from './cache-read.ts'
import type { CacheEvent } from './events.ts'
import { createInFlightFetches } from './fetch/collapse.ts'
import { createFetch } from './fetch/fetch.ts'
import { createRespondByFetch } from './fetch/respond-by-fetch.ts'
import { createInvalidation } from './invalidation.ts'
import { freshnessLifetime, responseControl } from './policy/freshness.ts'
import { createReuse, currentAgeMs, type Lease, lifetimeAt } from './policy/reuse.ts'
import { storageOf } from './policy/storability.ts'
import { type CompressionOptions, createEncodings } from './respond/encodings.ts'
import { createResponder } from './respond/responder.ts'
import { createTierFetch, type SharedTier } from './shared-tier.ts'
import { type AdmissionMode, createAdmission } from './store/admission.ts'
import { contentsTagged } from './store/contents-tagged.ts'
import { createHitForPass } from './store/hit-for-pass.ts'
import { createMemoryStore, type MemoryStore } from './store/memory-store.ts'
import { createResponseStorage, isSuperseded } from './store/response-storage.ts'
import type { StoredResponse } from './store/stored-response.ts'
import { createInvalidationLog, createUnsettledTags } from './store/tag-index.ts'
import { createVerification } from './verification.ts'

/** Invalidates what a write may have changed so far: in other processes when the promise resolves. */
type InvalidateAgain = () => Promise<unknown> | undefined

/** The response to a POST that is stored when it is complete. */
export type StoringPost = {
  /** Lets the POST invalidate, which does not prevent storing; an invalidation by another write since the last one does. */
  invalidateAgain(invalidate: InvalidateAgain): Promise<unknown> | undefined
  /** Stores the complete content, after it has let the POST invalidate once more. */
  store(content: Buffer, invalidate: InvalidateAgain): Promise<unknown> | undefined
}

/** The response to a POST whose content may serve later reads of its target (RFC 9110 §9.3.3). */
export type PostResponse = {
  /** Call it with the head before the POST invalidates, so that its own invalidation does not prevent storing. */
  isStorable(head: ResponseHead): boolean
  /** Call it right after that. */
  begin(head: ResponseHead): StoringPost
  /** A longer content is not stored. */
  readonly maxBytes: number
  /** Buffer space for the content while it arrives. */
  readonly reservation: Reservation
}

/** The response to a POST needs explicit freshness; a heuristic is not enough (RFC 9110 §9.3.3). */
const hasExplicitFreshness = (head: ResponseHead, read: CacheRead, now: number): boolean => {
  const { source, lifetimeMs } = freshnessLifetime(head, responseControl(head.headers), read.policy, now)
  return source === 'upstream' && lifetimeMs > 0
}

const noContent = Buffer.alloc(0)

/** The content is stored as it passes: a coded one would reach clients that do not accept its coding. */
const isForEveryClient = (head: ResponseHead): boolean => {
  const { kind } = contentCodingOf(head)
  return kind === 'none' || kind === 'unknown'
}

/** A stored response as the admin side lists it: without its content, its credential, and the secrets in its target. */
export type CacheEntry = Readonly<ReturnType<typeof entryOf>>

export type EntryOrder = 'bytes' | 'hits' | 'age'

const seconds = (milliseconds: number): number => Math.floor(milliseconds / 1000)

const entryOf = (stored: StoredResponse, at: Moment) => {
  const { service, host, target, partition } = partsOfKey(stored.key)
  const ageMs = currentAgeMs(stored, at)
  return {
    service,
    /** '' where responses are the same for all hosts of the service. */
    host,
    target: redactTarget(target),
    partition: partition === 'public' ? ('public' as const) : ('credential' as const),
    status: stored.status,
    bytes: stored.bytes,
    hits: stored.hits,
    ageSeconds: seconds(ageMs),
    /** Negative when it is stale. */
    ttlSeconds: seconds(lifetimeAt(stored, at) - ageMs),
    vary: stored.varyNames,
    tags: stored.tags,
  }
}

const rank: Readonly<Record<EntryOrder, (stored: StoredResponse) => number>> = {
  bytes: (stored) => stored.bytes,
  hits: (stored) => stored.hits,
  age: (stored) => -stored.received.monotonic,
}

/** The first `limit` stored responses: the largest, those with most hits, or the oldest. Sorts all of them: not for regular scrapes. */
const listEntries = (
  store: MemoryStore,
  order: EntryOrder,
  limit: number,
  at: Moment,
): readonly CacheEntry[] => {
  const responses = store.all().flatMap(({ variants }) => variants)
  const rankOf = rank[order]
  return responses
    .sort((a, b) => rankOf(b) - rankOf(a))
    .slice(0, limit)
    .map((stored) => entryOf(stored, at))
}

export type CacheOptions = {
  /** Absent where no other process stores responses of the same upstreams. */
  readonly lease?: Lease
  /** Where several processes share stored responses. */
  readonly tier?: SharedTier
  readonly maxBytes: number
  readonly maxHeapBytes: number
  readonly maxEntryBytes: number
  readonly compression: CompressionOptions
  readonly admission: AdmissionMode
  /** Bounds the memory for responses that are still arriving. */
  readonly budget: ByteBudget
  readonly clock: Clock
  readonly report: (event: CacheEvent) => void
}

/** A tag takes some hundred bytes. With more invalidations than this during one fetch, its response counts as superseded. */
const maxTrackedTags = 16_384

/** A shared cache (RFC 9111). After an invalidation no read gets an older response. */
export const createCache = (options: CacheOptions) => {
  const { clock, report, budget, maxEntryBytes, lease, tier } = options
  const store = createMemoryStore({
    maxBytes: options.maxBytes,
    maxHeapBytes: options.maxHeapBytes,
    maxEntryBytes,
    onEvict: (bytes) => report({ kind: 'evicted', bytes }),
  })
  const log = createInvalidationLog(maxTrackedTags)
  const unsettled = createUnsettledTags(maxTrackedTags)
  const admission = createAdmission({ mode: options.admission, usedShare: store.usedShare })
  const encodings = createEncodings({ ...options.compression, store, report })
  const { codedFrom } = encodings
  const storage = createResponseStorage({ store, log, unsettled, admission, report, codedFrom })
  const hitForPass = createHitForPass()
  const fetch = createFetch({ store, storage, clock, report, budget, maxEntryBytes })
  const fetches = createInFlightFetches(
    tier === undefined ? fetch : createTierFetch({ tier, fetch, storage, hitForPass, clock, maxEntryBytes }),
  )
  const responder = createResponder(encodings)
  const reuse = createReuse(store, lease)
  const byFetch = createRespondByFetch({
    store,
    log,
    fetches,
    hitForPass,
    responder,
    reuse,
    lease,
    clock,
    report,
  })

  const postResponse = (read: CacheRead): PostResponse => {
    const requested = readClock(clock)
    const sequenceAtRequest = log.sequence
    return {
      maxBytes: maxEntryBytes,
      reservation: budget('fill', read.client ?? ''),
      isStorable: (head) =>
        head.status === 200 &&
        isForEveryClient(head) &&
        // After another write that reaches it, the content may be from before or after that write.
        !log.invalidatedSince(
          [targetKeyOf(read.key), ...read.tags({ ...head, content: noContent })],
          sequenceAtRequest,
        ) &&
        hasExplicitFreshness(head, read, clock.now()) &&
        storageOf(head, read, clock.now()).kind === 'store',
      begin: (head) => {
        let since = log.sequence
        let isCurrent = true
        const order = fetches.nextOrder()
        const times = { requested, received: readClock(clock) }
        const tags = [targetKeyOf(read.key), ...read.tags({ ...head, content: noContent })]
        return {
          invalidateAgain: (invalidate) => {
            isCurrent &&= !log.invalidatedSince(tags, since)
            const acknowledged = invalidate()
            since = log.sequence
            return acknowledged
          },
          store: (content, invalidate) => {
            const stored = storage.create({ read, order }, { head, content }, times)
            isCurrent &&= storage.describe(read, stored) !== undefined && !isSuperseded(log, stored, since)
            const acknowledged = invalidate()
            if (isCurrent) storage.store(read, stored, log.sequence)
            return acknowledged
          },
        }
      },
    }
  }

  return {
    /** Without a promise when it is a hit; otherwise through `forward`. Rejects with what `forward` rejects with. */
    response: (read: CacheRead, forward: Forward) => {
      const at = readClock(clock)
      const decision = reuse(read, at)
      switch (decision.kind) {
        case 'fresh':
          decision.stored.hits += 1
          return responder.hit(decision.stored, read, decision.ageMs, at)
        case 'stale':
          byFetch.revalidate(read, forward, decision.stored)
          report({ kind: 'served-stale', service: read.service, reason: 'revalidating' })
          return responder.stale(decision.stored, read, at, 'revalidating')
        case 'unavailable':
          return responder.unavailable()
        case 'fetch':
          return byFetch.respond(read, forward, decision)
      }
    },
    ...createInvalidation({ store, log, unsettled, fetches, clock, report }),
    /**
     * Contents of some stored responses with that tag: they show the state after the last write through this process. Empty where
     * other processes write too.
     */
    contentsWithTag: (tag: string) => (lease === undefined ? contentsTagged(store, tag) : []),
    /** To be called when a POST is sent whose response may serve later reads of its target (RFC 9110 §9.3.3). */
    postResponse,
    /** Is what a response was made of still stored? Otherwise it may have been invalidated since. */
    stillStores: (stored: { readonly key: string }) =>
      (lease === undefined || lease.isCurrent(readClock(clock))) &&
      store.peek(stored.key).some((variant) => variant === stored),
    /** Largest or oldest first; for the admin side. */
    entries: (order: EntryOrder, limit: number) => listEntries(store, order, limit, readClock(clock)),
    verification: createVerification({ store, log, unsettled, lease, clock }),
    stats: store.stats,
    close: () => {
      fetches.abortAll()
      store.clear()
    },
  }
}

export type Cache = ReturnType<typeof createCache>

export { storageOf } from './policy/storability.ts'
