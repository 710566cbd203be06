/** How long to wait before an ended worker is replaced: longer each time, so that a fault at start does not burn the machine. */
export type RestartPause = {
  /** Milliseconds; `livedMs` is how long the worker was ready. */
  next(livedMs: number): number
}

const first = 50
const longest = 10_000
/** Who has lived so long did not fail at its start. */
const healthyAfterMs = 30_000

export const createRestartPause = (): RestartPause => {
  let pause = first
  return {
    next: (livedMs) => {
      if (livedMs >= healthyAfterMs) pause = first
      const now = pause
      pause = Math.min(longest, pause * 2)
      return now
    },
  }
}
