import { type Clock, readClock } from '../clock.ts'
import type { ByteBudget, Reservation } from '../http/bounds.ts'
import { contentCodingOf } from '../http/content-coding.ts'
import type { ResponseHead } from '../http/message.ts'
import { targetKeyOf } from './cache-key.ts'
import type { CacheRead } from './cache-read.ts'
import type { InFlightFetches } from './fetch/collapse.ts'
import { freshnessLifetime, responseControl } from './policy/freshness.ts'
import { storageOf } from './policy/storability.ts'
import type { ResponseStorage } from './store/store-response.ts'
import type { InvalidationLog } from './store/tag-index.ts'

/** The response to a POST whose content may serve later reads of its target (RFC 9110 §9.3.3). */
export type PostResponse = {
  /** Call it with the head before the POST invalidates, so that its own invalidation does not prevent storing. */
  isStorable(head: ResponseHead): boolean
  /** Call it right after that; returns the function that stores the complete content. */
  begin(head: ResponseHead): (content: Buffer) => void
  /** A longer content is not stored. */
  readonly maxBytes: number
  /** Buffer space for the content while it arrives. */
  readonly reservation: Reservation
}

type PostResponseOptions = {
  readonly log: InvalidationLog
  readonly storage: ResponseStorage
  readonly fetches: InFlightFetches
  readonly clock: Clock
  readonly budget: ByteBudget
  readonly maxEntryBytes: number
}

/** The response to a POST needs explicit freshness; a heuristic is not enough (RFC 9110 §9.3.3). */
const hasExplicitFreshness = (head: ResponseHead, read: CacheRead, now: number): boolean => {
  const { source, lifetimeMs } = freshnessLifetime(head, responseControl(head.fields), read.policy, now)
  return source === 'upstream' && lifetimeMs > 0
}

/** The content is stored as it passes: a coded one would reach clients that do not accept its coding. */
const isForEveryClient = (head: ResponseHead): boolean => {
  const { kind } = contentCodingOf(head)
  return kind === 'none' || kind === 'unknown'
}

export const createPostResponses =
  ({ log, storage, fetches, clock, budget, maxEntryBytes }: PostResponseOptions) =>
  (read: CacheRead): PostResponse => {
    const requested = readClock(clock)
    const sent = log.sequence
    return {
      maxBytes: maxEntryBytes,
      reservation: budget('fill', read.client ?? ''),
      isStorable: (head) =>
        head.status === 200 &&
        isForEveryClient(head) &&
        // After another write to the target, the content may be from before or after that write.
        !log.invalidatedSince([targetKeyOf(read.key)], sent) &&
        hasExplicitFreshness(head, read, clock.now()) &&
        storageOf(head, read, clock.now()).kind === 'store',
      begin: (head) => {
        const since = log.sequence
        const order = fetches.nextOrder()
        const times = { requested, received: readClock(clock) }
        return (content) => {
          storage.store(read, storage.create({ read, order }, { head, content }, times), since)
        }
      },
    }
  }
