import type { Config } from '../config/config.ts'
import type { ConfigResult } from '../config/load.ts'

/** A gateway that accepts requests. */
export type RunningGateway = {
  /** Origin of the public side, with the port that was really taken. */
  readonly publicAddress: string
  readonly adminAddress: string
  /** Applies the present content of the configuration file, as a whole or not at all, and logs the outcome. */
  reload(): Promise<unknown>
  /** Logs a mismatch between a service and its upstream as a warning. */
  warn(finding: UpstreamFinding): void
  /** Logs and counts an uncaught error. */
  faulted(cause: unknown): void
  /** Drains, then closes everything; `cut`: some requests in flight were not answered. */
  drain(): Promise<'finished' | 'cut'>
}

type StartOptions = {
  /** Names the configuration in metrics and logs. */
  readonly configHash: string
  readonly version: string
  /** The configuration file with environment and secrets filled in, for worker processes. */
  readonly filled: unknown
  /** Reads the configuration again. */
  readonly readConfig: () => Promise<ConfigResult>
}

/** One line of `trellis routes`. */
type RouteLine = {
  readonly method: string
  readonly path: string
  readonly service: string
  /** How responses are cached, in few words; `-` when they are not. */
  readonly cached: string
  readonly batchable: boolean
  readonly source: 'contract' | 'learned'
}

/** The lines of `trellis routes`, and the upstreams whose index could not be read. */
export type RouteReport = {
  readonly lines: readonly RouteLine[]
  readonly unread: readonly { readonly service: string; readonly reason: string }[]
}

/** A mismatch between a service and its upstream. */
export type UpstreamFinding = { readonly service: string; readonly kind: string; readonly text: string }

/** One difference between what an upstream announces and its contract. */
export type DriftLine = {
  readonly kind: string
  readonly route: string
  readonly method?: string
  readonly argument?: string
  readonly keyword?: string
  readonly ours?: unknown
  readonly theirs?: unknown
}

/** The outcome of comparing one service with its upstream. */
export type ServiceDriftLines = {
  readonly service: string
  readonly outcome:
    | { readonly kind: 'compared'; readonly differences: readonly DriftLine[] }
    | { readonly kind: 'unread'; readonly reason: string }
}

/** A request that `trellis explain` asks about. */
export type ExplainedRequest = {
  readonly method: string
  readonly target: string
  /** Lower-case names. */
  readonly fields: Readonly<Record<string, string>>
}

/** What would happen to a request: aspects in the order in which they are printed. */
export type Explanation = Readonly<Record<string, unknown>>

export type TextOutput = { write(text: string): unknown }

/** The environment of the command line; tests replace it. */
export type CliPorts = {
  /** Without the program's own name. */
  readonly argv: readonly string[]
  readonly env: Readonly<Record<string, string | undefined>>
  readonly stdout: TextOutput
  readonly stderr: TextOutput
  readonly version: string
  /** The configuration that a worker got from its parent; then no file is read. */
  readonly handedConfig: ConfigResult | undefined
  /** Read when neither `-c` nor TRELLIS_CONFIG names a file. */
  readonly defaultFile: string | undefined
  startGateway(config: Config, options: StartOptions): Promise<RunningGateway>
  /** `learn`: with the routes that upstreams announce beside the contract, which takes one request to each site's upstream. */
  describeRoutes(config: Config, learn: boolean): Promise<RouteReport>
  /** Sends a few GETs to each upstream; never rejects. */
  upstreamFindings(config: Config): Promise<readonly UpstreamFinding[]>
  /** Sends one request to each upstream. */
  driftReport(config: Config): Promise<readonly ServiceDriftLines[]>
  /** `learn`: as for `describeRoutes`. */
  explain(config: Config, request: ExplainedRequest, learn: boolean): Promise<Explanation>
  /** Reloads when one of the files changes; a reload may change the list of files. */
  reloadOnChange(gateway: RunningGateway, files: () => readonly string[], pollMs: number): void
  /** From then on signals stop and reload the gateway, and POST /drain of the admin side ends it. */
  stopOnSignal(gateway: RunningGateway, graceMs: number): void
}
