import type { FieldLines } from '../../http/fields.ts'
import type { GatewayResponse } from '../../http/message.ts'
import type { CacheRead, Forward } from '../cache-read.ts'
import type { ExchangeTimes } from '../policy/freshness.ts'
import type { NoStoreReason } from '../policy/storability.ts'
import type { StoredResponse } from '../store/stored-response.ts'
import type { Fill } from './fill.ts'

/** One forward: whom it is for, how to ask, and what it could validate. */
export type Errand = {
  readonly read: CacheRead
  readonly forward: Forward
  readonly candidate: StoredResponse | undefined
  /** Range and If-Range of a reader who asks alone. */
  readonly extra: Readonly<Record<string, string>>
  /** No reader waits for it. */
  readonly background: boolean
  /** To be called when the upstream is asked. */
  readonly asked: () => void
}

/** What came back from the upstream, and when. */
export type UpstreamAnswer = { readonly response: GatewayResponse; readonly times: ExchangeTimes }

/** What became of a forward. */
export type Landing =
  /** Complete and fit for everybody who asked for the same; `notKept` says why it is not kept for later readers. */
  | {
      readonly kind: 'shared'
      readonly stored: StoredResponse
      readonly upstreamStatus: number
      /** Lines for the reader who asked alone: on a miss Age passes unchanged. */
      readonly ownFields: FieldLines
      readonly notKept: NoStoreReason | undefined
      readonly validated: boolean
      /** The upstream was not asked: the second tier had it. */
      readonly fromTier?: true
    }
  /** For the reader who asked, and for nobody else. */
  | {
      readonly kind: 'own'
      readonly response: GatewayResponse
      readonly upstreamStatus: number
      /** Why nothing of it is kept; undefined when it is, or may be once all of it has passed. */
      readonly reason: NoStoreReason | undefined
    }
  /** Fit for everybody, and still coming: those who want all of it as it is follow the fill, the others wait for its end. */
  | {
      readonly kind: 'filling'
      /** Without its content: terms of reuse, and field lines ready to be sent. */
      readonly sketch: StoredResponse
      readonly upstreamStatus: number
      readonly ownFields: FieldLines
      readonly fill: Fill
      readonly complete: Promise<Landing>
    }
  /** It broke off: an error for those who had begun, another try for those who had not. */
  | { readonly kind: 'broken'; readonly error: unknown }
  /** Longer than may be kept: for those who had begun. */
  | { readonly kind: 'overflowed' }
  /** A server error, complete and private to nobody: those who waited share it rather than all ask a failing upstream again. */
  | { readonly kind: 'server-error'; readonly stored: StoredResponse }
  | { readonly kind: 'failed'; readonly error: unknown }
