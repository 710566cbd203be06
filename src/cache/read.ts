import { type Clock, type Moment, readClock } from '../clock.ts'
import { createFairTurns } from '../http/bounds/fair-turns.ts'
import { varyKey } from '../http/headers/caching-headers.ts'
import { isHead } from '../http/methods.ts'
import type { BuildReading } from './cache-read.ts'
import {
  type CacheRead,
  type CacheResponse,
  carriesOwnCredential,
  expectedTags,
  type Forward,
  rangeHeaders,
} from './cache-read.ts'
import type { CacheEvent, FetchStep, ReadStep } from './events.ts'
import {
  type AfterOutcome,
  type FetchNeeded,
  OutcomeDecision,
  type WaitingReader,
} from './fetch/after-outcome.ts'
import type { CollapsedFetch, FetchStart, InFlightFetches } from './fetch/collapse.ts'
import type { FetchOutcome, StreamEnd } from './fetch/fetch-outcome.ts'
import type { Lease, Reuse } from './policy/reuse.ts'
import type { PerhapsLater, Responder } from './respond/responder.ts'
import type { HitForMiss } from './store/hit-for-miss.ts'
import type { InvalidationLog } from './store/invalidation-log.ts'
import type { MemoryStore } from './store/memory-store.ts'
import { isSuperseded } from './store/response-storage.ts'
import type { StoredResponse } from './store/stored-response.ts'

type CacheReadsOptions = {
  readonly store: MemoryStore
  readonly log: InvalidationLog
  readonly fetches: InFlightFetches
  readonly hitForMiss: HitForMiss
  readonly responder: Responder
  readonly reuse: (read: CacheRead, at: Moment) => Reuse
  readonly lease: Lease | undefined
  readonly clock: Clock
  readonly report: (event: CacheEvent) => void
}

const noHeaders = {}

/** After this many waits for fetches that did not serve it, a reader fetches alone. */
const maxWaits = 3

/**
 * Readers that get the response to the request of another one, in one turn of the event loop: thousands may wait for one fetch, and
 * sending a response takes a tenth of a millisecond.
 */
const followersPerTurn = 32

// One function for all: each hit makes a reader.
const ignore = (): void => undefined

/** A read from its lookup to its response: what its steps have found so far. */
class Reader {
  readonly read: CacheRead
  readonly forward: Forward
  /** What the last lookup decided, and when. */
  at: Moment
  reuse: Reuse | undefined = undefined
  /** Of a read that waits for no fetch. */
  response: PerhapsLater | undefined = undefined
  /** Of a read that waits: its response, and the end of its promise. */
  later: Promise<CacheResponse> | undefined = undefined
  resolve: (response: PerhapsLater) => void = ignore
  reject: (error: unknown) => void = ignore
  /** Why its first lookup found nothing to reuse, and why its last one did. */
  first: FetchNeeded | undefined = undefined
  need: FetchNeeded | undefined = undefined
  /** It shares no fetch. */
  alone = false
  /** A fetch that it waited for has failed before. */
  hasRetried = false
  waits = 0
  /** By what the responses vary that it waited for; while none is stored, nothing else tells. */
  varyNames: readonly string[] = []
  waiting: WaitingReader | undefined = undefined
  outcome: FetchOutcome | undefined = undefined
  after: AfterOutcome | undefined = undefined

  constructor(read: CacheRead, forward: Forward, at: Moment) {
    this.read = read
    this.forward = forward
    this.at = at
  }
}

/** What a build is answered with, as soon as its tags are known. */
const recordOutcome = (
  build: BuildReading,
  outcome: FetchOutcome | StreamEnd,
  since: number,
  log: InvalidationLog,
): void => {
  if (outcome.kind === 'streaming') void outcome.end.then((end) => recordOutcome(build, end, since, log))
  else if (outcome.kind === 'shareable') {
    const { stored, notStored } = outcome
    const mayBeOlder = notStored === 'overtaken' || notStored === 'unsettled' || notStored === 'unreadable'
    build.used(stored, !mayBeOlder && !isSuperseded(log, stored, since))
  } else build.usedUnknown()
}

type ReaderStep = Exclude<ReadStep, FetchStep>
/** Undefined: the reader has its response, or it waits, and whatever it waits for goes on with the next step. */
type Next = ReaderStep | undefined

/** A step has run without the one that it depends on. */
const outOfOrder = (reader: Reader): TypeError =>
  new TypeError(`a step of a read is out of order: ${reader.reuse?.step}, ${reader.after?.step}`)

/** The retry after a failure is never alone: otherwise each of the readers would send a request to a failing upstream. */
const retriesAlone = (
  { alone, afterFailure }: Extract<AfterOutcome, { step: 'lookup-again' }>,
  waits: number,
): boolean => alone || (waits >= maxWaits && !afterFailure)

/**
 * Reads through the cache (RFC 9111 §4): a table of steps, each of which names the next one, and one loop that runs and traces them.
 * docs/request-path.md has a row for each.
 */
export class CacheReads {
  readonly #options: CacheReadsOptions
  readonly #outcomes: OutcomeDecision
  readonly #turns = createFairTurns(followersPerTurn)

  readonly #steps: Readonly<Record<ReaderStep, (reader: Reader) => Next>> = {
    lookup: (reader) => this.#lookup(reader),
    hit: (reader) => this.#hit(reader),
    'stale-while-revalidate': (reader) => this.#staleWhileRevalidate(reader),
    'only-if-cached': (reader) => this.#onlyIfCached(reader),
    join: (reader) => this.#join(reader),
    wait: (reader) => this.#wait(reader),
    outcome: (reader) => this.#outcome(reader),
    'lookup-again': (reader) => this.#lookupAgain(reader),
    'stale-if-error': (reader) => this.#respond(reader),
    respond: (reader) => this.#respond(reader),
  }

  constructor(options: CacheReadsOptions) {
    this.#options = options
    this.#outcomes = new OutcomeDecision(options)
  }

  /** Without a promise where no fetch is needed. Rejects with what `forward` rejects with. */
  response(read: CacheRead, forward: Forward): PerhapsLater {
    const reader = new Reader(read, forward, readClock(this.#options.clock))
    this.#run(reader, 'lookup')
    const response = reader.response ?? reader.later
    if (response === undefined) throw outOfOrder(reader)
    return response
  }

  #run(reader: Reader, first: ReaderStep): void {
    const { read } = reader
    let step: Next = first
    while (step !== undefined) {
      read.step?.(step)
      step = this.#steps[step](reader)
    }
  }

  /** Goes on after a wait; what a step throws is the reader's. */
  #goOn(reader: Reader, step: ReaderStep): void {
    try {
      this.#run(reader, step)
    } catch (error) {
      this.#fail(reader, error)
    }
  }

  #fail(reader: Reader, error: unknown): void {
    this.#inTurn(reader, () => reader.reject(error))
  }

  #lookup(reader: Reader): Next {
    reader.reuse = this.#options.reuse(reader.read, reader.at)
    if (reader.reuse.step === 'join') {
      reader.first = reader.reuse
      reader.need = reader.reuse
      reader.alone = this.#fetchesAlone(reader.read)
      reader.later = new Promise<CacheResponse>((resolve, reject) => {
        reader.resolve = resolve
        reader.reject = reject
      })
    }
    return reader.reuse.step
  }

  #hit(reader: Reader): Next {
    const { reuse, read, at } = reader
    if (reuse?.step !== 'hit') throw outOfOrder(reader)
    reuse.stored.hits += 1
    read.build?.used(reuse.stored, true)
    reader.response = this.#options.responder.hit(reuse.stored, read, reuse.ageMs, at)
    return undefined
  }

  /** Responds now, and fetches in the background. */
  #staleWhileRevalidate(reader: Reader): Next {
    const { reuse, read, forward, at } = reader
    if (reuse?.step !== 'stale-while-revalidate') throw outOfOrder(reader)
    const { responder, report } = this.#options
    read.build?.used(reuse.stored, false)
    this.#revalidateInBackground(read, forward, reuse.stored)
    report({ kind: 'served-stale', service: read.service, reason: 'revalidating' })
    reader.response = responder.stale(reuse.stored, read, at, 'revalidating')
    return undefined
  }

  #onlyIfCached(reader: Reader): Next {
    reader.read.build?.usedUnknown()
    reader.response = this.#options.responder.unavailable()
    return undefined
  }

  /** Joins the fetch in flight, or starts one. */
  #join(reader: Reader): Next {
    const { read, forward, need, alone, hasRetried } = reader
    if (need === undefined) throw outOfOrder(reader)
    const { log, fetches } = this.#options
    reader.waits += 1
    const since = log.sequence
    const variant = this.#variantOf(read, reader.varyNames)
    const inFlight = alone ? undefined : fetches.find(read.key, variant)
    if (inFlight !== undefined && this.#mayJoin(inFlight, read)) {
      reader.waiting = { read, need, since, fetch: inFlight, isLeader: false, hasRetried }
      return 'wait'
    }
    // Later readers join the fetch that starts now instead.
    if (inFlight !== undefined) fetches.cut(read.key)
    const fetch = this.#start({ read, forward, variant, mode: alone ? 'alone' : 'shared' }, need)
    reader.waiting = { read, need, since, fetch, isLeader: true, hasRetried }
    return 'wait'
  }

  /** By calls, since each promise shows in what a miss costs. */
  #wait(reader: Reader): Next {
    const { read, waiting } = reader
    if (waiting === undefined) throw outOfOrder(reader)
    const settled = (outcome: FetchOutcome): void => {
      reader.outcome = outcome
      this.#goOn(reader, 'outcome')
    }
    waiting.fetch.wait(read.signal, settled, reader.reject)
    return undefined
  }

  /** What a reader does next is decided at once, so that all of them join the same retry; its response is made in its turn. */
  #outcome(reader: Reader): Next {
    const { outcome, waiting } = reader
    if (outcome === undefined || waiting === undefined) throw outOfOrder(reader)
    const after = this.#outcomes.after(outcome, waiting)
    if (!(after instanceof Promise)) return this.#decided(reader, after)
    after.then(
      (decided) => this.#goOn(reader, this.#decided(reader, decided)),
      (error: unknown) => this.#fail(reader, error),
    )
    return undefined
  }

  #decided(reader: Reader, after: AfterOutcome): ReaderStep {
    const { read, outcome, waiting } = reader
    reader.after = after
    if (read.build !== undefined && outcome !== undefined && waiting !== undefined) {
      if (after.step === 'stale-if-error') read.build.usedUnknown()
      else if (after.step === 'respond')
        recordOutcome(read.build, outcome, waiting.fetch.since, this.#options.log)
    }
    return after.step
  }

  /** The fetch did not serve it: something stored meanwhile may, and otherwise it waits again. */
  #lookupAgain(reader: Reader): Next {
    const { read, after, first } = reader
    if (after?.step !== 'lookup-again' || first === undefined) throw outOfOrder(reader)
    const at = readClock(this.#options.clock)
    const reuse = this.#options.reuse(read, at)
    if (reuse.step === 'hit') {
      const { responder } = this.#options
      read.build?.used(reuse.stored, true)
      reader.after = {
        step: 'respond',
        response: () => responder.collapsed(reuse.stored, read, first.reason, at),
      }
      return 'respond'
    }
    if (reuse.step === 'join') reader.need = reuse
    reader.alone = retriesAlone(after, reader.waits) || read.isOutOfConfiguration?.() === true
    reader.hasRetried ||= after.afterFailure
    reader.varyNames = after.varyNames ?? reader.varyNames
    return 'join'
  }

  #respond(reader: Reader): Next {
    const { after } = reader
    if (after === undefined || after.step === 'lookup-again') throw outOfOrder(reader)
    this.#inTurn(reader, () => reader.resolve(after.response()))
    return undefined
  }

  #inTurn({ read, waiting, reject }: Reader, work: () => void): void {
    if (waiting?.isLeader === true) {
      work()
      return
    }
    this.#turns.begin(read.client ?? '', () => {
      try {
        work()
      } catch (error) {
        reject(error)
      }
    })
  }

  /** Fetches in the background what was served stale. */
  #revalidateInBackground(read: CacheRead, forward: Forward, stored: StoredResponse): void {
    const { fetches, report } = this.#options
    // The response to a HEAD has no content to store.
    const variant = this.#variantOf(read, stored.varyNames)
    if (isHead(read.method) || fetches.find(read.key, variant) !== undefined) return
    const fetch = this.#start(
      { read, forward, variant, mode: 'background' },
      { step: 'join', reason: 'stale', stored },
    )
    void fetch.ended().then(({ kind }) => {
      if (kind === 'failed') report({ kind: 'background-failed', service: read.service })
    })
  }

  /** Readers of one key share a fetch only if they select the same response, by the selecting headers known so far. */
  #variantOf(read: CacheRead, varyNames: readonly string[]): string {
    const newest = this.#options.store.peek(read.key).at(-1)
    return varyKey(newest?.varyNames ?? varyNames, read)
  }

  #start(
    start: Pick<FetchStart, 'read' | 'forward' | 'variant' | 'mode'>,
    { reason, stored }: FetchNeeded,
  ): CollapsedFetch {
    const { fetches, log } = this.#options
    return fetches.start({
      ...start,
      reason,
      stored,
      rangeHeaders: start.mode === 'alone' ? rangeHeaders(start.read) : noHeaders,
      since: log.sequence,
    })
  }

  #fetchesAlone(read: CacheRead): boolean {
    const { hitForMiss, clock } = this.#options
    return (
      isHead(read.method) ||
      read.headers['range'] !== undefined ||
      carriesOwnCredential(read) ||
      read.isOutOfConfiguration?.() === true ||
      hitForMiss.has(read.key, clock.monotonic())
    )
  }

  /**
   * False if a tag that follows from the request was invalidated since the fetch started. Tags that follow
   * from the response are compared when it has arrived.
   */
  #mayJoin(fetch: CollapsedFetch, read: CacheRead): boolean {
    const { lease, log, clock } = this.#options
    return (
      (lease === undefined || lease.isCurrent(readClock(clock))) &&
      (fetch.since === log.sequence || !log.invalidatedSince(expectedTags(read), fetch.since))
    )
  }
}
