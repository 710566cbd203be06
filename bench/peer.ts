import type { Scenario, ScenarioFacts } from './scenarios.ts'

/** One answer with its fields, for peers that serve from memory what Trellis serves from its cache: the same bytes. */
export type ReadyAnswer = {
  readonly target: string
  readonly status: number
  readonly fields: Readonly<Record<string, string>>
  readonly content: string
}

export type PeerContext = {
  readonly port: number
  readonly originPort: number
  /** A separate folder for configuration files. */
  readonly folder: string
  readonly answers: readonly ReadyAnswer[]
  readonly settings?: ScenarioFacts['settings']
  readonly over?: ScenarioFacts['over']
}

/** An answer as it was sent: content still coded. */
export type Probe = {
  readonly status: number
  readonly fields: Readonly<Record<string, string>>
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
  /** Undefined when an answer came the way the scenario says, else what is wrong. */
  check(scenario: Scenario, answer: Probe): string | undefined
  /** Has the target of a scenario forgotten. */
  purge?(scenario: Scenario): Promise<void>
}
