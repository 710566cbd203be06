// Not the global `performance`: that is a getter which takes as long as the reading itself, and a hit reads the clock four times.
import { performance } from 'node:perf_hooks'

/** The only source of time. It is an option of every factory, so that a decision reads it once and a test can set it. */
export type Clock = {
  /** Milliseconds since 1970, may jump. For dates and ages (RFC 9111 §4.2.3). */
  now(): number
  /** Milliseconds since an arbitrary moment; they never decrease. For durations and deadlines. */
  monotonic(): number
}

/** One reading of both clocks. */
export type Moment = { readonly now: number; readonly monotonic: number }

export const readClock = (clock: Clock): Moment => ({ now: clock.now(), monotonic: clock.monotonic() })

export const systemClock: Clock = { now: () => Date.now(), monotonic: () => performance.now() }

/**
 * A timeout of a peer. After the process was blocked (a busy machine, a long garbage collection), timers run before the data
 * that arrived meanwhile is read, so the timeout only fires if it is still pending after sockets were read once more.
 */
export class Deadline {
  readonly #timer: NodeJS.Timeout
  #last: NodeJS.Immediate | undefined

  /** `over` is called after `ms` milliseconds, unless it is started again or stopped before. */
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

/**
 * Runs with a controller that aborts after `ms` milliseconds (`TimeoutError`), or when `parent` does. In place of
 * `AbortSignal.any`: Node 20 may collect a combined signal that only listeners refer to, and then never aborts it.
 */
export const withTimeout = async <Value>(
  ms: number,
  run: (abort: AbortController) => Promise<Value>,
  parent?: AbortSignal,
): Promise<Value> => {
  const abort = new AbortController()
  const follow = (): void => abort.abort(parent?.reason)
  const timer = setTimeout(() => abort.abort(new DOMException('timeout', 'TimeoutError')), ms)
  parent?.addEventListener('abort', follow)
  if (parent?.aborted === true) follow()
  try {
    return await run(abort)
  } finally {
    clearTimeout(timer)
    parent?.removeEventListener('abort', follow)
  }
}
