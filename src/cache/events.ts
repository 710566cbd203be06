import type { Coding } from '../http/content-coding.ts'
import type { BypassReason } from './decide-caching.ts'

/**
 * The steps of a read through the cache, as docs/request-path.md describes them: the same names in code, traces and `explain`. The last
 * three are those of the fetch that readers wait for.
 */
export const readSteps = [
  'lookup',
  'hit',
  'stale-while-revalidate',
  'only-if-cached',
  'join',
  'wait',
  'outcome',
  'lookup-again',
  'stale-if-error',
  'respond',
  'fetch',
  'revalidate',
  'store',
] as const
export type ReadStep = (typeof readSteps)[number]

/** Taken by the reader that started the fetch, on behalf of all that wait for it. */
export type FetchStep = 'fetch' | 'revalidate' | 'store'

/** The ways that most reads go, for `explain`. */
export const usualSteps: Readonly<Record<'hit' | 'miss', readonly ReadStep[]>> = {
  hit: ['lookup', 'hit'],
  miss: ['lookup', 'join', 'fetch', 'wait', 'store', 'outcome', 'respond'],
}

/** Why a read was forwarded (RFC 9211 §2.2). */
export const forwardReasons = ['bypass', 'uri-miss', 'vary-miss', 'request', 'stale'] as const
/** `method`: a write, whose effect has a metric of its own. */
export type ForwardReason = (typeof forwardReasons)[number] | 'method'

/** Why a read missed although a response to what it means was stored, or could have been. */
export type MissReason =
  /** A header of the request is part of the key. */
  | 'key-header'
  /** The query has parameters that its route does not declare. */
  | 'key-parameter'
  /** Stored for other values of the headers in Vary. */
  | 'vary'
  /** Stored, and too old. */
  | 'expired'
  /** Stored, and evicted to free memory. */
  | 'evicted'

export const noStoreReasons = [
  'status',
  'no-store',
  'private',
  'set-cookie',
  /** A header carries a token of its reader. */
  'token',
  'authorization',
  'vary-any',
  'must-understand',
  'no-freshness',
  /** Its pieces are of use only at once, and it may never end. */
  'event-stream',
  'too-large',
  /** Too much is buffered already (limits.bufferedBytes). */
  'no-room',
  /** Something that it shows was invalidated after the request was sent. */
  'overtaken',
  /** A write to something that it shows may still be carried out. */
  'unsettled',
  /** Requested for the first time while the cache is nearly full. */
  'not-admitted',
  /** An error page with status 200, or JSON that breaks off: its route cannot respond so. */
  'unreadable',
  /** Its content coding cannot be undone, so it would reach clients that do not accept it. */
  'coding',
  'method',
] as const
export type NoStoreReason = (typeof noStoreReasons)[number]

/** `detail` of a response from the cache: stale while it is validated, stale because the upstream failed, from the shared store. */
export type HitDetail = 'revalidating' | 'error' | 'shared'

/** Why a write dropped less than everything that it could have changed. */
export type WriteDetail = 'nothing' | 'reported' | 'table' | 'harmless'

/** Every `detail` that Cache-Status can carry. docs/why-not-cached.md has a row for each. */
export type StatusDetail =
  | BypassReason
  | NoStoreReason
  | HitDetail
  | WriteDetail
  | 'streamed'
  | 'only-if-cached'

export type ReadOutcome = 'hit' | 'miss' | 'stale' | 'revalidated' | 'collapsed'

/** `elsewhere`: any of the others in another process. `changes`: reported by a service. */
export const invalidators = ['write', 'purge', 'changes', 'elsewhere'] as const
export type InvalidationCause = (typeof invalidators)[number]

/**
 * Does the upstream's list of what a stored response shows say everything? `cause`: why it does not; `untested`: the software whose code
 * the list was not tested with. Both are the upstream's words.
 */
export type StoredDescription =
  | { readonly kind: 'complete'; readonly untested?: string | undefined }
  | { readonly kind: 'incomplete'; readonly cause: string | undefined }

/** Strings come from the configuration or closed lists, those of a `StoredDescription` from the upstream; none from a client. */
export type CacheEvent =
  /** A read was sent to the upstream; once, however many readers wait for it. */
  | {
      readonly kind: 'forwarded'
      readonly service: string
      readonly route: string
      readonly reason: ForwardReason
      readonly missed?: MissReason | undefined
    }
  | {
      readonly kind: 'stored'
      readonly service: string
      readonly bytes: number
      /** Absent where the upstream lists nothing. */
      readonly description?: StoredDescription | undefined
    }
  | {
      readonly kind: 'not-stored'
      readonly service: string
      readonly route: string
      readonly reason: NoStoreReason
    }
  /** A reader got the response to the request of another reader. */
  | { readonly kind: 'collapsed'; readonly service: string }
  | { readonly kind: 'served-stale'; readonly service: string; readonly reason: 'revalidating' }
  | {
      readonly kind: 'served-stale'
      readonly service: string
      readonly reason: 'error'
      readonly failure: 'unreachable' | 'server-error'
    }
  | { readonly kind: 'background-failed'; readonly service: string }
  /** `entries`: stored responses removed or marked stale. `cut`: fetches in flight that later readers no longer join. */
  | {
      readonly kind: 'invalidated'
      readonly by: InvalidationCause
      readonly entries: number
      readonly cut: number
    }
  /** `saved`: 0 when compressing gains nothing. */
  | { readonly kind: 'compressed'; readonly coding: Coding; readonly bytes: number; readonly saved: number }
  | { readonly kind: 'evicted'; readonly bytes: number }
