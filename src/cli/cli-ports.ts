import type { Config } from '../config/config.ts'
import type { ConfigResult } from '../config/load.ts'

/** A gateway that accepts requests. */
export type RunningGateway = {
  /** Origin of the public side, with the port that was really taken. */
  readonly publicAddress: string
  readonly adminAddress: string
  /** Puts the configuration in force that its file holds now, as a whole or not at all, and tells of it. */
  reload(): Promise<unknown>
  /** Logs, as a warning, what does not fit between a service and its upstream. */
  warn(finding: UpstreamFinding): void
  /** Writes down and counts an error that nothing caught. */
  faulted(cause: unknown): void
  /** Drains, then closes everything that was opened; `cut`: not everybody who was waiting got an answer. */
  drain(): Promise<'finished' | 'cut'>
}

type StartOptions = {
  /** Tells configurations apart in metrics and logs. */
  readonly configHash: string
  /** Undefined when the built-in defaults hold. */
  readonly configFile: string | undefined
  readonly version: string
  /** What the configuration was made of, for processes that are to have the same one. */
  readonly filled: unknown
  /** Reads the configuration anew. */
  readonly readConfig: () => Promise<ConfigResult>
}

/** One line of `trellis routes`. */
type RouteLine = {
  readonly method: string
  readonly path: string
  readonly service: string
  /** How answers are cached, in few words; `-` when they are not. */
  readonly cached: string
  readonly batchable: boolean
  readonly source: 'contract' | 'learned'
}

/** What `trellis routes` shows, and of which upstreams nothing could be learned. */
export type RouteReport = {
  readonly lines: readonly RouteLine[]
  readonly unread: readonly { readonly service: string; readonly reason: string }[]
}

/** What does not fit between a service and its upstream. */
export type UpstreamFinding = { readonly service: string; readonly kind: string; readonly text: string }

/** One thing that an upstream announces otherwise than its contract says. */
export type DriftLine = {
  readonly kind: string
  readonly route: string
  readonly method?: string
  readonly argument?: string
  readonly keyword?: string
  readonly ours?: unknown
  readonly theirs?: unknown
}

/** What asking the upstream of one service came to. */
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

/** What would happen to a request, aspect by aspect, in the order to show. */
export type Explanation = Readonly<Record<string, unknown>>

/** Where lines of text go. */
export type TextOutput = { write(text: string): unknown }

/** Everything the command line needs of the world, so that it can be run without one. */
export type CliPorts = {
  /** Without the program's own name. */
  readonly argv: readonly string[]
  readonly env: Readonly<Record<string, string | undefined>>
  readonly stdout: TextOutput
  readonly stderr: TextOutput
  readonly version: string
  /** Handed to this process by its parent; no file is read then. */
  readonly given: ConfigResult | undefined
  /** Read when neither `-c` nor TRELLIS_CONFIG names a file; undefined when there is none either. */
  readonly defaultFile: string | undefined
  startGateway(config: Config, options: StartOptions): Promise<RunningGateway>
  /** `learn`: with the routes that upstreams announce beside the contract, which takes one request to each site's upstream. */
  describeRoutes(config: Config, learn: boolean): Promise<RouteReport>
  /** Asks the upstreams a few GETs each; never rejects. */
  upstreamFindings(config: Config): Promise<readonly UpstreamFinding[]>
  /** Asks the upstreams, once each. */
  driftReport(config: Config): Promise<readonly ServiceDriftLines[]>
  /** `learn`: as for `describeRoutes`. */
  explain(config: Config, request: ExplainedRequest, learn: boolean): Promise<Explanation>
  /** Called once the gateway runs: a change of these files, which may be others after a reload, reloads. */
  reloadOnChange(gateway: RunningGateway, files: () => readonly string[], pollMs: number): void
  /** Called once the gateway runs: from then on signals stop and reload it, and what an operator asks for by the admin side ends it. */
  stopOnSignal(gateway: RunningGateway, graceMs: number): void
}
