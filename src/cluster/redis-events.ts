import type { StoreTrouble } from './redis/redis-errors.ts'

/** What the second tier and its connections report. All strings are from closed lists. */
export type SharedTierEvent =
  /** A miss in memory was looked up in the tier. */
  | { readonly kind: 'tier-lookup'; readonly outcome: TierLookup }
  /** An entry was refused, because this instance would not have written it. */
  | { readonly kind: 'tier-refused'; readonly reason: TierRefusal }
  | { readonly kind: 'tier-stored'; readonly bytes: number }
  | { readonly kind: 'tier-failed'; readonly step: TierStep }
  /** A read waited for another instance with the same upstream request. */
  | { readonly kind: 'tier-waited'; readonly outcome: 'found' | 'not-found' }
  | { readonly kind: 'connection'; readonly state: 'up' | 'down' }
  | { readonly kind: 'store-trouble'; readonly trouble: StoreTrouble }

/** `outdated`: invalidated since it was stored. `refused`: see `TierRefusal`. `resting`: no lookups for a while after failures. */
export type TierLookup = 'found' | 'absent' | 'outdated' | 'refused' | 'resting' | 'failed'

export type TierStep = 'load' | 'store' | 'claim'

/**
 * Why an entry is refused. Decided here: `signature`: not signed with the key; `key`: moved from another key; `age`: an impossible
 * time; `malformed` and `size`. The others come from the rules for storing (cache/shared-tier.ts).
 */
export type TierRefusal =
  | 'malformed'
  | 'signature'
  | 'key'
  | 'age'
  | 'size'
  | 'fields'
  | 'variant'
  | 'not-storable'
  | 'stale'
