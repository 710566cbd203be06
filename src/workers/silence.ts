import type { Worker } from 'node:cluster'

/** A worker that is listened for. */
export type Listened = {
  readonly worker: Worker
  readonly readyAt: number | undefined
  /** To be set to 0 with each thing it says. */
  silentTicks: number
  killed: boolean
}

const tickMs = 1_000
/** Blocked for so long, a worker is of no use to anybody. */
const stuckAfterTicks = 10
/** While it starts it has much to do at once, and perhaps many beside it. */
const stuckInStartAfterTicks = 60

/** Kills who says nothing for too long. Counted in ticks of this process: when it was stopped itself, the others have not been silent. Returns what ends it. */
export const watchSilence = (all: () => Iterable<Listened>): (() => void) => {
  const timer = setInterval(() => {
    for (const one of all()) {
      one.silentTicks += 1
      const most = one.readyAt === undefined ? stuckInStartAfterTicks : stuckAfterTicks
      if (one.silentTicks < most || one.killed) continue
      one.killed = true
      one.worker.process.kill('SIGKILL')
    }
  }, tickMs)
  return () => clearInterval(timer)
}
