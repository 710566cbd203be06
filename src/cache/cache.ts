import type { Clock } from '../clock.ts'
import type { ByteBudget } from '../http/byte-budget.ts'
import { varyKey } from '../http/vary.ts'
import {
  type CacheRead,
  carriesOwnCredential,
  expectedTags,
  type Forward,
  rangeFields,
} from './cache-read.ts'
import type { CacheAnswer } from './conditional-response.ts'
import { type CacheEntry, type EntryOrder, listEntries } from './entries.ts'
import type { CacheEvent, Invalidator } from './events.ts'
import { createFlights, type Flight } from './fetch/collapse.ts'
import { createFetch } from './fetch/fetch.ts'
import { createTierFetch } from './fetch/fetch-through-tier.ts'
import { createPassMemo } from './fetch/hit-for-pass.ts'
import { createIncomplete } from './fetch/partial-content.ts'
import { createConclude, createJudge, type Need, type Verdict, type Wait } from './fetch/resolve-waiter.ts'
import { createStoring } from './fetch/storing.ts'
import { createInvalidation, type Purge } from './invalidation.ts'
import type { Moment } from './policy/freshness.ts'
import { createReuse, type Trust } from './policy/reuse.ts'
import { createAnswers } from './respond/answers.ts'
import { type CompressionOptions, createEncodings } from './respond/encodings.ts'
import type { SharedTier } from './shared-tier.ts'
import { type AdmissionMode, createAdmission } from './store/admission.ts'
import { contentsTagged, createMemoryStore } from './store/memory-store.ts'
import { createKeep } from './store/store-if-current.ts'
import type { StoredResponse } from './store/stored-response.ts'
import { createHeldTags, createTagLog } from './store/tag-log.ts'
import { createWritten, type WrittenAnswer } from './store-written-response.ts'

export type CacheOptions = {
  /** Absent where no other process stores answers of the same upstreams. */
  readonly trust?: Trust
  /** Where processes keep responses together. */
  readonly tier?: SharedTier
  readonly maxBytes: number
  readonly maxEntryBytes: number
  readonly compression: CompressionOptions
  readonly admission: AdmissionMode
  /** Bounds what is held of responses that are on their way. */
  readonly budget: ByteBudget
  readonly clock: Clock
  readonly report: (event: CacheEvent) => void
}

/** A shared cache (RFC 9111) that never answers a read with what was there before an invalidation it comes after. */
export type Cache = {
  /** At once when it is a hit; otherwise through `forward`. Rejects with what `forward` rejects with. */
  answer(read: CacheRead, forward: Forward): CacheAnswer | Promise<CacheAnswer>
  /**
   * To be called before the answer of a write is returned. No forward that began before may be kept or joined by
   * later readers if it holds any of it. Returns the number of stored responses dropped.
   */
  invalidate(tags: readonly string[], by?: Invalidator): number
  /**
   * As `invalidate`, for a write that may still be carried out after its time was over: nothing that carries the tags
   * is kept for so long.
   */
  suspect(tags: readonly string[], forMs: number, by?: Invalidator): number
  /** By request target instead of by tag, in all partitions (RFC 9111 §4.4). */
  invalidateTargets(service: string, targets: readonly string[]): number
  /** Is to `invalidateTargets` what `suspect` is to `invalidate`. */
  suspectTargets(service: string, targets: readonly string[], forMs: number): number
  /** To be called when a POST is sent whose answer may serve later reads of its target (RFC 9110 §9.3.3). */
  written(read: CacheRead): WrittenAnswer
  /**
   * Contents of some stored responses with that tag: all of them younger than the last write that was told. Nothing
   * where other processes write too.
   */
  shown(tag: string): readonly Buffer[]
  /** Returns the number of stored responses concerned. */
  purge(purge: Purge): number
  /** The same, with pauses in which others are answered; done when the promise is. */
  purgeInTurns(purge: Purge): Promise<number>
  /** Largest or oldest first; for the admin side. */
  entries(order: EntryOrder, limit: number): readonly CacheEntry[]
  stats(): { readonly entries: number; readonly bytes: number; readonly tags: number }
  close(): void
}

/** One tag takes some hundred bytes; more invalidations than this during one forward make it count as overtaken. */
const rememberedTags = 16_384

const noFields = {}

/** A waiter who met that many answers not meant for it stops waiting for others. */
const mostRounds = 3

/** The one try after a failure is never alone: otherwise each of those who waited would ask a failing upstream. */
const goesAlone = ({ alone, afterFailure }: Extract<Verdict, { kind: 'again' }>, round: number): boolean =>
  alone || (round >= mostRounds && !afterFailure)

export const createCache = (options: CacheOptions): Cache => {
  const { clock, report } = options
  const store = createMemoryStore({
    maxBytes: options.maxBytes,
    maxEntryBytes: options.maxEntryBytes,
    onEvict: (bytes) => report({ kind: 'evicted', bytes }),
  })
  const log = createTagLog(rememberedTags)
  const flights = createFlights()
  const held = createHeldTags(rememberedTags)
  const encodings = createEncodings({ ...options.compression, store, maxBytes: options.maxBytes, report })
  const { codedFrom } = encodings
  const admission = createAdmission({
    mode: options.admission,
    maxBytes: options.maxBytes,
    storedBytes: () => store.stats().bytes,
  })
  const keep = createKeep({ store, log, held, admission, clock })
  const { budget, maxEntryBytes } = options
  const storing = createStoring({ keep, report, codedFrom })
  const incomplete = createIncomplete({ store, storing, clock, budget, maxEntryBytes })
  const invalidation = createInvalidation({ store, log, held, flights, clock, report })
  const passes = createPassMemo()
  const { tier } = options
  const fetchUpstream = createFetch({ store, storing, incomplete, clock, report, budget, maxEntryBytes })
  const fetch =
    tier === undefined
      ? fetchUpstream
      : createTierFetch({ tier, fetch: fetchUpstream, keep, passes, clock, storing, maxEntryBytes })
  const answers = createAnswers(encodings)
  const judge = createJudge({ answers, log, passes, clock, report })

  const conclude = createConclude({ flights, answers, passes, judge, clock, report })

  const moment = (): Moment => ({ now: clock.now(), monotonic: clock.monotonic() })

  const { trust } = options
  const reuseFor = createReuse(store, trust)

  const partFor =
    trust === undefined
      ? incomplete.hit
      : (read: CacheRead, at: Moment) => (trust.mayTrust(at) ? incomplete.hit(read, at) : undefined)

  /** Which of the key's forwards a reader may share: told apart by selecting fields as soon as they are known. */
  const variantOf = (read: CacheRead): string => {
    const newest = store.peek(read.key).at(-1)
    return newest === undefined ? '' : varyKey(newest.varyNames, read)
  }

  const begin = (
    read: CacheRead,
    forward: Forward,
    need: Need,
    how: 'shared' | 'alone' | 'background',
  ): Flight => {
    const asked = (): void => report({ kind: 'forwarded', service: read.service, reason: need.reason })
    const extra = how === 'alone' ? rangeFields(read) : noFields
    const errand = {
      read,
      forward,
      candidate: need.stored,
      extra,
      background: how === 'background',
      asked,
    }
    if (tier === undefined) asked()
    return flights.begin({
      key: read.key,
      variant: variantOf(read),
      began: log.sequence,
      joinable: how !== 'alone',
      leader: how === 'background' ? undefined : read.signal,
      read,
      run: (flight) => fetch(errand, flight),
    })
  }

  const revalidateInBackground = (read: CacheRead, forward: Forward, stored: StoredResponse): void => {
    // A HEAD brings no content to keep.
    if (read.method === 'HEAD' || flights.find(read.key, variantOf(read)) !== undefined) return
    const flight = begin(read, forward, { kind: 'fetch', reason: 'stale', stored }, 'background')
    void flights.over(flight).then((landing) => {
      if (landing.kind === 'failed' || landing.kind === 'broken')
        report({ kind: 'background-failed', service: read.service })
    })
  }

  /** RFC 9211 §2.2: something of it is there. */
  const partially = (read: CacheRead, need: Need): Need =>
    need.reason === 'uri-miss' && incomplete.holds(read) ? { ...need, reason: 'partial' } : need

  const asksAlone = (read: CacheRead): boolean =>
    read.method === 'HEAD' ||
    read.fields['range'] !== undefined ||
    carriesOwnCredential(read) ||
    passes.has(read.key, clock.monotonic())

  /**
   * Not when something was written since it began that, as far as the request tells, it holds. What only its answer
   * can tell is looked at when it is there.
   */
  const mayJoin = (flight: Flight, read: CacheRead): boolean =>
    (trust === undefined || trust.mayTrust(moment())) &&
    (flight.began === log.sequence || !log.touchedSince(expectedTags(read), flight.began))

  const join = (
    read: CacheRead,
    forward: Forward,
    need: Need,
    { alone, retried }: { readonly alone: boolean; readonly retried: boolean },
  ): Wait => {
    const since = log.sequence
    const running = alone ? undefined : flights.find(read.key, variantOf(read))
    if (running !== undefined && mayJoin(running, read)) {
      return { read, need, since, flight: running, leads: false, retried }
    }
    // The one that begins now takes its place.
    if (running !== undefined) flights.cut(read.key)
    const flight = begin(read, forward, need, alone ? 'alone' : 'shared')
    return { read, need, since, flight, leads: true, retried }
  }

  const answerByForward = async (read: CacheRead, forward: Forward, first: Need): Promise<CacheAnswer> => {
    let need = first
    let alone = asksAlone(read)
    let retried = false
    for (let round = 1; ; round += 1) {
      const wait = join(read, forward, need, { alone, retried })
      const landing = await flights.wait(wait.flight, read.signal)
      const concluded = conclude(landing, wait)
      const verdict = concluded instanceof Promise ? await concluded : concluded
      if (verdict.kind === 'answer') return verdict.answer
      alone = goesAlone(verdict, round)
      retried ||= verdict.afterFailure
      const at = moment()
      const reuse = reuseFor(read, at)
      if (reuse.kind === 'fresh') return answers.collapsed(reuse.stored, read, first.reason, at)
      if (reuse.kind === 'fetch') need = reuse
    }
  }

  return {
    answer: (read, forward) => {
      const at = moment()
      const reuse = reuseFor(read, at)
      switch (reuse.kind) {
        case 'fresh':
          reuse.stored.hits += 1
          return answers.hit(reuse.stored, read, reuse.ageMs, at)
        case 'stale':
          revalidateInBackground(read, forward, reuse.stored)
          report({ kind: 'served-stale', service: read.service, reason: 'revalidating' })
          return answers.stale(reuse.stored, read, at, 'revalidating')
        case 'unavailable':
          return partFor(read, at) ?? answers.unavailable()
        case 'fetch':
          return partFor(read, at) ?? answerByForward(read, forward, partially(read, reuse))
      }
    },
    ...invalidation,
    shown: (tag) => (trust === undefined ? contentsTagged(store, tag) : []),
    written: createWritten({ log, keep, flights, clock, report, budget, maxEntryBytes, codedFrom }),
    entries: (order, limit) => listEntries(store, order, limit, moment()),
    stats: store.stats,
    close: () => {
      flights.abortAll()
      store.clear()
    },
  }
}
