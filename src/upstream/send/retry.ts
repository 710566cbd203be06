import { parseHttpDate } from '../../http/conditional/dates.ts'
import { type FieldLines, fieldValue } from '../../http/message.ts'
import type { GiveUpReason, RetryReason } from '../events.ts'
import { createSlidingCount } from '../timers.ts'

const windowMs = 10_000

/**
 * Retries as a share of the requests of the last ten seconds, so that a failing upstream never gets many more requests than usual.
 * With little traffic a share rounds to nothing, so up to three retries in the window are allowed anyway;
 * in total the bound is max(3, share × requests) per window. A share of 0 allows none.
 */
export const createRetryBudget = (share: number) => {
  const floor = share > 0 ? 3 : 0
  const requests = createSlidingCount(windowMs)
  const retries = createSlidingCount(windowMs)
  /** Retries that `take` would grant now. */
  const left = (nowMs: number): number =>
    Math.max(0, Math.floor(Math.max(floor, share * requests.total(nowMs)) - retries.total(nowMs)))
  return {
    left,
    /** A request arrived (not a retry). */
    requested: (nowMs: number): void => requests.add(nowMs),
    /** Takes one retry out of the budget; false when none is left. */
    take(nowMs: number): boolean {
      if (left(nowMs) < 1) return false
      retries.add(nowMs)
      return true
    },
  }
}

/** How an attempt failed. */
export type AttemptFailure =
  | { readonly kind: 'unreachable' | 'timeout' | 'broken' }
  | { readonly kind: 'status'; readonly retryAfterMs: number | undefined }

/** The facts of an attempt that failed before a response head was passed on. */
export type RetryFacts = {
  readonly failure: AttemptFailure
  readonly method: string
  /** It changes something, regardless of its method. */
  readonly isWrite?: boolean | undefined
  /** Some of the request may have reached the target. */
  readonly sent: boolean
  /** The content can be sent once more: complete in memory, absent, or a stream that has not been read from. */
  readonly replayable: boolean
  readonly attemptsMade: number
  readonly attemptsAllowed: number
  /** Another target has not been tried yet. */
  readonly otherTarget: boolean
  /** Time left until the total timeout; Infinity without one. */
  readonly remainingMs: number
  /** In [0, 1), for the jitter. */
  readonly random: number
}

/** Another attempt after a wait, or the end with its reason. The caller takes it out of the budget. */
export type RetryDecision =
  | { readonly kind: 'retry'; readonly reason: RetryReason; readonly waitMs: number }
  | { readonly kind: 'give-up'; readonly reason: GiveUpReason }

const idempotentMethods: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS', 'TRACE', 'PUT', 'DELETE'])

/** May a request be sent twice (RFC 9110 §9.2.2)? Not a GET that changes something. */
export const isIdempotent = ({ method, isWrite }: Pick<RetryFacts, 'method' | 'isWrite'>): boolean =>
  isWrite !== true && idempotentMethods.has(method)

/** A longer Retry-After is left to the client. */
const longestRetryAfterMs = 2_000
const jitterBaseMs = 25

const giveUp = (reason: GiveUpReason): RetryDecision => ({ kind: 'give-up', reason })

/** The reason to try again, or why the kind of failure forbids it. */
const reasonFor = (facts: RetryFacts): RetryReason | GiveUpReason => {
  const { failure } = facts
  switch (failure.kind) {
    case 'unreachable':
      return 'connect-failed'
    case 'broken':
      return 'connection-lost'
    case 'timeout':
      // Retrying the same target would double its load.
      return facts.otherTarget ? 'timed-out' : 'no-other-target'
    case 'status':
      if (facts.otherTarget) return 'status'
      if (failure.retryAfterMs === undefined) return 'no-other-target'
      return failure.retryAfterMs <= longestRetryAfterMs ? 'status-retry-after' : 'retry-after-too-long'
  }
}

const retryReasons: ReadonlySet<string> = new Set<RetryReason>([
  'connect-failed',
  'connection-lost',
  'timed-out',
  'status',
  'status-retry-after',
])

const isRetryReason = (reason: RetryReason | GiveUpReason): reason is RetryReason => retryReasons.has(reason)

/** Decides whether a failed attempt is followed by another one. */
export const decideRetry = (facts: RetryFacts): RetryDecision => {
  if (facts.attemptsMade >= facts.attemptsAllowed) return giveUp('attempts-used')
  if (facts.sent && !isIdempotent(facts)) return giveUp('method')
  if (!facts.replayable) return giveUp('content-consumed')
  const reason = reasonFor(facts)
  if (!isRetryReason(reason)) return giveUp(reason)
  const jitterMs = facts.random * jitterBaseMs * 2 ** (facts.attemptsMade - 1)
  const retryAfterMs =
    reason === 'status-retry-after' && facts.failure.kind === 'status' ? (facts.failure.retryAfterMs ?? 0) : 0
  const waitMs = retryAfterMs + jitterMs
  return waitMs < facts.remainingMs ? { kind: 'retry', reason, waitMs } : giveUp('deadline')
}

/** Retry-After in milliseconds from `nowMs` (epoch): a number of seconds or a date (RFC 9110 §10.2.3); undefined when absent or neither. */
export const retryAfterMs = (lines: FieldLines, nowMs: number): number | undefined => {
  const value = fieldValue(lines, 'retry-after')?.trim()
  if (value === undefined || value.length > 40) return undefined
  if (/^\d{1,9}$/.test(value)) return Number(value) * 1000
  const date = parseHttpDate(value, nowMs)
  return date === undefined ? undefined : Math.max(0, date - nowMs)
}
