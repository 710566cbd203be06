import type { Invalidation } from '../cache/invalidation.ts'
import type { LedgerPosition } from '../cache/shared-tier.ts'
import type { Clock } from '../clock.ts'
import type { CoherenceEvent, NoLeaseReason } from './events.ts'

/** Invalidations that a ledger stores, and tags that the cache of a member does: above this number all stored responses are in doubt. */
export const maxLedgerEntries = 16_384

export type LedgerStatus = {
  readonly member: string
  readonly applied: number
  /** Grows with each lease granted to the member. */
  readonly beat: number
}

export type LeaseRefusal = Exclude<NoLeaseReason, 'unreachable'>

/** An encoded invalidation, and the number under which it was last appended. */
export type LedgerEntry = { readonly seq: number; readonly text: string }

export type Synced = {
  /** Changes whenever the ledger may have forgotten something. */
  readonly epoch: string
  readonly seq: number
  /** Invalidations up to this number may have been forgotten. */
  readonly floor: number
  /** Oldest first: the invalidations after the given position, or all remembered ones when the position is of another epoch. */
  readonly invalidations: readonly LedgerEntry[]
  readonly members: readonly LedgerStatus[]
  readonly lease: 'granted' | LeaseRefusal
}

export type Appended = Pick<Synced, 'epoch' | 'seq' | 'members'>

/** Messages that a ledger sends on its own. They only save time: the next `sync` makes up for a lost message. */
export type LedgerPush =
  | {
      readonly kind: 'noted'
      readonly epoch: string
      readonly seq: number
      readonly writer: string
      readonly invalidations: readonly string[]
    }
  /** An unverified message that there are new invalidations: sync to read them. */
  | { readonly kind: 'hint'; readonly epoch: string; readonly seq: number; readonly writer: string }
  | {
      readonly kind: 'applied'
      readonly epoch: string
      readonly seq: number
      readonly member: string
      readonly entries: number
    }

/**
 * The shared log through which members agree (docs/decisions/0007). Each call rejects when no reply arrives in time; the
 * ledger may still carry it out later.
 */
export type Ledger = {
  /** Returns the invalidations after the position, and requests a lease. */
  sync(position: LedgerPosition): Promise<Synced>
  /**
   * Records what a write may change, in case this process ends before it appends the invalidations. `write`: the member's name, `#` and the
   * number of the write.
   */
  begin(write: string, invalidations: readonly string[]): Promise<void>
  append(invalidations: readonly string[], settled: readonly string[]): Promise<Appended>
  /** Sends the position of this member to one writer, or to all. Best effort. */
  acknowledge(applied: LedgerPosition, entries: number, writer: string | undefined): void
  /** A member is known to have ended. */
  forget(member: string): Promise<void>
  /** Sets who gets pushes; call it once, before anything else. */
  listen(take: (push: LedgerPush) => void): void
  /** Ends the connection. `cleanly`: all invalidations are delivered, so the others can remove this member at once. */
  leave(cleanly: boolean): Promise<void>
}

type AppliedInvalidation = { readonly seq: number; readonly invalidation: Invalidation }

export type CoherenceOptions = {
  /** Name of this process among the members. */
  readonly member: string
  readonly ledger: Ledger
  /** False where a process that cannot reach the ledger exits. */
  readonly canBeCutOff: boolean
  /** A write that cannot be registered is not forwarded. */
  readonly refusesUnacknowledged: boolean
  readonly leaseMs: number
  /** How long after its start a member says that it is joining, at most. */
  readonly joinMs: number
  readonly clock: Clock
  /** Applies invalidations to this process's memory; returns the number of stored responses dropped. */
  readonly apply: (invalidations: readonly AppliedInvalidation[]) => number
  /** Drops every stored response: the invalidations up to this position are unknown. */
  readonly dropAll: (at: LedgerPosition) => void
  readonly report: (event: CoherenceEvent) => void
}
