import type { Clock } from '../clock.ts'
import type { Config } from '../config/config.ts'
import type { Metrics } from '../metrics/create-metrics.ts'
import type { WorkerLink } from '../workers/worker-link.ts'

/** The part of a logger that is needed here. */
export type MembershipLog = {
  info(facts: object, message: string): void
  warn(facts: object, message: string): void
}

export type MembershipParts = {
  readonly config: Config
  readonly clock: Clock
  readonly logger: MembershipLog
  readonly metrics: Metrics
  /** Where this process is one of several that share a port. */
  readonly worker: WorkerLink | undefined
}
