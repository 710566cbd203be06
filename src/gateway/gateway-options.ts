import type { ReloadOutcome } from '../admin/operator.ts'
import type { DrainStart, WorkerLink } from '../cluster/worker-link.ts'
import type { ConfigResult } from '../config/load.ts'
import type { LogLevelChange } from '../observability/logger.ts'
import type { UpstreamIssue } from './upstream-issues.ts'

export type GatewayOptions = {
  /** Identifies the configuration in metrics. */
  readonly configHash: string
  readonly version: string
  /** HTML for `GET /`: the demo says where to go. One of several workers has none. */
  readonly frontPage?: string
  /** Reads the configuration; without it a reload is impossible. */
  readonly readConfig?: () => Promise<ConfigResult>
  /** Ends the program as SIGTERM does, for POST /drain; called once or more. Without it only the gateway is drained. */
  readonly end?: () => void
  /** Where this process is one of several that share the port. */
  readonly worker?: WorkerLink
  /** A level of the log that an operator has set before this process began. */
  readonly logLevel?: LogLevelChange | undefined
  /** The issues of the check at the start, before this process began. */
  readonly findings?: readonly UpstreamIssue[]
}

export type Gateway = {
  /** Origin of the public side, with the port in use. */
  readonly publicAddress: string
  readonly adminAddress: string
  /** Reads the configuration file and applies it completely or not at all. */
  reload(): Promise<ReloadOutcome>
  /** Logs a mismatch between a service and its upstream as a warning, and lists it at /readyz until a reload. */
  warn(issue: UpstreamIssue): void
  /** Logs and counts an uncaught error; call `close` afterwards. */
  faulted(cause: unknown): void
  /** Drains, then closes everything; `cut`: some requests got no response. */
  drain(start?: DrainStart): Promise<'finished' | 'cut'>
  /** As `drain`, without the result. */
  close(): Promise<void>
}
