import type { Writable } from 'node:stream'
import type { DrainStart } from '../cluster/worker-link.ts'
import type { Config } from '../config/config.ts'
import type { ConfigResult } from '../config/load.ts'
import type { Check } from '../gateway/doctor.ts'
import type { ExplainedRequest, Explanation } from '../gateway/explain-sentences.ts'
import type {
  RouteReport,
  ServiceDrift,
  SiteFacts,
  UpstreamFreshness,
  UpstreamIssue,
} from '../gateway/upstream-issues.ts'
import type { Gateway, GatewayOptions } from '../gateway.ts'

export type StartedGateway = Omit<Gateway, 'close'>

type StartOptions = Required<Pick<GatewayOptions, 'configHash' | 'version' | 'readConfig'>> & {
  readonly frontPage?: string
  /** The configuration file with environment and secrets filled in, for worker processes. */
  readonly filled: unknown
}

export type TextOutput = {
  write(text: string): unknown
  /** Of a terminal: its width, and whether it shows colours; NO_COLOR says that it does not. */
  readonly columns?: number
  hasColors?(): boolean
}

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
  /** Read when neither `-c` nor TRELLIS_CONFIG names a file; undefined when there is no such file. */
  readonly defaultFile: string | undefined
  /** Read with `--demo`. */
  readonly demoFile: string
  /** Of the package, whose files `init` copies. */
  readonly packageFolder: URL
  /** Where `init` writes. */
  readonly initFile: string
  /** All of standard input, for `-c -`. */
  readInput(): Promise<string>
  startGateway(config: Config, options: StartOptions): Promise<StartedGateway>
  /** `learn`: with the routes that upstreams announce beside the contract, which takes one request to each site's upstream. */
  describeRoutes(config: Config, learn: boolean): Promise<RouteReport>
  /** Sends a few GETs to the upstreams of sites and of their pages, `all`: to every server of every service; never rejects. */
  upstreamIssues(config: Config, services: 'sites' | 'all'): Promise<readonly UpstreamIssue[]>
  /** Asks the first site of a configuration where its REST API is; never rejects. */
  siteFacts(config: Config): Promise<SiteFacts>
  /** Asks the upstream of the first service for `GET /`: does it say for how long its responses are fresh? Never rejects. */
  upstreamFreshness(config: Config): Promise<UpstreamFreshness>
  /** A gateway with a configuration, on ports of its own and without a word: `init` tries what it has written. */
  startTrial(config: Config): Promise<Pick<Gateway, 'publicAddress' | 'close'>>
  /** What sites announce otherwise than the contract: no fault. */
  upstreamHints(config: Config): Promise<readonly { readonly service: string; readonly text: string }[]>
  /** Sends one request to each upstream. */
  driftReport(config: Config): Promise<readonly ServiceDrift[]>
  /** `learn`: as for `describeRoutes`. */
  explain(config: Config, request: ExplainedRequest, learn: boolean): Promise<Explanation>
  /** Looks at this machine and all that the configuration names; never rejects. */
  examine(config: Config): Promise<readonly Check[]>
  /** Parts of OpenAPI documents that are not checked, one text each. */
  documentHints(config: Config): Promise<readonly { readonly service: string; readonly text: string }[]>
  /** Reloads when one of the files changes; a reload may change the list of files. */
  reloadOnChange(gateway: StartedGateway, files: () => readonly string[], pollMs: number): void
  /** From then on signals stop and reload the gateway, and POST /drain of the admin side ends it. `notice`: what to expect then. */
  stopOnSignal(gateway: StartedGateway, graceMs: number, notice: (start: DrainStart) => string): void
}

/** Exit codes of the process; docs/configuration.md shows the same table. */
export const exitCodes = {
  ok: { code: 0, meaning: 'success; `start`: stopped by a signal, all requests in flight finished' },
  configFaults: { code: 1, meaning: 'the configuration has faults' },
  drift: { code: 1, meaning: '`routes --drift`: a response differs from what an upstream announces' },
  findings: { code: 1, meaning: '`check --upstreams`, `doctor`: something is wrong' },
  notWarmed: { code: 1, meaning: '`warm --wait`: not every URL is stored' },
  notReady: { code: 1, meaning: '`status`: the gateway is not ready' },
  notReloaded: { code: 1, meaning: '`reload`: the gateway refuses the file, or needs a restart for it' },
  usage: { code: 2, meaning: 'wrong command line' },
  notStarted: { code: 3, meaning: 'could not start (port in use, no permission)' },
  crashed: { code: 4, meaning: 'unexpected error while running' },
  forced: { code: 5, meaning: 'stopped with requests in flight: second signal, or end of `drain.timeout`' },
  indexUnread: { code: 6, meaning: '`routes --drift`, `routes --upstreams`: no index from an upstream' },
  adminFailed: {
    code: 7,
    meaning:
      '`status`, `advise`, `purge`, `warm`, `changed`, `reload`: the admin side does not respond, or refuses the request',
  },
  fileExists: { code: 8, meaning: '`init`: the file exists already, or cannot be written' },
} as const satisfies Record<string, { readonly code: number; readonly meaning: string }>

export type ExitReason = keyof typeof exitCodes

/** How a command ends; `running`: it has started a gateway. */
export type End = ExitReason | 'running'

type OutputPorts = { readonly stdout: Writable; readonly stderr: Writable; exit(code: number): void }

/**
 * Handles failed writes, which would otherwise end the process with a stack trace. Only commands that print and end write to
 * stdout here (the log of a gateway has its own stream); losing messages on stderr is accepted.
 */
export const handleOutputErrors = ({ stdout, stderr, exit }: OutputPorts): void => {
  stderr.on('error', () => {})
  stdout.on('error', ({ code, message }: NodeJS.ErrnoException) => {
    // The reader closed the pipe, as in `trellis schema | head`.
    if (code === 'EPIPE') return
    stderr.write(`trellis: cannot write to stdout: ${message}\n`)
    exit(exitCodes.crashed.code)
  })
}
