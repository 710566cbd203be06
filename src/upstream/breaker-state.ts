/** Whether the upstream as a whole is asked. Times are monotonic milliseconds. */
export type BreakerState =
  | { readonly state: 'closed' }
  | { readonly state: 'open'; readonly untilMs: number }
  /** The time is over: a few requests find out; `asking` are under way, `passed` were answered. */
  | { readonly state: 'half-open'; readonly asking: number; readonly passed: number }

export type BreakerOptions = {
  /** Opens when this share of the requests in the window failed; 0 = never. */
  readonly failureRatio: number
  /** Fewer than these in the window say nothing. */
  readonly minRequests: number
  readonly windowMs: number
  /** How long the upstream is left alone. */
  readonly forMs: number
  /** Requests that find out whether it is back; all of them must be answered. */
  readonly probes: number
}

/** How a request that was let through ended: `unknown` = its client went away before the upstream said anything. */
export type RequestResult = 'answered' | 'failed' | 'unknown'

/** May a request be sent now? */
export type Admission =
  | { readonly kind: 'admitted'; readonly next: BreakerState }
  | { readonly kind: 'refused'; readonly waitMs: number }

export const closedBreaker: BreakerState = { state: 'closed' }

/** Nobody knows when the probes will be answered; a second is soon enough to ask again. */
const whileProbingMs = 1_000

/** Decides about one request that is about to be sent. */
export const admit = (breaker: BreakerState, nowMs: number, probes: number): Admission => {
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

/** What the window says after a request ended in the closed state. */
export type Tally = { readonly failed: number; readonly total: number }

const hasFailed = ({ failed, total }: Tally, options: BreakerOptions): boolean =>
  options.failureRatio > 0 && total >= options.minRequests && failed >= options.failureRatio * total

/** The state after the end of a request that the present state had let through. */
export const afterResult = (
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
