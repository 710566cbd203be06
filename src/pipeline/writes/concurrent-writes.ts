/** Tells whether a write was the only one of what it writes to, from its beginning to its answer. */
export type WriteWatch = {
  /** To be called when it begins, with all services whose upstream it reaches; gives what tells, and what ends it, once or more often. */
  begin(services: readonly string[]): { alone(): boolean; end(): void }
}

type Write = { disturbed: boolean }

/** The writes under way to one service: how many, and the one that is still alone. */
type Running = { count: number; alone: Write | undefined }

const enter = (running: Running, write: Write): void => {
  if (running.count === 0) running.alone = write
  else {
    write.disturbed = true
    if (running.alone !== undefined) running.alone.disturbed = true
    running.alone = undefined
  }
  running.count += 1
}

const leave = (running: Running, write: Write): void => {
  running.count -= 1
  if (running.alone === write) running.alone = undefined
}

/** The state before a write is known only while nothing else is being written: what is stored may miss a write under way. */
export const createWriteWatch = (): WriteWatch => {
  // As many as services have ever been configured. Counts, no Set of writes: see docs/decisions/0013.
  const services = new Map<string, Running>()
  const runningAt = (service: string): Running => {
    const known = services.get(service)
    if (known !== undefined) return known
    const running: Running = { count: 0, alone: undefined }
    services.set(service, running)
    return running
  }
  return {
    begin: (names) => {
      const write = { disturbed: false }
      const reached = names.map(runningAt)
      for (const running of reached) enter(running, write)
      let hasEnded = false
      return {
        alone: () => !write.disturbed,
        end: () => {
          if (hasEnded) return
          hasEnded = true
          for (const running of reached) leave(running, write)
        },
      }
    },
  }
}
