import { parseHttpDate } from '../../http/conditional/dates.ts'
import { type HeaderLines, headerValue } from '../../http/message.ts'
import { type GiveUpReason, type RetryReason, retryReasons, type UpstreamEvent } from '../events.ts'

const buckets = 10

/**
 * A count of what happened in the last `windowMs`, in ten steps. Times are monotonic milliseconds. Memory and time do not depend on
 * how much is counted.
 */
const createSlidingCount = (windowMs: number) => {
  const counts = new Array<number>(buckets).fill(0)
  const stepMs = windowMs / buckets
  let step = 0
  let sum = 0

  const advance = (nowMs: number): number => {
    const current = Math.floor(nowMs / stepMs)
    const passed = Math.min(current - step, buckets)
    for (let i = 1; i <= passed; i += 1) {
      const at = (step + i) % buckets
      sum -= counts[at] ?? 0
      counts[at] = 0
    }
    // After a long pause every bucket has been emptied, whatever `step` was.
    step = Math.max(step, current)
    return step % buckets
  }

  return {
    add(nowMs: number): void {
      const at = advance(nowMs)
      counts[at] = (counts[at] ?? 0) + 1
      sum += 1
    },
    total(nowMs: number): number {
      advance(nowMs)
      return sum
    },
    clear(): void {
      counts.fill(0)
      sum = 0
    },
  }
}

/** Whether requests to the upstream as a whole are allowed. Times are monotonic milliseconds. */
export type BreakerState =
  | { readonly state: 'closed' }
  | { readonly state: 'open'; readonly untilMs: number }
  /** Half-open: a few probes find out; `asking` are in flight, `passed` were answered. */
  | { readonly state: 'half-open'; readonly asking: number; readonly passed: number }

export type BreakerOptions = {
  /** Opens when this share of the requests in the window failed; 0 = never. */
  readonly failureRatio: number
  /** With fewer in the window the breaker stays closed. */
  readonly minRequests: number
  readonly windowMs: number
  /** How long the breaker stays open. */
  readonly forMs: number
  /** Requests that find out whether it is back; all of them must be answered. */
  readonly probes: number
}

/** How an admitted request ended: `unknown` = its client disconnected before the upstream answered. */
export type RequestResult = 'answered' | 'failed' | 'unknown'

type BreakerAdmission =
  | { readonly kind: 'admitted'; readonly next: BreakerState }
  | { readonly kind: 'refused'; readonly waitMs: number }

const closedBreaker: BreakerState = { state: 'closed' }

/** It is unknown when the probes will be answered. */
const whileProbingMs = 1_000

const admit = (breaker: BreakerState, nowMs: number, probes: number): BreakerAdmission => {
  switch (breaker.state) {
    case 'closed':
      return { kind: 'admitted', next: breaker }
    case 'open':
      return nowMs < breaker.untilMs
        ? { kind: 'refused', waitMs: breaker.untilMs - nowMs }
        : { kind: 'admitted', next: { state: 'half-open', asking: 1, passed: 0 } }
    case 'half-open':
      return breaker.asking + breaker.passed < probes
        ? { kind: 'admitted', next: { ...breaker, asking: breaker.asking + 1 } }
        : { kind: 'refused', waitMs: whileProbingMs }
  }
}

/** Does the window demand to open the breaker? */
type Tally = { readonly failed: number; readonly total: number }

const hasFailed = ({ failed, total }: Tally, options: BreakerOptions): boolean =>
  options.failureRatio > 0 && total >= options.minRequests && failed >= options.failureRatio * total

/** The state after the end of a request that the present state had admitted. */
const afterResult = (
  breaker: BreakerState,
  result: RequestResult,
  tally: Tally,
  nowMs: number,
  options: BreakerOptions,
): BreakerState => {
  const opened: BreakerState = { state: 'open', untilMs: nowMs + options.forMs }
  switch (breaker.state) {
    case 'closed':
      return result === 'failed' && hasFailed(tally, options) ? opened : breaker
    case 'open':
      return breaker
    case 'half-open': {
      const asking = breaker.asking - 1
      if (result === 'failed') return opened
      if (result === 'unknown') return { ...breaker, asking }
      const passed = breaker.passed + 1
      return passed >= options.probes ? closedBreaker : { state: 'half-open', asking, passed }
    }
  }
}

/** The state under which a request was admitted, so that late results do not count for another state. */
export type Ticket = { readonly epoch: number }

const noTally: Tally = { failed: 0, total: 0 }

/** Why the state changed, for the log. */
const causeOf = (
  from: BreakerState['state'],
  to: BreakerState['state'],
  { failed, total }: Tally,
  { windowMs, forMs, probes }: BreakerOptions,
): string => {
  switch (to) {
    case 'half-open':
      return `the breaker was open for ${forMs} ms`
    case 'closed':
      return `all trial requests succeeded: ${probes}`
    case 'open':
      return from === 'half-open'
        ? 'a trial request failed'
        : `${failed} of ${total} requests in the last ${windowMs} ms failed`
  }
}

/** Refuses requests to an upstream that fails as a whole; targets.ts chooses among its targets. Closed at first. */
export const createBreaker = (
  options: BreakerOptions & { readonly service: string },
  report: (event: UpstreamEvent) => void,
) => {
  const requests = createSlidingCount(options.windowMs)
  const failures = createSlidingCount(options.windowMs)
  let breaker: BreakerState = closedBreaker
  let epoch = 0

  const become = (next: BreakerState, tally: Tally): void => {
    const from = breaker.state
    breaker = next
    if (next.state === from) return
    epoch += 1
    requests.clear()
    failures.clear()
    const cause = causeOf(from, next.state, tally, options)
    report({ kind: 'breaker-changed', service: options.service, from, to: next.state, cause })
  }
  const refused = (waitMs: number): number => {
    report({ kind: 'breaker-refused', service: options.service })
    return waitMs
  }

  return {
    /** Milliseconds to wait when it is certain already that a request would be refused. */
    refusal(nowMs: number): number | undefined {
      const admission = admit(breaker, nowMs, options.probes)
      return admission.kind === 'refused' ? refused(admission.waitMs) : undefined
    },
    /** Admits a request, or gives the milliseconds to wait. */
    enter(nowMs: number): Ticket | number {
      const admission = admit(breaker, nowMs, options.probes)
      if (admission.kind === 'refused') return refused(admission.waitMs)
      become(admission.next, noTally)
      return { epoch }
    },
    /** To be called once for each ticket. */
    settle(ticket: Ticket, result: RequestResult, nowMs: number): void {
      if (ticket.epoch !== epoch) return
      if (result !== 'unknown') requests.add(nowMs)
      if (result === 'failed') failures.add(nowMs)
      const tally = { failed: failures.total(nowMs), total: requests.total(nowMs) }
      become(afterResult(breaker, result, tally, nowMs, options), tally)
    },
    get state(): BreakerState['state'] {
      return breaker.state
    },
  }
}

export type Breaker = ReturnType<typeof createBreaker>

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
  const retriesLeft = (nowMs: number): number =>
    Math.max(0, Math.floor(Math.max(floor, share * requests.total(nowMs)) - retries.total(nowMs)))
  return {
    left: retriesLeft,
    requested: (nowMs: number): void => requests.add(nowMs),
    /** Takes one retry out of the budget; false when none is left. */
    take(nowMs: number): boolean {
      if (retriesLeft(nowMs) < 1) return false
      retries.add(nowMs)
      return true
    },
  }
}

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

/** Retry-After in milliseconds from `nowMs` (epoch): a number of seconds or a date (RFC 9110 §10.2.3); undefined when absent or neither. */
export const retryAfterMs = (lines: HeaderLines, nowMs: number): number | undefined => {
  const value = headerValue(lines, 'retry-after')?.trim()
  if (value === undefined || value.length > 40) return undefined
  if (/^\d{1,9}$/.test(value)) return Number(value) * 1000
  const date = parseHttpDate(value, nowMs)
  return date === undefined ? undefined : Math.max(0, date - nowMs)
}
