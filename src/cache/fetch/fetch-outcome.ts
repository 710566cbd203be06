import type { Readability } from '../../http/bodies/json-readability.ts'
import type { HeaderLines } from '../../http/headers/header-lines.ts'
import type { GatewayResponse } from '../../http/message.ts'
import type { NoStoreReason } from '../events.ts'
import type { ExchangeTimes } from '../policy/freshness.ts'
import type { StoredResponse } from '../store/stored-response.ts'
import type { Fill } from './fill.ts'

export type UpstreamResponse = { readonly response: GatewayResponse; readonly times: ExchangeTimes }

/** Complete, and may be given to every reader whose request selects it. */
export type ShareableOutcome = {
  readonly kind: 'shareable'
  readonly stored: StoredResponse
  readonly upstreamStatus: number
  /** Header lines for the reader who started the fetch, in front of those that are stored: on a miss Age passes unchanged. */
  readonly ownHeaders: HeaderLines
  /** Why later readers do not get it from memory; undefined when it is stored. */
  readonly notStored: NoStoreReason | undefined
  readonly validated: boolean
  /** From the shared tier: no request was sent to the upstream. */
  readonly fromTier?: true
}

/** For the reader who started the fetch, and for no other. */
export type UnshareableOutcome = {
  readonly kind: 'unshareable'
  readonly response: GatewayResponse
  readonly upstreamStatus: number
  /** Why it is not stored; undefined if it is stored, or may be once it is complete. */
  readonly reason: NoStoreReason | undefined
}

/** Shareable, and its content is still coming: readers of the whole content follow the fill, the others wait for its end. */
export type StreamingOutcome = {
  readonly kind: 'streaming'
  /** Without its content: terms of reuse, and header lines ready to be sent. */
  readonly head: StoredResponse
  readonly upstreamStatus: number
  readonly ownHeaders: HeaderLines
  readonly readability: Readability
  readonly fill: Fill
  readonly end: Promise<StreamEnd>
}

/** `hasBegun`: the content broke off; readers that wait may fetch it again, whatever the cause. */
type FailedOutcome = { readonly kind: 'failed'; readonly error: unknown; readonly hasBegun: boolean }

/** How the content of a streaming outcome ended. `too-large`: only the readers that follow the fill get it. */
export type StreamEnd = ShareableOutcome | FailedOutcome | { readonly kind: 'too-large' }

/** The result of a fetch, as soon as the head of the response is there. */
export type FetchOutcome =
  | ShareableOutcome
  | UnshareableOutcome
  | StreamingOutcome
  /** A complete 5xx that identifies no caller: it is not stored, and readers that wait share it instead of repeating the request. */
  | { readonly kind: 'server-error'; readonly stored: StoredResponse }
  | FailedOutcome
