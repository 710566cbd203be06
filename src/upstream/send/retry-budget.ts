import { createSlidingCount } from '../sliding-count.ts'

const windowMs = 10_000

/** Retries as a share of the requests of the last ten seconds, so that a failing upstream never gets many more requests than usual. */
export type RetryBudget = {
  /** A request arrived (not a retry). */
  requested(nowMs: number): void
  /** Takes one retry out of the budget; false when none is left. */
  take(nowMs: number): boolean
  /** Retries that `take` would grant now. */
  left(nowMs: number): number
}

/**
 * With little traffic a share rounds to nothing, so up to three retries in the window are allowed anyway;
 * in total the bound is max(3, share × requests) per window. A share of 0 allows none.
 */
export const createRetryBudget = (share: number): RetryBudget => {
  const floor = share > 0 ? 3 : 0
  const requests = createSlidingCount(windowMs)
  const retries = createSlidingCount(windowMs)
  const left = (nowMs: number): number =>
    Math.max(0, Math.floor(Math.max(floor, share * requests.total(nowMs)) - retries.total(nowMs)))
  return {
    left,
    requested: (nowMs) => requests.add(nowMs),
    take(nowMs) {
      if (left(nowMs) < 1) return false
      retries.add(nowMs)
      return true
    },
  }
}
