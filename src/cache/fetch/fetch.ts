import { pipeline, type Readable } from 'node:stream'
import { type Clock, type Moment, readClock } from '../../clock.ts'
import { GatewayError } from '../../errors.ts'
import type { ByteBudget, Reservation } from '../../http/bounds/byte-budget.ts'
import {
  type ContentCoding,
  contentCodingOf,
  createDecoder,
  type Decodable,
  decodedHead,
} from '../../http/content-coding.ts'
import { headerValue } from '../../http/headers/header-lines.ts'
import { discard, type GatewayResponse, type ResponseHead, whenKnown } from '../../http/message.ts'
import { isHead } from '../../http/methods.ts'
import { ownBytes } from '../../http/retained.ts'
import type { CacheEvent, MissReason, NoStoreReason } from '../events.ts'
import { confirmsStored, describesStored, freshenedHead, validationHeaders } from '../policy/reuse.ts'
import { headersNotStored, isServerError, mayShareError, storageOf } from '../policy/storability.ts'
import type { MemoryStore } from '../store/memory-store.ts'
import type { ResponseStorage } from '../store/response-storage.ts'
import type { StoredResponse } from '../store/stored-response.ts'
import type { FetchRequest } from './collapse.ts'
import type {
  FetchOutcome,
  ShareableOutcome,
  StreamEnd,
  UnshareableOutcome,
  UpstreamResponse,
} from './fetch-outcome.ts'
import { declaredLength, Fill } from './fill.ts'

type HeaderValues = Readonly<Record<string, string>>

const noHeaders: HeaderValues = {}
const noContent = Buffer.alloc(0)
const plain: ContentCoding = { kind: 'none' }

/** A content up to this length is read whole before a reader gets it: it then has an entity tag and a length. */
const delayedBytes = 65_536

/** What has not ended this long after its head passes as it arrives: a client sees a stream that pauses, or one of small pieces. */
const delayedMs = 100

/** How long a response is delayed: an error until it is whole, since something stale may be served instead. */
const delayOf = (response: ResponseHead, isStorable: boolean): number | undefined =>
  isStorable && !isServerError(response) ? delayedMs : undefined

const forwarded = (
  fetch: FetchRequest,
  headers: HeaderValues,
): GatewayResponse | Promise<GatewayResponse> => {
  const { forward, rangeHeaders, signal, background } = fetch
  return forward({
    headers: headers === noHeaders ? rangeHeaders : { ...rangeHeaders, ...headers },
    signal,
    background,
  })
}

/** What is stored beside the uncoded content of a coded response. */
type SentForms = Parameters<ResponseStorage['create']>[3]

type FetchOptions = {
  readonly store: MemoryStore
  readonly storage: ResponseStorage
  readonly clock: Clock
  readonly budget: ByteBudget
  readonly maxEntryBytes: number
  readonly report: (event: CacheEvent) => void
}

/** As far as it is known before the content has arrived. */
const lengthOf = (head: ResponseHead, content: Buffer | Readable): number =>
  Buffer.isBuffer(content) ? content.length : (declaredLength(head) ?? 0)

/** Sends a read to the upstream, and stores what may be stored. */
export class UpstreamFetch {
  readonly #store: MemoryStore
  readonly #storage: ResponseStorage
  readonly #clock: Clock
  readonly #report: (event: CacheEvent) => void
  readonly #budget: ByteBudget
  readonly #maxEntryBytes: number

  constructor(options: FetchOptions) {
    this.#store = options.store
    this.#storage = options.storage
    this.#clock = options.clock
    this.#report = options.report
    this.#budget = options.budget
    this.#maxEntryBytes = options.maxEntryBytes
  }

  fetch(fetch: FetchRequest): FetchOutcome | Promise<FetchOutcome> {
    const { read, stored } = fetch
    const { service, route } = read
    this.#report({ kind: 'forwarded', service, route, reason: fetch.reason, missed: this.#missed(fetch) })
    if (!fetch.background) read.step?.(stored === undefined || isHead(read.method) ? 'fetch' : 'revalidate')
    if (isHead(read.method))
      return this.#fetchTimed(fetch, noHeaders).then((upstream) => this.#handleHead(fetch, upstream))
    return stored === undefined ? this.#fetchWhole(fetch) : this.#revalidate(fetch, stored)
  }

  /** Undefined for a first read, and for one that wants a newer response than the stored one. */
  #missed({ read, reason, background }: FetchRequest): MissReason | undefined {
    switch (reason) {
      case 'uri-miss':
        return this.#store.wasEvicted(read.key) ? 'evicted' : read.splitBy
      case 'vary-miss':
        return 'vary'
      case 'stale':
        // Of one in the background the reader had a hit.
        return background ? undefined : 'expired'
      default:
        return undefined
    }
  }

  #received(response: GatewayResponse, requested: Moment): UpstreamResponse {
    return {
      response,
      times: { requested, received: readClock(this.#clock) },
    }
  }

  async #fetchTimed(fetch: FetchRequest, headers: HeaderValues): Promise<UpstreamResponse> {
    const requested = readClock(this.#clock)
    return this.#received(await forwarded(fetch, headers), requested)
  }

  #reservationFor({ read }: FetchRequest): Reservation {
    return this.#budget('fill', read.client ?? '')
  }

  #shareable(
    { read, since, background }: FetchRequest,
    stored: StoredResponse,
    facts: Pick<ShareableOutcome, 'upstreamStatus' | 'validated' | 'ownHeaders'>,
  ): ShareableOutcome {
    const result = this.#storage.store(read, stored, since)
    if (result.notStored === undefined && !background) read.step?.('store')
    return { kind: 'shareable', ...result, ...facts }
  }

  #unshareable(
    { read }: FetchRequest,
    response: GatewayResponse,
    reason: NoStoreReason,
    upstreamStatus: number = response.status,
  ): UnshareableOutcome {
    const { service, route } = read
    this.#report({ kind: 'not-stored', service, route, reason })
    return { kind: 'unshareable', response, upstreamStatus, reason }
  }

  #make(
    fetch: FetchRequest,
    { response, times }: UpstreamResponse,
    content: Buffer,
    more?: SentForms,
  ): StoredResponse {
    return this.#storage.create(fetch, { head: response, content }, times, more)
  }

  #complete(fetch: FetchRequest, { response }: UpstreamResponse, stored: StoredResponse): ShareableOutcome {
    return this.#shareable(fetch, stored, {
      upstreamStatus: response.status,
      validated: false,
      ownHeaders: headersNotStored(response),
    })
  }

  /** Stored, or a server error that readers may share all the same. */
  #completeOrError(
    fetch: FetchRequest,
    upstream: UpstreamResponse,
    stored: StoredResponse,
    isStorable: boolean,
  ): FetchOutcome {
    return isStorable ? this.#complete(fetch, upstream, stored) : { kind: 'server-error', stored }
  }

  /** The form in which the upstream sent it is kept, for clients that accept it. */
  #storeDecoded(
    fetch: FetchRequest,
    upstream: UpstreamResponse,
    codedContent: Buffer,
    coding: Decodable,
    content: Buffer,
    isStorable: boolean,
  ): FetchOutcome {
    const { response, times } = upstream
    const head = decodedHead(response)
    const stored = this.#storage.create(fetch, { head, content }, times, {
      upstreamTag: headerValue(response.headers, 'etag'),
      forms: coding === 'deflate' ? [] : [{ coding, content: ownBytes(codedContent) }],
    })
    return this.#completeOrError(fetch, upstream, stored, isStorable)
  }

  /**
   * Reads a coded content whole and undoes its coding, so that one stored response serves every client. A response that cannot be
   * decoded within the bounds is sent unchanged to the client that accepts its coding.
   */
  async #readCoded(
    fetch: FetchRequest,
    upstream: UpstreamResponse,
    content: Buffer | Readable,
    coding: Decodable,
    isStorable: boolean,
  ): Promise<FetchOutcome> {
    const { response } = upstream
    let codedContent = content
    if (!Buffer.isBuffer(codedContent)) {
      const fill = new Fill(response, codedContent, this.#maxEntryBytes, this.#reservationFor(fetch))
      const end = await fill.endOrLongerThan(this.#maxEntryBytes, delayOf(response, isStorable))
      if (end === undefined) return this.#decodeOnTheWay(fetch, upstream, fill, coding)
      if (end.kind === 'failed') throw end.error
      if (end.kind === 'overflowed')
        return this.#unshareable(
          fetch,
          { ...response, content: fill.reader(fetch.read.client) },
          fill.reasonOfOverflow,
        )
      codedContent = end.content
    }
    const decoder = createDecoder(coding)
    decoder.end(codedContent)
    const fill = new Fill(decodedHead(response), decoder, this.#maxEntryBytes, this.#reservationFor(fetch))
    const end = await fill.done
    if (end.kind === 'complete')
      return this.#storeDecoded(fetch, upstream, codedContent, coding, end.content, isStorable)
    fill.abandon()
    const reason = end.kind === 'failed' ? 'coding' : fill.reasonOfOverflow
    return this.#unshareable(fetch, { ...response, content: codedContent }, reason)
  }

  async #readStream(
    fetch: FetchRequest,
    upstream: UpstreamResponse,
    source: Readable,
    isStorable: boolean,
    more?: SentForms,
  ): Promise<FetchOutcome> {
    const { response } = upstream
    // An error is read whole: something stale may be served instead of it.
    const maxDelayedBytes = isStorable && !isServerError(response) ? delayedBytes : this.#maxEntryBytes
    // What is decoded on the way has been delayed before.
    const isLong = more !== undefined || (declaredLength(response) ?? 0) > maxDelayedBytes
    const fill = new Fill(response, source, this.#maxEntryBytes, this.#reservationFor(fetch))
    const max = Math.min(maxDelayedBytes, this.#maxEntryBytes)
    const end = isLong ? undefined : await fill.endOrLongerThan(max, delayOf(response, isStorable))
    switch (end?.kind) {
      case 'complete':
        return this.#completeOrError(fetch, upstream, this.#make(fetch, upstream, end.content), isStorable)
      case 'failed':
        throw end.error
      case 'overflowed':
        return this.#unshareable(
          fetch,
          { ...response, content: fill.reader(fetch.read.client) },
          fill.reasonOfOverflow,
        )
      case undefined:
        return {
          kind: 'streaming',
          head: this.#storage.createHead(fetch, response, upstream.times),
          upstreamStatus: response.status,
          ownHeaders: headersNotStored(response),
          readability: fetch.read.readability?.(response, undefined) ?? 'readable',
          fill,
          end: fill.done.then((last): StreamEnd => {
            if (last.kind === 'complete')
              return this.#complete(fetch, upstream, this.#make(fetch, upstream, last.content, more))
            if (last.kind === 'failed') return { kind: 'failed', error: last.error, hasBegun: true }
            const { service, route } = fetch.read
            this.#report({ kind: 'not-stored', service, route, reason: fill.reasonOfOverflow })
            fill.abandon()
            return { kind: 'too-large' }
          }),
        }
    }
  }

  /** A coded stream that goes on is decoded as it passes; the form in which it was sent is not kept. */
  #decodeOnTheWay(
    fetch: FetchRequest,
    upstream: UpstreamResponse,
    coded: Fill,
    coding: Decodable,
  ): Promise<FetchOutcome> {
    const { response, times } = upstream
    const decoder = createDecoder(coding)
    // An error on either side ends both; the fill of the decoded content sees it.
    pipeline(coded.reader(fetch.read.client), decoder, () => {})
    const upstreamTag = headerValue(response.headers, 'etag')
    const decoded = { response: { ...decodedHead(response), content: decoder }, times }
    return this.#readStream(fetch, decoded, decoder, true, { upstreamTag, forms: [] })
  }

  #handleContent(
    fetch: FetchRequest,
    upstream: UpstreamResponse,
    content: Buffer | Readable,
    isStorable: boolean,
  ): FetchOutcome | Promise<FetchOutcome> {
    const { response } = upstream
    if (lengthOf(response, content) > this.#maxEntryBytes)
      return this.#unshareable(fetch, response, 'too-large')
    const coding = content === noContent ? plain : contentCodingOf(response)
    if (coding.kind === 'opaque') return this.#unshareable(fetch, response, 'coding')
    if (coding.kind === 'coded') return this.#readCoded(fetch, upstream, content, coding.coding, isStorable)
    if (!Buffer.isBuffer(content)) return this.#readStream(fetch, upstream, content, isStorable)
    return this.#completeOrError(fetch, upstream, this.#make(fetch, upstream, content), isStorable)
  }

  /** Without a promise when the content has arrived with the head, as small ones mostly do. */
  #handleResponse(fetch: FetchRequest, upstream: UpstreamResponse): FetchOutcome | Promise<FetchOutcome> {
    const { response, times } = upstream
    const decision = storageOf(response, fetch.read, times.received.now)
    const isStorable = decision.kind === 'store'
    if (!isStorable && !mayShareError(response, decision.reason, fetch.read.policy)) {
      return this.#unshareable(fetch, response, decision.reason)
    }
    return this.#handleContent(fetch, upstream, response.content ?? noContent, isStorable)
  }

  /** Freshens the stored response by the head of a 304 or of the response to a HEAD. */
  #freshen(fetch: FetchRequest, { response, times }: UpstreamResponse, stored: StoredResponse): FetchOutcome {
    const head = freshenedHead(stored, response, times.received.now)
    const decision = storageOf(head, fetch.read, times.received.now)
    const replacement = this.#storage.create(fetch, { head, content: stored.content }, times, {
      upstreamTag: headerValue(response.headers, 'etag') ?? stored.upstreamTag,
      forms: stored.forms,
    })
    if (decision.kind === 'no-store') {
      this.#store.delete(stored.key)
      const { status, headers, content } = replacement
      return this.#unshareable(fetch, { status, headers, content }, decision.reason, response.status)
    }
    return this.#shareable(fetch, replacement, {
      upstreamStatus: response.status,
      validated: true,
      ownHeaders: [],
    })
  }

  /** Has no content to store, but may describe the one that is stored (RFC 9111 §4.3.5). */
  #handleHead(fetch: FetchRequest, upstream: UpstreamResponse): FetchOutcome {
    const { stored, read } = fetch
    const { response } = upstream
    if (response.status === 200 && read.policy.profile === 'rfc-shared-cache') {
      if (stored !== undefined && describesStored(response, stored))
        return this.#freshen(fetch, upstream, stored)
      if (stored !== undefined) this.#store.delete(stored.key)
    }
    return this.#unshareable(fetch, response, 'method')
  }

  async #revalidate(fetch: FetchRequest, stored: StoredResponse): Promise<FetchOutcome> {
    const validators = validationHeaders(stored)
    const upstream = await this.#fetchTimed(fetch, validators)
    if (upstream.response.status !== 304 || Object.keys(validators).length === 0) {
      return this.#handleResponse(fetch, upstream)
    }
    discard(upstream.response.content)
    if (confirmsStored(upstream.response, stored)) return this.#freshen(fetch, upstream, stored)
    // The 304 is about another representation (RFC 9111 §4.3.4): requested again without conditions.
    const again = await this.#fetchTimed(fetch, noHeaders)
    if (again.response.status === 304)
      throw new GatewayError('upstream_broken', { detail: '304 without a condition' })
    return this.#handleResponse(fetch, again)
  }

  /** Most misses run this: an async function would leave half as much again to the garbage collector. */
  #fetchWhole(fetch: FetchRequest): FetchOutcome | Promise<FetchOutcome> {
    const requested = readClock(this.#clock)
    return whenKnown(forwarded(fetch, noHeaders), (response) =>
      this.#handleResponse(fetch, this.#received(response, requested)),
    )
  }
}
