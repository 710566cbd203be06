import type { Clock } from '../../clock.ts'
import type { AttemptEvent, AttemptOutcome, StatusClass, UpstreamEvent } from '../events.ts'
import type { Choice, Targets } from '../targets/targets.ts'

/** Where an account is kept and reported. */
export type AccountRoom = {
  readonly options: { readonly service: string }
  readonly clock: Clock
  readonly report: (event: UpstreamEvent) => void
  readonly targets: Targets
}

const classOf = (status: number | undefined): StatusClass => {
  if (status === undefined) return 'none'
  if (status < 300) return '2xx'
  if (status < 400) return '3xx'
  return status < 500 ? '4xx' : '5xx'
}

/** How an attempt that got no response head ended, for the log. */
const failureTexts: Readonly<Record<AttemptOutcome, string>> = {
  answered: 'no answer',
  unreachable: 'the target could not be reached',
  timeout: 'no response in time',
  broken: 'the connection broke',
  discarded: 'the response was discarded for a retry',
  aborted: 'the request was cancelled',
}

/** These say that the target, or what is behind it, is not there; a 500 is an answer of the program that runs on it. */
export const isGatewayStatus = (status: number): boolean => status === 502 || status === 503 || status === 504

/** One attempt on the books: outstanding while it lasts, its outcome for the health of its target, one event at its end. */
export class AttemptAccount {
  readonly choice: Choice
  readonly #room: AccountRoom
  readonly #number: number
  readonly #startedMs: number
  readonly #attempted: ((attempt: AttemptEvent) => void) | undefined
  #headMs: number | undefined
  #status: number | undefined
  #open = true

  constructor(
    room: AccountRoom,
    choice: Choice,
    number: number,
    attempted: ((attempt: AttemptEvent) => void) | undefined,
  ) {
    this.choice = choice
    this.#attempted = attempted
    this.#room = room
    this.#number = number
    this.#startedMs = room.clock.monotonic()
    choice.target.outstanding += 1
  }

  /** The head came: that is what the health of the target is judged by. */
  head(status: number, isFailure: boolean): void {
    const now = this.#room.clock.monotonic()
    this.#headMs = now
    this.#status = status
    if (isFailure) this.#room.targets.failed(this.choice, now, `answered ${status}`)
    else this.#room.targets.succeeded(this.choice)
  }

  /** The attempt is over; later calls do nothing. */
  close(outcome: AttemptOutcome): void {
    if (!this.#open) return
    this.#open = false
    const now = this.#room.clock.monotonic()
    const { target } = this.choice
    target.outstanding -= 1
    if (this.#status === undefined) {
      if (outcome === 'aborted') this.#room.targets.abandoned(this.choice, now)
      else this.#room.targets.failed(this.choice, now, failureTexts[outcome])
    }
    const ended: AttemptEvent = {
      kind: 'attempt-finished',
      service: this.#room.options.service,
      target: target.origin,
      outcome,
      statusClass: classOf(this.#status),
      headSeconds: this.#headMs === undefined ? undefined : (this.#headMs - this.#startedMs) / 1000,
      durationSeconds: (now - this.#startedMs) / 1000,
      attempt: this.#number,
    }
    this.#room.report(ended)
    this.#attempted?.(ended)
  }
}
