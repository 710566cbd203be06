import type { Scenario, ScenarioFacts } from './scenarios.ts'

/** One answer with its headers, for peers that serve from memory what Trellis serves from its cache: the same bytes. */
export type ReadyResponse = {
  readonly target: string
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly content: string
}

export type PeerContext = {
  readonly port: number
  readonly originPort: number
  /** A separate folder for configuration files. */
  readonly folder: string
  readonly answers: readonly ReadyResponse[]
  readonly settings?: ScenarioFacts['settings']
  readonly over?: ScenarioFacts['over']
}

/** A response as it was sent: content still coded. */
export type Probe = {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly content: Buffer
}

/** A server to measure. One file each in bench/peers/, listed in bench/peers/index.ts. */
export type Peer = {
  readonly name: string
  readonly title: string
  /** Request target of each scenario that it takes part in. */
  readonly targets: Readonly<Partial<Record<Scenario, string>>>
  /** What is missing on this machine, or undefined. */
  missing(): string | undefined
  /** The command that serves on `port`; must stay in the foreground. */
  command(context: PeerContext): Promise<readonly string[]>
  /** Undefined when a response came the way the scenario says, else what is wrong. */
  check(scenario: Scenario, response: Probe): string | undefined
  /** Has the target of a scenario forgotten. */
  purge?(scenario: Scenario): Promise<void>
}
