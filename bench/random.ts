/** Numbers from 0 to 1, the same for the same seed (mulberry32). */
export const randomFrom = (seed: number): (() => number) => {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let t = Math.imul(state ^ (state >>> 15), state | 1)
    t = (t + Math.imul(t ^ (t >>> 7), t | 61)) ^ t
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296
  }
}

/** Picks 0 to `count - 1`: number `n` is picked 1/(n + 1)^s as often as 0. */
export const zipf = (random: () => number, count: number, s: number): (() => number) => {
  const sums = new Float64Array(count)
  let sum = 0
  for (let rank = 1; rank <= count; rank += 1) {
    sum += 1 / rank ** s
    sums[rank - 1] = sum
  }
  return () => {
    const wanted = random() * sum
    let low = 0
    let high = count - 1
    while (low < high) {
      const middle = (low + high) >> 1
      if ((sums[middle] as number) < wanted) low = middle + 1
      else high = middle
    }
    return low
  }
}
