const buckets = 10

/**
 * A count of what happened in the last `windowMs`, in ten steps. Times are monotonic milliseconds. Memory and time do not depend on
 * how much is counted.
 */
export const createSlidingCount = (windowMs: number) => {
  const counts = new Array<number>(buckets).fill(0)
  const stepMs = windowMs / buckets
  let step = 0
  let sum = 0

  const advance = (nowMs: number): number => {
    const current = Math.floor(nowMs / stepMs)
    const passed = Math.min(current - step, buckets)
    for (let i = 1; i <= passed; i += 1) {
      const at = (step + i) % buckets
      sum -= counts[at] ?? 0
      counts[at] = 0
    }
    // After a long pause every bucket has been emptied, whatever `step` was.
    step = Math.max(step, current)
    return step % buckets
  }

  return {
    add(nowMs: number): void {
      const at = advance(nowMs)
      counts[at] = (counts[at] ?? 0) + 1
      sum += 1
    },
    total(nowMs: number): number {
      advance(nowMs)
      return sum
    },
    clear(): void {
      counts.fill(0)
      sum = 0
    },
  }
}
