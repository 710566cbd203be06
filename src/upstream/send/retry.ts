import type { GiveUpReason, RetryReason } from '../events.ts'
import { isReplayable } from '../request-content.ts'
import type { Target } from '../targets/targets.ts'
import type { AttemptAccount } from './attempt-account.ts'
import type { RelayRoom } from './upstream-context.ts'

/** What went wrong with an attempt. */
export type AttemptFailure =
  | { readonly kind: 'unreachable' | 'timeout' | 'broken' }
  | { readonly kind: 'status'; readonly retryAfterMs: number | undefined }

/** What is known when an attempt failed before any response head went to the caller. */
export type RetryFacts = {
  readonly failure: AttemptFailure
  readonly method: string
  /** Some of the request may have reached the target. */
  readonly sent: boolean
  /** The content can be sent once more: complete in memory, absent, or a stream nobody has read from. */
  readonly replayable: boolean
  readonly attemptsMade: number
  readonly attemptsAllowed: number
  /** A target that this request has not tried yet could take it. */
  readonly otherTarget: boolean
  /** Until the total timeout; Infinity when there is none. */
  readonly remainingMs: number
  /** In [0, 1), for the jitter. */
  readonly random: number
}

/** Another attempt after a wait, or the end with its reason. The budget is asked by the caller, last, because asking spends it. */
export type RetryDecision =
  | { readonly kind: 'retry'; readonly reason: RetryReason; readonly waitMs: number }
  | { readonly kind: 'give-up'; readonly reason: GiveUpReason }

/** RFC 9110 §9.2.2: only these may be repeated by a proxy once they were sent. */
const idempotentMethods: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS', 'TRACE', 'PUT', 'DELETE'])

/** May a request with this method be sent twice without the caller's saying so (RFC 9110 §9.2.2)? */
export const isIdempotent = (method: string): boolean => idempotentMethods.has(method)

/** A client waits for us: a longer Retry-After is handed on to it instead of being waited for. */
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
      // The same target a second time would only double its load.
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
  if (facts.sent && !isIdempotent(facts.method)) return giveUp('method')
  if (!facts.replayable) return giveUp('content-consumed')
  const reason = reasonFor(facts)
  if (!isRetryReason(reason)) return giveUp(reason)
  const jitterMs = facts.random * jitterBaseMs * 2 ** (facts.attemptsMade - 1)
  const retryAfterMs =
    reason === 'status-retry-after' && facts.failure.kind === 'status' ? (facts.failure.retryAfterMs ?? 0) : 0
  const waitMs = retryAfterMs + jitterMs
  return waitMs < facts.remainingMs ? { kind: 'retry', reason, waitMs } : giveUp('deadline')
}

/** What a relay knows when one of its attempts has failed. */
type FailedTry = {
  readonly failure: AttemptFailure
  readonly method: string
  readonly content: unknown
  readonly sent: boolean
  readonly attempts: number
  readonly startedMs: number
  readonly tried: readonly Target[]
  readonly account: AttemptAccount | undefined
}

/** Decides whether a failed attempt is followed by another one, spends the budget for it, and tells. */
export const askForRetry = (room: RelayRoom, facts: FailedTry): RetryDecision => {
  const { options, clock, targets, budget, report } = room
  const now = clock.monotonic()
  const { totalMs } = options.timeouts
  const decision = decideRetry({
    failure: facts.failure,
    method: facts.method,
    sent: facts.sent,
    replayable: isReplayable(facts.content, facts.sent),
    attemptsMade: facts.attempts,
    attemptsAllowed: options.retry.attempts,
    otherTarget: targets.hasOther(now, facts.tried),
    remainingMs: totalMs > 0 ? facts.startedMs + totalMs - now : Number.POSITIVE_INFINITY,
    random: room.random(),
  })
  const { service } = options
  const target = facts.account?.choice.target.origin ?? ''
  if (decision.kind === 'retry' && budget.take(now)) {
    report({ kind: 'retried', service, target, reason: decision.reason })
    return decision
  }
  const reason = decision.kind === 'retry' ? 'budget' : decision.reason
  report({ kind: 'gave-up', service, target, reason })
  return { kind: 'give-up', reason }
}
