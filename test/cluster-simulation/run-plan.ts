import { settledInFrontMs, settledMs } from './client-writes.ts'
import { createClients } from './clients.ts'
import { createCluster } from './cluster.ts'
import { createFaults } from './faults.ts'
import { createHistory } from './history.ts'
import type { Action, Plan } from './plan.ts'
import { createFront } from './receivers/front.ts'
import { createNext } from './receivers/next.ts'
import { createTagStore } from './receivers/tag-store.ts'
import { network } from './redis/network.ts'
import { items } from './services/interface.ts'
import { interfaceOf } from './services/services.ts'
import { createUpstream } from './upstream.ts'
import { world } from './world.ts'

export type Outcome = {
  /** A read that was older than an acknowledged write; undefined: there was none. */
  readonly violation: string | undefined
  /** Depends on every step, its time and what was read. */
  readonly digest: string
  readonly steps: number
  readonly reads: number
  readonly hits: number
  /** Those of `reads` that the cache in front answered itself. */
  readonly frontHits: number
  readonly writes: number
  readonly batches: number
  readonly faults: number
  readonly trace: readonly string[]
  /** Each read and each write in a line, as test/histories/check-history.go reads it; none unless it is asked for. */
  readonly history: readonly string[]
}

const stepsPerTurn = 128

/** Each step has a turn of the event loop of its own, in which everything that it causes happens. */
const untilOver = (until: number, isOver: () => boolean): Promise<void> =>
  new Promise((resolve, reject) => {
    let isDone = false
    const one = (): void => {
      if (isDone) return
      try {
        isDone = isOver() || !world.advance(until)
        if (isDone) resolve()
      } catch (error) {
        isDone = true
        reject(error)
      }
    }
    const many = (): void => {
      if (isDone) return
      for (let i = 0; i < stepsPerTurn; i += 1) globalThis.setImmediate(one)
      globalThis.setImmediate(many)
    }
    many()
  })

/** Runs everything that the plan says, and stops at the first read that is too old. */
export const runPlan = async (plan: Plan, isTraced = false, isRecorded = false): Promise<Outcome> => {
  world.start(plan.seed, isTraced)
  network.start(plan.roughness)
  const service = interfaceOf(plan.settings.contract, plan.settings.hasGraphql)
  const history = createHistory(plan.seed, service, isRecorded)
  const upstream = createUpstream(plan, service, history.changed)
  let lostAt = Number.NEGATIVE_INFINITY
  let awayAt = Number.NEGATIVE_INFINITY
  let faults = 0
  const cluster = createCluster(plan)
  const { frontKind } = plan.settings
  const front = createFront(frontKind === 'next' ? createNext() : createTagStore(frontKind))
  const { slots } = cluster
  const clients = createClients({
    ...{ plan, service, upstream, slots, history, front },
    lostAt: () => lostAt,
    awayAt: () => awayAt,
  })
  const fault = createFaults(
    plan,
    { cluster, front },
    {
      lost: () => {
        lostAt = world.now
      },
      away: (until) => {
        awayAt = Math.max(awayAt, until)
      },
    },
  )

  const act = (action: Action): void => {
    switch (action.does) {
      case 'read':
        clients.read(cluster.at(action.slot), clients.resourceOf(action.item), action.leavesAfterMs)
        return
      case 'read-front':
        clients.readFront(cluster.at(action.slot), clients.resourceOf(action.item))
        return
      case 'write':
        clients.write(cluster.at(action.slot), action)
        return
      case 'batch':
        clients.batch(cluster.at(action.slot), action)
        return
      case 'purge':
        clients.purge(cluster.at(action.slot), action.item, action.what)
        return
      default:
        faults += 1
        fault(action)
    }
  }
  for (const action of plan.actions)
    world.schedule(action.at, undefined, `action: ${action.does}`, () => act(action))
  const readAt = plan.endsAt + settledMs(plan.settings) + (plan.settings.hasFront ? settledInFrontMs : 0)
  world.schedule(readAt, undefined, 'all is read', () => {
    for (const item of items) clients.probe(item)
  })
  await untilOver(readAt + 500, () => clients.violation() !== undefined)
  cluster.end()
  return {
    violation: clients.violation(),
    digest: world.digest(),
    steps: world.steps,
    ...clients.counts(),
    faults,
    trace: world.trace,
    history: history.lines,
  }
}
