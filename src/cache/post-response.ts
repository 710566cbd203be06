import { type Clock, readClock } from '../clock.ts'
import type { Reservation } from '../http/bounds/byte-budget.ts'
import { contentCodingOf } from '../http/content-coding.ts'
import type { ResponseHead } from '../http/message.ts'
import { targetKeyOf } from './cache-key.ts'
import type { CacheRead } from './cache-read.ts'
import { freshnessLifetime } from './policy/freshness.ts'
import { responseControl } from './policy/response-control.ts'
import { storageOf } from './policy/storability.ts'
import type { InvalidationLog } from './store/invalidation-log.ts'
import { isSuperseded, type ResponseStorage } from './store/response-storage.ts'

/** Invalidates what a write may have changed so far: in other processes when the promise resolves. */
type InvalidateAgain = () => Promise<unknown> | undefined

/** The response to a POST that is stored when it is complete. */
export type StoringPost = {
  /** Lets the POST invalidate, which does not prevent storing; an invalidation by another write since the last one does. */
  invalidateAgain(invalidate: InvalidateAgain): Promise<unknown> | undefined
  /** Stores the complete content, after it has let the POST invalidate once more. */
  store(content: Buffer, invalidate: InvalidateAgain): Promise<unknown> | undefined
}

/** The response to a POST whose content may serve later reads of its target (RFC 9110 §9.3.3). */
export type PostResponse = {
  /** Call it with the head before the POST invalidates, so that its own invalidation does not prevent storing. */
  isStorable(head: ResponseHead): boolean
  /** Call it right after that. */
  begin(head: ResponseHead): StoringPost
  /** A longer content is not stored. */
  readonly maxBytes: number
  /** Buffer space for the content while it arrives. */
  readonly reservation: Reservation
}

/** The response to a POST needs explicit freshness; a heuristic is not enough (RFC 9110 §9.3.3). */
const hasExplicitFreshness = (head: ResponseHead, read: CacheRead, now: number): boolean => {
  const { source, lifetimeMs } = freshnessLifetime(head, responseControl(head.headers), read.policy, now)
  return source === 'upstream' && lifetimeMs > 0
}

const noContent = Buffer.alloc(0)

/** The content is stored as it passes: a coded one would reach clients that do not accept its coding. */
const isForEveryClient = (head: ResponseHead): boolean => {
  const { kind } = contentCodingOf(head)
  return kind === 'none' || kind === 'unknown'
}

type PostResponseDeps = {
  readonly storage: ResponseStorage
  readonly log: InvalidationLog
  readonly fetches: { nextOrder(): number }
  readonly clock: Clock
}

export const createPostResponse = (
  { storage, log, fetches, clock }: PostResponseDeps,
  read: CacheRead,
  maxBytes: number,
  reservation: Reservation,
): PostResponse => {
  const requested = readClock(clock)
  const sequenceAtRequest = log.sequence
  return {
    maxBytes,
    reservation,
    isStorable: (head) =>
      head.status === 200 &&
      isForEveryClient(head) &&
      // After another write that reaches it, the content may be from before or after that write.
      !log.invalidatedSince(
        [targetKeyOf(read.key), ...read.tags({ ...head, content: noContent })],
        sequenceAtRequest,
      ) &&
      hasExplicitFreshness(head, read, clock.now()) &&
      storageOf(head, read, clock.now()).kind === 'store',
    begin: (head) => {
      let since = log.sequence
      let isCurrent = true
      const order = fetches.nextOrder()
      const times = { requested, received: readClock(clock) }
      const tags = [targetKeyOf(read.key), ...read.tags({ ...head, content: noContent })]
      return {
        invalidateAgain: (invalidate) => {
          isCurrent &&= !log.invalidatedSince(tags, since)
          const acknowledged = invalidate()
          since = log.sequence
          return acknowledged
        },
        store: (content, invalidate) => {
          const stored = storage.create({ read, order }, { head, content }, times)
          isCurrent &&= storage.describe(read, stored) !== undefined && !isSuperseded(log, stored, since)
          const acknowledged = invalidate()
          if (isCurrent) storage.store(read, stored, log.sequence)
          return acknowledged
        },
      }
    },
  }
}
