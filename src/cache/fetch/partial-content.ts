import { pipeline } from 'node:stream'
import type { Clock, Moment } from '../../clock.ts'
import { bufferedResponse } from '../../http/bodies/read-body.ts'
import type { ByteBudget, Reservation } from '../../http/bounds/byte-budget.ts'
import {
  matchesStrongly,
  parseEntityTag,
  preconditionResponse,
} from '../../http/conditional/preconditions.ts'
import {
  type ContentRange,
  combined,
  formatContentRange,
  isWhole,
  missingRange,
  type PartialContent,
  parseContentRange,
  rangeOf,
  sliceOf,
} from '../../http/conditional/ranges.ts'
import { type HeaderLines, headerValue, withHeader, withoutHeaders } from '../../http/headers/header-lines.ts'
import { discard, type GatewayResponse, type ResponseHead } from '../../http/message.ts'
import { isGet } from '../../http/methods.ts'
import { teeContent } from '../../http/tee-content.ts'
import { type CacheRead, type CacheResponse, cacheKey, partsOfKey, type ReaderFacts } from '../cache-read.ts'
import {
  confirmsStored,
  currentAgeMs,
  decideReuse,
  describesStored,
  freshenedHead,
  selectVariant,
  validationHeaders,
} from '../policy/reuse.ts'
import { storageOf } from '../policy/storability.ts'
import { hitStatus } from '../respond/responder.ts'
import type { MemoryStore } from '../store/memory-store.ts'
import type { CompleteResponse, ResponseStorage } from '../store/response-storage.ts'
import type { IncompleteResponse, StoredResponse } from '../store/stored-response.ts'
import type { FetchRequest, UnshareableOutcome, UpstreamResponse } from './collapse.ts'

/**
 * The 206 for a reader, made of an incomplete stored response; undefined when that does not hold the whole range
 * (RFC 9111 §3.3). Requests for several ranges are left to the upstream.
 */
const rangeResponse = (
  stored: IncompleteResponse,
  reader: ReaderFacts,
  now: number,
): GatewayResponse | undefined => {
  const { total } = stored.partial
  // Without a known end neither a suffix nor an open range can be resolved: beyond everything that is stored.
  const length = total ?? Number.POSITIVE_INFINITY
  const selection = rangeOf(reader.headers, { status: 200, headers: stored.headers }, length, now)
  if (selection.kind !== 'parts') return undefined
  const [range, ...others] = selection.ranges
  if (range === undefined || others.length > 0) return undefined
  const content = sliceOf(stored, range)
  if (content === undefined) return undefined
  const headers = withHeader(stored.headers, 'Content-Length', String(content.length))
  headers.push('Content-Range', formatContentRange({ ...range, total }))
  return { status: 206, headers, content }
}

/** The same of a fresh one, as a hit: preconditions are evaluated first. */
const rangeHit = (stored: IncompleteResponse, reader: ReaderFacts, at: Moment): CacheResponse | undefined => {
  const part = rangeResponse(stored, reader, at.now)
  if (part === undefined) return undefined
  const ageMs = currentAgeMs(stored, at)
  const ttlSeconds = Math.floor((stored.lifetimeMs - ageMs) / 1000)
  const response = preconditionResponse(reader, stored, at.now) ?? part
  const added = ['Age', String(Math.floor(ageMs / 1000)), 'Cache-Status', hitStatus(ttlSeconds)]
  return { ...response, headers: [...response.headers, ...added], outcome: 'hit' }
}

/** A request that a stored part makes cheaper: it validates the part, or completes it to the whole. */
export type PartialRequest = {
  readonly kind: 'validate' | 'complete'
  readonly stored: IncompleteResponse
  readonly headers: Readonly<Record<string, string>>
}

/** Only a strong entity tag combines parts: a date would have to be known to be strong (RFC 9110 §8.8.2.2). */
const strongTagOf = (headers: HeaderLines) => {
  const tag = parseEntityTag(headerValue(headers, 'etag') ?? '')
  return tag === undefined || tag.weak ? undefined : tag
}

const sharesStrongTag = (stored: ResponseHead, response: ResponseHead): boolean => {
  const storedTag = strongTagOf(stored.headers)
  const responseTag = strongTagOf(response.headers)
  return storedTag !== undefined && responseTag !== undefined && matchesStrongly(storedTag, responseTag)
}

const validationOf = (
  stored: IncompleteResponse,
  read: CacheRead,
  now: number,
): PartialRequest | undefined => {
  const headers = validationHeaders(stored)
  const isUseless = Object.keys(headers).length === 0 || rangeResponse(stored, read, now) === undefined
  return isUseless ? undefined : { kind: 'validate', stored, headers }
}

const completionOf = (stored: IncompleteResponse): PartialRequest | undefined => {
  const missing = missingRange(stored.partial)
  if (missing === undefined || strongTagOf(stored.headers) === undefined) return undefined
  const last = missing.last + 1 === stored.partial.total ? '' : String(missing.last)
  // If-Range: after a change the upstream sends the whole instead (RFC 9110 §13.1.5).
  const headers = { range: `bytes=${missing.first}-${last}`, 'if-range': stored.upstreamTag ?? '' }
  return { kind: 'complete', stored, headers }
}

type PartialContentOptions = {
  readonly store: MemoryStore
  readonly storage: ResponseStorage
  readonly clock: Clock
  readonly budget: ByteBudget
  readonly maxEntryBytes: number
}

const partHeaders: ReadonlySet<string> = new Set(['content-range', 'content-length'])

/** The same target in another dialect: invalidation by target reaches the part and the whole. */
const partialKey = (key: string): string => cacheKey({ ...partsOfKey(key), dialect: 'parts' })

const isIncomplete = (stored: StoredResponse | undefined): stored is IncompleteResponse =>
  stored?.partial !== undefined

const contentRangeOf = (head: ResponseHead, maxBytes: number): ContentRange | undefined => {
  const range = parseContentRange(headerValue(head.headers, 'content-range') ?? '')
  if (range === undefined) return undefined
  const length = range.last - range.first + 1
  const declared = headerValue(head.headers, 'content-length')
  return length > maxBytes || (declared !== undefined && Number(declared) !== length) ? undefined : range
}

const partOf = ({ first, last, total }: ContentRange, content: Buffer): PartialContent | undefined =>
  content.length === last - first + 1 ? { partial: { ranges: [{ first, last }], total }, content } : undefined

const wholeOf = (head: ResponseHead, content: Buffer): CompleteResponse => ({
  head: { ...head, status: 200, headers: withoutHeaders(head.headers, partHeaders) },
  content,
})

const unshareable = (response: GatewayResponse, upstreamStatus: number): UnshareableOutcome => ({
  kind: 'unshareable',
  response,
  upstreamStatus,
  reason: undefined,
})

/** Incomplete responses (RFC 9111 §3.3, §3.4), stored under their own keys, so that no lookup of a whole finds one. */
export const createPartialContentStore = (options: PartialContentOptions) => {
  const { store, storage, clock, budget, maxEntryBytes } = options

  const find = (read: CacheRead): IncompleteResponse | undefined => {
    if (read.policy.profile !== 'rfc-shared-cache') return undefined
    const stored = selectVariant(store.peek(partialKey(read.key)), read)
    return isIncomplete(stored) ? stored : undefined
  }
  const forget = (read: CacheRead): void => {
    if (read.policy.profile === 'rfc-shared-cache') store.delete(partialKey(read.key))
  }

  /** Stores a part, or the whole if no part is missing. */
  const storePart = (
    fetch: FetchRequest,
    { times }: UpstreamResponse,
    head: ResponseHead,
    { partial, content }: PartialContent,
  ): StoredResponse => {
    const { read, since } = fetch
    if (isWhole(partial)) {
      forget(read)
      return storage.store(read, storage.create(fetch, wholeOf(head, content), times), since).stored
    }
    const bare = { ...head, status: 206, headers: withoutHeaders(head.headers, partHeaders) }
    const details = { key: partialKey(read.key), partial, upstreamTag: headerValue(bare.headers, 'etag') }
    return storage.store(read, storage.create(fetch, { head: bare, content }, times, details), since).stored
  }

  /** Alone, or combined with the stored part of the same tag; the newer headers count (RFC 9110 §15.3.7.3). */
  const storeOrCombine = (fetch: FetchRequest, upstream: UpstreamResponse, part: PartialContent): void => {
    const { response, times } = upstream
    const stored = find(fetch.read)
    const combination =
      stored !== undefined && sharesStrongTag(stored, response) ? combined(stored, part) : undefined
    if (stored === undefined || combination === undefined || combination.content.length > maxEntryBytes) {
      storePart(fetch, upstream, response, part)
    } else storePart(fetch, upstream, freshenedHead(stored, response, times.received.now), combination)
  }

  /** Drops it, and returns undefined, when it may not be stored any longer. */
  const freshen = (
    fetch: FetchRequest,
    upstream: UpstreamResponse,
    stored: IncompleteResponse,
  ): StoredResponse | undefined => {
    const { now } = upstream.times.received
    const head = freshenedHead(stored, upstream.response, now)
    if (storageOf(head, fetch.read, now).kind === 'store') return storePart(fetch, upstream, head, stored)
    forget(fetch.read)
    return undefined
  }

  return {
    /** The whole is stored, or the stored part is of another representation. */
    forget,
    /** A fresh stored part that the reader requests, as a hit. */
    hit: (read: CacheRead, at: Moment) => {
      if (read.policy.profile !== 'rfc-shared-cache' || !isGet(read.method)) return undefined
      if (read.headers['range'] === undefined) return undefined
      const reuse = decideReuse(store.variants(partialKey(read.key)), read, read.policy.profile, at)
      if (reuse.kind !== 'fresh' || !isIncomplete(reuse.stored)) return undefined
      const response = rangeHit(reuse.stored, read, at)
      if (response !== undefined) reuse.stored.hits += 1
      return response
    },
    /** Is any part of what the reader requests stored? */
    has: (read: CacheRead) => isGet(read.method) && find(read) !== undefined,
    requestFor: (read: CacheRead) => {
      const stored = isGet(read.method) ? find(read) : undefined
      if (stored === undefined) return undefined
      return read.headers['range'] === undefined
        ? completionOf(stored)
        : validationOf(stored, read, clock.now())
    },
    /** The 206 to a reader's own Range: for that reader, and stored. undefined when it does not state which part it is. */
    receive: (fetch: FetchRequest, upstream: UpstreamResponse) => {
      const { response } = upstream
      const { content, status } = response
      const range = contentRangeOf(response, maxEntryBytes)
      if (range === undefined || fetch.rangeHeaders['range'] === undefined || content === undefined) {
        return undefined
      }
      const storeContent = (complete: Buffer | undefined): void => {
        const part = complete === undefined ? undefined : partOf(range, complete)
        if (part !== undefined) storeOrCombine(fetch, upstream, part)
      }
      if (Buffer.isBuffer(content)) {
        storeContent(content)
        return unshareable(response, status)
      }
      // A part is often long and for one client: it streams, and is stored when it is complete.
      const reservation = budget('fill', fetch.read.client ?? '')
      const tee = teeContent(maxEntryBytes, range.last - range.first + 1, reservation, storeContent)
      pipeline(content, tee, () => undefined)
      return unshareable({ ...response, content: tee }, status)
    },
    /** The whole, of the stored part and the 206 with the rest; undefined when they do not belong together. */
    complete: async (
      stored: IncompleteResponse,
      { response, times }: UpstreamResponse,
      reservation: Reservation,
    ) => {
      const range = contentRangeOf(response, maxEntryBytes)
      if (range === undefined || !sharesStrongTag(stored, response)) {
        discard(response.content)
        return undefined
      }
      const { content = Buffer.alloc(0) } = await bufferedResponse(response, maxEntryBytes, reservation)
      const part = Buffer.isBuffer(content) ? partOf(range, content) : undefined
      discard(content)
      const combination = part === undefined ? undefined : combined(stored, part)
      if (
        combination === undefined ||
        !isWhole(combination.partial) ||
        combination.content.length > maxEntryBytes
      )
        return undefined
      return wholeOf(freshenedHead(stored, response, times.received.now), combination.content)
    },
    /** Freshens by a 304 (RFC 9111 §4.3.4); undefined when that is about something else or does not answer the reader. */
    confirm: (
      fetch: FetchRequest,
      { response, times }: UpstreamResponse,
      { kind, stored }: PartialRequest,
    ) => {
      if (kind === 'complete' || !confirmsStored(response, stored)) return undefined
      const fresher = freshen(fetch, { response, times }, stored)
      const part = isIncomplete(fresher) ? rangeResponse(fresher, fetch.read, clock.now()) : undefined
      return part === undefined ? undefined : unshareable(part, response.status)
    },
    /** Freshens, or drops, what the 200 to a HEAD describes (RFC 9111 §4.3.5). */
    freshenByHead: (fetch: FetchRequest, upstream: UpstreamResponse) => {
      const stored = find(fetch.read)
      if (stored === undefined) return
      if (describesStored(upstream.response, stored)) freshen(fetch, upstream, stored)
      else forget(fetch.read)
    },
  }
}

export type PartialContentStore = ReturnType<typeof createPartialContentStore>
