import { Transform } from 'node:stream'
import type { Clock } from '../clock.ts'
import { type ByteBudget, overheadOfChunk, type Reservation } from '../http/byte-budget.ts'
import { fieldValue } from '../http/fields.ts'
import type { ResponseHead } from '../http/message.ts'
import { targetKeyOf } from './cache-key.ts'
import type { CacheRead } from './cache-read.ts'
import type { CacheEvent } from './events.ts'
import type { Flights } from './fetch/collapse.ts'
import { freshnessLifetime, type Moment } from './policy/freshness.ts'
import { responseControl } from './policy/response-control.ts'
import { storageOf } from './policy/storage-of.ts'
import type { Keep } from './store/store-if-current.ts'
import { makeStored, tagged } from './store/stored-response.ts'
import type { TagLog } from './store/tag-log.ts'

/** Passes content on and gives it away in one piece at the end; not when it is too long, contradicts its length, or there is no room for it. */
export const collecting = (
  maxBytes: number,
  declared: number | undefined,
  room: Reservation,
  done: (content: Buffer) => void,
): Transform => {
  let chunks: Buffer[] = []
  let bytes = 0
  let isKept = true
  const giveUp = (): void => {
    isKept = false
    chunks = []
    room.release()
  }
  return new Transform({
    transform(chunk: Buffer, _encoding, next) {
      bytes += chunk.length
      if (isKept && bytes <= maxBytes && room.reserve(chunk.length + overheadOfChunk)) chunks.push(chunk)
      else if (isKept) giveUp()
      next(null, chunk)
    },
    flush(next) {
      if (isKept && (declared === undefined || declared === bytes)) done(Buffer.concat(chunks))
      giveUp()
      next()
    },
    destroy(error, next) {
      giveUp()
      next(error)
    },
  })
}

/** The answer to a POST that says that it is what its target now shows (RFC 9110 §9.3.3). */
export type WrittenAnswer = {
  /** To be asked when the head is there and before the POST invalidates: its own invalidation must not stand in its way. */
  accepts(head: ResponseHead): boolean
  /** To be called right after that; gives what takes the complete content. */
  begin(head: ResponseHead): (content: Buffer) => void
  /** A longer content is not kept. */
  readonly maxBytes: number
  /** For the content while it comes. */
  readonly room: Reservation
}

type WrittenOptions = {
  readonly log: TagLog
  readonly keep: Keep
  readonly flights: Flights
  readonly clock: Clock
  readonly report: (event: CacheEvent) => void
  readonly budget: ByteBudget
  readonly maxEntryBytes: number
  /** See encodings.ts. */
  readonly codedFrom: (read: CacheRead) => number
}

/** Only what states its freshness: a heuristic is not enough for an answer to POST. */
const statesFreshness = (head: ResponseHead, read: CacheRead, now: number): boolean => {
  const { source, lifetimeMs } = freshnessLifetime(head, responseControl(head.fields), read.policy, now)
  return source === 'upstream' && lifetimeMs > 0
}

export const createWritten =
  ({ log, keep, flights, clock, report, budget, maxEntryBytes, codedFrom }: WrittenOptions) =>
  (read: CacheRead): WrittenAnswer => {
    const moment = (): Moment => ({ now: clock.now(), monotonic: clock.monotonic() })
    const requested = moment()
    const sent = log.sequence
    return {
      maxBytes: maxEntryBytes,
      room: budget('fill', read.client ?? ''),
      accepts: (head) =>
        head.status === 200 &&
        // Another write was answered meanwhile: which of them the content shows nobody knows.
        !log.touchedSince([targetKeyOf(read.key)], sent) &&
        statesFreshness(head, read, clock.now()) &&
        storageOf(head, read, clock.now()).kind === 'store',
      begin: (head) => {
        const since = log.sequence
        const order = flights.nextOrder()
        const times = { requested, received: moment() }
        return (content) => {
          const made = makeStored({
            key: read.key,
            head,
            content,
            extent: undefined,
            selecting: read,
            times,
            policy: read.policy,
            upstreamTag: fieldValue(head.fields, 'etag'),
            order,
            codedFrom: codedFrom(read),
            forms: [],
          })
          const tags = read.tags({ status: head.status, fields: made.fields, content })
          const stored = tagged(made, tags)
          if (keep(stored, since) === undefined) {
            report({ kind: 'stored', service: read.service, bytes: stored.bytes })
          }
        }
      },
    }
  }
