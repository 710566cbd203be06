import {
  admit,
  afterResult,
  type BreakerOptions,
  type BreakerState,
  closedBreaker,
  type RequestResult,
  type Tally,
} from './breaker-state.ts'
import type { UpstreamEvent } from './events.ts'
import { createSlidingCount } from './sliding-count.ts'

/** Given to a request that may be sent; says under which state that was, so that late results do not count for another one. */
export type Ticket = { readonly epoch: number }

/** Leaves a failing upstream alone as a whole. Which of its targets is asked is decided elsewhere (target-health.ts). */
export type Breaker = {
  /** Milliseconds to wait when it is certain already that a request would be refused. */
  refusal(nowMs: number): number | undefined
  /** Lets a request through, or says how long to wait. */
  enter(nowMs: number): Ticket | number
  /** To be called once for each ticket. */
  settle(ticket: Ticket, result: RequestResult, nowMs: number): void
  readonly state: BreakerState['state']
}

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

/** Builds a breaker that is closed. */
export const createBreaker = (
  options: BreakerOptions & { readonly service: string },
  report: (event: UpstreamEvent) => void,
): Breaker => {
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
    refusal(nowMs) {
      const admission = admit(breaker, nowMs, options.probes)
      return admission.kind === 'refused' ? refused(admission.waitMs) : undefined
    },
    enter(nowMs) {
      const admission = admit(breaker, nowMs, options.probes)
      if (admission.kind === 'refused') return refused(admission.waitMs)
      become(admission.next, noTally)
      return { epoch }
    },
    settle(ticket, result, nowMs) {
      if (ticket.epoch !== epoch) return
      if (result !== 'unknown') requests.add(nowMs)
      if (result === 'failed') failures.add(nowMs)
      const tally = { failed: failures.total(nowMs), total: requests.total(nowMs) }
      become(afterResult(breaker, result, tally, nowMs, options), tally)
    },
    get state() {
      return breaker.state
    },
  }
}
