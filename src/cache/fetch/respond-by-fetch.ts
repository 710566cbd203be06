import { type Clock, type Moment, readClock } from '../../clock.ts'
import { type ErrorCode, GatewayError } from '../../errors.ts'
import { createFairTurns } from '../../http/bounds/fair-turns.ts'
import { varyKey } from '../../http/headers/caching-headers.ts'
import { otherCredential } from '../../http/headers/credential-headers.ts'
import { discard } from '../../http/message.ts'
import { isGet, isHead } from '../../http/methods.ts'
import {
  type CacheRead,
  type CacheResponse,
  carriesOwnCredential,
  expectedTags,
  type Forward,
  rangeHeaders,
} from '../cache-read.ts'
import type { CacheEvent } from '../events.ts'
import { currentAgeMs, type Lease, mayServeOnError, type Reuse } from '../policy/reuse.ts'
import { isOfRequest, isServerError } from '../policy/storability.ts'
import { takesWhole } from '../respond/encodings.ts'
import type { PerhapsLater, Responder } from '../respond/responder.ts'
import type { HitForPass } from '../store/hit-for-pass.ts'
import type { MemoryStore } from '../store/memory-store.ts'
import { isSuperseded } from '../store/response-storage.ts'
import type { StoredResponse } from '../store/stored-response.ts'
import type { InvalidationLog } from '../store/tag-index.ts'
import type {
  CollapsedFetch,
  FetchOutcome,
  FetchStart,
  InFlightFetches,
  StreamingOutcome,
  UnshareableOutcome,
} from './collapse.ts'

/** Why a reader's response has to be fetched, and which stored response could be validated or served on error. */
export type FetchNeeded = Extract<Reuse, { kind: 'fetch' }>

export type WaitingReader = {
  readonly read: CacheRead
  readonly need: FetchNeeded
  /** Number of the last invalidation when the wait began. */
  readonly since: number
  readonly fetch: CollapsedFetch
  /** It started the fetch: the upstream was sent its request. */
  readonly isLeader: boolean
  /** A fetch that it waited for has failed before. */
  readonly hasRetried: boolean
}

/** The end of a wait. `afterFailure`: the fetch of another reader failed, for which there is one retry. */
export type Resolution =
  | { readonly kind: 'respond'; readonly response: () => PerhapsLater }
  | { readonly kind: 'retry'; readonly alone: boolean; readonly afterFailure: boolean }

type EndedOutcome = Exclude<FetchOutcome, StreamingOutcome>

const respond = (response: () => PerhapsLater): Resolution => ({ kind: 'respond', response })

const retryTogether: Resolution = { kind: 'retry', alone: false, afterFailure: false }
const retryAlone: Resolution = { kind: 'retry', alone: true, afterFailure: false }
/** Once, together with all others whose fetch failed: the first of them starts it. */
const retryAfterFailure: Resolution = { kind: 'retry', alone: false, afterFailure: true }

/** Would the upstream be sent the same request for both? */
const sendsTheSame = (read: CacheRead, other: CacheRead): boolean => {
  if (read === other || read.headers === other.headers) return true
  const names = Object.keys(read.headers)
  const otherNames = Object.keys(other.headers)
  if (names.length !== otherNames.length) return false
  return (
    varyKey(names, read) === varyKey(names, other) && varyKey(otherNames, read) === varyKey(otherNames, other)
  )
}

/** The headers that identify the caller of a request, as one text. */
const callerOf = ({ headers }: CacheRead): string =>
  JSON.stringify([
    headers['authorization'] ?? null,
    headers['cookie'] ?? null,
    otherCredential(headers, []) ?? null,
  ])

/** The leader's request may be the cause of these. All other errors mean that the upstream cannot be reached by any request. */
const mayDependOnRequest: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  'upstream_broken',
  'upstream_timeout',
  'internal',
])

/** A failure is final for readers who would send the same request; all others retry once. */
const mayRetry = ({ isLeader, hasRetried, fetch, read }: WaitingReader): boolean =>
  !isLeader && !hasRetried && !sendsTheSame(fetch.read, read)

/** A reader whose own request was not sent gets only a fresh response. */
const mayShare = (stored: StoredResponse, at: Moment): boolean =>
  !stored.validateAlways && stored.lifetimeMs > currentAgeMs(stored, at)

/**
 * What a reader does with a response whose content is still coming. It follows the content when it takes all of it as it is.
 * It waits for the end when a precondition or range needs the complete content, when the tags of the content must show whether it is
 * older than a write (the request arrived after the write), or when it has something stale to fall back on.
 */
const useOfStream = (
  { head, fill }: StreamingOutcome,
  { read, need, isLeader, since, fetch }: WaitingReader,
  at: Moment,
): 'follow' | 'wait' | Resolution => {
  if (fill.overflowed) return retryAlone
  if (!isLeader && varyKey(head.varyNames, read) !== head.varyKey) return retryTogether
  if (!isLeader && !mayShare(head, at)) return retryAlone
  const { stored } = need
  const fallsBack = stored !== undefined && mayServeOnError(stored, 'unreachable', read.policy.profile, at)
  return takesWhole(read) && !fallsBack && (isLeader || since === fetch.since) ? 'follow' : 'wait'
}

type ResolveWaiterOptions = {
  readonly log: InvalidationLog
  readonly hitForPass: HitForPass
  readonly responder: Responder
  readonly clock: Clock
  readonly report: (event: CacheEvent) => void
}

/**
 * Decides what one reader gets of the outcome of a fetch: a response or a retry. Throws the error of the fetch where the reader gets
 * that.
 */
class WaiterResolver {
  readonly #responder: Responder
  readonly #log: InvalidationLog
  readonly #hitForPass: HitForPass
  readonly #clock: Clock
  readonly #report: (event: CacheEvent) => void

  constructor(options: ResolveWaiterOptions) {
    this.#responder = options.responder
    this.#log = options.log
    this.#hitForPass = options.hitForPass
    this.#clock = options.clock
    this.#report = options.report
  }

  resolve(outcome: FetchOutcome, waiting: WaitingReader): Resolution | Promise<Resolution> {
    return outcome.kind === 'streaming' ? this.#afterHead(outcome, waiting) : this.#afterEnd(outcome, waiting)
  }

  #staleOnError(
    { read, need: { stored } }: WaitingReader,
    failure: 'unreachable' | 'server-error',
  ): Resolution | undefined {
    const at = readClock(this.#clock)
    if (stored === undefined || !mayServeOnError(stored, failure, read.policy.profile, at)) return undefined
    this.#report({ kind: 'served-stale', service: read.service, reason: 'error', failure })
    return respond(() => this.#responder.stale(stored, read, at, 'error'))
  }

  #share(stored: StoredResponse, { read, fetch, need, since }: WaitingReader): Resolution {
    const at = readClock(this.#clock)
    if (varyKey(stored.varyNames, read) !== stored.varyKey) return retryTogether
    if (since !== fetch.since && isSuperseded(this.#log, stored, fetch.since)) return retryTogether
    if (!mayShare(stored, at)) return retryAlone
    this.#report({ kind: 'collapsed', service: read.service })
    return respond(() => this.#responder.collapsed(stored, read, need.reason, at))
  }

  #afterServerError(stored: StoredResponse, waiting: WaitingReader): Resolution {
    const { read, need, isLeader, fetch } = waiting
    const stale = this.#staleOnError(waiting, 'server-error')
    if (stale !== undefined) return stale
    if (mayRetry(waiting)) return retryAfterFailure
    const isSameCaller = callerOf(fetch.read) === callerOf(read)
    const isItsOwn = isLeader || (isSameCaller && varyKey(stored.varyNames, read) === stored.varyKey)
    if (!isItsOwn) return retryAlone
    return respond(() =>
      this.#responder.serverError(stored, read, need.reason, !isLeader, readClock(this.#clock)),
    )
  }

  #afterFailure(error: unknown, hasBegun: boolean, waiting: WaitingReader): Resolution {
    const stale = this.#staleOnError(waiting, 'unreachable')
    if (stale !== undefined) return stale
    const code = error instanceof GatewayError ? error.code : 'internal'
    // The leader's client may have used up its share of the slots, which other clients have not.
    const isOfLeaderAlone = hasBegun || code === 'upstream_busy'
    if (isOfLeaderAlone && !waiting.isLeader && !waiting.hasRetried) return retryAfterFailure
    if (!hasBegun && mayDependOnRequest.has(code) && mayRetry(waiting)) return retryAfterFailure
    throw error
  }

  #respondAlone(outcome: UnshareableOutcome, waiting: WaitingReader): Resolution {
    const { read, need } = waiting
    const { response } = outcome
    const stale = isServerError(response) ? this.#staleOnError(waiting, 'server-error') : undefined
    if (stale !== undefined) {
      discard(response.content)
      return stale
    }
    // A 206 does not describe the whole response, and an error of this request does not apply to the requests of other readers.
    const isOfKey = isGet(read.method) && read.headers['range'] === undefined && !isOfRequest(response)
    if (isOfKey) this.#hitForPass.add(read.key, this.#clock.monotonic())
    return respond(() => this.#responder.unshareable(outcome, read, need.reason, readClock(this.#clock)))
  }

  #afterEnd(outcome: EndedOutcome, waiting: WaitingReader): Resolution {
    const { read, need, isLeader } = waiting
    switch (outcome.kind) {
      case 'shareable':
        if (!isLeader) return this.#share(outcome.stored, waiting)
        this.#hitForPass.delete(read.key)
        return respond(() => this.#responder.fetched(outcome, read, need.reason, readClock(this.#clock)))
      case 'unshareable':
        if (isLeader) return this.#respondAlone(outcome, waiting)
        return isOfRequest(outcome.response) ? retryTogether : retryAlone
      case 'server-error':
        return this.#afterServerError(outcome.stored, waiting)
      case 'failed':
        return this.#afterFailure(outcome.error, outcome.hasBegun, waiting)
    }
  }

  #follow(outcome: StreamingOutcome, waiting: WaitingReader, at: Moment): Resolution {
    const { read, need, isLeader, fetch } = waiting
    const readerOf = outcome.fill.place()
    if (isLeader) this.#hitForPass.delete(read.key)
    else this.#report({ kind: 'collapsed', service: read.service })
    return respond(() => {
      const content = readerOf(read.client).once('close', () => fetch.leave())
      return this.#responder.streamed(outcome, content, read, need.reason, !isLeader, at)
    })
  }

  async #waitForEnd(outcome: StreamingOutcome, waiting: WaitingReader): Promise<Resolution> {
    const { read, fetch, isLeader } = waiting
    const { fill, head, ownHeaders, upstreamStatus } = outcome
    // If the content turns out too large to be stored, the leader streams it: a second fetch would give the same.
    const content = isLeader ? fill.reader(read.client) : undefined
    try {
      const end = await fetch.waitForEnd(outcome, read.signal)
      if (end.kind !== 'too-large') {
        content?.destroy()
        return this.#afterEnd(end, waiting)
      }
      if (content === undefined) return retryAlone
      const headers = [...head.headers, ...ownHeaders]
      const response = { status: head.status, headers, content } as const
      const reason = fill.reasonOfOverflow
      const unshareable: UnshareableOutcome = { kind: 'unshareable', response, upstreamStatus, reason }
      return respond(() =>
        this.#responder.unshareable(unshareable, read, waiting.need.reason, readClock(this.#clock)),
      )
    } catch (error) {
      content?.destroy()
      throw error
    }
  }

  #afterHead(outcome: StreamingOutcome, waiting: WaitingReader): Resolution | Promise<Resolution> {
    const { read, fetch, isLeader } = waiting
    const { fill, end } = outcome
    const at = readClock(this.#clock)
    if (isLeader) {
      void end.then(({ kind }) => {
        const isTooLarge = kind === 'too-large' && fill.reasonOfOverflow === 'too-large'
        if (isTooLarge) this.#hitForPass.add(read.key, this.#clock.monotonic())
      })
    }
    const use = useOfStream(outcome, waiting, at)
    if (use === 'follow') return this.#follow(outcome, waiting, at)
    if (use === 'wait') return this.#waitForEnd(outcome, waiting)
    fetch.leave()
    return use
  }
}

type RespondByFetchOptions = {
  readonly store: MemoryStore
  readonly log: InvalidationLog
  readonly fetches: InFlightFetches
  readonly hitForPass: HitForPass
  readonly responder: Responder
  readonly reuse: (read: CacheRead, at: Moment) => Reuse
  readonly lease: Lease | undefined
  readonly clock: Clock
  readonly report: (event: CacheEvent) => void
}

const noHeaders = {}

/** After this many waits for fetches that did not serve it, a reader fetches alone. */
const maxWaits = 3

/** The retry after a failure is never alone: otherwise each of the readers would send a request to a failing upstream. */
const retriesAlone = (
  { alone, afterFailure }: Extract<Resolution, { kind: 'retry' }>,
  waits: number,
): boolean => alone || (waits >= maxWaits && !afterFailure)

/**
 * Readers that get the response to the request of another one, in one turn of the event loop: thousands may wait for one fetch, and
 * sending a response takes a tenth of a millisecond.
 */
const followersPerTurn = 32

/** A reader from its first wait to its response. */
type FetchReader = {
  readonly read: CacheRead
  readonly forward: Forward
  readonly first: FetchNeeded
  readonly resolve: (response: PerhapsLater) => void
  readonly reject: (error: unknown) => void
}

/** How a reader waits this time. */
type WaitAttempt = {
  readonly need: FetchNeeded
  readonly alone: boolean
  /** A fetch that it waited for has failed before. */
  readonly hasRetried: boolean
  readonly waits: number
}

/** Responds to readers that need a fetch: each joins one in flight, or starts one. */
export class FetchReaders {
  readonly #store: MemoryStore
  readonly #log: InvalidationLog
  readonly #fetches: InFlightFetches
  readonly #hitForPass: HitForPass
  readonly #responder: Responder
  readonly #reuse: (read: CacheRead, at: Moment) => Reuse
  readonly #lease: Lease | undefined
  readonly #clock: Clock
  readonly #report: (event: CacheEvent) => void
  readonly #resolveWaiter: WaiterResolver
  readonly #turns = createFairTurns(followersPerTurn)

  constructor(options: RespondByFetchOptions) {
    this.#store = options.store
    this.#log = options.log
    this.#fetches = options.fetches
    this.#hitForPass = options.hitForPass
    this.#responder = options.responder
    this.#reuse = options.reuse
    this.#lease = options.lease
    this.#clock = options.clock
    this.#report = options.report
    this.#resolveWaiter = new WaiterResolver(options)
  }

  /** Rejects with what `forward` rejects with. */
  respond(read: CacheRead, forward: Forward, need: FetchNeeded): Promise<CacheResponse> {
    return new Promise<CacheResponse>((resolve, reject) => {
      const reader = { read, forward, first: need, resolve, reject }
      this.#wait(reader, { need, alone: this.#fetchesAlone(read), hasRetried: false, waits: 1 })
    })
  }

  /** Fetches in the background what was served stale. */
  revalidate(read: CacheRead, forward: Forward, stored: StoredResponse): void {
    // The response to a HEAD has no content to store.
    if (isHead(read.method) || this.#fetches.find(read.key, this.#variantOf(read)) !== undefined) return
    const fetch = this.#start(read, forward, { kind: 'fetch', reason: 'stale', stored }, 'background')
    void fetch.ended().then(({ kind }) => {
      if (kind === 'failed') this.#report({ kind: 'background-failed', service: read.service })
    })
  }

  /** Readers of one key share a fetch only if they select the same response, by the selecting headers known so far. */
  #variantOf(read: CacheRead): string {
    const newest = this.#store.peek(read.key).at(-1)
    return newest === undefined ? '' : varyKey(newest.varyNames, read)
  }

  #start(
    read: CacheRead,
    forward: Forward,
    { reason, stored }: FetchNeeded,
    mode: FetchStart['mode'],
  ): CollapsedFetch {
    return this.#fetches.start({
      read,
      forward,
      reason,
      stored,
      rangeHeaders: mode === 'alone' ? rangeHeaders(read) : noHeaders,
      variant: this.#variantOf(read),
      since: this.#log.sequence,
      mode,
    })
  }

  #fetchesAlone(read: CacheRead): boolean {
    return (
      isHead(read.method) ||
      read.headers['range'] !== undefined ||
      carriesOwnCredential(read) ||
      read.isOutOfConfiguration?.() === true ||
      this.#hitForPass.has(read.key, this.#clock.monotonic())
    )
  }

  /**
   * False if a tag that follows from the request was invalidated since the fetch started. Tags that follow
   * from the response are compared when it has arrived.
   */
  #mayJoin(fetch: CollapsedFetch, read: CacheRead): boolean {
    return (
      (this.#lease === undefined || this.#lease.isCurrent(readClock(this.#clock))) &&
      (fetch.since === this.#log.sequence || !this.#log.invalidatedSince(expectedTags(read), fetch.since))
    )
  }

  #join(
    read: CacheRead,
    forward: Forward,
    need: FetchNeeded,
    alone: boolean,
    hasRetried: boolean,
  ): WaitingReader {
    const since = this.#log.sequence
    const inFlight = alone ? undefined : this.#fetches.find(read.key, this.#variantOf(read))
    if (inFlight !== undefined && this.#mayJoin(inFlight, read)) {
      return { read, need, since, fetch: inFlight, isLeader: false, hasRetried }
    }
    // Later readers join the fetch that starts now instead.
    if (inFlight !== undefined) this.#fetches.cut(read.key)
    const fetch = this.#start(read, forward, need, alone ? 'alone' : 'shared')
    return { read, need, since, fetch, isLeader: true, hasRetried }
  }

  /** What a reader does next is decided at once, so that all of them join the same retry; its response is made in its turn. */
  #inTurn({ read, reject }: FetchReader, isLeader: boolean, work: () => void): void {
    if (isLeader) {
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

  /** One turn of the loop: waits for a fetch, and answers by it or waits again. By calls, since each promise shows in what a miss costs. */
  #wait(reader: FetchReader, attempt: WaitAttempt): void {
    const { read, reject } = reader
    const waiting = this.#join(read, reader.forward, attempt.need, attempt.alone, attempt.hasRetried)
    const { isLeader } = waiting
    const failed = (error: unknown): void => this.#inTurn(reader, isLeader, () => reject(error))
    const settled = (outcome: FetchOutcome): void => {
      try {
        const resolved = this.#resolveWaiter.resolve(outcome, waiting)
        if (resolved instanceof Promise)
          resolved
            .then((resolution) => this.#respondOrRetry(reader, attempt, isLeader, resolution))
            .catch(failed)
        else this.#respondOrRetry(reader, attempt, isLeader, resolved)
      } catch (error) {
        failed(error)
      }
    }
    waiting.fetch.wait(read.signal, settled, reject)
  }

  #respondOrRetry(
    reader: FetchReader,
    attempt: WaitAttempt,
    isLeader: boolean,
    resolution: Resolution,
  ): void {
    if (resolution.kind === 'respond') {
      this.#inTurn(reader, isLeader, () => reader.resolve(resolution.response()))
      return
    }
    const at = readClock(this.#clock)
    const decision = this.#reuse(reader.read, at)
    if (decision.kind === 'fresh') {
      this.#inTurn(reader, isLeader, () =>
        reader.resolve(this.#responder.collapsed(decision.stored, reader.read, reader.first.reason, at)),
      )
      return
    }
    this.#wait(reader, {
      need: decision.kind === 'fetch' ? decision : attempt.need,
      alone: retriesAlone(resolution, attempt.waits) || reader.read.isOutOfConfiguration?.() === true,
      hasRetried: attempt.hasRetried || resolution.afterFailure,
      waits: attempt.waits + 1,
    })
  }
}
