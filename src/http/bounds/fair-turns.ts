type Waiting = { readonly work: () => void; next: Waiting | undefined }

/** Linked, because taking the first element of an array with tens of thousands of them copies the others. */
type Queue = { readonly first: Waiting; last: Waiting }

/**
 * Node processes everything that has arrived within one turn of the event loop, in order of arrival, so a client with a thousand
 * pieces of work would delay all others. Here each turn starts only `perTurn` pieces, one for each client in rotation. While every
 * turn brings new work, none starts for `gatherMs`, so that the clients are known before the order is chosen. Time and not turns:
 * those of a busy process are long, and 32 of them kept new clients waiting for seconds.
 */
export const createFairTurns = (perTurn: number, gatherMs = 0) => {
  // A Map keeps insertion order: the first client is served next and moves to the end.
  const queues = new Map<string, Queue>()
  let startedThisTurn = 0
  /** When the gathering began; infinite when it has not. */
  let gathersSinceMs = Number.POSITIVE_INFINITY
  let isTurnScheduled = false
  let hasNewWork = false
  let hadNewWork = false

  const scheduleTurn = (): void => {
    if (isTurnScheduled) return
    isTurnScheduled = true
    setImmediate(runTurn)
  }
  const startNext = (client: string, { first, last }: Queue): void => {
    queues.delete(client)
    if (first.next !== undefined) queues.set(client, { first: first.next, last })
    startedThisTurn += 1
    first.work()
  }
  const runTurn = (): void => {
    isTurnScheduled = false
    startedThisTurn = 0
    hadNewWork = hasNewWork
    hasNewWork = false
    if (hadNewWork || queues.size > 0) scheduleTurn()
    if (hadNewWork && gatherMs > 0) {
      const nowMs = performance.now()
      gathersSinceMs = Math.min(gathersSinceMs, nowMs)
      if (nowMs - gathersSinceMs < gatherMs) return
    }
    gathersSinceMs = Number.POSITIVE_INFINITY
    for (const [client, queue] of queues) {
      if (startedThisTurn >= perTurn) return
      startNext(client, queue)
    }
  }
  /** Counts a piece of work that begins now, if no other waits and this turn has capacity. */
  const mayBegin = (): boolean => {
    hasNewWork = true
    scheduleTurn()
    if (queues.size > 0 || startedThisTurn >= perTurn || (hadNewWork && gatherMs > 0)) return false
    startedThisTurn += 1
    return true
  }

  /** Runs `work` in a later turn. */
  const wait = (client: string, work: () => void): void => {
    hasNewWork = true
    scheduleTurn()
    const added: Waiting = { work, next: undefined }
    const queue = queues.get(client)
    if (queue === undefined) queues.set(client, { first: added, last: added })
    else {
      queue.last.next = added
      queue.last = added
    }
  }
  return {
    /** For work that costs nothing unless it has to wait: after `false`, `begin` makes it wait. */
    mayBegin,
    /** Runs `work` at once if `mayBegin`; otherwise in a later turn. */
    begin: (client: string, work: () => void): void => {
      if (mayBegin()) work()
      else wait(client, work)
    },
    wait,
  }
}

export type FairTurns = ReturnType<typeof createFairTurns>
