/** Why a member may not answer from its memory. */
export type DistrustReason = 'unreachable' | 'unproven' | 'member-silent' | 'young-ledger'

/** What a member of a ledger reports. */
export type CoherenceEvent =
  /** The lease ended, or there is one again. */
  | { readonly kind: 'trust-lost'; readonly reason: DistrustReason }
  | { readonly kind: 'trust-regained' }
  /** Notes of other members were applied. */
  | { readonly kind: 'notes-applied'; readonly notes: number }
  /** What was noted meanwhile is not known: everything stored was dropped. */
  | { readonly kind: 'memory-dropped' }
  /** How long a write waited for the others before its answer was returned. */
  | { readonly kind: 'write-spread'; readonly outcome: SpreadOutcome; readonly waitedSeconds: number }
  | { readonly kind: 'ledger-failed'; readonly step: LedgerStep }
  /** A write was not begun, since nobody would have heard of it. */
  | { readonly kind: 'write-refused' }
  /** Told with the first write of those that meet one outage. */
  | { readonly kind: 'cut-off'; readonly writes: 'unheard' | 'refused' }

/** `lapsed`: some member did not answer and its lease ran out; `isolated`: nobody was reached, and nobody trusts its memory. */
export type SpreadOutcome = 'acknowledged' | 'lapsed' | 'isolated'

export type LedgerStep = 'sync' | 'begin' | 'append'
