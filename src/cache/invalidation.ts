import { setImmediate } from 'node:timers/promises'
import type { Clock } from '../clock.ts'
import { isUnder, partsOfKey, targetKey } from './cache-key.ts'
import type { CacheEvent, Invalidator } from './events.ts'
import type { Flights } from './fetch/collapse.ts'
import { currentAgeMs } from './policy/freshness.ts'
import type { Held, MemoryStore } from './store/memory-store.ts'
import { agedOut } from './store/stored-response.ts'
import type { HeldTags, TagLog } from './store/tag-log.ts'

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
  /** The same, with pauses in which others are answered; done when the promise is. */
  purgeInTurns(purge: Purge): Promise<number>
}

/** What a purge looks at, and which of it is meant. */
type Selection = { readonly places: readonly Held[]; isMeant(key: string): boolean }

/** An operator's purge has time: readers are answered between two lots. */
const keysOfTurn = 500

/** To take one out of the index costs most: all its tags have to be looked up. */
const placesOfTurn = 100

const every = (): boolean => true

/** Sums up what is done with each; stops where others may have a turn. */
function* visiting(
  { places, isMeant }: Selection,
  deed: (held: Held) => number,
): Generator<undefined, number> {
  let sum = 0
  for (const [i, held] of places.entries()) {
    if ((i + 1) % keysOfTurn === 0) yield
    if (isMeant(held.key)) sum += deed(held)
  }
  return sum
}

export const createInvalidation = (options: InvalidationOptions): Invalidation => {
  const { store, log, held, flights, clock, report } = options

  let isSweeping = false
  const sweepInTurns = async (): Promise<void> => {
    if (isSweeping) return
    isSweeping = true
    do await setImmediate()
    while (store.sweep(placesOfTurn))
    isSweeping = false
  }

  const dropFew = (tags: readonly string[], by: Invalidator): number => {
    let entries = 0
    let cut = 0
    for (const tag of tags) {
      for (const key of store.keysTagged(tag)) {
        entries += store.delete(key)
        cut += flights.cut(key)
      }
    }
    report({ kind: 'invalidated', by, entries, cut })
    return entries
  }

  /** At once for all who look: the places that they leave are cleared in turns. */
  const dropMany = (tags: readonly string[], by: Invalidator): number => {
    let entries = 0
    let cut = 0
    for (const tag of tags) {
      for (const held of store.tagged(tag)) {
        entries += store.blank(held)
        cut += flights.cut(held.key)
      }
    }
    void sweepInTurns()
    report({ kind: 'invalidated', by, entries, cut })
    return entries
  }

  const dropAll = (): number => {
    const entries = store.clear()
    report({ kind: 'invalidated', by: 'purge', entries, cut: flights.cutAll() })
    return entries
  }

  /** Written down first: a forward that lands from here on must not bring the old state back. */
  const invalidate = (tags: readonly string[], by: Invalidator = 'write'): number => {
    if (tags.length === 0) return 0
    log.note(tags)
    return store.countTagged(tags) > keysOfTurn ? dropMany(tags, by) : dropFew(tags, by)
  }

  const select = (selector: PurgeSelector): Selection => {
    switch (selector.kind) {
      case 'target':
        return { places: [...store.tagged(targetKey(selector.service, selector.target))], isMeant: every }
      case 'tag':
        return { places: [...store.tagged(selector.tag)], isMeant: every }
      case 'prefix':
        return { places: store.held(), isMeant: isUnder(selector.service, selector.prefix) }
      case 'all':
        return { places: store.held(), isMeant: every }
      case 'matching':
        return {
          places: store.held(),
          isMeant: (key) => {
            const { service, target } = partsOfKey(key)
            return selector.matches(service, target)
          },
        }
    }
  }

  const note = (selector: PurgeSelector): void => {
    if (selector.kind === 'target') log.note([targetKey(selector.service, selector.target)])
    else if (selector.kind === 'tag') log.note([selector.tag])
    // No tag stands for what the others cover: every forward under way is in doubt.
    else log.noteAll()
  }

  /** What is done with each that is meant; returns the number of stored responses concerned. */
  const deedOf = (mode: Purge['mode'], isMuch: boolean): ((held: Held) => number) => {
    if (mode === 'hard') return isMuch ? store.blank : ({ key }) => store.delete(key)
    const at = { now: clock.now(), monotonic: clock.monotonic() }
    return (held) => {
      const variants = store.variantsOf(held)
      for (const one of variants) agedOut(one, currentAgeMs(one.initialAgeMs, one.received, at))
      return variants.length
    }
  }

  /** Stops where others may have a turn. What is stored meanwhile was asked for after it was noted, and may go too. */
  function* purging({ selector, mode, dryRun }: Purge): Generator<undefined, number> {
    if (dryRun) return yield* visiting(select(selector), ({ variants }) => variants.length)
    note(selector)
    if (selector.kind === 'all' && mode === 'hard') return dropAll()
    const selection = select(selector)
    const isMuch = selection.places.length > keysOfTurn
    const deed = deedOf(mode, isMuch)
    let cut = 0
    const entries = yield* visiting(selection, (held) => {
      cut += flights.cut(held.key)
      return deed(held)
    })
    if (isMuch) void sweepInTurns()
    report({ kind: 'invalidated', by: 'purge', entries, cut })
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
    purge: (purge) => {
      const steps = purging(purge)
      let step = steps.next()
      while (step.done !== true) step = steps.next()
      return step.value
    },
    purgeInTurns: async (purge) => {
      const steps = purging(purge)
      let step = steps.next()
      while (step.done !== true) {
        await setImmediate()
        step = steps.next()
      }
      return step.value
    },
  }
}
