import type { Moment } from '../clock.ts'
import type { Redaction } from '../http/redaction.ts'
import { partsOfKey, shownTags } from './cache-key.ts'
import { currentAgeMs, lifetimeAt } from './policy/reuse.ts'
import type { MemoryStore, StoredVariants } from './store/memory-store.ts'
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

type Candidate = { readonly entry: StoredVariants; readonly stored: StoredResponse }

const sortedPerTurn = 2_000
/** A target of 8 KiB takes milliseconds until its secrets are hidden. */
const listedPerTurn = 10

/** Takes the first of all sorted runs; the first of each is its last. */
const takeFirst = (
  runs: readonly Candidate[][],
  rankOf: (stored: StoredResponse) => number,
): Candidate | undefined => {
  let first: Candidate[] | undefined
  let highest = Number.NEGATIVE_INFINITY
  for (const run of runs) {
    const candidate = run.at(-1)
    if (candidate === undefined || rankOf(candidate.stored) <= highest) continue
    first = run
    highest = rankOf(candidate.stored)
  }
  return first?.pop()
}

/**
 * The first `limit` stored responses: the largest, those with most hits, or the oldest. Sorts all of them: not for regular scrapes. Only
 * those that may be listed are compared with the purges that wait.
 */
export function* listingEntries(
  store: MemoryStore,
  order: EntryOrder,
  limit: number,
  at: Moment,
  redaction: Redaction,
): Generator<undefined, readonly CacheEntry[]> {
  const rankOf = rank[order]
  const all = store.all()
  const runs: Candidate[][] = []
  for (let start = 0; start < all.length; start += sortedPerTurn) {
    if (start > 0) yield
    const candidates = all
      .slice(start, start + sortedPerTurn)
      .flatMap((entry) => entry.variants.map((stored) => ({ entry, stored })))
    runs.push(candidates.sort((a, b) => rankOf(a.stored) - rankOf(b.stored)))
  }
  const listed: CacheEntry[] = []
  for (let taken = 1; listed.length < limit; taken += 1) {
    if (taken % listedPerTurn === 0) yield
    const first = takeFirst(runs, rankOf)
    if (first === undefined) break
    const { entry, stored } = first
    if (store.currentVariants(entry).includes(stored)) listed.push(entryOf(stored, at, redaction))
  }
  return listed
}
