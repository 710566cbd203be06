import type { StoreTrouble } from './troubles.ts'

/** What the second tier and its connections report. All strings are from closed lists. */
export type SharedTierEvent =
  /** A read that memory could not answer was looked up. */
  | { readonly kind: 'tier-lookup'; readonly outcome: TierLookup }
  | { readonly kind: 'tier-stored'; readonly bytes: number }
  | { readonly kind: 'tier-failed'; readonly step: TierStep }
  /** A read waited for another instance that had asked the upstream for the same. */
  | { readonly kind: 'tier-waited'; readonly outcome: 'found' | 'not-found' }
  | { readonly kind: 'connection'; readonly state: 'up' | 'down' }
  | { readonly kind: 'store-trouble'; readonly trouble: StoreTrouble }

/** `outdated`: something it shows was written since. `resting`: after failures it is left alone for a while. */
export type TierLookup = 'found' | 'absent' | 'outdated' | 'resting' | 'failed'

export type TierStep = 'load' | 'store' | 'claim'
