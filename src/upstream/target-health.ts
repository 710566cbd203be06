/** What the answers of a target say about it. Times are monotonic milliseconds. */
export type TargetHealth =
  | { readonly state: 'healthy'; readonly failures: number }
  | { readonly state: 'ejected'; readonly untilMs: number }
  /** The time is over and one request has been sent to find out. */
  | { readonly state: 'trial' }

/** What a target may be used for now. */
export type Standing = 'usable' | 'trial-due' | 'out'

export type EjectOptions = { readonly after: number; readonly forMs: number; readonly maxShare: number }

/** Health after an event, and what is worth reporting about it. */
export type HealthChange = {
  readonly health: TargetHealth
  readonly change: 'ejected' | 'ejection-withheld' | 'returned' | 'none'
}

/** The state of a target about which nothing is known yet. */
export const untriedHealth: TargetHealth = { state: 'healthy', failures: 0 }

/** What the target may be used for at `nowMs`. */
export const standingOf = (health: TargetHealth, nowMs: number): Standing => {
  switch (health.state) {
    case 'healthy':
      return 'usable'
    case 'trial':
      return 'out'
    case 'ejected':
      return nowMs >= health.untilMs ? 'trial-due' : 'out'
  }
}

/** Would it have left, were it not for the share that must stay? */
const fails = (health: TargetHealth, after: number): boolean =>
  health.state !== 'healthy' || health.failures >= after

/** Is nothing to be expected of an upstream: left alone as a whole, or none of its targets well? */
export const isDown = (
  breaker: 'closed' | 'open' | 'half-open',
  targets: readonly { readonly health: TargetHealth; readonly probeFailed: boolean }[],
  after: number,
): boolean =>
  breaker !== 'closed' || targets.every(({ health, probeFailed }) => probeFailed || fails(health, after))

/** May one more of `total` targets leave when `out` are out already? One that is alone never does. */
export const mayEject = (out: number, total: number, maxShare: number): boolean =>
  out + 1 <= Math.floor(total * maxShare)

/** After a failed attempt: counts, ejects after too many in a row, ejects again when the trial failed. */
export const afterFailure = (
  health: TargetHealth,
  nowMs: number,
  options: EjectOptions,
  mayLeave: boolean,
): HealthChange => {
  switch (health.state) {
    case 'ejected':
      return { health, change: 'none' }
    case 'trial':
      return { health: { state: 'ejected', untilMs: nowMs + options.forMs }, change: 'ejected' }
    case 'healthy': {
      const failures = health.failures + 1
      if (failures < options.after) return { health: { state: 'healthy', failures }, change: 'none' }
      if (mayLeave) return { health: { state: 'ejected', untilMs: nowMs + options.forMs }, change: 'ejected' }
      // Reported once, when the limit is reached, not with every further failure.
      return {
        health: { state: 'healthy', failures },
        change: failures === options.after ? 'ejection-withheld' : 'none',
      }
    }
  }
}

/** After an answer. Only a trial ends an ejection: a late answer to a request sent before it proves nothing. */
export const afterSuccess = (health: TargetHealth, wasTrial: boolean): HealthChange => {
  if (health.state === 'healthy') {
    return { health: health.failures === 0 ? health : untriedHealth, change: 'none' }
  }
  return wasTrial ? { health: untriedHealth, change: 'returned' } : { health, change: 'none' }
}

/** A trial that ended without saying anything (the client went away): the next request may try. */
export const afterAbandonedTrial = (health: TargetHealth, nowMs: number): TargetHealth =>
  health.state === 'trial' ? { state: 'ejected', untilMs: nowMs } : health
