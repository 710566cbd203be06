import { addCount } from '../../http/bounds.ts'

/** Resolves in a later turn of the event loop, for one caller in each turn, in the order of arrival. */
export type EventLoopYield = () => Promise<void>

/**
 * Reading and answering a batch takes some milliseconds of the one process that also answers everything else. Many batches
 * that arrive together take turns: what else has become ready is served between two of them.
 */
export const createEventLoopYield = (): EventLoopYield => {
  const waiting: (() => void)[] = []
  const next = (): void => {
    waiting.shift()?.()
    if (waiting.length > 0) setImmediate(next)
  }
  return () =>
    new Promise((resolve) => {
      waiting.push(resolve)
      if (waiting.length === 1) setImmediate(next)
    })
}

/** The items of a chunk that go through the pipeline in one turn: well under a millisecond. */
export const itemsPerTurn = 3

/**
 * Bounds the upstream requests of all batches of a service together. Waiting requests are served in turn by flow, and first come
 * first served within a flow, so that the batches of one caller do not keep those of another waiting.
 */
export type Semaphore = {
  /** Waits to enter; false when stopped first. After true, `leave` must follow. */
  enter(flow: string, stop: AbortSignal): Promise<boolean>
  leave(flow: string): void
}

/** Lets `most()` requests in at a time, and `mostOfFlow` of one flow; at least one. The open batches bound those that wait. */
export const createSemaphore = (most: () => number, mostOfFlow: number): Semaphore => {
  let taken = 0
  const takenBy = new Map<string, number>()
  // A Map keeps insertion order: the first flow is the next one to be served, and goes to the end afterwards.
  const flows = new Map<string, Set<() => void>>()

  const leaveLine = (flow: string, granted: () => void): void => {
    const line = flows.get(flow)
    line?.delete(granted)
    if (line?.size === 0) flows.delete(flow)
  }

  /** The first flow in line that has not all it may have. */
  const next = (): [string, Set<() => void>] | undefined => {
    for (const entry of flows) if ((takenBy.get(entry[0]) ?? 0) < Math.max(1, mostOfFlow)) return entry
    return undefined
  }

  const serve = (): void => {
    while (taken < Math.max(1, most())) {
      const [flow, line] = next() ?? []
      const [granted] = line ?? []
      if (flow === undefined || line === undefined || granted === undefined) return
      line.delete(granted)
      flows.delete(flow)
      if (line.size > 0) flows.set(flow, line)
      taken += 1
      addCount(takenBy, flow, 1)
      granted()
    }
  }

  return {
    enter: (flow, stop) =>
      new Promise((resolve) => {
        const stopped = (): void => {
          leaveLine(flow, granted)
          resolve(false)
        }
        const granted = (): void => {
          stop.removeEventListener('abort', stopped)
          resolve(true)
        }
        stop.addEventListener('abort', stopped, { once: true })
        const line = flows.get(flow)
        if (line === undefined) flows.set(flow, new Set([granted]))
        else line.add(granted)
        serve()
      }),
    leave: (flow) => {
      taken -= 1
      addCount(takenBy, flow, -1)
      serve()
    },
  }
}
