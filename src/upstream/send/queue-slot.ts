import type { Clock } from '../../clock.ts'
import type { QueueOutcome, UpstreamEvent } from '../events.ts'
import type { SlotRequest, Slots } from './slots.ts'

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
  readonly #request: SlotRequest
  #leaveQueue: (() => void) | undefined
  #held = false

  constructor(room: PlaceRoom, request: SlotRequest) {
    this.#room = room
    this.#request = request
  }

  /** Calls `granted` or `refused` once, perhaps at once; neither after `leave`. */
  ask(granted: () => void, refused: (why: QueueOutcome) => void): void {
    if (this.#room.slots.take(this.#request)) {
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
      this.#request,
      () => {
        settle('sent')
        this.#held = true
        granted()
      },
      (why) => {
        settle(why)
        refused(why)
      },
    )
    if (settled) return
    this.#leaveQueue = () => {
      leave()
      settle('aborted')
    }
  }

  /** The request body has arrived whole: from now on the slot waits for the upstream. */
  contentArrived(): void {
    if (this.#held) this.#room.slots.arrived(this.#request)
  }

  /** Waits no longer. */
  leave(): void {
    this.#leaveQueue?.()
  }

  /** Whoever has the function has the place, and gives it back by calling it. */
  take(): () => void {
    if (!this.#held) return nothing
    this.#held = false
    return () => this.#room.slots.release(this.#request)
  }

  #report(outcome: QueueOutcome, sinceMs: number): void {
    const { options, clock, report } = this.#room
    const waitedSeconds = (clock.monotonic() - sinceMs) / 1000
    report({ kind: 'slot-wait-finished', service: options.service, outcome, waitedSeconds })
  }
}
