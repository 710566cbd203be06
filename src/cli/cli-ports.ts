import type { Config } from '../config/config.ts'

/** A gateway that accepts requests. */
export type RunningGateway = {
  /** Origin of the public side, with the port that was really taken. */
  readonly publicAddress: string
  readonly adminAddress: string
  /** Drains, then closes everything that was opened. */
  close(): Promise<void>
}

type StartOptions = {
  /** Tells configurations apart in metrics and logs. */
  readonly configHash: string
  /** Undefined when the built-in defaults hold. */
  readonly configFile: string | undefined
  readonly version: string
}

/** One line of `trellis routes`. */
type RouteLine = {
  readonly method: string
  readonly path: string
  readonly service: string
  /** How answers are cached, in few words; `-` when they are not. */
  readonly cached: string
  readonly batchable: boolean
}

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
  /** Read when neither `-c` nor TRELLIS_CONFIG names a file; undefined when there is none either. */
  readonly defaultFile: string | undefined
  startGateway(config: Config, options: StartOptions): Promise<RunningGateway>
  describeRoutes(config: Config): readonly RouteLine[] | Promise<readonly RouteLine[]>
  /** Asks the upstreams, once each. */
  driftReport(config: Config): Promise<readonly ServiceDriftLines[]>
  explain(config: Config, request: ExplainedRequest): Explanation | Promise<Explanation>
  /** Called once the gateway runs: from then on signals stop it. */
  stopOnSignal(gateway: RunningGateway, graceMs: number): void
}
