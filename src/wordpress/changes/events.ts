import type { BehindCause, FeedState, ServiceDropReason } from './feed-state.ts'
import type { SignatureRefusal } from './read-changes.ts'

/** `push` and `poll` by the companion of WordPress, `plain` by any other service. */
export type ChangeSource = 'push' | 'poll' | 'plain'

export type ChangeRefusal = SignatureRefusal | 'no-credential' | 'too-many' | 'unreadable' | 'not-spread'

/** `unreachable`: no response. `no-companion`: another response than the log. `not-spread`: the cluster cannot be reached. */
export type PollFailure = 'unreachable' | 'no-companion' | 'not-spread'

/** Events of the change feeds; services come from the configuration, everything else from closed lists. */
export type ChangeEvent =
  | {
      readonly kind: 'changes-applied'
      readonly service: string
      readonly source: ChangeSource
      readonly changes: number
      /** Stored responses that were dropped, in all processes. */
      readonly entries: number
    }
  | { readonly kind: 'service-dropped'; readonly service: string; readonly reason: ServiceDropReason }
  /** `service` is `none` when the credential names none. */
  | { readonly kind: 'changes-refused'; readonly service: string; readonly reason: ChangeRefusal }
  | { readonly kind: 'poll-failed'; readonly service: string; readonly reason: PollFailure }
  | {
      readonly kind: 'feed-state'
      readonly service: string
      readonly from: FeedState
      readonly to: FeedState
      /** Of `behind`. */
      readonly cause?: BehindCause | undefined
    }
