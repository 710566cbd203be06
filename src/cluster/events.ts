/** Why a member must not answer from its memory. */
export type DistrustReason = 'unreachable' | 'unproven' | 'member-silent' | 'young-ledger'

/** What a member of a ledger reports. */
export type CoherenceEvent =
  /** The lease ended, or a new one was granted. */
  | { readonly kind: 'trust-lost'; readonly reason: DistrustReason }
  | { readonly kind: 'trust-regained' }
  /** Notes of other members were applied. */
  | { readonly kind: 'notes-applied'; readonly notes: number }
  /** Notes were missed: every stored response was dropped. */
  | { readonly kind: 'memory-dropped' }
  /** How long a write waited for the other members before it was acknowledged. */
  | { readonly kind: 'write-spread'; readonly outcome: SpreadOutcome; readonly waitedSeconds: number }
  | { readonly kind: 'ledger-failed'; readonly step: LedgerStep }
  /** A write was refused because it could not be announced. */
  | { readonly kind: 'write-refused' }
  /** Reported once for each outage, with its first write. */
  | { readonly kind: 'cut-off'; readonly writes: 'unheard' | 'refused' }

/** `lapsed`: a member did not acknowledge and its lease ran out. `isolated`: no member was reached, and all leases ran out. */
export type SpreadOutcome = 'acknowledged' | 'lapsed' | 'isolated'

export type LedgerStep = 'sync' | 'begin' | 'append'
