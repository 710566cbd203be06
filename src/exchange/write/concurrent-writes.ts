export type TrackedWrite = {
  /** No other write to one of its services was in flight since it began. */
  isAlone(): boolean
  /** Only the first call counts. */
  end(): void
}

/** The writes to one service: how many are in flight, and how many have begun. */
type Writes = { inFlight: number; begun: number }

/** Stored responses show the item before a write only while no other write is in flight. */
export const createConcurrentWrites = () => {
  // Bounded by the services that have ever been configured. Counts instead of a Set of writes: docs/decisions/0013.
  const services = new Map<string, Writes>()
  const writesTo = (service: string): Writes => {
    const writes = services.get(service) ?? { inFlight: 0, begun: 0 }
    services.set(service, writes)
    return writes
  }
  return {
    /** `names`: all services whose upstream the write reaches. */
    begin: (names: readonly string[]): TrackedWrite => {
      const reached = names.map(writesTo)
      const isFirst = reached.every(({ inFlight }) => inFlight === 0)
      for (const writes of reached) {
        writes.inFlight += 1
        writes.begun += 1
      }
      const numbers = reached.map(({ begun }) => begun)
      let hasEnded = false
      return {
        isAlone: () => isFirst && reached.every(({ begun }, at) => begun === numbers[at]),
        end: () => {
          if (hasEnded) return
          hasEnded = true
          for (const writes of reached) writes.inFlight -= 1
        },
      }
    },
  }
}

export type ConcurrentWrites = ReturnType<typeof createConcurrentWrites>
