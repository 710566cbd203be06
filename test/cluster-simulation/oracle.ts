import type { History } from './history.ts'
import type { Plan } from './plan.ts'
import { items, type Resource, type Shown } from './services/interface.ts'
import { nameAtFront } from './services/services.ts'
import { world } from './world.ts'

/** `front`: also what a reader of the cache in front of all gateways may not fall behind; `gateways`: what those of the gateways may not. */
export type Reach = 'front' | 'gateways'

/** The version of each item that a client has seen: of one that is not shown, the last version that was gone. */
export const seenIn = (
  resource: Resource,
  shown: Shown,
  goneVersion: (item: number) => number,
): readonly (readonly [item: number, version: number])[] =>
  resource.items.map((item) => [item, shown[item] ?? goneVersion(item)] as const)

/** The versions that no read may fall behind, by what was read. */
export const createOracle = (plan: Plan, history: History) => {
  const { hasFront } = plan.settings
  const floors = new Map<string, number>()
  let violation: string | undefined
  const nameOf = (path: string, item: number): string => `${path} ${item}`

  const raise = (path: string, item: number, version: number, why: string): void => {
    if (version > 0) history.acknowledged(why, path, item, version)
    const name = nameOf(path, item)
    if (version <= (floors.get(name) ?? 0)) return
    floors.set(name, version)
    if (world.isTraced) world.note(`${path}: item ${item} is ${version} or newer from here on (${why})`)
  }
  return {
    /** From here on no read of these shows anything older. */
    acknowledge: (
      resources: readonly Resource[],
      { item, version, why, reach }: { item: number; version: number; why: string; reach: Reach },
    ): void => {
      for (const resource of resources) {
        raise(resource.name, item, version, why)
        if (hasFront && reach === 'front') raise(nameAtFront(resource), item, version, why)
      }
    },
    /** To be asked before the read is sent. */
    floorsOf: (path: string): readonly number[] => items.map((item) => floors.get(nameOf(path, item)) ?? 0),
    judge: (
      path: string,
      seen: ReturnType<typeof seenIn>,
      floorsBefore: readonly number[],
      what: string,
    ): void => {
      for (const [item, version] of seen) {
        world.seen(version)
        const floor = floorsBefore[items.indexOf(item as (typeof items)[number])] ?? 0
        if (version < floor)
          violation ??= `${path}: item ${item} has version ${version}, but ${floor} was acknowledged before; ${what}`
      }
    },
    /** Something else than an older read. */
    violated: (what: string): void => {
      violation ??= what
    },
    /** The first read that was older than an acknowledged write. */
    violation: (): string | undefined => violation,
  }
}

export type Oracle = ReturnType<typeof createOracle>
