import type { Readable } from 'node:stream'
import type { Moment } from '../../clock.ts'
import { digestsOfContent, isConditional } from '../../http/conditional/preconditions.ts'
import { type HeaderLines, hasHeader } from '../../http/headers/header-lines.ts'
import { type GatewayResponse, whenKnown } from '../../http/message.ts'
import { isHead } from '../../http/methods.ts'
import { contentText, type HeadText, headText, longestText } from '../../http/response-text.ts'
import { type CacheRead, type CacheResponse, cacheName, forwardedCacheStatus } from '../cache-read.ts'
import type { ForwardReason, HitDetail, ReadOutcome, StatusDetail } from '../events.ts'
import type { ShareableOutcome, StreamingOutcome, UnshareableOutcome } from '../fetch/fetch-outcome.ts'
import { currentAgeMs, lifetimeAt } from '../policy/reuse.ts'
import type { PreparedResponses, SharedForm, StoredResponse } from '../store/stored-response.ts'
import { asksForTag, currentTag, type Encodings, responseFor, takesWhole } from './encodings.ts'

/** Number of contents that are kept as text: at most 3.5 MiB. */
const maxTexts = 256

/**
 * Keeps the contents of the most frequent hits as the Latin-1 text in which they are sent: making one takes a fiftieth of a hit, and
 * a third of what a hit leaves to the garbage collector.
 */
const createLatin1Memo = (): ((response: CacheResponse) => void) => {
  const responses: CacheResponse[] = []
  let next = 0
  return (response) => {
    const { content } = response
    if (!Buffer.isBuffer(content) || content.length > longestText) return
    const oldest = responses[next]
    if (oldest !== undefined) oldest.text = undefined
    responses[next] = response
    next = (next + 1) % maxTexts
    response.text = contentText(content)
  }
}

/** A promise where the form that the reader gets is compressed first. */
export type PerhapsLater = CacheResponse | Promise<CacheResponse>

/** `ttl` is negative when the response is stale (RFC 9211 §2.4). */
const hitStatus = (ttlSeconds: number, detail?: HitDetail): string =>
  `${cacheName}; hit; ttl=${ttlSeconds}${detail === undefined ? '' : `; detail=${detail}`}`

/** Nothing is stored, and the request allows no other source (RFC 9111 §5.2.1.7). */
const unavailableStatus: string = `${cacheName}; detail=${'only-if-cached' satisfies StatusDetail}`

const seconds = (milliseconds: number): number => Math.floor(milliseconds / 1000)

const ttlOf = (stored: StoredResponse, ageMs: number, at: Moment): number =>
  seconds(lifetimeAt(stored, at) - ageMs)

const withHeaders = (stored: StoredResponse, added: HeaderLines): GatewayResponse => ({
  status: stored.status,
  headers: [...(stored.sentHeaders ?? stored.headers), ...added],
  content: stored.status === 204 ? undefined : stored.content,
})

const withAge = (stored: StoredResponse, ageMs: number, status: string): GatewayResponse =>
  withHeaders(stored, ['Age', String(seconds(ageMs)), 'Cache-Status', status])

const respondFor = (
  read: CacheRead,
  response: GatewayResponse,
  outcome: ReadOutcome,
  at: Moment,
): CacheResponse => {
  const { status, headers, content } = responseFor(read, response, at.now)
  return { status, headers, content, outcome }
}

/** The form that the client shares with others; undefined if its response must be made for it. */
const sharedForm = (stored: StoredResponse, read: CacheRead): SharedForm | undefined => {
  if (takesWhole(read)) return 'whole'
  if (!isConditional(read.headers)) return isHead(read.method) ? 'head' : undefined
  const isSuccess = stored.status >= 200 && stored.status < 300
  return isSuccess && asksForTag(read.headers, currentTag(stored)) ? 'not-modified' : undefined
}

/**
 * The prepared hits of this second; undefined for the first read: most of many targets are read once per second, and the garbage
 * collector copies new objects that an old one refers to twice.
 */
const preparedFor = (
  stored: StoredResponse,
  ageSeconds: number,
  ttlSeconds: number,
): PreparedResponses | undefined => {
  const { prepared } = stored
  if (prepared === ageSeconds) {
    const responses: PreparedResponses = {
      of: stored,
      ageSeconds,
      ttlSeconds,
      readers: 0,
      whole: undefined,
      head: undefined,
      'not-modified': undefined,
    }
    stored.prepared = responses
    return responses
  }
  // Age and ttl need not change at the same moment.
  const isCurrent =
    typeof prepared !== 'number' &&
    prepared.of === stored &&
    prepared.ageSeconds === ageSeconds &&
    prepared.ttlSeconds === ttlSeconds
  if (isCurrent) return prepared
  stored.prepared = ageSeconds
  return undefined
}

const freshResponse = (
  stored: StoredResponse,
  read: CacheRead,
  ageMs: number,
  ttl: number,
  at: Moment,
): CacheResponse => {
  const response = responseFor(read, withAge(stored, ageMs, hitStatus(ttl)), at.now)
  // Member by member, because two spreads took longer than everything else here.
  return {
    status: response.status,
    headers: response.headers,
    content: response.content,
    text: undefined,
    headText: undefined,
    outcome: 'hit',
    ageSeconds: seconds(ageMs),
    forDownstream: stored.sentHeaders === undefined ? undefined : stored,
  }
}

/** A coded form that was just made is not in the store; what it was made of is. */
const asMadeOf = (response: CacheResponse, uncoded: StoredResponse): CacheResponse =>
  response.forDownstream === undefined ? response : { ...response, forDownstream: uncoded }

/** The head of a response as text; that of the stored headers, with which it begins, is made once. */
const headTextOf = (
  { headers, status }: CacheResponse,
  form: SharedForm,
  stored: StoredResponse,
): HeadText | undefined => {
  if (form === 'not-modified' || (form === 'head' && hasHeader(stored.headers, digestsOfContent)))
    return headText(headers, status)
  // A coded form is made of another stored response, and has other headers.
  const lines = stored.sentHeaders ?? stored.headers
  if (stored.headText?.of !== lines) stored.headText = headText(lines, stored.status)
  return headText(headers, status, stored.headText)
}

/** After this many reads in one second the content is kept as text. */
const readersOfText = 8

/** Makes the responses of the cache, with Age and Cache-Status (RFC 9111 §5.1, RFC 9211). */
export class Responder {
  readonly #encodings: Pick<Encodings, 'formFor'>
  readonly #keepText = createLatin1Memo()

  constructor(encodings: Pick<Encodings, 'formFor'>) {
    this.#encodings = encodings
  }

  /** From the second read within one second on, all reads of that second with the same form get the same object. */
  hit(uncoded: StoredResponse, read: CacheRead, ageMs: number, at: Moment): PerhapsLater {
    const form = this.#encodings.formFor(uncoded, read)
    return form instanceof Promise
      ? form.then((stored) => asMadeOf(this.#hit(stored, read, ageMs, at), uncoded))
      : this.#hit(form, read, ageMs, at)
  }

  stale(
    uncoded: StoredResponse,
    read: CacheRead,
    at: Moment,
    detail: 'revalidating' | 'error',
  ): CacheResponse {
    const form = this.#encodings.formFor(uncoded, read)
    const stored = form instanceof Promise ? uncoded : form
    const ageMs = currentAgeMs(stored, at)
    // The ttl of the uncoded form: a purge may have shortened its lifetime since the coded form was made.
    return this.#aged(stored, read, at, ageMs, hitStatus(ttlOf(uncoded, ageMs, at), detail), 'stale')
  }

  /** For the reader that started the fetch. */
  fetched(
    { stored: uncoded, notStored, validated, upstreamStatus, ownHeaders, fromTier }: ShareableOutcome,
    read: CacheRead,
    reason: ForwardReason,
    at: Moment,
  ): PerhapsLater {
    return this.#inForm(uncoded, read, (stored) => {
      const ageMs = currentAgeMs(stored, at)
      const ttlSeconds = ttlOf(stored, ageMs, at)
      if (fromTier === true)
        return asMadeOf(this.#aged(stored, read, at, ageMs, hitStatus(ttlSeconds, 'shared'), 'hit'), uncoded)
      const status = forwardedCacheStatus({
        reason,
        status: upstreamStatus,
        ttlSeconds,
        stored: notStored === undefined,
        detail: notStored,
      })
      const response = withHeaders(stored, [...ownHeaders, 'Cache-Status', status])
      const reply = respondFor(read, response, validated ? 'revalidated' : 'miss', at)
      return stored.sentHeaders === undefined ? reply : { ...reply, forDownstream: uncoded }
    })
  }

  collapsed(uncoded: StoredResponse, read: CacheRead, reason: ForwardReason, at: Moment): PerhapsLater {
    return this.#inForm(uncoded, read, (stored) => {
      const ageMs = currentAgeMs(stored, at)
      const status = forwardedCacheStatus({ reason, ttlSeconds: ttlOf(stored, ageMs, at), collapsed: true })
      const response = respondFor(read, withAge(stored, ageMs, status), 'collapsed', at)
      return stored.sentHeaders === undefined ? response : { ...response, forDownstream: uncoded }
    })
  }

  unshareable(
    outcome: UnshareableOutcome,
    read: CacheRead,
    reason: ForwardReason,
    at: Moment,
  ): CacheResponse {
    const { response, upstreamStatus, reason: detail } = outcome
    const status = forwardedCacheStatus({ reason, status: upstreamStatus, detail })
    const headers = [...response.headers, 'Cache-Status', status]
    return respondFor(read, { ...response, headers }, 'miss', at)
  }

  /** Sends the head now and the content as it arrives. */
  streamed(
    { head, upstreamStatus, ownHeaders }: StreamingOutcome,
    content: Readable,
    read: CacheRead,
    reason: ForwardReason,
    collapsed: boolean,
    at: Moment,
  ): CacheResponse {
    const ageMs = currentAgeMs(head, at)
    const status = forwardedCacheStatus({
      reason,
      status: collapsed ? undefined : upstreamStatus,
      ttlSeconds: ttlOf(head, ageMs, at),
      collapsed,
      // Whether it is stored is known only at its end.
      detail: 'streamed',
    })
    const added = collapsed ? ['Age', String(seconds(ageMs))] : ownHeaders
    const headers = [...head.headers, ...added, 'Cache-Status', status]
    const response: GatewayResponse = { status: head.status, headers, content }
    return respondFor(read, response, collapsed ? 'collapsed' : 'miss', at)
  }

  serverError(
    stored: StoredResponse,
    read: CacheRead,
    reason: ForwardReason,
    collapsed: boolean,
    at: Moment,
  ): CacheResponse {
    const status = forwardedCacheStatus({ reason, status: stored.status, collapsed, detail: 'status' })
    const response = withHeaders(stored, ['Cache-Status', status])
    return respondFor(read, response, collapsed ? 'collapsed' : 'miss', at)
  }

  unavailable(): CacheResponse {
    return {
      status: 504,
      headers: ['Content-Length', '0', 'Cache-Status', unavailableStatus],
      content: undefined,
      outcome: 'miss',
    }
  }

  /** Responses in the form for the reader, which may have to be compressed first. */
  #inForm(
    uncoded: StoredResponse,
    read: CacheRead,
    response: (stored: StoredResponse) => CacheResponse,
  ): PerhapsLater {
    return whenKnown(this.#encodings.formFor(uncoded, read), response)
  }

  #aged(
    stored: StoredResponse,
    read: CacheRead,
    at: Moment,
    ageMs: number,
    status: string,
    outcome: 'hit' | 'stale',
  ): CacheResponse {
    return {
      ...respondFor(read, withAge(stored, ageMs, status), outcome, at),
      ageSeconds: seconds(ageMs),
      // A receiver would keep a stale one for much longer than this cache.
      forDownstream: outcome === 'stale' || stored.sentHeaders === undefined ? undefined : stored,
    }
  }

  #hit(stored: StoredResponse, read: CacheRead, ageMs: number, at: Moment): CacheResponse {
    const form = sharedForm(stored, read)
    const ttl = ttlOf(stored, ageMs, at)
    if (form === undefined) return freshResponse(stored, read, ageMs, ttl, at)
    const isRepeated = stored.prepared !== -1
    const prepared = preparedFor(stored, seconds(ageMs), ttl)
    const preparedResponse = prepared?.[form]
    if (prepared !== undefined && preparedResponse !== undefined) {
      prepared.readers += 1
      if (prepared.readers === readersOfText && prepared.whole !== undefined) this.#keepText(prepared.whole)
      return preparedResponse
    }
    const response = freshResponse(stored, read, ageMs, ttl, at)
    if (isRepeated) response.headText = headTextOf(response, form, stored)
    if (prepared !== undefined) prepared[form] = response
    return response
  }
}
