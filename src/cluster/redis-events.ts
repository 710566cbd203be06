import type { StoreTrouble } from './redis/redis-errors.ts'

/** What the second tier and its connections report. All strings are from closed lists. */
export type SharedTierEvent =
  /** A read that memory could not answer was looked up. */
  | { readonly kind: 'tier-lookup'; readonly outcome: TierLookup }
  /** What was found is not taken: it is not what this instance would have written there. */
  | { readonly kind: 'tier-refused'; readonly reason: TierRefusal }
  | { readonly kind: 'tier-stored'; readonly bytes: number }
  | { readonly kind: 'tier-failed'; readonly step: TierStep }
  /** A read waited for another instance that had asked the upstream for the same. */
  | { readonly kind: 'tier-waited'; readonly outcome: 'found' | 'not-found' }
  | { readonly kind: 'connection'; readonly state: 'up' | 'down' }
  | { readonly kind: 'store-trouble'; readonly trouble: StoreTrouble }

/** `outdated`: something it shows was written since. `refused`: see `TierRefusal`. `resting`: after failures it is left alone for a while. */
export type TierLookup = 'found' | 'absent' | 'outdated' | 'refused' | 'resting' | 'failed'

export type TierStep = 'load' | 'store' | 'claim'

/**
 * Why an entry is not taken. Found here: `signature`: not by an instance with the key; `key`: moved from elsewhere; `age`: a time that
 * cannot be; `malformed` and `size`. The others come from the rules for what may be stored (cache/shared-tier.ts).
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
