import { addCount } from '../../http/bounds/counts.ts'

/**
 * Bounds the upstream requests of all batches of a service together. Waiting requests are served in turn by flow, and first come
 * first served within a flow, so that the batches of one caller do not keep those of another waiting.
 */
export type Semaphore = {
  /** Waits to enter; false when stopped first. After true, `leave` must follow. */
  enter(flow: string, stop: AbortSignal): Promise<boolean>
  leave(flow: string): void
}

/**
 * Items wait here, and not in the queue of the upstream, which is as long as single requests need it: a few batches would fill it, and
 * everything else would get 503. Lets `max` requests in at a time, and `maxOfFlow` of one flow; at least one. The open batches bound those that wait.
 */
export const createSemaphore = (max: number, maxOfFlow: number): Semaphore => {
  let inUse = 0
  const takenBy = new Map<string, number>()
  // A Map keeps insertion order: the first flow is the next one to be served, and goes to the end afterwards.
  const flows = new Map<string, Set<() => void>>()

  const leaveQueue = (flow: string, granted: () => void): void => {
    const queue = flows.get(flow)
    queue?.delete(granted)
    if (queue?.size === 0) flows.delete(flow)
  }

  /** The first flow in the queue that has not all it may have. */
  const next = (): [string, Set<() => void>] | undefined => {
    for (const entry of flows) if ((takenBy.get(entry[0]) ?? 0) < Math.max(1, maxOfFlow)) return entry
    return undefined
  }

  const serve = (): void => {
    while (inUse < Math.max(1, max)) {
      const [flow, queue] = next() ?? []
      const [granted] = queue ?? []
      if (flow === undefined || queue === undefined || granted === undefined) return
      queue.delete(granted)
      flows.delete(flow)
      if (queue.size > 0) flows.set(flow, queue)
      inUse += 1
      addCount(takenBy, flow, 1)
      granted()
    }
  }

  return {
    enter: (flow, stop) =>
      new Promise((resolve) => {
        const stopped = (): void => {
          leaveQueue(flow, granted)
          resolve(false)
        }
        const granted = (): void => {
          stop.removeEventListener('abort', stopped)
          resolve(true)
        }
        stop.addEventListener('abort', stopped, { once: true })
        const queue = flows.get(flow)
        if (queue === undefined) flows.set(flow, new Set([granted]))
        else queue.add(granted)
        serve()
      }),
    leave: (flow) => {
      inUse -= 1
      addCount(takenBy, flow, -1)
      serve()
    },
  }
}
