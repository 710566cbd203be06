import { setImmediate } from 'node:timers/promises'
import { type Clock, readClock } from '../clock.ts'
import { inTurns } from '../http/bounds/in-turns.ts'
import type { Builds } from './builds.ts'
import { partsOfKey, targetKey, targetsOf } from './cache-key.ts'
import type { CacheEvent, InvalidationCause } from './events.ts'
import type { InFlightFetches } from './fetch/collapse.ts'

import { currentAgeMs } from './policy/reuse.ts'
import type { InvalidationLog } from './store/invalidation-log.ts'
import type { MemoryStore, StoredVariants } from './store/memory-store.ts'
import type { QuarantinedTags } from './store/quarantined-tags.ts'
import { limitLifetime, type StoredResponse } from './store/stored-response.ts'

/** One invalidation, as sent to all processes that store responses. */
export type Invalidation =
  /** `hard` removes what has the tag, `soft` marks it stale. */
  | { readonly kind: 'tag'; readonly tag: string; readonly mode: 'hard' | 'soft' }
  /** After a write of unknown outcome: removed, and for `forMs` nothing that has the tag is stored; the empty tag stands for all. */
  | { readonly kind: 'quarantine'; readonly tag: string; readonly forMs: number }
  | {
      readonly kind: 'prefix'
      readonly service: string
      readonly prefix: string
      readonly mode: 'hard' | 'soft'
    }
  | { readonly kind: 'all'; readonly mode: 'hard' | 'soft' }
  /** The documents that the gateway makes itself for a site. */
  | { readonly kind: 'documents'; readonly service: string; readonly collection: string }

/** Equal invalidations have equal texts, so that a ledger finds duplicates. Names of services have no colon. */
export const encodeInvalidation = (invalidation: Invalidation): string => {
  switch (invalidation.kind) {
    case 'tag':
      return `${invalidation.mode === 'hard' ? 't' : 's'}:${invalidation.tag}`
    case 'quarantine':
      return `h${invalidation.forMs}:${invalidation.tag}`
    case 'prefix':
      return `${invalidation.mode === 'hard' ? 'p' : 'q'}:${invalidation.service}:${invalidation.prefix}`
    case 'all':
      return invalidation.mode === 'hard' ? 'a:' : 'b:'
    case 'documents':
      return `d:${invalidation.service}:${invalidation.collection}`
  }
}

const everything: Invalidation = { kind: 'all', mode: 'hard' }

const halves = (rest: string): readonly [string, string] | undefined => {
  const at = rest.indexOf(':')
  return at < 0 ? undefined : [rest.slice(0, at), rest.slice(at + 1)]
}

const invalidationOf = (code: string, rest: string): Invalidation | undefined => {
  const [service, behind] = halves(rest) ?? []
  const isWhole = service !== undefined && behind !== undefined
  switch (code) {
    case 't':
      return { kind: 'tag', tag: rest, mode: 'hard' }
    case 's':
      return { kind: 'tag', tag: rest, mode: 'soft' }
    case 'p':
    case 'q':
      return isWhole
        ? { kind: 'prefix', service, prefix: behind, mode: code === 'p' ? 'hard' : 'soft' }
        : undefined
    case 'b':
      return { kind: 'all', mode: 'soft' }
    case 'd':
      return isWhole ? { kind: 'documents', service, collection: behind } : undefined
    default:
      return /^h\d+(?:\.\d+)?$/.test(code)
        ? { kind: 'quarantine', tag: rest, forMs: Number(code.slice(1)) }
        : undefined
  }
}

/**
 * Reads what `encodeInvalidation` wrote. An unknown text, from a newer version or damaged, invalidates everything.
 */
export const decodeInvalidation = (text: string): Invalidation => {
  const [code, rest] = halves(text) ?? []
  return (code !== undefined && rest !== undefined && invalidationOf(code, rest)) || everything
}

/** Milliseconds; 0: there is no quarantine among the encoded invalidations. */
export const longestQuarantine = (texts: readonly string[]): number =>
  texts.reduce((longest, text) => Math.max(longest, Number(/^h([\d.]+):/.exec(text)?.[1] ?? 0)), 0)

/** Instead of quarantines that are no longer stored. */
export const quarantineEverything = (forMs: number): string =>
  encodeInvalidation({ kind: 'quarantine', tag: '', forMs })

type PurgeSelector =
  /**
   * All variants of one target, in all partitions; for one host, or for all without `host`. `spellings`: further tags for other instances,
   * which may be of an earlier version; here, whatever they reach has the tag of `target`.
   */
  | {
      readonly kind: 'target'
      readonly service: string
      readonly target: string
      readonly host?: string
      readonly spellings?: readonly string[]
    }
  | { readonly kind: 'tag'; readonly tag: string }
  | { readonly kind: 'prefix'; readonly service: string; readonly prefixes: readonly string[] }
  | { readonly kind: 'all' }
  /** By a function of the caller, e.g. for the routes whose rules have changed. */
  | { readonly kind: 'matching'; matches(service: string, target: string): boolean }

export type Purge = {
  readonly selector: PurgeSelector
  /** `soft` marks stale: still served while it is fetched again or when the upstream fails, where that is allowed. */
  readonly mode: 'hard' | 'soft'
  /** Only counts. */
  readonly dryRun: boolean
}

type InvalidationOptions = {
  readonly store: MemoryStore
  readonly log: InvalidationLog
  readonly quarantined: QuarantinedTags
  readonly fetches: InFlightFetches
  readonly builds: Builds
  readonly clock: Clock
  readonly report: (event: CacheEvent) => void
}

/** A target with public responses in the store. */
export type UsedTarget = {
  readonly service: string
  /** '' where responses are the same for all hosts of the service. */
  readonly host: string
  /** '' for that of the public URL. */
  readonly scheme: string
  readonly target: string
  readonly hits: number
}

/** The target of an entry, with the hits of all its variants; undefined for responses of one credential. */
const usedTarget = (key: string, variants: readonly StoredResponse[]): UsedTarget | undefined => {
  const { service, host, target, partition, scheme } = partsOfKey(key)
  if (partition !== 'public' || variants.length === 0) return undefined
  return { service, host, scheme, target, hits: variants.reduce((sum, { hits }) => sum + hits, 0) }
}

/** Of all that a write reaches, only so many are looked at to name some. */
const keysLookedAt = 100

const isSameTarget = (one: UsedTarget, other: UsedTarget): boolean =>
  one.target === other.target && one.service === other.service && one.host === other.host

/** Each target once, those with most hits first. */
export const topTargets = (targets: readonly UsedTarget[], limit: number): readonly UsedTarget[] => {
  const byTarget = new Map<string, UsedTarget>()
  for (const target of targets) {
    const name = JSON.stringify([target.service, target.host, target.scheme, target.target])
    const hits = Math.max(target.hits, byTarget.get(name)?.hits ?? 0)
    byTarget.set(name, { ...target, hits })
  }
  return [...byTarget.values()].sort((a, b) => b.hits - a.hits).slice(0, limit)
}

type Selection = {
  readonly entries: readonly StoredVariants[]
  isMeant(key: string): boolean
  /** With how many purges that wait the entry is compared. */
  comparisons(entry: StoredVariants): number
}

/** A purge of so many keys, or more, pauses; so does one that compares keys as often with the purges that wait. */
const keysPerTurn = 500

/** To remove an entry from the index takes longest, since all its tags have to be looked up. */
const sweptPerTurn = 100

const every = (): boolean => true

/** The number of texts that are not behind `text`, in order. */
const countUpTo = (sorted: readonly string[], text: string): number => {
  let [low, high] = [0, sorted.length]
  while (low < high) {
    const middle = (low + high) >>> 1
    if ((sorted[middle] as string) <= text) low = middle + 1
    else high = middle
  }
  return low
}

/** Has a text one of many prefixes? Of prefixes that contain no other one, only the last that is not behind the text can be one. */
export const beginsWithOneOf = (prefixes: readonly string[]): ((text: string) => boolean) => {
  const shortest: string[] = []
  for (const prefix of [...prefixes].sort()) {
    const last = shortest.at(-1)
    if (last === undefined || !prefix.startsWith(last)) shortest.push(prefix)
  }
  return (text) => {
    const candidate = shortest[countUpTo(shortest, text) - 1]
    return candidate !== undefined && text.startsWith(candidate)
  }
}

const isUnder = ({
  service,
  prefixes,
}: Extract<PurgeSelector, { kind: 'prefix' }>): ((key: string) => boolean) => {
  const isMeant = beginsWithOneOf(prefixes)
  const targetOf = targetsOf(service)
  return (key) => {
    const target = targetOf(key)
    return target !== undefined && isMeant(target)
  }
}

/** Undefined: no tag describes the selection. */
const tagOf = (selector: PurgeSelector): string | undefined => {
  if (selector.kind === 'target') return targetKey(selector.service, selector.target)
  return selector.kind === 'tag' ? selector.tag : undefined
}

/** Otherwise a tag describes it, or nothing is left. */
const needsWalk = ({ selector, mode }: Purge): boolean =>
  tagOf(selector) === undefined && !(selector.kind === 'all' && mode === 'hard')

/** Of the entries that the store finds for a selector, those that it means. */
const keysMeantBy = (selector: PurgeSelector): ((key: string) => boolean) => {
  switch (selector.kind) {
    case 'target':
      return selector.host === undefined ? every : (key) => partsOfKey(key).host === selector.host
    case 'prefix':
      return isUnder(selector)
    case 'matching':
      return (key) => {
        const { service, target } = partsOfKey(key)
        return selector.matches(service, target)
      }
    case 'tag':
    case 'all':
      return every
  }
}

/** Sums up the results; yields where readers may be served. */
function* visiting(
  { entries, isMeant, comparisons }: Selection,
  visit: (entry: StoredVariants) => number,
): Generator<undefined, number> {
  let sum = 0
  let sinceYield = 0
  for (const entry of entries) {
    sinceYield += 1
    if (sinceYield >= keysPerTurn) {
      yield
      sinceYield = 0
    }
    if (!isMeant(entry.key)) continue
    sinceYield += comparisons(entry)
    sum += visit(entry)
  }
  return sum
}

/** Removes stored responses by tags and selectors, and quarantines tags. What removes returns the number of stored responses concerned. */
export class CacheInvalidation {
  readonly #store: MemoryStore
  readonly #log: InvalidationLog
  readonly #quarantined: QuarantinedTags
  readonly #fetches: InFlightFetches
  readonly #clock: Clock
  readonly #builds: Builds
  readonly #report: (event: CacheEvent) => void
  /** Resolves when the counts before have ended. */
  #counts: Promise<unknown> = Promise.resolve()
  #isSweeping = false

  constructor(options: InvalidationOptions) {
    this.#store = options.store
    this.#log = options.log
    this.#quarantined = options.quarantined
    this.#fetches = options.fetches
    this.#clock = options.clock
    this.#builds = options.builds
    this.#report = options.report
  }

  /**
   * To be called before a write is answered. The response of a fetch that started earlier is not stored if it has one of the tags,
   * and no later reader joins that fetch. Recorded first: the response of a fetch that ends from here on must not restore older data.
   * `byRequest`: the request whose response shows the state after it (`ResponseHints`).
   */
  invalidate(
    tags: readonly string[],
    by: InvalidationCause = 'write',
    byRequest?: string | undefined,
  ): number {
    if (tags.length === 0) return 0
    this.#log.record(tags, byRequest)
    this.#builds.invalidated(tags)
    const isLarge = this.#store.countWithTags(tags) > keysPerTurn
    const { entries, cut } = isLarge ? this.#drop(tags) : this.#deleteEach(tags)
    this.#report({ kind: 'invalidated', by, entries, cut })
    return entries
  }

  #deleteEach(tags: readonly string[]): { readonly entries: number; readonly cut: number } {
    let entries = 0
    let cut = 0
    for (const tag of tags) {
      for (const { key } of [...this.#store.withTag(tag)]) {
        entries += this.#store.delete(key)
        cut += this.#fetches.cut(key)
      }
    }
    return { entries, cut }
  }

  /** In the time of the tags and of the fetches in flight, however much is stored. */
  #drop(tags: readonly string[]): { readonly entries: number; readonly cut: number } {
    const dropped = new Set(tags)
    const cut = this.#fetches.cutWhere((key) => this.#store.hasTag(key, dropped))
    const entries = this.#store.drop(tags)
    void this.#sweepInTurns()
    return { entries, cut }
  }

  /** Some of the targets that any client may read and that have one of the tags, for people to see. */
  someTargets(tags: readonly string[], max: number): readonly UsedTarget[] {
    const found: UsedTarget[] = []
    let left = keysLookedAt
    for (const tag of tags) {
      for (const entry of this.#store.withTag(tag)) {
        left -= 1
        if (found.length === max || left < 0) return found
        const target = usedTarget(entry.key, entry.variants)
        if (target !== undefined && !found.some((other) => isSameTarget(other, target))) found.push(target)
      }
    }
    return found
  }

  /** Until `forMs` have passed no response with one of the tags is stored; stored responses stay. */
  quarantine(tags: readonly string[], forMs: number): void {
    const now = this.#clock.monotonic()
    this.#quarantined.addUntil(tags, now, now + forMs)
  }

  /** Until the returned function is called, once, no response with one of the tags is stored; stored responses stay. */
  quarantineUntilReleased(tags: readonly string[]): () => void {
    return this.#quarantined.addUntilReleased(tags)
  }

  /**
   * In one turn, whose length does not depend on what is stored where a tag or a prefix describes it: of a large store, what has no tag is
   * removed in the next turns, though nobody gets it any more, and counted there.
   */
  purge(purge: Purge): number {
    if (!purge.dryRun && needsWalk(purge) && this.#store.size >= keysPerTurn) {
      this.#purgeLater(purge, () => undefined)
      return 0
    }
    const steps = this.#purging(purge)
    let step = steps.next()
    while (step.done !== true) step = steps.next()
    return step.value
  }

  /**
   * As `purge`, with pauses in which readers are served. Purges that no tag describes share the walks through what is stored; counts wait
   * for each other, since all that are under way have their part of each turn.
   */
  purgeInTurns(purge: Purge): Promise<number> {
    if (purge.dryRun) return this.#counted(this.#purging(purge))
    if (needsWalk(purge)) return new Promise((ended) => this.#purgeLater(purge, ended))
    return inTurns(this.#purging(purge))
  }

  /** The targets that a purge would concern and that any client may read, those with most hits first. */
  topUsed(selectors: readonly Purge['selector'][], limit: number): Promise<UsedTarget[]> {
    return this.#counted(this.#using(selectors, limit))
  }

  #counted<Result>(steps: Generator<undefined, Result>): Promise<Result> {
    const counted = this.#counts.then(() => inTurns(steps))
    this.#counts = counted.catch(() => undefined)
    return counted
  }

  async #sweepInTurns(): Promise<void> {
    if (this.#isSweeping) return
    this.#isSweeping = true
    do await setImmediate()
    while (this.#store.sweep(sweptPerTurn))
    this.#isSweeping = false
  }

  #removal(isLarge: boolean): (entry: StoredVariants) => number {
    return isLarge ? (entry) => this.#store.markDeleted(entry) : ({ key }) => this.#store.delete(key)
  }

  #select(selector: PurgeSelector): Selection {
    const tag = tagOf(selector)
    return {
      entries: tag === undefined ? this.#store.all() : [...this.#store.withTag(tag)],
      isMeant: keysMeantBy(selector),
      comparisons: (entry) => this.#store.comparisons(entry),
    }
  }

  /** From here on nothing older is stored; returns since when reads of builds are in doubt. */
  #begin(selector: PurgeSelector): number {
    this.#record(selector)
    const since = this.#clock.now()
    this.#putReadsInDoubt(selector, since)
    return since
  }

  /** Holds for all who look from here on. */
  #purgeLater({ selector, mode }: Purge, ended: (entries: number) => void): void {
    this.#begin(selector)
    const isMeant = keysMeantBy(selector)
    const cut = this.#fetches.cutWhere(isMeant)
    const at = readClock(this.#clock)
    this.#store.changeAll({
      isMeant,
      change: (variants) => {
        if (mode === 'hard') return []
        for (const variant of variants) limitLifetime(variant, currentAgeMs(variant, at))
        return variants
      },
      ended: (entries) => {
        this.#report({ kind: 'invalidated', by: 'purge', entries, cut })
        ended(entries)
      },
    })
    void this.#sweepInTurns()
  }

  #record(selector: PurgeSelector): void {
    const tag = tagOf(selector)
    if (tag === undefined) this.#log.recordAll()
    else this.#log.record([tag])
  }

  #putReadsInDoubt(selector: PurgeSelector, since: number): void {
    const tag = tagOf(selector)
    if (tag === undefined) this.#builds.invalidatedWhere(keysMeantBy(selector), since)
    else this.#builds.invalidated([tag], since)
  }

  #expiry(): (entry: StoredVariants) => number {
    const at = readClock(this.#clock)
    return (entry) => {
      const variants = this.#store.currentVariants(entry)
      for (const variant of variants) limitLifetime(variant, currentAgeMs(variant, at))
      return variants.length
    }
  }

  /** What is stored during a pause was requested after the purge, and may be removed too. */
  *#purging({ selector, mode, dryRun }: Purge): Generator<undefined, number> {
    if (dryRun)
      return yield* visiting(this.#select(selector), (entry) => this.#store.currentVariants(entry).length)
    const since = this.#begin(selector)
    if (selector.kind === 'all' && mode === 'hard') {
      const entries = this.#store.clear()
      this.#report({ kind: 'invalidated', by: 'purge', entries, cut: this.#fetches.cutAll() })
      return entries
    }
    const selection = this.#select(selector)
    const isLarge = selection.entries.length >= keysPerTurn
    const visit = mode === 'hard' ? this.#removal(isLarge) : this.#expiry()
    let cut = 0
    const entries = yield* visiting(selection, (entry) => {
      cut += this.#fetches.cut(entry.key)
      return visit(entry)
    })
    if (isLarge) void this.#sweepInTurns()
    // In a pause a build may have read what had not been reached yet.
    this.#putReadsInDoubt(selector, since)
    this.#report({ kind: 'invalidated', by: 'purge', entries, cut })
    return entries
  }

  /** Memory for a few times the limit, however many entries are selected. */
  *#using(selectors: readonly PurgeSelector[], limit: number): Generator<undefined, UsedTarget[]> {
    let used: readonly UsedTarget[] = []
    for (const selector of selectors) {
      const targets: UsedTarget[] = [...used]
      yield* visiting(this.#select(selector), (entry) => {
        const target = usedTarget(entry.key, this.#store.currentVariants(entry))
        if (target !== undefined) targets.push(target)
        if (targets.length > 4 * limit) targets.splice(0, targets.length, ...topTargets(targets, limit))
        return 0
      })
      used = topTargets(targets, limit)
    }
    return [...used]
  }
}
