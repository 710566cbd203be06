/** Writes whose response has begun and not ended: what they may change is not stored meanwhile. */
export const createOpenWrites = () => {
  const open = new Set<{ readonly services: readonly string[]; readonly sinceMs: number }>()
  return {
    /** `services`: all that it reaches. Returns the function that removes it. */
    add: (services: readonly string[], sinceMs: number): (() => void) => {
      const one = { services, sinceMs }
      open.add(one)
      return () => open.delete(one)
    },
    /** Since when each of those that reach a service has been open, by the monotonic clock. */
    reaching: (service: string): readonly number[] =>
      [...open].filter(({ services }) => services.includes(service)).map(({ sinceMs }) => sinceMs),
  }
}

export type OpenWrites = ReturnType<typeof createOpenWrites>
