import { GatewayError } from '../errors.ts'
import type { Landing } from './landing.ts'

/** One reader's wait for a landing, with all that has to be done about it in one object: each miss makes one. */
export class Waiter {
  readonly #signal: AbortSignal
  readonly #resolve: (landing: Landing) => void
  readonly #reject: (error: GatewayError) => void
  readonly #leave: () => void

  constructor(
    signal: AbortSignal,
    resolve: (landing: Landing) => void,
    reject: (error: GatewayError) => void,
    leave: () => void,
  ) {
    this.#signal = signal
    this.#resolve = resolve
    this.#reject = reject
    this.#leave = leave
  }

  /** Begins to wait, unless its reader is gone already. */
  begins(): boolean {
    if (this.#signal.aborted) {
      this.handleEvent()
      return false
    }
    this.#signal.addEventListener('abort', this, { once: true })
    return true
  }

  /** The reader is gone. */
  handleEvent(): void {
    this.#leave()
    this.#reject(this.#gone())
  }

  landed(landing: Landing): void {
    this.#signal.removeEventListener('abort', this)
    // A landing and an abort in the same turn: it has left.
    if (this.#signal.aborted) this.#reject(this.#gone())
    else this.#resolve(landing)
  }

  #gone(): GatewayError {
    return new GatewayError('client_gone', { cause: this.#signal.reason })
  }
}
