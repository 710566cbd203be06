/** Random choices that are the same for the same seed. */
export type Random = {
  /** From 0 up to, but not including, `below`. */
  int(below: number): number
  chance(share: number): boolean
  /** Throws on an empty list. */
  pick<T>(list: readonly T[]): T
  some<T>(list: readonly T[], max: number): T[]
}

/** Small, fast and the same everywhere (mulberry32). */
export const createRandom = (seed: number): Random => {
  let state = seed | 0
  const next = (): number => {
    state = (state + 0x6d2b79f5) | 0
    let t = Math.imul(state ^ (state >>> 15), 1 | state)
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296
  }
  const int = (below: number): number => Math.floor(next() * below)
  const pick = <T>(list: readonly T[]): T => {
    if (list.length === 0) throw new Error('nothing to pick from')
    return list[int(list.length)] as T
  }
  const some = <T>(list: readonly T[], max: number): T[] => {
    const left = [...list]
    const count = Math.min(left.length, int(max + 1))
    return Array.from({ length: count }, () => left.splice(int(left.length), 1)[0] as T)
  }
  return { int, chance: (share) => next() < share, pick, some }
}
