import type { Clock } from '../clock.ts'
import type { QueueOutcome, UpstreamEvent } from './events.ts'
import type { Slots } from './slots.ts'

/** Where places come from, and where the wait for one is reported. */
export type PlaceRoom = {
  readonly options: { readonly service: string }
  readonly clock: Clock
  readonly slots: Slots
  readonly report: (event: UpstreamEvent) => void
}

const nothing = (): void => {}

/** The place of one request among those in flight: asked for, waited for, held, given back. */
export class Place {
  readonly #room: PlaceRoom
  readonly #flow: string
  #leaveQueue: (() => void) | undefined
  #held = false

  constructor(room: PlaceRoom, flow: string) {
    this.#room = room
    this.#flow = flow
  }

  /** Calls `granted` or `refused` once, perhaps at once; neither after `leave`. */
  ask(granted: () => void, refused: () => void): void {
    if (this.#room.slots.take()) {
      this.#held = true
      const { options, report } = this.#room
      report({ kind: 'slot-wait-finished', service: options.service, outcome: 'sent', waitedSeconds: 0 })
      granted()
      return
    }
    const since = this.#room.clock.monotonic()
    let settled = false
    const settle = (outcome: QueueOutcome): void => {
      settled = true
      this.#leaveQueue = undefined
      this.#report(outcome, since)
    }
    const leave = this.#room.slots.acquire(
      this.#flow,
      () => {
        settle('sent')
        this.#held = true
        granted()
      },
      (why) => {
        settle(why)
        refused()
      },
    )
    if (settled) return
    this.#leaveQueue = () => {
      leave()
      settle('aborted')
    }
  }

  /** Waits no longer. */
  leave(): void {
    this.#leaveQueue?.()
  }

  /** Whoever has the function has the place, and gives it back by calling it. */
  take(): () => void {
    if (!this.#held) return nothing
    this.#held = false
    return () => this.#room.slots.release()
  }

  #report(outcome: QueueOutcome, sinceMs: number): void {
    const { options, clock, report } = this.#room
    const waitedSeconds = (clock.monotonic() - sinceMs) / 1000
    report({ kind: 'slot-wait-finished', service: options.service, outcome, waitedSeconds })
  }
}
