import type { ForwardReason } from './cache-status.ts'
import type { NoStoreReason } from './policy/storability.ts'
import type { Coding } from './respond/compress.ts'

/** How a read was answered, from the reader's side. */
export type ReadOutcome = 'hit' | 'miss' | 'stale' | 'revalidated' | 'collapsed'

/** `elsewhere`: a write or a purge in another process. */
export type Invalidator = 'write' | 'purge' | 'elsewhere'

/** What the cache reports. All strings come from configuration or closed lists, never from a client. */
export type CacheEvent =
  /** A read that had to be forwarded landed, once for each forward, whoever waits. */
  | { readonly kind: 'forwarded'; readonly service: string; readonly reason: ForwardReason }
  | { readonly kind: 'stored'; readonly service: string; readonly bytes: number }
  | { readonly kind: 'not-stored'; readonly service: string; readonly reason: NoStoreReason }
  /** A reader got the answer that another one's read had asked for. */
  | { readonly kind: 'collapsed'; readonly service: string }
  | { readonly kind: 'served-stale'; readonly service: string; readonly reason: 'revalidating' | 'error' }
  | { readonly kind: 'background-failed'; readonly service: string }
  /** Stored responses dropped or marked stale by a write or by an operator; `cut` forwards in flight were cut loose. */
  | {
      readonly kind: 'invalidated'
      readonly by: Invalidator
      readonly entries: number
      readonly cut: number
    }
  /** A stored response was compressed, for all who take it so from now on; `saved` 0 when that gains nothing. */
  | { readonly kind: 'compressed'; readonly coding: Coding; readonly bytes: number; readonly saved: number }
  /** Dropped to make room. */
  | { readonly kind: 'evicted'; readonly bytes: number }
