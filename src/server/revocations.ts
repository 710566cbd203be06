import { setImmediate } from 'node:timers/promises'
import type { RequestHeaders } from '../http/headers/header-lines.ts'

/** What something that stays open was allowed by. */
export type Opener = {
  readonly service: string
  readonly address: string
  /** Of the request that opened it. */
  readonly headers: RequestHeaders
}

/** Event streams are allowed wherever the service is; WebSockets need its switch too. */
export type OpenerKind = 'event-stream' | 'websocket'

type Watched = { readonly opener: Opener; readonly kind: OpenerKind; readonly revoke: () => void }

const recheckMs = 1_000
/** A check is a look-up of a verified token: this many take less than a millisecond. */
const checksPerTurn = 64

/** Ends what stays open, a WebSocket or an event stream, when what allowed it has ended: the address, the key, the token or the service. */
export class Revocations {
  readonly #isAllowed: (opener: Opener, kind: OpenerKind) => boolean | Promise<boolean>
  readonly #watched = new Set<Watched>()
  #isCheckScheduled = false

  /** `isAllowed`: asked every second for each that is watched. */
  constructor(isAllowed: (opener: Opener, kind: OpenerKind) => boolean | Promise<boolean>) {
    this.#isAllowed = isAllowed
  }

  /** `revoke` is called at most once, unless the function that it gives is called before. */
  watch(opener: Opener, kind: OpenerKind, revoke: () => void): () => void {
    const watched = { opener, kind, revoke }
    this.#watched.add(watched)
    this.#scheduleCheck()
    return () => this.#watched.delete(watched)
  }

  #scheduleCheck(): void {
    if (this.#isCheckScheduled) return
    this.#isCheckScheduled = true
    setTimeout(() => void this.#checkAll(), recheckMs).unref()
  }

  /** One round at a time, in turns of the event loop. */
  async #checkAll(): Promise<void> {
    let checked = 0
    for (const watched of [...this.#watched]) {
      const { opener, kind, revoke } = watched
      if (
        this.#watched.has(watched) &&
        !(await this.#isAllowed(opener, kind)) &&
        this.#watched.delete(watched)
      )
        revoke()
      checked += 1
      if (checked % checksPerTurn === 0) await setImmediate()
    }
    this.#isCheckScheduled = false
    if (this.#watched.size > 0) this.#scheduleCheck()
  }
}
