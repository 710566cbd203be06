import { pollIntervalMs } from './in-flight.ts'

/** The bound on the time until a response head. Most requests end long before it, and need no timer. */
export class TotalTimeout {
  readonly #totalMs: number
  readonly #expire: () => void
  #fromMs: number
  #timer: NodeJS.Timeout | undefined

  /** `totalMs` 0 = no bound. */
  constructor(totalMs: number, nowMs: number, expire: () => void) {
    this.#totalMs = totalMs
    this.#fromMs = nowMs
    this.#expire = expire
  }

  leftMs(nowMs: number): number {
    return this.#totalMs > 0 ? this.#fromMs + this.#totalMs - nowMs : Number.POSITIVE_INFINITY
  }

  /** To be called every `pollIntervalMs`. */
  poll(nowMs: number): void {
    const leftMs = this.leftMs(nowMs)
    if (leftMs <= 2 * pollIntervalMs) this.#timer ??= setTimeout(this.#expire, leftMs)
  }

  stop(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
  }

  restart(nowMs: number): void {
    this.stop()
    this.#fromMs = nowMs
  }
}
