import type { RelayOptions } from './relay-room.ts'

type Signals = Pick<RelayOptions, 'client' | 'withdraw'>

/** Who asked for a request, and may lose interest: the client that goes, or a batch that takes back what still waits. */
export class Asker {
  readonly #signals: Signals
  readonly #gone: () => void
  readonly #withdrawn: () => void

  /** `gone`: nobody waits for the answer. `withdrawn`: it is not wanted unless it was sent already. */
  constructor(signals: Signals, gone: () => void, withdrawn: () => void) {
    this.#signals = signals
    this.#gone = gone
    this.#withdrawn = withdrawn
  }

  /** From now on who goes is heard, and at once who has gone already. */
  listen(): void {
    const { client, withdraw } = this.#signals
    if (client?.aborted === true) {
      this.#gone()
      return
    }
    client?.addEventListener('abort', this.#gone)
    withdraw?.addEventListener('abort', this.#withdrawn)
  }

  /** Leaves no listener behind: a client's signal outlives many requests. */
  leave(): void {
    this.#signals.client?.removeEventListener('abort', this.#gone)
    this.#signals.withdraw?.removeEventListener('abort', this.#withdrawn)
  }

  /** Why the client went. */
  get reason(): unknown {
    return this.#signals.client?.reason
  }
}
