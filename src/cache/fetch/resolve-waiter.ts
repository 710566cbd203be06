import { type Clock, type Moment, readClock } from '../../clock.ts'
import { type ErrorCode, GatewayError } from '../../errors.ts'
import { varyKey } from '../../http/caching-fields.ts'
import { otherCredential } from '../../http/credential-fields.ts'
import { discard } from '../../http/message.ts'
import type { CacheRead } from '../cache-read.ts'
import type { CacheEvent } from '../events.ts'
import { currentAgeMs, mayServeOnError, type Reuse } from '../policy/reuse.ts'
import { isOfRequest, isServerError } from '../policy/storability.ts'
import { takesWhole } from '../respond/encodings.ts'
import type { PerhapsLater, Responder } from '../respond/responder.ts'
import { type HitForPass, isOvertaken } from '../store/memory-store.ts'
import type { StoredResponse } from '../store/stored-response.ts'
import type { InvalidationLog } from '../store/tag-index.ts'
import type { CollapsedFetch, FetchOutcome, StreamingOutcome, UnshareableOutcome } from './collapse.ts'

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
  | { readonly kind: 'respond'; readonly answer: () => PerhapsLater }
  | { readonly kind: 'retry'; readonly alone: boolean; readonly afterFailure: boolean }

type EndedOutcome = Exclude<FetchOutcome, StreamingOutcome>

const respond = (answer: () => PerhapsLater): Resolution => ({ kind: 'respond', answer })

const retryTogether: Resolution = { kind: 'retry', alone: false, afterFailure: false }
const retryAlone: Resolution = { kind: 'retry', alone: true, afterFailure: false }
/** Once, together with all others whose fetch failed: the first of them starts it. */
const retryAfterFailure: Resolution = { kind: 'retry', alone: false, afterFailure: true }

/** Would the upstream be sent the same request for both? */
const sendsTheSame = (one: CacheRead, other: CacheRead): boolean => {
  if (one === other || one.fields === other.fields) return true
  const names = Object.keys(one.fields)
  const others = Object.keys(other.fields)
  if (names.length !== others.length) return false
  return varyKey(names, one) === varyKey(names, other) && varyKey(others, one) === varyKey(others, other)
}

/** The fields that identify the caller of a request, as one text. */
const callerOf = ({ fields }: CacheRead): string =>
  JSON.stringify([
    fields['authorization'] ?? null,
    fields['cookie'] ?? null,
    otherCredential(fields, []) ?? null,
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
 * Makes the function that decides what one reader gets of the outcome of a fetch: a response or a retry. It throws the error of the
 * fetch where the reader gets that.
 */
export const createResolveWaiter = (
  options: ResolveWaiterOptions,
): ((outcome: FetchOutcome, waiting: WaitingReader) => Resolution | Promise<Resolution>) => {
  const { responder, log, hitForPass, clock, report } = options

  const staleOnError = (
    { read, need: { stored } }: WaitingReader,
    failure: 'unreachable' | 'server-error',
  ): Resolution | undefined => {
    const at = readClock(clock)
    if (stored === undefined || !mayServeOnError(stored, failure, read.policy.profile, at)) return undefined
    report({ kind: 'served-stale', service: read.service, reason: 'error', failure })
    return respond(() => responder.stale(stored, read, at, 'error'))
  }

  const share = (stored: StoredResponse, { read, fetch, need, since }: WaitingReader): Resolution => {
    const at = readClock(clock)
    if (varyKey(stored.varyNames, read) !== stored.varyKey) return retryTogether
    if (since !== fetch.since && isOvertaken(log, stored, fetch.since)) return retryTogether
    if (!mayShare(stored, at)) return retryAlone
    report({ kind: 'collapsed', service: read.service })
    return respond(() => responder.collapsed(stored, read, need.reason, at))
  }

  const afterServerError = (stored: StoredResponse, waiting: WaitingReader): Resolution => {
    const { read, need, isLeader, fetch } = waiting
    const stale = staleOnError(waiting, 'server-error')
    if (stale !== undefined) return stale
    if (mayRetry(waiting)) return retryAfterFailure
    const isSameCaller = callerOf(fetch.read) === callerOf(read)
    const isItsOwn = isLeader || (isSameCaller && varyKey(stored.varyNames, read) === stored.varyKey)
    if (!isItsOwn) return retryAlone
    return respond(() => responder.serverError(stored, read, need.reason, !isLeader, readClock(clock)))
  }

  const afterFailure = (error: unknown, hasBegun: boolean, waiting: WaitingReader): Resolution => {
    const stale = staleOnError(waiting, 'unreachable')
    if (stale !== undefined) return stale
    const code = error instanceof GatewayError ? error.code : 'internal'
    // The leader's client may have used up its share of the slots, which other clients have not.
    const isOfLeaderAlone = hasBegun || code === 'upstream_busy'
    if (isOfLeaderAlone && !waiting.isLeader && !waiting.hasRetried) return retryAfterFailure
    if (!hasBegun && mayDependOnRequest.has(code) && mayRetry(waiting)) return retryAfterFailure
    throw error
  }

  const respondAlone = (outcome: UnshareableOutcome, waiting: WaitingReader): Resolution => {
    const { read, need } = waiting
    const { response } = outcome
    const stale = isServerError(response) ? staleOnError(waiting, 'server-error') : undefined
    if (stale !== undefined) {
      discard(response.content)
      return stale
    }
    // A 206 does not describe the whole response, and an error of this request does not apply to the requests of other readers.
    const isOfKey = read.method === 'GET' && read.fields['range'] === undefined && !isOfRequest(response)
    if (isOfKey) hitForPass.add(read.key, clock.monotonic())
    return respond(() => responder.unshareable(outcome, read, need.reason, readClock(clock)))
  }

  const afterEnd = (outcome: EndedOutcome, waiting: WaitingReader): Resolution => {
    const { read, need, isLeader } = waiting
    switch (outcome.kind) {
      case 'shareable':
        if (!isLeader) return share(outcome.stored, waiting)
        hitForPass.delete(read.key)
        return respond(() => responder.fetched(outcome, read, need.reason, readClock(clock)))
      case 'unshareable':
        if (isLeader) return respondAlone(outcome, waiting)
        return isOfRequest(outcome.response) ? retryTogether : retryAlone
      case 'server-error':
        return afterServerError(outcome.stored, waiting)
      case 'failed':
        return afterFailure(outcome.error, outcome.hasBegun, waiting)
    }
  }

  const follow = (outcome: StreamingOutcome, waiting: WaitingReader, at: Moment): Resolution => {
    const { read, need, isLeader, fetch } = waiting
    const readerOf = outcome.fill.place()
    if (isLeader) hitForPass.delete(read.key)
    else report({ kind: 'collapsed', service: read.service })
    return respond(() => {
      const content = readerOf(read.client).once('close', () => fetch.leave())
      return responder.streamed(outcome, content, read, need.reason, !isLeader, at)
    })
  }

  const waitForEnd = async (outcome: StreamingOutcome, waiting: WaitingReader): Promise<Resolution> => {
    const { read, fetch, isLeader } = waiting
    const { fill, head, ownFields, upstreamStatus } = outcome
    // If the content turns out too large to be stored, the leader streams it: a second fetch would give the same.
    const content = isLeader ? fill.reader(read.client) : undefined
    try {
      const end = await fetch.waitForEnd(outcome, read.signal)
      if (end.kind !== 'too-large') {
        content?.destroy()
        return afterEnd(end, waiting)
      }
      if (content === undefined) return retryAlone
      const fields = [...head.fields, ...ownFields]
      const response = { status: head.status, fields, content } as const
      const reason = fill.reasonOfOverflow
      const own: UnshareableOutcome = { kind: 'unshareable', response, upstreamStatus, reason }
      return respond(() => responder.unshareable(own, read, waiting.need.reason, readClock(clock)))
    } catch (error) {
      content?.destroy()
      throw error
    }
  }

  const afterHead = (outcome: StreamingOutcome, waiting: WaitingReader): Resolution | Promise<Resolution> => {
    const { read, fetch, isLeader } = waiting
    const { fill, end } = outcome
    const at = readClock(clock)
    if (isLeader) {
      void end.then(({ kind }) => {
        const isTooLarge = kind === 'too-large' && fill.reasonOfOverflow === 'too-large'
        if (isTooLarge) hitForPass.add(read.key, clock.monotonic())
      })
    }
    const use = useOfStream(outcome, waiting, at)
    if (use === 'follow') return follow(outcome, waiting, at)
    if (use === 'wait') return waitForEnd(outcome, waiting)
    fetch.leave()
    return use
  }

  return (outcome, waiting) =>
    outcome.kind === 'streaming' ? afterHead(outcome, waiting) : afterEnd(outcome, waiting)
}
