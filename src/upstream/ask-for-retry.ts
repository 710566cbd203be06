import type { AttemptAccount } from './attempt-account.ts'
import { type AttemptFailure, decideRetry, type RetryDecision } from './decide-retry.ts'
import type { RelayRoom } from './relay-room.ts'
import { isReplayable } from './request-content.ts'
import type { Target } from './targets.ts'

/** What a relay knows when one of its attempts has failed. */
export type FailedTry = {
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
