import type { Moment } from '../clock.ts'
import type { Redaction } from '../http/redaction.ts'
import { partsOfKey, shownTags } from './cache-key.ts'
import { currentAgeMs, lifetimeAt } from './policy/reuse.ts'
import type { MemoryStore } from './store/memory-store.ts'
import type { StoredResponse } from './store/stored-response.ts'

/** A stored response as the admin side lists it: without its content, its credential, and the secrets in its target. */
export type CacheEntry = Readonly<ReturnType<typeof entryOf>>

export type EntryOrder = 'bytes' | 'hits' | 'age'

const seconds = (milliseconds: number): number => Math.floor(milliseconds / 1000)

const entryOf = (stored: StoredResponse, at: Moment, redaction: Redaction) => {
  const { service, host, target, partition } = partsOfKey(stored.key)
  const ageMs = currentAgeMs(stored, at)
  return {
    service,
    /** '' where responses are the same for all hosts of the service. */
    host,
    target: redaction.target(target),
    partition: partition === 'public' ? ('public' as const) : ('credential' as const),
    status: stored.status,
    bytes: stored.bytes,
    hits: stored.hits,
    ageSeconds: seconds(ageMs),
    /** Negative when it is stale. */
    ttlSeconds: seconds(lifetimeAt(stored, at) - ageMs),
    vary: stored.varyNames,
    tags: shownTags(stored.tags, [stored.key]).map((tag) => redaction.target(tag)),
  }
}

const rank: Readonly<Record<EntryOrder, (stored: StoredResponse) => number>> = {
  bytes: (stored) => stored.bytes,
  hits: (stored) => stored.hits,
  age: (stored) => -stored.received.monotonic,
}

/**
 * The first `limit` stored responses: the largest, those with most hits, or the oldest. Sorts all of them: not for regular scrapes. Only
 * those that may be listed are compared with the purges that wait.
 */
export const listEntries = (
  store: MemoryStore,
  order: EntryOrder,
  limit: number,
  at: Moment,
  redaction: Redaction,
): readonly CacheEntry[] => {
  const rankOf = rank[order]
  const candidates = store.all().flatMap((entry) => entry.variants.map((stored) => ({ entry, stored })))
  const listed: StoredResponse[] = []
  for (const { entry, stored } of candidates.sort((a, b) => rankOf(b.stored) - rankOf(a.stored))) {
    if (listed.length === limit) break
    if (store.currentVariants(entry).includes(stored)) listed.push(stored)
  }
  return listed.map((stored) => entryOf(stored, at, redaction))
}
