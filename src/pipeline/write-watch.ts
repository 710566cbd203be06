/** Tells whether a write was the only one of its service from its beginning to its answer. */
export type WriteWatch = {
  /** To be called when it begins; gives what tells, and what ends it. */
  begin(service: string): { alone(): boolean; end(): void }
}

/** The state before a write is known only while nothing else is being written: what is stored may miss a write under way. */
export const createWriteWatch = (): WriteWatch => {
  const running = new Map<string, Set<{ disturbed: boolean }>>()
  return {
    begin: (service) => {
      const others = running.get(service) ?? new Set()
      const write = { disturbed: others.size > 0 }
      for (const other of others) other.disturbed = true
      running.set(service, others.add(write))
      return {
        alone: () => !write.disturbed,
        end: () => {
          others.delete(write)
          if (others.size === 0 && running.get(service) === others) running.delete(service)
        },
      }
    },
  }
}
