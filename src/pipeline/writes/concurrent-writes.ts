/** The writes that are in flight to each service. */
export type ConcurrentWrites = {
  /** `services`: all whose upstream the write reaches. */
  begin(services: readonly string[]): TrackedWrite
}

export type TrackedWrite = {
  /** No other write to one of its services was in flight since it began. */
  isAlone(): boolean
  /** Only the first call counts. */
  end(): void
}

type Write = { disturbed: boolean }

/** The writes in flight to one service: their number, and the one that is still alone. */
type InFlight = { count: number; alone: Write | undefined }

const enter = (inFlight: InFlight, write: Write): void => {
  if (inFlight.count === 0) inFlight.alone = write
  else {
    write.disturbed = true
    if (inFlight.alone !== undefined) inFlight.alone.disturbed = true
    inFlight.alone = undefined
  }
  inFlight.count += 1
}

const leave = (inFlight: InFlight, write: Write): void => {
  inFlight.count -= 1
  if (inFlight.alone === write) inFlight.alone = undefined
}

/** Stored responses show the item before a write only while no other write is in flight. */
export const createConcurrentWrites = (): ConcurrentWrites => {
  // Bounded by the services that have ever been configured. Counts instead of a Set of writes: docs/decisions/0013.
  const services = new Map<string, InFlight>()
  const inFlightTo = (service: string): InFlight => {
    const known = services.get(service)
    if (known !== undefined) return known
    const inFlight: InFlight = { count: 0, alone: undefined }
    services.set(service, inFlight)
    return inFlight
  }
  return {
    begin: (names) => {
      const write = { disturbed: false }
      const reached = names.map(inFlightTo)
      for (const inFlight of reached) enter(inFlight, write)
      let hasEnded = false
      return {
        isAlone: () => !write.disturbed,
        end: () => {
          if (hasEnded) return
          hasEnded = true
          for (const inFlight of reached) leave(inFlight, write)
        },
      }
    },
  }
}
