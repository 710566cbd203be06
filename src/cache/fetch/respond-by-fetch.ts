import { type Clock, type Moment, readClock } from '../../clock.ts'
import { createFairTurns } from '../../http/bounds.ts'
import { varyKey } from '../../http/caching-fields.ts'
import {
  type CacheAnswer,
  type CacheRead,
  carriesOwnCredential,
  expectedTags,
  type Forward,
  rangeFields,
} from '../cache-read.ts'
import type { CacheEvent } from '../events.ts'
import type { Lease, Reuse } from '../policy/reuse.ts'
import type { PerhapsLater, Responder } from '../respond/responder.ts'
import type { HitForPass, MemoryStore } from '../store/memory-store.ts'
import type { StoredResponse } from '../store/stored-response.ts'
import type { InvalidationLog } from '../store/tag-index.ts'
import type { CollapsedFetch, FetchOutcome, FetchStart, InFlightFetches } from './collapse.ts'
import {
  createResolveWaiter,
  type FetchNeeded,
  type Resolution,
  type WaitingReader,
} from './resolve-waiter.ts'

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

const noFields = {}

/** After this many waits for fetches that did not serve it, a reader fetches alone. */
const mostWaits = 3

/** The retry after a failure is never alone: otherwise each of the readers would send a request to a failing upstream. */
const retriesAlone = (
  { alone, afterFailure }: Extract<Resolution, { kind: 'retry' }>,
  waits: number,
): boolean => alone || (waits >= mostWaits && !afterFailure)

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
  readonly resolve: (answer: PerhapsLater) => void
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
export const createRespondByFetch = (options: RespondByFetchOptions) => {
  const { store, log, fetches, hitForPass, responder, reuse, lease, clock, report } = options
  const resolveWaiter = createResolveWaiter(options)
  const turns = createFairTurns(followersPerTurn)

  /** Readers of one key share a fetch only if they select the same response, by the selecting fields known so far. */
  const variantOf = (read: CacheRead): string => {
    const newest = store.peek(read.key).at(-1)
    return newest === undefined ? '' : varyKey(newest.varyNames, read)
  }

  const start = (
    read: CacheRead,
    forward: Forward,
    { reason, stored }: FetchNeeded,
    mode: FetchStart['mode'],
  ): CollapsedFetch =>
    fetches.start({
      read,
      forward,
      reason,
      stored,
      rangeFields: mode === 'alone' ? rangeFields(read) : noFields,
      variant: variantOf(read),
      since: log.sequence,
      mode,
    })

  const fetchesAlone = (read: CacheRead): boolean =>
    read.method === 'HEAD' ||
    read.fields['range'] !== undefined ||
    carriesOwnCredential(read) ||
    read.isOutdated?.() === true ||
    hitForPass.has(read.key, clock.monotonic())

  /**
   * False if a tag that follows from the request was invalidated since the fetch started. Tags that follow
   * from the response are compared when it has arrived.
   */
  const mayJoin = (fetch: CollapsedFetch, read: CacheRead): boolean =>
    (lease === undefined || lease.isCurrent(readClock(clock))) &&
    (fetch.since === log.sequence || !log.invalidatedSince(expectedTags(read), fetch.since))

  const join = (
    read: CacheRead,
    forward: Forward,
    need: FetchNeeded,
    alone: boolean,
    hasRetried: boolean,
  ): WaitingReader => {
    const since = log.sequence
    const inFlight = alone ? undefined : fetches.find(read.key, variantOf(read))
    if (inFlight !== undefined && mayJoin(inFlight, read)) {
      return { read, need, since, fetch: inFlight, isLeader: false, hasRetried }
    }
    // Later readers join the fetch that starts now instead.
    if (inFlight !== undefined) fetches.cut(read.key)
    const fetch = start(read, forward, need, alone ? 'alone' : 'shared')
    return { read, need, since, fetch, isLeader: true, hasRetried }
  }

  /** What a reader does next is decided at once, so that all of them join the same retry; its response is made in its turn. */
  const inTurn = ({ read, reject }: FetchReader, isLeader: boolean, work: () => void): void => {
    if (isLeader) {
      work()
      return
    }
    turns.begin(read.client ?? '', () => {
      try {
        work()
      } catch (error) {
        reject(error)
      }
    })
  }

  /** One turn of the loop: waits for a fetch, and answers by it or waits again. By calls, since each promise shows in what a miss costs. */
  const wait = (reader: FetchReader, attempt: WaitAttempt): void => {
    const { read, reject } = reader
    const waiting = join(read, reader.forward, attempt.need, attempt.alone, attempt.hasRetried)
    const { isLeader } = waiting
    const failed = (error: unknown): void => inTurn(reader, isLeader, () => reject(error))
    const settled = (outcome: FetchOutcome): void => {
      try {
        const resolved = resolveWaiter(outcome, waiting)
        if (resolved instanceof Promise)
          resolved.then((resolution) => answerOrRetry(reader, attempt, isLeader, resolution)).catch(failed)
        else answerOrRetry(reader, attempt, isLeader, resolved)
      } catch (error) {
        failed(error)
      }
    }
    waiting.fetch.wait(read.signal, settled, reject)
  }

  const answerOrRetry = (
    reader: FetchReader,
    attempt: WaitAttempt,
    isLeader: boolean,
    resolution: Resolution,
  ): void => {
    if (resolution.kind === 'respond') {
      inTurn(reader, isLeader, () => reader.resolve(resolution.answer()))
      return
    }
    const at = readClock(clock)
    const found = reuse(reader.read, at)
    if (found.kind === 'fresh') {
      inTurn(reader, isLeader, () =>
        reader.resolve(responder.collapsed(found.stored, reader.read, reader.first.reason, at)),
      )
      return
    }
    wait(reader, {
      need: found.kind === 'fetch' ? found : attempt.need,
      alone: retriesAlone(resolution, attempt.waits) || reader.read.isOutdated?.() === true,
      hasRetried: attempt.hasRetried || resolution.afterFailure,
      waits: attempt.waits + 1,
    })
  }

  return {
    /** Rejects with what `forward` rejects with. */
    respond: (read: CacheRead, forward: Forward, need: FetchNeeded) =>
      new Promise<CacheAnswer>((resolve, reject) => {
        const reader = { read, forward, first: need, resolve, reject }
        wait(reader, { need, alone: fetchesAlone(read), hasRetried: false, waits: 1 })
      }),
    /** Fetches in the background what was served stale. */
    revalidate: (read: CacheRead, forward: Forward, stored: StoredResponse): void => {
      // The response to a HEAD has no content to store.
      if (read.method === 'HEAD' || fetches.find(read.key, variantOf(read)) !== undefined) return
      const fetch = start(read, forward, { kind: 'fetch', reason: 'stale', stored }, 'background')
      void fetch.ended().then(({ kind }) => {
        if (kind === 'failed') report({ kind: 'background-failed', service: read.service })
      })
    },
  }
}
