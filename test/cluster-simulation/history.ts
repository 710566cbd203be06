import { historyLine } from '../histories/history-line.ts'
import type { Interface } from './services/interface.ts'
import { resourcesWith } from './services/services.ts'
import { world } from './world.ts'

/** What clients saw of a run, for a checker that knows nothing of the simulation. Times are virtual. */
export const createHistory = (seed: number, service: Interface, isRecorded: boolean) => {
  const lines: string[] = []
  let last = 0
  /** Later than each moment before: a read that begins because of a write begins after it, though no virtual time has passed. */
  const moment = (): number => {
    last = Math.max(world.now, last + 1e-5)
    return last
  }
  const add: (...line: Parameters<typeof historyLine>) => void = (line) => {
    if (isRecorded) lines.push(historyLine(line))
  }
  /** What is shown of an item at one of its paths. */
  const keyOf = (path: string, item: number): string => `${seed}${path}:${item}`
  return {
    lines,
    moment,
    /** The upstream has a new version: until it is acknowledged, reads may show it or the one before. */
    changed: (item: number, version: number): void => {
      const paths = resourcesWith(service, item).map(({ name }) => name)
      for (const path of [...paths, ...paths.map((name) => `front:${name}`)])
        add({
          kind: 'write',
          who: 'upstream',
          key: keyOf(path, item),
          version,
          from: moment(),
          to: undefined,
        })
    },
    acknowledged: (who: string, path: string, item: number, version: number): void => {
      const at = moment()
      add({ kind: 'write', who, key: keyOf(path, item), version, from: at, to: at })
    },
    read: (
      who: string,
      path: string,
      seen: readonly (readonly [item: number, version: number])[],
      from: number,
    ): void => {
      const to = moment()
      for (const [item, version] of seen)
        add({ kind: 'read', who, key: keyOf(path, item), version, from, to })
    },
  }
}

export type History = ReturnType<typeof createHistory>
