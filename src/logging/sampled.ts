/** Lets one through of what may come in floods, and says with the next how many it held back. */
export type Sampled = {
  /** How many were held back since the last one that was let through; undefined: hold this one back too. */
  pass(key: string): number | undefined
}

/** One for each key in so long. Keys come from closed lists, so what is remembered is bounded. */
export const createSampled = (everyMs: number, monotonic: () => number): Sampled => {
  const last = new Map<string, { at: number; held: number }>()
  return {
    pass: (key) => {
      const known = last.get(key)
      const now = monotonic()
      if (known !== undefined && now - known.at < everyMs) {
        known.held += 1
        return undefined
      }
      last.set(key, { at: now, held: 0 })
      return known?.held ?? 0
    },
  }
}
