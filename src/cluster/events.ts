import type { StoreTrouble } from './redis/connections.ts'

/**
 * Why a member must not answer from its memory. `unproven`: it has not yet proved that it receives messages of the ledger.
 * `member-silent`: another member is silent, and may acknowledge writes that it cannot register. `young-ledger`: the ledger is new, so
 * members that have not found it yet may acknowledge writes.
 */
export const noLeaseReasons = ['unreachable', 'unproven', 'member-silent', 'young-ledger'] as const
export type NoLeaseReason = (typeof noLeaseReasons)[number]

export type CoherenceEvent =
  /** The lease ended, or a new one was granted. */
  | { readonly kind: 'trust-lost'; readonly reason: NoLeaseReason }
  | { readonly kind: 'trust-regained' }
  | { readonly kind: 'invalidations-applied'; readonly invalidations: number }
  /** Invalidations were missed: every stored response was dropped. */
  | { readonly kind: 'memory-dropped' }
  /** How long a write waited for the other members before it was acknowledged. */
  | { readonly kind: 'write-broadcast'; readonly outcome: BroadcastOutcome; readonly waitedSeconds: number }
  | { readonly kind: 'ledger-failed'; readonly step: LedgerStep }
  /** A write was refused because it could not be registered. */
  | { readonly kind: 'write-refused' }
  /** Reported once for each outage, with its first write. */
  | { readonly kind: 'cut-off'; readonly writes: 'unacknowledged' | 'refused' }

/** `lapsed`: a member did not acknowledge and its lease ran out. `isolated`: no member was reached, and all leases ran out. */
export const broadcastOutcomes = ['acknowledged', 'lapsed', 'isolated'] as const
export type BroadcastOutcome = (typeof broadcastOutcomes)[number]

export const ledgerSteps = ['sync', 'begin', 'append'] as const
export type LedgerStep = (typeof ledgerSteps)[number]

/** What the second tier and its connections report. All strings are from closed lists. */
export type SharedTierEvent =
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
export const tierLookups = ['found', 'absent', 'outdated', 'refused', 'resting', 'failed'] as const
export type TierLookup = (typeof tierLookups)[number]

export const tierSteps = ['load', 'store', 'claim'] as const
export type TierStep = (typeof tierSteps)[number]

/**
 * Why an entry is refused. Decided here: `signature`: not signed with the key; `key`: moved from another key; `age`: an impossible
 * time; `malformed` and `size`. The others come from the rules for storing (cache/shared-tier.ts).
 */
export const tierRefusals = [
  'malformed',
  'signature',
  'key',
  'age',
  'size',
  'fields',
  'variant',
  'not-storable',
  'stale',
] as const
export type TierRefusal = (typeof tierRefusals)[number]
