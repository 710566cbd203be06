/**
 * Room for upstream requests of all batches of a service together. Who waits is served in turn by flow, so that the
 * batches of one caller do not keep those of another waiting.
 */
export type Places = {
  /** Calls one of the two once, unless the returned function is called first, which leaves the queue. */
  acquire(flow: string, granted: () => void, refused: () => void): () => void
  release(): void
}

/** Waits for a place; false when there is none to be had, or when the stop comes first. */
export const waitForPlace = (places: Places, flow: string, stop: AbortSignal): Promise<boolean> =>
  new Promise((resolve) => {
    const end = (granted: boolean): void => {
      stop.removeEventListener('abort', stopped)
      resolve(granted)
    }
    const stopped = (): void => {
      leave()
      end(false)
    }
    stop.addEventListener('abort', stopped, { once: true })
    const leave = places.acquire(
      flow,
      () => end(true),
      () => end(false),
    )
  })
