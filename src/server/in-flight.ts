/** Counts requests in flight. */
export type InFlight = {
  readonly count: number
  enter(): void
  leave(): void
  /** Resolves when no request is in flight, or after the timeout. */
  settled(timeoutMs: number): Promise<void>
}

/** Counts the requests of one generation, and adds them to the count of all. */
export const createInFlight = (all?: Pick<InFlight, 'enter' | 'leave'>): InFlight => {
  let count = 0
  const waiting = new Set<() => void>()
  return {
    get count() {
      return count
    },
    enter: () => {
      all?.enter()
      count += 1
    },
    leave: () => {
      all?.leave()
      count -= 1
      if (count > 0 || waiting.size === 0) return
      for (const resolve of waiting) resolve()
    },
    settled: async (timeoutMs) => {
      if (count === 0) return
      await new Promise<void>((resolve) => {
        const done = (): void => {
          clearTimeout(timer)
          waiting.delete(done)
          resolve()
        }
        const timer = setTimeout(done, timeoutMs)
        timer.unref()
        waiting.add(done)
      })
    },
  }
}
