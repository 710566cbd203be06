import { pipeline } from 'node:stream'
import type { Clock } from '../../clock.ts'
import type { ByteBudget, Reservation } from '../../http/byte-budget.ts'
import { matchesStrongly, parseEntityTag } from '../../http/conditional/entity-tags.ts'
import {
  type ContentRange,
  formatContentRange,
  parseContentRange,
  rangeOf,
} from '../../http/conditional/ranges.ts'
import { type FieldLines, fieldValue, withField, withoutFields } from '../../http/fields.ts'
import { discard, type GatewayResponse, type ResponseHead } from '../../http/message.ts'
import { cacheKey, partsOfKey } from '../cache-key.ts'
import type { CacheRead } from '../cache-read.ts'
import { hitStatus } from '../cache-status.ts'
import { type CacheAnswer, conditioned, type ReaderFacts } from '../conditional-response.ts'
import { currentAgeMs, type Moment } from '../policy/freshness.ts'
import { decideReuse, selectVariant } from '../policy/reuse.ts'
import { storageOf } from '../policy/storage-of.ts'
import type { MemoryStore } from '../store/memory-store.ts'
import type { IncompleteResponse, StoredResponse } from '../store/stored-response.ts'
import { collecting } from '../store-written-response.ts'
import type { Flight } from './collapse.ts'
import type { Errand, Landing, UpstreamAnswer } from './fetch-outcome.ts'
import { readContent } from './fill.ts'
import { confirms, describes, freshenedHead, validationFields } from './revalidation.ts'
import { combined, extentOf, type HeldParts, isWhole, missingRange, sliceOf } from './stored-ranges.ts'
import type { Storing, Whole } from './storing.ts'

/**
 * The 206 that a reader asks for, made of an incomplete stored response, or undefined when it does not hold the whole
 * of the range (RFC 9111 §3.3). Several ranges at once are left to the upstream.
 */
const partAnswer = (
  stored: IncompleteResponse,
  reader: ReaderFacts,
  now: number,
): GatewayResponse | undefined => {
  const { extent } = stored
  // Without a known end no suffix and no open range can be resolved: beyond everything that is held.
  const length = extent.total ?? Number.POSITIVE_INFINITY
  const selection = rangeOf(reader.fields, { status: 200, fields: stored.fields }, length, now)
  if (selection.kind !== 'parts') return undefined
  const [wanted, ...others] = selection.ranges
  if (wanted === undefined || others.length > 0) return undefined
  const content = sliceOf(stored, wanted)
  if (content === undefined) return undefined
  const fields = withField(stored.fields, 'Content-Length', String(content.length))
  fields.push('Content-Range', formatContentRange({ ...wanted, total: extent.total }))
  return { status: 206, fields, content }
}

/** The same for a fresh one, as a hit: preconditions first. */
const partHit = (stored: IncompleteResponse, reader: ReaderFacts, at: Moment): CacheAnswer | undefined => {
  const part = partAnswer(stored, reader, at.now)
  if (part === undefined) return undefined
  const ageMs = currentAgeMs(stored.initialAgeMs, stored.received, at)
  const ttlSeconds = Math.floor((stored.lifetimeMs - ageMs) / 1000)
  const given = conditioned(reader, stored, at.now) ?? part
  const added = ['Age', String(Math.floor(ageMs / 1000)), 'Cache-Status', hitStatus(ttlSeconds)]
  return { ...given, fields: [...given.fields, ...added], outcome: 'hit' }
}

/** How a held part helps a forward: validated when the part is what is asked for, completed when it is the whole. */
export type Help = {
  readonly kind: 'validate' | 'complete'
  readonly stored: IncompleteResponse
  /** What is to be asked with. */
  readonly fields: Readonly<Record<string, string>>
}

/** Parts are combined under one strong entity tag alone: a date would have to be known to be strong (RFC 9110 §8.8.2.2). */
const strongTagOf = (fields: FieldLines) => {
  const tag = parseEntityTag(fieldValue(fields, 'etag') ?? '')
  return tag === undefined || tag.weak ? undefined : tag
}

/** The part is held and stale: is it still right? */
const toValidate = (stored: IncompleteResponse, read: CacheRead, now: number): Help | undefined => {
  const fields = validationFields(stored)
  const useless = Object.keys(fields).length === 0 || partAnswer(stored, read, now) === undefined
  return useless ? undefined : { kind: 'validate', stored, fields }
}

/** The whole is wanted: what is missing of it? */
const toComplete = (stored: IncompleteResponse): Help | undefined => {
  const missing = missingRange(stored.extent)
  if (missing === undefined || strongTagOf(stored.fields) === undefined) return undefined
  const last = missing.last + 1 === stored.extent.total ? '' : String(missing.last)
  // If-Range: when it has changed meanwhile the whole comes instead (RFC 9110 §13.1.5).
  const fields = { range: `bytes=${missing.first}-${last}`, 'if-range': stored.upstreamTag ?? '' }
  return { kind: 'complete', stored, fields }
}

/** Incomplete responses (RFC 9111 §3.3, §3.4): kept under keys of their own, so that no lookup of a whole meets one. */
export type Incomplete = {
  /** A fresh part that the reader asks for, as a hit. */
  hit(read: CacheRead, at: Moment): CacheAnswer | undefined
  /** Is anything held of what the reader asks for? */
  holds(read: CacheRead): boolean
  help(read: CacheRead): Help | undefined
  /** Of a 206 to a reader's own Range: for that reader, and kept; undefined when it does not say plainly what it is. */
  land(errand: Errand, flight: Flight, answer: UpstreamAnswer): Landing | undefined
  /** The whole, made of what is held and of the 206 that brings the rest; undefined when they do not belong together. */
  whole(stored: IncompleteResponse, answer: UpstreamAnswer, room: Reservation): Promise<Whole | undefined>
  /** Freshened by a 304 (RFC 9111 §4.3.4); undefined when that is about something else, and no answer to the reader. */
  confirmed(errand: Errand, flight: Flight, answer: UpstreamAnswer, help: Help): Landing | undefined
  /** Freshened or contradicted by the 200 to a HEAD (RFC 9111 §4.3.5). */
  described(errand: Errand, flight: Flight, answer: UpstreamAnswer): void
  /** The whole is there, or what was held is of another representation. */
  forget(read: CacheRead): void
}

type IncompleteOptions = {
  readonly store: MemoryStore
  readonly storing: Storing
  readonly clock: Clock
  readonly budget: ByteBudget
  readonly maxEntryBytes: number
}

const partFields: ReadonlySet<string> = new Set(['content-range', 'content-length'])

/** The same target in the dialect of parts: it shares invalidation by target with the whole. */
const partsKey = (key: string): string => cacheKey({ ...partsOfKey(key), dialect: 'parts' })

const isIncomplete = (stored: StoredResponse | undefined): stored is IncompleteResponse =>
  stored?.extent !== undefined

const sharesTag = (stored: IncompleteResponse, answer: ResponseHead): boolean => {
  const held = strongTagOf(stored.fields)
  const said = strongTagOf(answer.fields)
  return held !== undefined && said !== undefined && matchesStrongly(held, said)
}

const rangeOfPart = (head: ResponseHead, maxBytes: number): ContentRange | undefined => {
  const range = parseContentRange(fieldValue(head.fields, 'content-range') ?? '')
  if (range === undefined) return undefined
  const length = range.last - range.first + 1
  const declared = fieldValue(head.fields, 'content-length')
  return length > maxBytes || (declared !== undefined && Number(declared) !== length) ? undefined : range
}

const heldParts = (range: ContentRange, content: Buffer): HeldParts | undefined =>
  content.length === range.last - range.first + 1 ? { extent: extentOf(range), content } : undefined

export const createIncomplete = (options: IncompleteOptions): Incomplete => {
  const { store, storing, clock, budget, maxEntryBytes } = options

  const find = (read: CacheRead): IncompleteResponse | undefined => {
    if (read.policy.profile !== 'rfc-shared-cache') return undefined
    const stored = selectVariant(store.peek(partsKey(read.key)), read)
    return isIncomplete(stored) ? stored : undefined
  }
  const forget = (read: CacheRead): void => {
    if (read.policy.profile === 'rfc-shared-cache') store.delete(partsKey(read.key))
  }

  const put = (
    errand: Errand,
    flight: Flight,
    answer: UpstreamAnswer,
    head: ResponseHead,
    parts: HeldParts,
  ): IncompleteResponse => {
    const { read } = errand
    const bare = { status: 206, fields: withoutFields(head.fields, partFields) }
    const made = storing.record(
      errand,
      flight,
      answer,
      { head: bare, content: parts.content },
      {
        key: partsKey(read.key),
        extent: parts.extent,
        upstreamTag: fieldValue(bare.fields, 'etag'),
        forms: [],
      },
    )
    return { ...storing.store(read, flight, made).stored, extent: parts.extent }
  }

  const completed = (errand: Errand, flight: Flight, answer: UpstreamAnswer, whole: Whole): void => {
    forget(errand.read)
    storing.store(errand.read, flight, storing.record(errand, flight, answer, whole))
  }

  /** Alone, or together with what is held under the same tag; the newer fields count (RFC 9110 §15.3.7.3). */
  const keepPart = (errand: Errand, flight: Flight, answer: UpstreamAnswer, part: HeldParts): void => {
    const held = find(errand.read)
    if (held === undefined || !sharesTag(held, answer.response)) {
      if (isWhole(part.extent)) completed(errand, flight, answer, wholeOf(answer.response, part.content))
      else put(errand, flight, answer, answer.response, part)
      return
    }
    const both = combined(held, part)
    if (both === undefined || both.content.length > maxEntryBytes) {
      put(errand, flight, answer, answer.response, part)
      return
    }
    const head = freshenedHead(held, answer.response, answer.times.received.now)
    if (isWhole(both.extent)) completed(errand, flight, answer, wholeOf(head, both.content))
    else put(errand, flight, answer, head, both)
  }

  /** undefined, and gone, when it may not be kept any longer. */
  const freshen = (
    errand: Errand,
    flight: Flight,
    answer: UpstreamAnswer,
    stored: IncompleteResponse,
  ): IncompleteResponse | undefined => {
    const head = freshenedHead(stored, answer.response, answer.times.received.now)
    if (storageOf(head, errand.read, answer.times.received.now).kind === 'store') {
      return put(errand, flight, answer, head, stored)
    }
    forget(errand.read)
    return undefined
  }

  return {
    forget,
    hit: (read, at) => {
      if (read.policy.profile !== 'rfc-shared-cache' || read.method !== 'GET') return undefined
      if (read.fields['range'] === undefined) return undefined
      const reuse = decideReuse(store.variants(partsKey(read.key)), read, read.policy.profile, at)
      if (reuse.kind !== 'fresh' || !isIncomplete(reuse.stored)) return undefined
      const answer = partHit(reuse.stored, read, at)
      if (answer !== undefined) reuse.stored.hits += 1
      return answer
    },
    holds: (read) => read.method === 'GET' && find(read) !== undefined,
    help: (read) => {
      const stored = read.method === 'GET' ? find(read) : undefined
      if (stored === undefined) return undefined
      return read.fields['range'] === undefined ? toComplete(stored) : toValidate(stored, read, clock.now())
    },
    land: (errand, flight, answer) => {
      const { response } = answer
      const range = rangeOfPart(response, maxEntryBytes)
      if (range === undefined || errand.extra['range'] === undefined) return undefined
      const keepContent = (content: Buffer): void => {
        const part = heldParts(range, content)
        if (part !== undefined) keepPart(errand, flight, answer, part)
      }
      const { content } = response
      const landing = (own: GatewayResponse): Landing => ({
        kind: 'own',
        response: own,
        upstreamStatus: response.status,
        reason: undefined,
      })
      if (content === undefined) return undefined
      if (Buffer.isBuffer(content)) {
        keepContent(content)
        return landing(response)
      }
      // A part is often long and goes to one reader: it is kept in passing, once all of it has come.
      const room = budget('fill', errand.read.client ?? '')
      const through = collecting(maxEntryBytes, range.last - range.first + 1, room, keepContent)
      pipeline(content, through, () => undefined)
      return landing({ ...response, content: through })
    },
    whole: async (stored, answer, room) => {
      const range = rangeOfPart(answer.response, maxEntryBytes)
      if (range === undefined || !sharesTag(stored, answer.response)) {
        discard(answer.response.content)
        return undefined
      }
      const rest = await readContent(answer.response, maxEntryBytes, room)
      if (rest.kind !== 'complete') {
        discard(rest.content)
        return undefined
      }
      const part = heldParts(range, rest.content)
      const both = part === undefined ? undefined : combined(stored, part)
      if (both === undefined || !isWhole(both.extent) || both.content.length > maxEntryBytes) return undefined
      return wholeOf(freshenedHead(stored, answer.response, answer.times.received.now), both.content)
    },
    confirmed: (errand, flight, answer, { kind, stored }) => {
      if (kind === 'complete' || !confirms(answer.response, stored)) return undefined
      const fresher = freshen(errand, flight, answer, stored)
      const response = fresher === undefined ? undefined : partAnswer(fresher, errand.read, clock.now())
      if (response === undefined) return undefined
      return { kind: 'own', response, upstreamStatus: answer.response.status, reason: undefined }
    },
    described: (errand, flight, answer) => {
      const stored = find(errand.read)
      if (stored === undefined) return
      if (describes(answer.response, stored)) freshen(errand, flight, answer, stored)
      else forget(errand.read)
    },
  }
}

const wholeOf = (head: ResponseHead, content: Buffer): Whole => ({
  head: { status: 200, fields: withoutFields(head.fields, partFields) },
  content,
})
