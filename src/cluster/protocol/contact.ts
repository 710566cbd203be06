/** No lease outlasts a silent member by more than this many lease times (docs/decisions/0007, 7). */
const isolatedAfterLeases = 3

/**
 * Whether the ledger can be reached; times are readings of the monotonic clock. `canBeCutOff` false: a process that cannot reach the
 * ledger is about to exit, and waits until then.
 */
export const createContact = (leaseMs: number, canBeCutOff: boolean) => {
  let failingSince: number | undefined
  let lastTick = Number.POSITIVE_INFINITY
  let isReported = false
  return {
    succeeded: (): void => {
      failingSince = undefined
      isReported = false
    },
    failed: (now: number): void => {
      failingSince ??= now
    },
    /** Call it regularly: a process that was suspended has not tried to reach the ledger meanwhile. */
    tick: (now: number): void => {
      if (now - lastTick > leaseMs && failingSince !== undefined) failingSince = now
      lastTick = now
    },
    isFailing: (): boolean => failingSince !== undefined,
    /** True once in each outage, so that an outage is reported once. */
    isNews: (): boolean => {
      const wasReported = isReported
      isReported = true
      return !wasReported
    },
    /** Has the ledger been unreachable for longer than any lease can last? */
    isIsolated: (now: number): boolean =>
      canBeCutOff &&
      // After a suspension another timer may fire before the tick: wait for the tick.
      now - lastTick <= leaseMs &&
      failingSince !== undefined &&
      now - failingSince >= isolatedAfterLeases * leaseMs,
  }
}
