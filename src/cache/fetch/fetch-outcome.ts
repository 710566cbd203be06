import type { FieldLines, GatewayResponse } from '../../http/message.ts'
import type { CacheRead, Forward } from '../cache-read.ts'
import type { ForwardReason, NoStoreReason } from '../events.ts'
import type { ExchangeTimes } from '../policy/freshness.ts'
import type { StoredResponse } from '../store/stored-response.ts'
import type { Fill } from './fill.ts'

/** One request to the upstream, or to the shared tier: what it is for and how it is sent. */
export type FetchRequest = {
  readonly read: CacheRead
  readonly forward: Forward
  readonly reason: ForwardReason
  /** The stored response that it may validate. */
  readonly stored: StoredResponse | undefined
  /** Range and If-Range of a reader who fetches alone. */
  readonly rangeFields: Readonly<Record<string, string>>
  /** No reader waits for it: a stale response was served and is revalidated. */
  readonly background: boolean
  /** Number of the last invalidation when it started: see InvalidationLog. */
  readonly since: number
  /** Fetches are numbered as they start: an older one never replaces the response of a newer one. */
  readonly order: number
  readonly signal: AbortSignal
}

/** What the upstream responded, and when. */
export type UpstreamResponse = { readonly response: GatewayResponse; readonly times: ExchangeTimes }

/** Complete, and may be given to every reader whose request selects it. */
export type ShareableOutcome = {
  readonly kind: 'shareable'
  readonly stored: StoredResponse
  readonly upstreamStatus: number
  /** Field lines for the reader who started the fetch, in front of those that are stored: on a miss Age passes unchanged. */
  readonly ownFields: FieldLines
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
  /** Without its content: terms of reuse, and field lines ready to be sent. */
  readonly head: StoredResponse
  readonly upstreamStatus: number
  readonly ownFields: FieldLines
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

/** Sends a read to the upstream, and stores what may be stored. Throws, or rejects, with what `forward` does. */
export type RunFetch = (fetch: FetchRequest) => FetchOutcome | Promise<FetchOutcome>
