import type { Moment } from '../../clock.ts'
import type { NoLeaseReason } from '../events.ts'

const never: Moment = { now: Number.NEGATIVE_INFINITY, monotonic: Number.NEGATIVE_INFINITY }

/** Clocks of two machines may run at slightly different speeds. */
const usedShare = 0.95

/**
 * How long this process may answer from its own memory. Checks two clocks: the monotonic clock stops while a machine is suspended,
 * the wall clock may be set back.
 */
export const createLease = (leaseMs: number) => {
  let until = never
  let refusal: NoLeaseReason = 'unreachable'
  let isFirst = true
  return {
    /** None has been granted yet. */
    get isFirst(): boolean {
      return isFirst
    },
    isCurrent: (at: Moment): boolean => at.monotonic < until.monotonic && at.now < until.now,
    /** `sent`: when the request for the lease was sent; the lease counts from there. */
    granted: (sent: Moment): void => {
      isFirst = false
      const forMs = leaseMs * usedShare
      until = { now: sent.now + forMs, monotonic: sent.monotonic + forMs }
    },
    refused: (reason: NoLeaseReason): void => {
      refusal = reason
    },
    /** Ends the lease: the ledger that granted it is gone. */
    end: (): void => {
      until = never
    },
    get refusal(): NoLeaseReason {
      return refusal
    },
  }
}
