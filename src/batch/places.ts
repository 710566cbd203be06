type Waiter = { readonly granted: () => void }

/**
 * Room for upstream requests of all batches of a service together. Who waits is served in turn by flow, and first come
 * first served within a flow, so that the batches of one caller do not keep those of another waiting.
 */
export type Places = {
  /** Waits for a place; false when the stop comes first. Who got true gives the place back with `leave`. */
  enter(flow: string, stop: AbortSignal): Promise<boolean>
  leave(): void
}

/** Places for as many as `most` says at the moment, at least one. Who waits is bounded by the batches that are open. */
export const createPlaces = (most: () => number): Places => {
  let taken = 0
  // A Map keeps insertion order: the first flow is the next one to be served, and goes to the end afterwards.
  const flows = new Map<string, Set<Waiter>>()

  const leaveLine = (flow: string, waiter: Waiter): void => {
    const line = flows.get(flow)
    line?.delete(waiter)
    if (line?.size === 0) flows.delete(flow)
  }

  const serve = (): void => {
    while (taken < Math.max(1, most())) {
      const [flow, line] = flows.entries().next().value ?? []
      const waiter = line?.values().next().value
      if (flow === undefined || line === undefined || waiter === undefined) return
      line.delete(waiter)
      flows.delete(flow)
      if (line.size > 0) flows.set(flow, line)
      taken += 1
      waiter.granted()
    }
  }

  return {
    enter: (flow, stop) =>
      new Promise((resolve) => {
        const stopped = (): void => {
          leaveLine(flow, waiter)
          resolve(false)
        }
        const waiter: Waiter = {
          granted: () => {
            stop.removeEventListener('abort', stopped)
            resolve(true)
          },
        }
        stop.addEventListener('abort', stopped, { once: true })
        const line = flows.get(flow)
        if (line === undefined) flows.set(flow, new Set([waiter]))
        else line.add(waiter)
        serve()
      }),
    leave: () => {
      taken -= 1
      serve()
    },
  }
}
