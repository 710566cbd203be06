/**
 * A timeout of an upstream. After the process was blocked (a busy machine, a long garbage collection), timers run before the data
 * that arrived meanwhile is read, so the timeout only fires if it is still pending after sockets were read once more.
 */
export class Deadline {
  readonly #timer: NodeJS.Timeout
  #last: NodeJS.Immediate | undefined

  /** `over` is called after `ms` milliseconds, unless it is begun anew or stopped before. */
  constructor(ms: number, over: () => void) {
    this.#timer = setTimeout(() => {
      this.#last = setImmediate(over)
    }, ms)
  }

  /** Begins anew. */
  refresh(): void {
    clearImmediate(this.#last)
    this.#timer.refresh()
  }

  stop(): void {
    clearTimeout(this.#timer)
    clearImmediate(this.#last)
  }
}
