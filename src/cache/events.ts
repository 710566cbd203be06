import type { ForwardReason } from './cache-status.ts'
import type { NoStoreReason } from './policy/storability.ts'
import type { Coding } from './respond/compress.ts'

export type ReadOutcome = 'hit' | 'miss' | 'stale' | 'revalidated' | 'collapsed'

/** `elsewhere`: a write or a purge in another process. */
export type Invalidator = 'write' | 'purge' | 'elsewhere'

/** All strings come from the configuration or closed lists, never from a client. */
export type CacheEvent =
  /** A request was sent to the upstream; once, however many readers wait for it. */
  | { readonly kind: 'forwarded'; readonly service: string; readonly reason: ForwardReason }
  | { readonly kind: 'stored'; readonly service: string; readonly bytes: number }
  | { readonly kind: 'not-stored'; readonly service: string; readonly reason: NoStoreReason }
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
      readonly by: Invalidator
      readonly entries: number
      readonly cut: number
    }
  /** `saved`: 0 when compressing gains nothing. */
  | { readonly kind: 'compressed'; readonly coding: Coding; readonly bytes: number; readonly saved: number }
  | { readonly kind: 'evicted'; readonly bytes: number }
