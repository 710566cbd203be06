const windowSeconds = 10

/** Retries as a share of the requests of the last ten seconds, so that a failing upstream is never asked much more than usual. */
export type RetryBudget = {
  /** A request arrived (not a retry). */
  requested(nowMs: number): void
  /** Takes one retry out of the budget, or says that none is left. */
  take(nowMs: number): boolean
}

/**
 * With little traffic a share rounds to nothing, so up to three retries in the window are allowed anyway;
 * in total the bound is max(3, share × requests) per window. A share of 0 allows none.
 */
export const createRetryBudget = (share: number): RetryBudget => {
  const floor = share > 0 ? 3 : 0
  const requests = new Array<number>(windowSeconds).fill(0)
  const retries = new Array<number>(windowSeconds).fill(0)
  let second = 0

  const advance = (nowMs: number): number => {
    const current = Math.floor(nowMs / 1000)
    const steps = Math.min(current - second, windowSeconds)
    for (let i = 1; i <= steps; i += 1) {
      requests[(second + i) % windowSeconds] = 0
      retries[(second + i) % windowSeconds] = 0
    }
    if (steps === windowSeconds) {
      requests.fill(0)
      retries.fill(0)
    }
    second = Math.max(second, current)
    return second % windowSeconds
  }

  const sum = (counts: readonly number[]): number => counts.reduce((total, count) => total + count, 0)
  const count = (counts: number[], at: number): void => {
    counts[at] = (counts[at] ?? 0) + 1
  }

  return {
    requested(nowMs) {
      count(requests, advance(nowMs))
    },
    take(nowMs) {
      const at = advance(nowMs)
      if (sum(retries) + 1 > Math.max(floor, share * sum(requests))) return false
      count(retries, at)
      return true
    },
  }
}
