import type { Readable } from 'node:stream'
import type { FairTurns } from '../../http/fair-turns.ts'
import type { Interim } from '../../http/message.ts'
import type { AttemptEvent } from '../events.ts'
import type { UpstreamOptions } from '../options.ts'
import type { Breaker } from '../targets/breaker.ts'
import type { AccountRoom } from './attempt-account.ts'
import type { PacedRequest } from './client-pace.ts'
import type { Abortable, UnderWay } from './in-flight.ts'
import type { RetryBudget } from './retry-budget.ts'
import type { Slots } from './slots.ts'

/** What every relay of one upstream shares. */
export type RelayRoom = AccountRoom & {
  readonly options: UpstreamOptions
  readonly random: () => number
  readonly slots: Slots
  readonly budget: RetryBudget
  readonly breaker: Breaker
  readonly relays: UnderWay<Abortable & PacedRequest>
  /** In which responses of many megabytes go on. */
  readonly longResponses: FairTurns
  /** Called after a relay has left `relays`. */
  readonly ended: () => void
}

/** A request under the names that undici's `dispatch` has for it; `clientAddress` and `line` decide when it gets its slot (slots.ts). */
export type RelayOptions = {
  readonly path: string
  readonly method: string
  /** Lines, names in lower case. Nobody writes to them, though undici's type would let it. */
  readonly headers: string[]
  readonly body: Buffer | Readable | null
  readonly clientAddress: string
  readonly line: string
  readonly interim: Interim | undefined
  readonly attempted: ((attempt: AttemptEvent) => void) | undefined
  /** When it is aborted, so is the request. */
  readonly client: AbortSignal
  /** The same as long as nothing has been sent. */
  readonly withdraw: AbortSignal | undefined
}
