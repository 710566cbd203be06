/**
 * A time that an upstream has for something. When the process stood still, on a busy machine or in a long collection of garbage,
 * timers run before what has arrived meanwhile is read: the time is over when sockets have been read once more and nothing has
 * stopped it.
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
