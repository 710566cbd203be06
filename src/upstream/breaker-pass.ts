import type { Ticket } from './breaker.ts'
import type { RequestResult } from './breaker-state.ts'
import type { RelayRoom } from './relay-room.ts'

/** One request's way past the breaker: let through once, and what came of it told once. */
export class BreakerPass {
  readonly #room: Pick<RelayRoom, 'breaker' | 'clock'>
  #ticket: Ticket | undefined

  constructor(room: Pick<RelayRoom, 'breaker' | 'clock'>) {
    this.#room = room
  }

  /**
   * Milliseconds for which the upstream is left alone; undefined when the request may go. A retry is not asked again: the
   * budget bounds it, and its first attempt was let through.
   */
  enter(): number | undefined {
    if (this.#ticket !== undefined) return undefined
    const entry = this.#room.breaker.enter(this.#room.clock.monotonic())
    if (typeof entry === 'number') return entry
    this.#ticket = entry
    return undefined
  }

  /** Only the first call counts. */
  settle(result: RequestResult): void {
    if (this.#ticket === undefined) return
    this.#room.breaker.settle(this.#ticket, result, this.#room.clock.monotonic())
    this.#ticket = undefined
  }
}
