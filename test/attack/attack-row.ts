import type { Scene } from './scene.ts'

/** What the honest reader counted in one phase of a run. Times are milliseconds. */
export type Readings = {
  readonly requests: number
  /** What came instead of a response 200 and how often, e.g. `503` or `no response`. */
  readonly failures: Readonly<Record<string, number>>
  /** Reads of stored responses that were not answered from the cache. */
  readonly lostHits: number
  readonly missP99: number
  readonly missMax: number
  readonly hitP99: number
  readonly hitMax: number
  /** Reads of the upstream without the gateway: what these take longer than on the idle machine is no fault of the gateway. */
  readonly directP99: number
  readonly directMax: number
}

export type Memory = {
  /** Resident memory of all processes of the gateway when the attack began, and the most of it since. */
  readonly beforeMiB: number
  readonly peakMiB: number
  /** Most that `trellis_cache_bytes` showed. */
  readonly cacheMiB: number
}

/** All that a verdict is made of. */
export type Seen<Found> = {
  readonly found: Found
  readonly idle: Readings
  readonly meanwhile: Readings
  readonly memory: Memory
  /** Longest turn of the event loop in milliseconds of processor time; 0 when none was longer than 20. */
  readonly turnMs: number
}

/** Why an attack worked. One about latency alone is tried once more: the machine may have been busy. */
export type Fault = { readonly text: string; readonly isLatency: boolean }

export type Reads = { readonly miss: string; readonly hit: string }

export type Tree = { readonly [key: string]: unknown }

export type AttackRow<Found = unknown> = {
  readonly name: string
  /** One plain sentence. */
  readonly description: string
  /** Why it cannot be run here; undefined when it can. */
  readonly missing?: () => string | undefined
  readonly env?: Readonly<Record<string, string>>
  /** Services of the configuration and what else differs from a plain one. */
  readonly settings: (scene: Pick<Scene, 'upstream' | 'resources'>) => Promise<Tree> | Tree
  /** Targets of the honest reader; `{n}` is a number that is never used again. */
  readonly reads?: Reads
  /** Is over soon after the signal, at the latest. */
  readonly attack: (scene: Scene, signal: AbortSignal) => Promise<Found>
  readonly verdict: (seen: Seen<Found>) => readonly Fault[]
}

/** Checks the row with the type of what its own attack finds; the table holds rows of all types. */
export const row = <Found>(attack: AttackRow<Found>): AttackRow => attack as AttackRow

export const fault = (text: string): Fault => ({ text, isLatency: false })

export const faultsOf = (texts: readonly string[]): readonly Fault[] => texts.map(fault)

/** What holds in every row: no request of the honest reader fails. */
export const failedReads = ({ meanwhile }: Seen<unknown>): readonly Fault[] => {
  const kinds = Object.entries(meanwhile.failures)
  if (kinds.length === 0) return []
  return [fault(`honest requests failed: ${kinds.map(([kind, count]) => `${count} x ${kind}`).join(', ')}`)]
}

/** By how much more the machine itself takes while others use it; twice, since a request through the gateway has two ways. */
const machineP99 = ({ idle, meanwhile }: Seen<unknown>): number =>
  2 * Math.max(0, meanwhile.directP99 - idle.directP99 || 0)
const machineMax = ({ idle, meanwhile }: Seen<unknown>): number =>
  2 * Math.max(0, meanwhile.directMax - idle.directMax || 0)

/** What holds in every row: honest requests may take twice as long as on the idle gateway and so much more. */
export const slowReads = (seen: Seen<unknown>, slackMs: number): readonly Fault[] => {
  const { idle, meanwhile } = seen
  const faultOf = (kind: 'misses' | 'hits', idleP99: number, p99: number): readonly Fault[] =>
    p99 <= 2 * idleP99 + slackMs + machineP99(seen)
      ? []
      : [
          {
            text: `p99 of honest ${kind} ${Math.round(p99)} ms, idle ${Math.round(idleP99)} ms`,
            isLatency: true,
          },
        ]
  return [
    ...faultOf('misses', idle.missP99, meanwhile.missP99),
    ...faultOf('hits', idle.hitP99, meanwhile.hitP99),
  ]
}

/** The event loop of the gateway was blocked for longer than this, in milliseconds. */
export const blockedFor =
  (max: number) =>
  (seen: Seen<unknown>): readonly Fault[] => {
    const { idle, meanwhile } = seen
    const longest = Math.max(meanwhile.hitMax, meanwhile.missMax)
    const usual = Math.max(idle.hitMax, idle.missMax)
    if (longest <= usual + max + machineMax(seen)) return []
    return [
      {
        text: `an honest request took ${Math.round(longest)} ms, idle at most ${Math.round(usual)}`,
        isLatency: true,
      },
    ]
  }

export const riseAbove =
  (maxMiB: number) =>
  ({ memory }: Seen<unknown>): readonly Fault[] => {
    const rise = Math.round(memory.peakMiB - memory.beforeMiB)
    return rise <= maxMiB ? [] : [fault(`resident memory rose by ${rise} MiB, more than ${maxMiB}`)]
  }

/** What a gateway with a cache of 64 MiB may have: 120 MiB of its own, the cache, as much garbage, and 16 MiB of bodies for one address. */
export const maxResidentMiB = 264

export const residentAbove =
  (maxMiB: number) =>
  ({ memory }: Seen<unknown>): readonly Fault[] =>
    memory.peakMiB <= maxMiB
      ? []
      : [fault(`resident memory rose to ${Math.round(memory.peakMiB)} MiB, more than ${maxMiB}`)]

export const lostHits = ({ meanwhile }: Seen<unknown>): readonly Fault[] =>
  meanwhile.lostHits === 0 ? [] : [fault(`${meanwhile.lostHits} reads of a stored response were no hits`)]

/** Several demands in one verdict. */
export const all =
  <Found>(...demands: readonly ((seen: Seen<Found>) => readonly Fault[])[]) =>
  (seen: Seen<Found>): readonly Fault[] =>
    demands.flatMap((demand) => demand(seen))
