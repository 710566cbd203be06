/** Lets work that occupies the process come one piece at a time; who waits is served in the order of arrival. */
export type Turns = () => Promise<void>

/**
 * Reading and answering a batch takes some milliseconds of the one process that also answers everything else. Many batches
 * that arrive together take turns: what else has become ready is served between two of them.
 */
export const createTurns = (): Turns => {
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

/** So many items of a chunk go down their way, or back up, in one turn: well under a millisecond, and some where caches are cold. */
export const itemsPerTurn = 3
