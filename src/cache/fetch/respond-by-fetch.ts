import { type Clock, type Moment, readClock } from '../../clock.ts'
import { varyKey } from '../../http/caching-fields.ts'
import { formatHttpDate } from '../../http/conditional/dates.ts'
import { matchesWeakly, parseEntityTag } from '../../http/conditional/preconditions.ts'
import { tagOfDecoded } from '../../http/content-coding.ts'
import { endToEndFields } from '../../http/forwardable-fields.ts'
import {
  fieldValue,
  type ResponseHead,
  type ResponseHints,
  withField,
  withoutFields,
} from '../../http/message.ts'
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
import type { MemoryStore } from '../store/memory-store.ts'
import type { StoredResponse } from '../store/stored-response.ts'
import type { InvalidationLog } from '../store/tag-index.ts'
import type { CollapsedFetch, FetchStart, HitForPass, InFlightFetches } from './collapse.ts'
import type { FetchOutcome } from './fetch-outcome.ts'
import {
  createResolveWaiter,
  type FetchNeeded,
  type Resolution,
  type WaitingReader,
} from './resolve-waiter.ts'

/** Fields of a conditional request that validates a stored response (RFC 9111 §4.3.1); empty when it has no validator. */
export const validationFields = (stored: StoredResponse): Readonly<Record<string, string>> => {
  const fields: Record<string, string> = {}
  if (stored.upstreamTag !== undefined) fields['if-none-match'] = stored.upstreamTag
  const modified = fieldValue(stored.fields, 'last-modified')
  if (modified !== undefined) fields['if-modified-since'] = modified
  return fields
}

/** Is a 304 about this stored response (RFC 9111 §4.3.4)? Without an entity tag it cannot be about another. */
export const confirmsStored = (response: ResponseHead, stored: StoredResponse): boolean => {
  const confirmed = parseEntityTag(fieldValue(response.fields, 'etag') ?? '')
  const known = parseEntityTag(stored.upstreamTag ?? '')
  return confirmed === undefined || known === undefined || matchesWeakly(confirmed, known)
}

/** Of the whole; undefined when it is not known. */
const lengthOf = ({ partial, content }: StoredResponse): number | undefined =>
  partial === undefined ? content.length : partial.total

/** Does the response to a HEAD describe the stored content? Only fields that it has can contradict (RFC 9111 §4.3.5). */
export const describesStored = (response: ResponseHead, stored: StoredResponse): boolean => {
  const length = fieldValue(response.fields, 'content-length')
  const modified = fieldValue(response.fields, 'last-modified')
  const tag = fieldValue(response.fields, 'etag')
  return (
    (length === undefined || length === String(lengthOf(stored))) &&
    (modified === undefined || modified === fieldValue(stored.fields, 'last-modified')) &&
    (tag === undefined || tag === stored.upstreamTag) &&
    fieldValue(response.fields, 'content-encoding') === fieldValue(stored.fields, 'content-encoding')
  )
}

/** Fields that a 304 cannot change: they describe the stored content (RFC 9111 §3.2). */
const notUpdated: ReadonlySet<string> = new Set(['content-length', 'content-encoding', 'content-range'])

const isDecoded = ({ upstreamTag, fields }: StoredResponse): boolean => {
  const decoded = tagOfDecoded(upstreamTag ?? '')
  return decoded !== upstreamTag && fieldValue(fields, 'etag') === decoded
}

const freshenedHints = (
  stored: ResponseHints | undefined,
  given: ResponseHints | undefined,
): ResponseHints | undefined =>
  given === undefined ? stored : { tags: given.tags ?? stored?.tags, maxAge: given.maxAge ?? stored?.maxAge }

/** Head of the stored response with the fields of the 304 in place of its own (RFC 9111 §3.2, §4.3.4). */
export const freshenedHead = (
  stored: StoredResponse,
  response: ResponseHead,
  receivedAt: number,
): ResponseHead => {
  let updates = withoutFields(endToEndFields(response.fields), notUpdated)
  // A 304 without a Date was made when it arrived (RFC 9110 §6.6.1); the stored Date would make the response old at once.
  if (fieldValue(updates, 'date') === undefined) updates.push('Date', formatHttpDate(receivedAt))
  const tag = fieldValue(updates, 'etag')
  // The stored content was decoded: the tag of the upstream's coded form would name other bytes.
  if (tag !== undefined && isDecoded(stored)) updates = withField(updates, 'ETag', tagOfDecoded(tag))
  const updated = new Set(updates.filter((_, i) => i % 2 === 0).map((name) => name.toLowerCase()))
  const fields = [...withoutFields(stored.fields, updated), ...updates]
  return { status: stored.status, fields, hints: freshenedHints(stored.hints, response.hints) }
}

const noFields = {}

/** After this many waits for fetches that did not serve it, a reader fetches alone. */
const mostWaits = 3

/** The retry after a failure is never alone: otherwise each of the readers would send a request to a failing upstream. */
const retriesAlone = (
  { alone, afterFailure }: Extract<Resolution, { kind: 'retry' }>,
  waits: number,
): boolean => alone || (waits >= mostWaits && !afterFailure)

/** A reader from its first wait to its response. */
type Reader = {
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

/** Responds to readers that need a fetch: each joins one in flight, or starts one. */
export const createRespondByFetch = (options: RespondByFetchOptions) => {
  const { store, log, fetches, hitForPass, responder, reuse, lease, clock, report } = options
  const resolveWaiter = createResolveWaiter({ responder, log, hitForPass, clock, report })

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

  /** One turn of the loop: waits for a fetch, and answers by it or waits again. By calls, since each promise shows in what a miss costs. */
  const wait = (reader: Reader, attempt: WaitAttempt): void => {
    const { read, reject } = reader
    const waiting = join(read, reader.forward, attempt.need, attempt.alone, attempt.hasRetried)
    const settled = (outcome: FetchOutcome): void => {
      try {
        const resolved = resolveWaiter(outcome, waiting)
        if (resolved instanceof Promise)
          resolved.then((resolution) => answerOrRetry(reader, attempt, resolution)).catch(reject)
        else answerOrRetry(reader, attempt, resolved)
      } catch (error) {
        reject(error)
      }
    }
    waiting.fetch.wait(read.signal, settled, reject)
  }

  const answerOrRetry = (reader: Reader, attempt: WaitAttempt, resolution: Resolution): void => {
    if (resolution.kind === 'respond') {
      reader.resolve(resolution.answer)
      return
    }
    const at = readClock(clock)
    const found = reuse(reader.read, at)
    if (found.kind === 'fresh') {
      reader.resolve(responder.collapsed(found.stored, reader.read, reader.first.reason, at))
      return
    }
    wait(reader, {
      need: found.kind === 'fetch' ? found : attempt.need,
      alone: retriesAlone(resolution, attempt.waits),
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
