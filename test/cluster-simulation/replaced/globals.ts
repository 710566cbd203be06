import { type Cancellable, currentProcess, type Process, world } from '../world.ts'

// What stands in the bundle of the simulation in place of the globals of Node with these names (bundle.ts).

type Run = (...given: readonly unknown[]) => void

/** A timer of one process, by its monotonic clock. */
class SimulatedTimer {
  readonly #process: Process
  readonly #ms: number
  readonly #run: () => void
  readonly #repeats: boolean
  #step: Cancellable | undefined

  constructor(ms: number, run: () => void, repeats: boolean) {
    this.#process = currentProcess()
    this.#ms = Math.max(1, ms)
    this.#run = run
    this.#repeats = repeats
    this.#begin()
  }

  #begin(): void {
    const process = this.#process
    const due = world.monotonicOf(process) + this.#ms
    const at = world.now + this.#ms / process.rate
    this.#step = world.schedule(at, process, 'timer', () => this.#over(), due)
  }

  #over(): void {
    this.#step = undefined
    if (this.#repeats) this.#begin()
    this.#run()
  }

  stop(): void {
    if (this.#step !== undefined) this.#step.isCancelled = true
    this.#step = undefined
  }

  refresh(): this {
    this.stop()
    this.#begin()
    return this
  }

  unref(): this {
    return this
  }
}

const stop = (timer: unknown): void => {
  if (timer instanceof SimulatedTimer) timer.stop()
}

export const setTimeout = (run: Run, ms = 0, ...given: readonly unknown[]): SimulatedTimer =>
  new SimulatedTimer(ms, () => run(...given), false)

export const setInterval = (run: Run, ms = 0, ...given: readonly unknown[]): SimulatedTimer =>
  new SimulatedTimer(ms, () => run(...given), true)

class SimulatedImmediate {
  isCancelled = false
}

export const setImmediate = (run: Run, ...given: readonly unknown[]): SimulatedImmediate => {
  const immediate = new SimulatedImmediate()
  world.immediately(() => {
    if (!immediate.isCancelled) run(...given)
  })
  return immediate
}

export const clearTimeout = stop
export const clearInterval = stop
export const clearImmediate = (immediate: unknown): void => {
  if (immediate instanceof SimulatedImmediate) immediate.isCancelled = true
}

export const simulatedRandom = (): number => currentProcess().random()
export const simulatedNow = (): number => world.wallOf(currentProcess())
export const simulatedPerformanceNow = (): number => world.monotonicOf(currentProcess())
