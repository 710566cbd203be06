import { type GiveUpReason, type RetryReason, retryReasons } from '../events.ts'

export type AttemptFailure =
  | { readonly kind: 'unreachable' | 'timeout' | 'broken' }
  | { readonly kind: 'status'; readonly retryAfterMs: number | undefined }

/** The facts of an attempt that failed before a response head was passed on. */
export type RetryFacts = {
  readonly failure: AttemptFailure
  /** The upstream may get it twice. */
  readonly repeatable: boolean
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

const isRetryReason = (reason: RetryReason | GiveUpReason): reason is RetryReason =>
  retryReasons.some((retryReason) => retryReason === reason)

export const decideRetry = (facts: RetryFacts): RetryDecision => {
  if (facts.attemptsMade >= facts.attemptsAllowed) return giveUp('attempts-used')
  if (facts.sent && !facts.repeatable) return giveUp('method')
  if (!facts.replayable) return giveUp('content-consumed')
  const reason = reasonFor(facts)
  if (!isRetryReason(reason)) return giveUp(reason)
  const jitterMs = facts.random * jitterBaseMs * 2 ** (facts.attemptsMade - 1)
  const retryAfterMs =
    reason === 'status-retry-after' && facts.failure.kind === 'status' ? (facts.failure.retryAfterMs ?? 0) : 0
  const waitMs = retryAfterMs + jitterMs
  return waitMs < facts.remainingMs ? { kind: 'retry', reason, waitMs } : giveUp('deadline')
}
