import type { SimulatedCluster, Slot } from './cluster.ts'
import type { FaultAction, Plan } from './plan.ts'
import type { Front } from './receivers/front.ts'
import { network } from './redis/network.ts'
import { world } from './world.ts'

const later = (ms: number, kind: string, run: () => void): void => {
  world.schedule(world.now + ms, undefined, kind, run)
}

const pause = ({ process }: Slot, ms: number, isSuspended: boolean): void => {
  if (process === undefined || process.isPaused) return
  process.isPaused = true
  const { wallErrorMs } = process
  later(ms, 'a process continues', () => {
    if (isSuspended) {
      process.suspendedMs += ms
      // Nothing sets the clock of a suspended machine (docs/scale.md).
      process.wallErrorMs = wallErrorMs
    }
    world.resume(process)
  })
}

type Partition = Extract<FaultAction, { does: 'partition' }>

/** What is on its way when it begins still arrives. */
const partition = ({ machine }: Slot, { ms, sluggishMs, way }: Partition, leaseMs: number): void => {
  const until = world.now + ms
  machine.sluggishUntil = world.now + sluggishMs
  machine.sluggishMs = (world.randomFor(`sluggish ${world.now}`)() < 0.5 ? 0.8 : 5) * leaseMs
  later(sluggishMs, 'a partition', () => {
    if (way !== 'back') machine.outUntil = Math.max(machine.outUntil, until)
    if (way !== 'out') machine.backUntil = Math.max(machine.backUntil, until)
  })
}

/** Faults of Redis; `lost`: it has lost data. */
const createRedisFaults = ({ addServer }: Pick<SimulatedCluster, 'addServer'>, lost: () => void) => {
  const random = world.randomFor('faults')
  return {
    restart: (ms: number, lagMs: number, keeps: boolean): void => {
      const { server } = network
      if (server?.isUp !== true) return
      const saved = server.store.copy()
      later(lagMs, 'redis ends', () => {
        if (!server.isUp) return
        lost()
        server.stop()
        later(ms, 'redis starts', () => {
          server.store.restore(keeps ? saved : new Map())
          server.restart()
          lost()
        })
      })
    },
    failOver: (lagMs: number, splitMs: number): void => {
      const old = network.server
      if (old === undefined) return
      const saved = old.store.copy()
      later(lagMs, 'redis fails over', () => {
        if (network.server !== old) return
        const next = addServer()
        next.store.restore(saved)
        network.server = next
        lost()
        // Some connections find the new one at once.
        for (const line of [...old.lines]) if (splitMs === 0 || random() < 0.5) line.cut(false)
        later(splitMs, 'the old redis ends', () => {
          old.stop()
          lost()
        })
      })
    },
    failBack: (ms: number): void => {
      const old = network.server
      if (old === undefined) return
      const next = addServer()
      next.store.restore(old.store.copy())
      network.server = next
      old.cutAll()
      lost()
      later(ms, 'redis fails back', () => {
        if (network.server !== next || !old.isUp) return
        old.promote()
        network.server = old
        next.stop()
        lost()
      })
    },
    pause: (ms: number): void => {
      const { server } = network
      server?.pause()
      later(ms, 'redis continues', () => server?.resume())
    },
    refuse: (ms: number, error: string): void => {
      const { server } = network
      if (server === undefined) return
      server.refusal = error
      later(ms, 'redis is well again', () => {
        server.refusal = undefined
      })
    },
    loseKey: (key: string): void => {
      network.server?.store.delete(key)
      lost()
    },
  }
}

type Handlers = {
  readonly [Does in FaultAction['does']]: (action: Extract<FaultAction, { does: Does }>) => void
}

/** `lost`: Redis has lost data; `away`: it cannot be reached until then. */
type RedisFault = { readonly lost: () => void; readonly away: (until: number) => void }

/** What each fault does. */
export const createFaults = (
  plan: Plan,
  { cluster, front }: { readonly cluster: SimulatedCluster; readonly front: Front },
  redisFault: RedisFault,
) => {
  const { linesOf, kill, startInstance } = cluster
  const redis = createRedisFaults(cluster, redisFault.lost)
  const away = (ms: number): void => redisFault.away(world.now + ms)

  /** A worker is started again by its parent. */
  const crash = (slot: Slot, ms: number): void => {
    if (slot.process === undefined) return
    kill(slot.process)
    if (plan.workers === 0) later(ms, 'an instance is started again', () => startInstance(slot))
  }
  const leave = (slot: Slot, ms: number, drainMs: number): void => {
    const { process, member } = slot
    if (process === undefined || member === undefined || plan.workers > 0) return
    slot.isLeaving = true
    const untilIdle = (left: number): void => {
      if (slot.process !== process) return
      if (slot.open > 0 && left > 0) {
        world.schedule(world.now + 10, process, 'drains', () => untilIdle(left - 10))
        return
      }
      // What has no response by then gets none.
      process.isCut = true
      void member.close().then(() => {
        world.schedule(world.now + 1, undefined, 'an instance exits', () => {
          kill(process)
          later(ms, 'an instance is started again', () => startInstance(slot))
        })
      })
    }
    world.schedule(world.now, process, 'drains', () => untilIdle(drainMs))
  }
  const reload = ({ process, member }: Slot): void => {
    if (process !== undefined && member !== undefined)
      world.schedule(world.now, process, 'reload', () => member.reload())
  }
  /** The place, which counts as disturbed for that time. */
  const at = (slot: number, ms: number): Slot => {
    const found = cluster.at(slot)
    found.disturbedAt = world.now + ms
    if (ms > plan.settings.forgetAfterMs * 0.9) found.forgottenAt = found.disturbedAt
    return found
  }
  const handlers: Handlers = {
    pause: ({ slot, ms }) => pause(at(slot, ms), ms, false),
    suspend: ({ slot, ms }) => pause(at(slot, ms), ms, true),
    crash: ({ slot, ms }) => crash(at(slot, ms), ms),
    leave: ({ slot, ms, drainMs }) => leave(at(slot, ms), ms, drainMs),
    reload: ({ slot }) => reload(at(slot, 0)),
    'set-clock': ({ slot, ms }) => {
      const { process } = at(slot, 0)
      if (process !== undefined) process.wallErrorMs += ms
    },
    partition: (action) => {
      const found = at(action.slot, action.ms)
      found.cutAt = world.now + action.sluggishMs + action.ms
      partition(found, action, plan.settings.leaseMs)
    },
    cut: ({ slot, isSilent }) => {
      const found = at(slot, 0)
      found.cutAt = world.now + plan.settings.leaseMs
      for (const line of linesOf(found.process)) line.cut(isSilent)
    },
    'redis-pause': ({ ms }) => {
      away(ms)
      redis.pause(ms)
    },
    'redis-refuses': ({ ms, error }) => {
      away(ms)
      redis.refuse(ms, error)
    },
    'redis-restart': ({ ms, lagMs, keeps }) => {
      away(lagMs + ms)
      redis.restart(ms, lagMs, keeps)
    },
    'redis-fails-over': ({ lagMs, splitMs }) => redis.failOver(lagMs, splitMs),
    'redis-fails-back': ({ ms }) => redis.failBack(ms),
    'redis-loses-key': ({ key }) => redis.loseKey(key),
    'redis-cuts-all': () => {
      away(plan.settings.leaseMs)
      network.server?.cutAll()
    },
    'front-refuses': ({ ms }) => front.refuse(ms),
    'front-loses-responses': ({ ms }) => front.loseResponses(ms),
    'front-restarts': ({ ms }) => front.restart(ms),
  }
  return (action: FaultAction): void => {
    const handle = handlers[action.does] as (one: FaultAction) => void
    handle(action)
  }
}
