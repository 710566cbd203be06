import { createSlidingCount } from './sliding-count.ts'

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
