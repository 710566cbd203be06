export type FairTurnsOptions = {
  /** At most this many pieces of work start in one turn of the event loop. */
  readonly perTurn: number
  /** While every turn brings new work, none starts for up to this many turns, so that the clients are known before the order is chosen. */
  readonly gatherTurns: number
}

/** Starts a few pieces of work in each turn of the event loop, and serves the clients in rotation. */
export type FairTurns = {
  /** Runs `work` at once if no other work waits and this turn has capacity; otherwise in a later turn. */
  begin(client: string, work: () => void): void
}

/**
 * Node processes everything that has arrived within one turn of the event loop, in order of arrival, so a client with a thousand
 * pieces of work would delay all others. Here each turn starts only `perTurn` pieces, one for each client in rotation.
 */
export const createFairTurns = ({ perTurn, gatherTurns }: FairTurnsOptions): FairTurns => {
  // A Map keeps insertion order: the first client is served next and moves to the end.
  const queues = new Map<string, (() => void)[]>()
  let startedThisTurn = 0
  let gatheredTurns = 0
  let isTurnScheduled = false
  let hasNewWork = false
  let hadNewWork = false

  const scheduleTurn = (): void => {
    if (isTurnScheduled) return
    isTurnScheduled = true
    setImmediate(runTurn)
  }
  const startNext = (client: string, queue: (() => void)[]): void => {
    queues.delete(client)
    const work = queue.shift()
    if (queue.length > 0) queues.set(client, queue)
    startedThisTurn += 1
    work?.()
  }
  const runTurn = (): void => {
    isTurnScheduled = false
    startedThisTurn = 0
    hadNewWork = hasNewWork
    hasNewWork = false
    if (hadNewWork || queues.size > 0) scheduleTurn()
    if (hadNewWork && gatheredTurns < gatherTurns) {
      gatheredTurns += 1
      return
    }
    gatheredTurns = 0
    for (const [client, queue] of queues) {
      if (startedThisTurn >= perTurn) return
      startNext(client, queue)
    }
  }
  const mayStart = (): boolean =>
    queues.size === 0 && startedThisTurn < perTurn && !(hadNewWork && gatheredTurns < gatherTurns)

  return {
    begin: (client, work) => {
      hasNewWork = true
      scheduleTurn()
      if (mayStart()) {
        startedThisTurn += 1
        work()
        return
      }
      const queue = queues.get(client)
      if (queue === undefined) queues.set(client, [work])
      else queue.push(work)
    },
  }
}
