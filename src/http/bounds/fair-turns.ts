export type FairTurnsOptions = {
  /** So many pieces begin in one turn of the event loop. */
  readonly perTurn: number
  /** While each turn brings new work, none begins for up to so many turns: it is seen first whose it is. */
  readonly gatherTurns: number
}

/** Begins work of clients a few pieces in each turn of the event loop. */
export type FairTurns = {
  /** Runs the work at once while no other work waits and this turn is not full, else in one of the next turns, different clients in turn. */
  begin(client: string, work: () => void): void
}

/**
 * All that has arrived by the time of one turn of the event loop is taken up within it, in the order of arrival: a client that brings a
 * thousand pieces of work at once would delay all others until the last of them is done. Of work that comes through here each
 * turn does only so much, and a client that brings much of it waits for itself: the work of one that brings little comes next.
 */
export const createFairTurns = ({ perTurn, gatherTurns }: FairTurnsOptions): FairTurns => {
  // A Map keeps insertion order: the first client is the next one to be served, and goes to the end afterwards.
  const lines = new Map<string, (() => void)[]>()
  let begun = 0
  let gathered = 0
  let isTurnNoted = false
  let hasArrived = false
  let hadArrived = false

  const noteTurn = (): void => {
    if (isTurnNoted) return
    isTurnNoted = true
    setImmediate(nextTurn)
  }
  const beginNext = (client: string, line: (() => void)[]): void => {
    lines.delete(client)
    const work = line.shift()
    if (line.length > 0) lines.set(client, line)
    begun += 1
    work?.()
  }
  const nextTurn = (): void => {
    isTurnNoted = false
    begun = 0
    hadArrived = hasArrived
    hasArrived = false
    if (hadArrived || lines.size > 0) noteTurn()
    if (hadArrived && gathered < gatherTurns) {
      gathered += 1
      return
    }
    gathered = 0
    for (const [client, line] of lines) {
      if (begun >= perTurn) return
      beginNext(client, line)
    }
  }
  const mayBegin = (): boolean =>
    lines.size === 0 && begun < perTurn && !(hadArrived && gathered < gatherTurns)

  return {
    begin: (client, work) => {
      hasArrived = true
      noteTurn()
      if (mayBegin()) {
        begun += 1
        work()
        return
      }
      const line = lines.get(client)
      if (line === undefined) lines.set(client, [work])
      else line.push(work)
    },
  }
}
