import { times } from '../support/breadth.ts'
import type { GatewayProcess } from '../support/gateway-process.ts'
import { type CheckerOptions, createChecker } from './concurrency-checker.ts'

export type ProcessCheckerOptions = Pick<CheckerOptions, 'upstream' | 'longestMs' | 'onStale'> & {
  /** Read anew for each request. */
  readonly gateways: () => readonly GatewayProcess[]
}

/** For gateways that are their own processes, killed or stopped during the run; its time ends it. */
export const createProcessChecker = ({
  gateways,
  ...options
}: ProcessCheckerOptions): ReturnType<typeof createChecker> =>
  createChecker({
    ...options,
    gateways: () =>
      gateways().map(({ origin, adminOrigin }) => ({ publicAddress: origin, adminAddress: adminOrigin })),
    operations: 10_000_000,
    readers: times(12, 24),
    writers: times(3, 6),
    lostAfterMs: 8_000,
    respondedShare: 0.99,
    hangUpShare: 0.01,
    // Readers without a rest take all processors, and the disturbances, which end a short run, take longer.
    readerRestMs: times(200, 16),
    softShare: 0,
  })
