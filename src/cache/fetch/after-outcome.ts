import { type Clock, type Moment, readClock } from '../../clock.ts'
import { type ErrorCode, GatewayError } from '../../errors.ts'
import type { Readability } from '../../http/bodies/json-readability.ts'
import { varyKey } from '../../http/headers/caching-headers.ts'
import { otherCredential } from '../../http/headers/credential-headers.ts'
import { discard } from '../../http/message.ts'
import { isGet } from '../../http/methods.ts'
import type { CacheRead } from '../cache-read.ts'
import type { CacheEvent } from '../events.ts'
import { currentAgeMs, mayServeOnError, type Reuse } from '../policy/reuse.ts'
import { isOfRequest, isServerError } from '../policy/storability.ts'
import { takesWhole } from '../respond/encodings.ts'
import type { PerhapsLater, Responder } from '../respond/responder.ts'
import type { HitForMiss } from '../store/hit-for-miss.ts'
import type { InvalidationLog } from '../store/invalidation-log.ts'
import { isSuperseded } from '../store/response-storage.ts'
import type { StoredResponse } from '../store/stored-response.ts'
import type { CollapsedFetch } from './collapse.ts'
import type { FetchOutcome, ShareableOutcome, StreamingOutcome, UnshareableOutcome } from './fetch-outcome.ts'

/** Why a reader's response has to be fetched, and which stored response could be validated or served on error. */
export type FetchNeeded = Extract<Reuse, { step: 'join' }>

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

/**
 * The step of a reader after the outcome. `afterFailure`: the fetch of another reader failed, for which there is one retry. `varyNames`:
 * the selecting headers of a response that is for other readers.
 */
export type AfterOutcome =
  | { readonly step: 'respond' | 'stale-if-error'; readonly response: () => PerhapsLater }
  | {
      readonly step: 'lookup-again'
      readonly alone: boolean
      readonly afterFailure: boolean
      readonly varyNames?: readonly string[]
    }

type EndedOutcome = Exclude<FetchOutcome, StreamingOutcome>

const respond = (response: () => PerhapsLater): AfterOutcome => ({ step: 'respond', response })

const retryTogether = { step: 'lookup-again', alone: false, afterFailure: false } as const
const retryByVariant = ({ varyNames }: StoredResponse): AfterOutcome => ({ ...retryTogether, varyNames })
const retryAlone: AfterOutcome = { step: 'lookup-again', alone: true, afterFailure: false }
/** Once, together with all others whose fetch failed: the first of them starts it. */
const retryAfterFailure: AfterOutcome = { step: 'lookup-again', alone: false, afterFailure: true }

/** Would the upstream be sent the same request for both? */
const sendsTheSame = (read: CacheRead, other: CacheRead): boolean => {
  if (read === other) return true
  if (read.sentContent !== other.sentContent) return false
  if (read.headers === other.headers) return true
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

/** What the target cannot give, such as the page of a firewall, may be for the request that was sent. */
const sharingOf = (
  readability: Readability,
  { fetch, read, hasRetried }: WaitingReader,
): 'share' | 'wait' | AfterOutcome => {
  if (readability === 'readable' || sendsTheSame(fetch.read, read)) return 'share'
  if (readability === 'unknown') return 'wait'
  return hasRetried ? retryAlone : retryAfterFailure
}

/**
 * What a reader does with a response whose content is still coming. It follows the content when it takes all of it as it is.
 * It waits for the end when a precondition or range needs the complete content, when the content must show whether it is for other
 * requests too or whether it is older than a write (the request arrived after the write), or when it has something stale to fall back
 * on.
 */
const useOfStream = (
  { head, fill, readability }: StreamingOutcome,
  waiting: WaitingReader,
  at: Moment,
): 'follow' | 'wait' | AfterOutcome => {
  const { read, need, isLeader, since, fetch } = waiting
  const sharing = sharingOf(readability, waiting)
  if (typeof sharing === 'object') return sharing
  if (fill.overflowed) return retryAlone
  if (!isLeader && varyKey(head.varyNames, read) !== head.varyKey) return retryByVariant(head)
  if (!isLeader && !mayShare(head, at)) return retryAlone
  const { stored } = need
  const fallsBack = stored !== undefined && mayServeOnError(stored, 'unreachable', read.policy.profile, at)
  const followsAtOnce = sharing === 'share' && (isLeader || since === fetch.since)
  return followsAtOnce && takesWhole(read) && !fallsBack ? 'follow' : 'wait'
}

type OutcomeOptions = {
  readonly log: InvalidationLog
  readonly hitForMiss: HitForMiss
  readonly responder: Responder
  readonly clock: Clock
  readonly report: (event: CacheEvent) => void
}

/**
 * Decides what one reader gets of the outcome of a fetch: a response or a retry. Throws the error of the fetch where the reader gets
 * that.
 */
export class OutcomeDecision {
  readonly #responder: Responder
  readonly #log: InvalidationLog
  readonly #hitForMiss: HitForMiss
  readonly #clock: Clock
  readonly #report: (event: CacheEvent) => void

  constructor(options: OutcomeOptions) {
    this.#responder = options.responder
    this.#log = options.log
    this.#hitForMiss = options.hitForMiss
    this.#clock = options.clock
    this.#report = options.report
  }

  after(outcome: FetchOutcome, waiting: WaitingReader): AfterOutcome | Promise<AfterOutcome> {
    return outcome.kind === 'streaming' ? this.#afterHead(outcome, waiting) : this.#afterEnd(outcome, waiting)
  }

  #staleOnError(
    { read, need: { stored } }: WaitingReader,
    failure: 'unreachable' | 'server-error',
  ): AfterOutcome | undefined {
    const at = readClock(this.#clock)
    if (stored === undefined || !mayServeOnError(stored, failure, read.policy.profile, at)) return undefined
    this.#report({ kind: 'served-stale', service: read.service, reason: 'error', failure })
    return { step: 'stale-if-error', response: () => this.#responder.stale(stored, read, at, 'error') }
  }

  #share(stored: StoredResponse, { read, fetch, need, since }: WaitingReader): AfterOutcome {
    const at = readClock(this.#clock)
    if (varyKey(stored.varyNames, read) !== stored.varyKey) return retryByVariant(stored)
    if (since !== fetch.since && isSuperseded(this.#log, stored, fetch.since)) return retryTogether
    if (!mayShare(stored, at)) return retryAlone
    this.#report({ kind: 'collapsed', service: read.service })
    return respond(() => this.#responder.collapsed(stored, read, need.reason, at))
  }

  #afterShareable({ stored, notStored }: ShareableOutcome, waiting: WaitingReader): AfterOutcome {
    const sharing = sharingOf(notStored === 'unreadable' ? 'unreadable' : 'readable', waiting)
    return typeof sharing === 'object' ? sharing : this.#share(stored, waiting)
  }

  #afterServerError(stored: StoredResponse, waiting: WaitingReader): AfterOutcome {
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

  #afterFailure(error: unknown, hasBegun: boolean, waiting: WaitingReader): AfterOutcome {
    const stale = this.#staleOnError(waiting, 'unreachable')
    if (stale !== undefined) return stale
    const code = error instanceof GatewayError ? error.code : 'internal'
    // The leader's client may have used up its share of the slots, which other clients have not.
    const isOfLeaderAlone = hasBegun || code === 'upstream_busy'
    if (isOfLeaderAlone && !waiting.isLeader && !waiting.hasRetried) return retryAfterFailure
    if (!hasBegun && mayDependOnRequest.has(code) && mayRetry(waiting)) return retryAfterFailure
    throw error
  }

  #respondAlone(outcome: UnshareableOutcome, waiting: WaitingReader): AfterOutcome {
    const { read, need } = waiting
    const { response } = outcome
    const stale = isServerError(response) ? this.#staleOnError(waiting, 'server-error') : undefined
    if (stale !== undefined) {
      discard(response.content)
      return stale
    }
    // A 206 does not describe the whole response, and an error of this request does not apply to the requests of other readers.
    const isOfKey = isGet(read.method) && read.headers['range'] === undefined && !isOfRequest(response)
    if (isOfKey) this.#hitForMiss.add(read.key, this.#clock.monotonic())
    return respond(() => this.#responder.unshareable(outcome, read, need.reason, readClock(this.#clock)))
  }

  #afterEnd(outcome: EndedOutcome, waiting: WaitingReader): AfterOutcome {
    const { read, need, isLeader } = waiting
    switch (outcome.kind) {
      case 'shareable':
        if (!isLeader) return this.#afterShareable(outcome, waiting)
        this.#hitForMiss.delete(read.key)
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

  #follow(outcome: StreamingOutcome, waiting: WaitingReader, at: Moment): AfterOutcome {
    const { read, need, isLeader, fetch } = waiting
    const readerOf = outcome.fill.place()
    if (isLeader) this.#hitForMiss.delete(read.key)
    else this.#report({ kind: 'collapsed', service: read.service })
    return respond(() => {
      const content = readerOf(read.client).once('close', () => fetch.leave())
      return this.#responder.streamed(outcome, content, read, need.reason, !isLeader, at)
    })
  }

  async #waitForEnd(outcome: StreamingOutcome, waiting: WaitingReader): Promise<AfterOutcome> {
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

  #afterHead(outcome: StreamingOutcome, waiting: WaitingReader): AfterOutcome | Promise<AfterOutcome> {
    const { read, fetch, isLeader } = waiting
    const { fill, end } = outcome
    const at = readClock(this.#clock)
    if (isLeader) {
      void end.then(({ kind }) => {
        const isTooLarge = kind === 'too-large' && fill.reasonOfOverflow === 'too-large'
        if (isTooLarge) this.#hitForMiss.add(read.key, this.#clock.monotonic())
      })
    }
    const use = useOfStream(outcome, waiting, at)
    if (use === 'follow') return this.#follow(outcome, waiting, at)
    if (use === 'wait') return this.#waitForEnd(outcome, waiting)
    fetch.leave()
    return use
  }
}
