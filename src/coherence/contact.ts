/** Whether the ledger can be reached; times are readings of the monotonic clock. */
export type Contact = {
  succeeded(): void
  failed(now: number): void
  /** To be called often: a process that was stopped has not been looking for the ledger meanwhile. */
  tick(now: number): void
  isFailing(): boolean
  /** True once in each outage: what is the same for every write is told once. */
  isNews(): boolean
  /** Has it been looked for in vain for so long that nobody can trust its memory any more? */
  isIsolated(now: number): boolean
}

/** After so many leases without a word from a member nobody trusts its memory (docs/decisions/0007, 7). */
const isolatedAfterLeases = 3

/** `canBeCutOff` false: who cannot reach the ledger is about to end, and waits for it until then. */
export const createContact = (leaseMs: number, canBeCutOff: boolean): Contact => {
  let failingSince: number | undefined
  let lastTick = Number.POSITIVE_INFINITY
  let isTold = false
  return {
    succeeded: () => {
      failingSince = undefined
      isTold = false
    },
    failed: (now) => {
      failingSince ??= now
    },
    tick: (now) => {
      if (now - lastTick > leaseMs && failingSince !== undefined) failingSince = now
      lastTick = now
    },
    isFailing: () => failingSince !== undefined,
    isNews: () => {
      const wasTold = isTold
      isTold = true
      return !wasTold
    },
    isIsolated: (now) =>
      canBeCutOff &&
      // What is due first after a stop may not be the tick: nothing is known until that has looked.
      now - lastTick <= leaseMs &&
      failingSince !== undefined &&
      now - failingSince >= isolatedAfterLeases * leaseMs,
  }
}
