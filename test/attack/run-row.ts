import { setMaxListeners } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { startGatewayProcess } from '../support/gateway-process.ts'
import { longestTurn, reportsLongTurns } from '../support/long-turns.ts'
import { programPid } from '../support/processes.ts'
import {
  type AttackRow,
  type Fault,
  failedReads,
  type Memory,
  type Readings,
  slowReads,
} from './attack-row.ts'
import { watchMemory } from './memory-watch.ts'
import { type Neighbours, Resources } from './scene.ts'
import { openReads } from './services.ts'

export type Outcome = {
  readonly name: string
  readonly description: string
  readonly verdict: 'held' | 'BROKEN' | 'not run'
  /** Why it is broken, or was not run. */
  readonly reasons: readonly string[]
  readonly idle?: Readings
  readonly meanwhile?: Readings
  readonly memory?: Memory
  readonly turnMs?: number
  readonly found?: unknown
  readonly tries: number
}

export type Lengths = {
  /** Of the attack. Those that are counted by requests end when these are sent. */
  readonly seconds: number
  /** For how long the honest reader has the gateway alone first. */
  readonly idleMs: number
  /** By how much more than twice the idle p99 the p99 of honest requests may be. */
  readonly slackMs: number
}

const ofEveryRow = { log: { level: 'info' } }

type Listen = { readonly port?: number; readonly tls?: unknown }

const tryRow = async (
  row: AttackRow,
  neighbours: Neighbours,
  { seconds, idleMs, slackMs }: Lengths,
): Promise<
  { readonly faults: readonly Fault[] } & Pick<Outcome, 'idle' | 'meanwhile' | 'memory' | 'turnMs' | 'found'>
> => {
  const resources = new Resources()
  try {
    const settings = await row.settings({ upstream: neighbours.upstream, resources })
    const gateway = await startGatewayProcess({ ...ofEveryRow, ...settings }, row.env, reportsLongTurns)
    resources.add(() => gateway.stop())
    const listen = settings['listen'] as Listen | undefined
    const origin = listen?.port === undefined ? gateway.origin : `https://127.0.0.1:${listen.port}`
    const memory = await watchMemory(gateway)
    resources.add(() => memory.end())
    const attacked = { origin, pid: await programPid(gateway.program) }
    const reads = row.reads ?? openReads

    // Code is compiled and the read that is to hit has been stored before anything is measured.
    const warmed = neighbours.read(attacked, reads)
    await sleep(idleMs / 2)
    await warmed()
    const idling = neighbours.read(attacked, reads)
    await sleep(idleMs)
    const idle = await idling()

    await memory.begin()
    const reading = neighbours.read(attacked, reads)
    const scene = {
      gateway,
      settings: { ...ofEveryRow, ...settings },
      origin,
      upstream: neighbours.upstream,
      memory,
      resources,
      seconds,
    }
    const signal = AbortSignal.timeout(seconds * 1_000)
    setMaxListeners(0, signal)
    let found: unknown
    const turnMs = await longestTurn(gateway.program, async () => {
      found = await row.attack(scene, signal)
    })
    const seen = { found, idle, meanwhile: await reading(), memory: await memory.read(), turnMs }
    return { ...seen, faults: [...failedReads(seen), ...slowReads(seen, slackMs), ...row.verdict(seen)] }
  } finally {
    await resources.end()
  }
}

const maxTries = 3

/** Runs one attack against its own gateway; a row that is broken by latency alone runs again, because other programs rarely disturb all three runs. */
export const runRow = async (row: AttackRow, neighbours: Neighbours, lengths: Lengths): Promise<Outcome> => {
  const { name, description } = row
  const missing = row.missing?.()
  if (missing !== undefined) {
    return { name, description, verdict: 'not run', reasons: [missing], tries: 0 }
  }
  for (let tries = 1; ; tries += 1) {
    const { faults, ...seen } = await tryRow(row, neighbours, lengths)
    if (tries < maxTries && faults.length > 0 && faults.every(({ isLatency }) => isLatency)) continue
    return {
      name,
      description,
      verdict: faults.length === 0 ? 'held' : 'BROKEN',
      reasons: faults.map(({ text }) => text),
      ...seen,
      tries,
    }
  }
}
