import type { OutgoingHttpHeaders } from 'node:http'

/** What is measured: an answer from the cache, or one that is fetched from the origin each time. */
export type Scenario = 'hit' | 'pass'

export const scenarios: readonly { readonly name: Scenario; readonly title: string }[] = [
  { name: 'hit', title: 'cache hit, 2 kB of JSON' },
  { name: 'pass', title: 'pass-through, 2 kB of JSON' },
]

/** One answer with its fields, for peers that serve from memory what Trellis serves from its cache: the same bytes. */
export type ReadyAnswer = { readonly fields: OutgoingHttpHeaders; readonly content: string }

type PeerContext = {
  readonly port: number
  readonly originPort: number
  /** A folder of its own for configuration files. */
  readonly folder: string
  readonly answer: ReadyAnswer | undefined
}

/** A server to measure. One file each in bench/peers/, listed in bench/peers/index.ts. */
export type Peer = {
  readonly name: string
  readonly title: string
  readonly scenarios: readonly Scenario[]
  /** What is missing on this machine, or undefined. */
  missing(): string | undefined
  /** The command that serves on `port`; must stay in the foreground. */
  command(context: PeerContext): Promise<readonly string[]>
  /** Request target of a scenario. */
  target(scenario: Scenario): string
  /** How to tell that an answer came the way the scenario says; undefined when it did, else what is wrong. */
  check(scenario: Scenario, answer: Response): string | undefined
}
