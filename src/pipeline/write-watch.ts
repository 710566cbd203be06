/** Tells whether a write was the only one of what it writes to, from its beginning to its answer. */
export type WriteWatch = {
  /** To be called when it begins, with all services whose upstream it reaches; gives what tells, and what ends it. */
  begin(services: readonly string[]): { alone(): boolean; end(): void }
}

type Write = { disturbed: boolean }

/** The state before a write is known only while nothing else is being written: what is stored may miss a write under way. */
export const createWriteWatch = (): WriteWatch => {
  const running = new Map<string, Set<Write>>()
  const enter = (service: string, write: Write): void => {
    const others = running.get(service) ?? new Set()
    if (others.size > 0) write.disturbed = true
    for (const other of others) other.disturbed = true
    running.set(service, others.add(write))
  }
  const leave = (service: string, write: Write): void => {
    const others = running.get(service)
    others?.delete(write)
    if (others?.size === 0) running.delete(service)
  }
  return {
    begin: (services) => {
      const write = { disturbed: false }
      for (const service of services) enter(service, write)
      return {
        alone: () => !write.disturbed,
        end: () => {
          for (const service of services) leave(service, write)
        },
      }
    },
  }
}
