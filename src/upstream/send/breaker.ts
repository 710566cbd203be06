import type { UpstreamEvent } from '../events.ts'
import { createSlidingCount } from './sliding-count.ts'

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

/** How an admitted request ended: `withdrawn` = its client disconnected before the upstream answered. */
export type RequestResult = 'answered' | 'failed' | 'withdrawn'

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
      if (result === 'withdrawn') return { ...breaker, asking }
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
      if (result !== 'withdrawn') requests.add(nowMs)
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
