import type { SendProgress } from '../../upstream/messages.ts'
import type { WriteOutcome, WriteState } from '../events.ts'

/** An upstream may answer before it has the whole body; a retry sends what was sent before. */
const following: Readonly<Record<WriteState, readonly WriteState[]>> = {
  'not-sent': ['partly-sent', 'sent', 'open'],
  'partly-sent': ['sent', 'open', 'broken-off'],
  sent: ['open', 'broken-off'],
  open: ['ended', 'broken-off'],
  ended: [],
  'broken-off': [],
}

export type WriteObserver = {
  advanced(to: WriteState): void
  /** A fault of the gateway: the write counts as broken off from now on. */
  illegal(from: WriteState, to: WriteState): void
}

/** How far one write got; it only moves forward. */
export class WriteProgress implements SendProgress {
  readonly #observer: WriteObserver
  #state: WriteState = 'not-sent'

  constructor(observer: WriteObserver) {
    this.#observer = observer
  }

  get state(): WriteState {
    return this.#state
  }

  get outcome(): WriteOutcome {
    if (this.#state === 'not-sent') return 'not-sent'
    return this.#state === 'ended' ? undefined : 'unknown'
  }

  /** Called again for each attempt. */
  partlySent(): void {
    if (this.#state === 'not-sent') this.#advance('partly-sent')
    else this.#refuseAfterEnd('partly-sent')
  }

  /** Called again for each attempt, and after the head where the upstream answers before it has the whole body. */
  sent(): void {
    if (this.#state === 'not-sent' || this.#state === 'partly-sent') this.#advance('sent')
    else this.#refuseAfterEnd('sent')
  }

  /** The head of the response is there; false where that cannot be. */
  open(): boolean {
    return this.#advance('open')
  }

  /** The last octet of the response was read; false where that cannot be. */
  end(): boolean {
    return this.#advance('ended')
  }

  /** Nothing more comes of it. One that was never sent stays as it is, and so does one that is over. */
  breakOff(): void {
    if (following[this.#state].includes('broken-off')) this.#advance('broken-off')
  }

  #refuseAfterEnd(to: WriteState): void {
    if (following[this.#state].length === 0) this.#illegal(to)
  }

  #advance(to: WriteState): boolean {
    if (!following[this.#state].includes(to)) {
      this.#illegal(to)
      return false
    }
    this.#state = to
    this.#observer.advanced(to)
    return true
  }

  #illegal(to: WriteState): void {
    const from = this.#state
    this.#state = 'broken-off'
    this.#observer.illegal(from, to)
  }
}
