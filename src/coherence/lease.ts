import type { DistrustReason } from './events.ts'

/** One reading of both clocks of this machine. */
export type Moment = { readonly now: number; readonly monotonic: number }

/** How long this process may trust its memory. */
export type Lease = {
  isCurrent(at: Moment): boolean
  /** From before the message was sent that asked for it. */
  granted(sent: Moment): void
  refused(reason: DistrustReason): void
  /** What it was granted for is no longer there. */
  end(): void
  /** Why there was none the last time. */
  readonly refusal: DistrustReason
}

const never: Moment = { now: Number.NEGATIVE_INFINITY, monotonic: Number.NEGATIVE_INFINITY }

/** Clocks of two machines may run at slightly different speeds. */
const usedShare = 0.95

/** By two clocks: the monotonic one stands still while a machine is suspended, the other one may be set back. */
export const createLease = (leaseMs: number): Lease => {
  let until = never
  let refusal: DistrustReason = 'unreachable'
  return {
    isCurrent: (at) => at.monotonic < until.monotonic && at.now < until.now,
    granted: (sent) => {
      const forMs = leaseMs * usedShare
      until = { now: sent.now + forMs, monotonic: sent.monotonic + forMs }
    },
    refused: (reason) => {
      refusal = reason
    },
    end: () => {
      until = never
    },
    get refusal() {
      return refusal
    },
  }
}
