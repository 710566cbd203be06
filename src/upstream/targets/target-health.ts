import type { TargetState } from '../events.ts'

/** The health of a target, from the outcomes of requests. Times are monotonic milliseconds. */
export type TargetHealth =
  | { readonly state: 'healthy'; readonly failures: number }
  | { readonly state: 'ejected'; readonly untilMs: number }
  /** The ejection has ended, and one trial request was sent. */
  | { readonly state: 'trial' }

/** The requests that a target may get now. */
export type TargetStatus = 'usable' | 'trial-due' | 'out'

export type EjectOptions = { readonly after: number; readonly forMs: number; readonly maxShare: number }

/** The state of a target about which nothing is known yet. */
export const untriedHealth: TargetHealth = { state: 'healthy', failures: 0 }

export const statusOf = (health: TargetHealth, nowMs: number): TargetStatus => {
  switch (health.state) {
    case 'healthy':
      return 'usable'
    case 'trial':
      return 'out'
    case 'ejected':
      return nowMs >= health.untilMs ? 'trial-due' : 'out'
  }
}

/** The result of active checks: `against` = checks in a row, up to the last one, that contradict `failing`. */
export type CheckState = { readonly failing: boolean; readonly against: number }

/** Before the first check a target counts as healthy: the gateway must not wait for a check to send requests. */
export const uncheckedState: CheckState = { failing: false, against: 0 }

export const afterCheck = (
  { failing, against }: CheckState,
  passed: boolean,
  { failAfter, recoverAfter }: { readonly failAfter: number; readonly recoverAfter: number },
): CheckState => {
  if (passed !== failing) return { failing, against: 0 }
  const count = against + 1
  return count < (failing ? recoverAfter : failAfter)
    ? { failing, against: count }
    : { failing: !failing, against: 0 }
}

/** What is known of a target. */
type TargetFacts = {
  readonly health: TargetHealth
  readonly checks: CheckState
  /** Gets no requests because its checks fail. */
  readonly leftOut: boolean
  /** A request or a check has succeeded at some time. */
  readonly hasResponded: boolean
}

/**
 * One state made of everything that is known; `leftOut` = it is left out because of its checks. Of a target that has never answered
 * the first failure counts.
 */
export const stateOf = (
  { health, checks, leftOut, hasResponded }: TargetFacts,
  after: number,
): TargetState => {
  if (leftOut || health.state !== 'healthy') return 'left-out'
  if (checks.failing || health.failures >= after) return 'failing'
  if (hasResponded) return 'healthy'
  return health.failures > 0 || checks.against > 0 ? 'failing' : 'unknown'
}

/** True when no request to the upstream is expected to be answered: the breaker refuses them, or each target fails. */
export const isDown = (
  breaker: 'closed' | 'open' | 'half-open',
  targets: readonly { readonly state: TargetState }[],
): boolean =>
  breaker !== 'closed' || targets.every(({ state }) => state === 'failing' || state === 'left-out')

/** May one more of `total` targets leave when `out` are out already? One that is alone never does. */
export const mayEject = (out: number, total: number, maxShare: number): boolean =>
  out + 1 <= Math.floor(total * maxShare)

/** After a failed attempt: counts, ejects after too many in a row, ejects again when the trial failed. */
export const afterFailure = (
  health: TargetHealth,
  nowMs: number,
  options: EjectOptions,
  mayLeave: boolean,
): TargetHealth => {
  const ejected: TargetHealth = { state: 'ejected', untilMs: nowMs + options.forMs }
  switch (health.state) {
    case 'ejected':
      return health
    case 'trial':
      return ejected
    case 'healthy': {
      const failures = health.failures + 1
      return failures >= options.after && mayLeave ? ejected : { state: 'healthy', failures }
    }
  }
}

/** After a response. Only a trial ends an ejection: a late response to a request sent before it proves nothing. */
export const afterSuccess = (health: TargetHealth, wasTrial: boolean): TargetHealth => {
  if (health.state === 'healthy') return health.failures === 0 ? health : untriedHealth
  return wasTrial ? untriedHealth : health
}

/** A trial that ended without saying anything (the client went away): the next request may try. */
export const afterAbandonedTrial = (health: TargetHealth, nowMs: number): TargetHealth =>
  health.state === 'trial' ? { state: 'ejected', untilMs: nowMs } : health
