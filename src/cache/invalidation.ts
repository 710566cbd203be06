import type { Clock } from '../clock.ts'
import { currentAgeMs } from './age.ts'
import { partsOfKey, targetKey } from './cache-key.ts'
import type { CacheEvent, Invalidator } from './events.ts'
import type { Flights } from './flights.ts'
import type { HeldTags } from './held-tags.ts'
import type { MemoryStore } from './memory-store.ts'
import type { StoredResponse } from './stored-response.ts'
import type { TagLog } from './tag-log.ts'

/** What an operator wants gone. */
type PurgeSelector =
  /** All variants of one target, in all partitions. */
  | { readonly kind: 'target'; readonly service: string; readonly target: string }
  | { readonly kind: 'tag'; readonly tag: string }
  | { readonly kind: 'prefix'; readonly service: string; readonly prefix: string }
  | { readonly kind: 'all' }
  /** What only the caller can tell, e.g. which rules have changed. */
  | { readonly kind: 'matching'; matches(service: string, target: string): boolean }

export type Purge = {
  readonly selector: PurgeSelector
  /** `soft` marks stale: still served while it is fetched anew or when the upstream fails, where that is allowed. */
  readonly mode: 'hard' | 'soft'
  /** Only counts. */
  readonly dryRun: boolean
}

export type InvalidationOptions = {
  readonly store: MemoryStore
  readonly log: TagLog
  readonly held: HeldTags
  readonly flights: Flights
  readonly clock: Clock
  readonly report: (event: CacheEvent) => void
}

export type Invalidation = {
  invalidate(tags: readonly string[], by?: Invalidator): number
  suspect(tags: readonly string[], forMs: number, by?: Invalidator): number
  invalidateTargets(service: string, targets: readonly string[]): number
  suspectTargets(service: string, targets: readonly string[], forMs: number): number
  purge(purge: Purge): number
}

export const createInvalidation = (options: InvalidationOptions): Invalidation => {
  const { store, log, held, flights, clock, report } = options

  const keysOf = (tags: readonly string[]): ReadonlySet<string> =>
    new Set(tags.flatMap((tag) => store.keysTagged(tag)))

  const drop = (keys: Iterable<string>, by: Invalidator): number => {
    let entries = 0
    let cut = 0
    for (const key of keys) {
      entries += store.delete(key)
      cut += flights.cut(key)
    }
    report({ kind: 'invalidated', by, entries, cut })
    return entries
  }

  /** Written down first: a forward that lands from here on must not bring the old state back. */
  const invalidate = (tags: readonly string[], by: Invalidator = 'write'): number => {
    if (tags.length === 0) return 0
    log.note(tags)
    return drop(keysOf(tags), by)
  }

  const select = (selector: PurgeSelector): readonly string[] => {
    switch (selector.kind) {
      case 'target':
        return store.keysTagged(targetKey(selector.service, selector.target))
      case 'tag':
        return store.keysTagged(selector.tag)
      case 'prefix':
        return [...store.keys()].filter((key) => {
          const { service, target } = partsOfKey(key)
          return service === selector.service && target.startsWith(selector.prefix)
        })
      case 'all':
        return [...store.keys()]
      case 'matching':
        return [...store.keys()].filter((key) => {
          const { service, target } = partsOfKey(key)
          return selector.matches(service, target)
        })
    }
  }

  const note = (selector: PurgeSelector): void => {
    if (selector.kind === 'target') log.note([targetKey(selector.service, selector.target)])
    else if (selector.kind === 'tag') log.note([selector.tag])
    // No tag stands for what the others cover: every forward under way is in doubt.
    else log.noteAll()
  }

  const soften = (keys: readonly string[]): number => {
    const at = { now: clock.now(), monotonic: clock.monotonic() }
    let entries = 0
    for (const key of keys) {
      const variants = store.peek(key)
      entries += variants.length
      store.replace(
        key,
        variants.map((stored) => staleFrom(stored, currentAgeMs(stored.initialAgeMs, stored.received, at))),
      )
      flights.cut(key)
    }
    report({ kind: 'invalidated', by: 'purge', entries, cut: 0 })
    return entries
  }

  const suspect = (tags: readonly string[], forMs: number, by: Invalidator = 'write'): number => {
    const now = clock.monotonic()
    held.hold(tags, now, now + forMs)
    return invalidate(tags, by)
  }

  const targetTags = (service: string, targets: readonly string[]): readonly string[] =>
    targets.map((target) => targetKey(service, target))

  return {
    invalidate,
    suspect,
    invalidateTargets: (service, targets) => invalidate(targetTags(service, targets)),
    suspectTargets: (service, targets, forMs) => suspect(targetTags(service, targets), forMs),
    purge: ({ selector, mode, dryRun }) => {
      const keys = select(selector)
      if (dryRun) return keys.reduce((sum, key) => sum + store.peek(key).length, 0)
      note(selector)
      return mode === 'hard' ? drop(keys, 'purge') : soften(keys)
    },
  }
}

const staleFrom = (stored: StoredResponse, ageMs: number): StoredResponse => ({
  ...stored,
  lifetimeMs: Math.min(stored.lifetimeMs, ageMs),
})
