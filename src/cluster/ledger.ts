import type { Note } from '../cache/invalidation-note.ts'
import type { Clock } from '../clock.ts'
import type { CoherenceEvent } from './events.ts'

/** How far a member has come, as the ledger knows it. */
export type Standing = {
  readonly member: string
  readonly applied: number
  /** Grows with each lease that the member is given. */
  readonly beat: number
}

/** Why a member got no lease. */
export type LeaseRefusal =
  /** The member has not shown that it hears the ledger, not just speaks to it. */
  | 'unproven'
  /** Another member is silent and may answer writes that nobody hears of. */
  | 'member-silent'
  /** The ledger has been made anew: members that are still looking for it may answer writes. */
  | 'young-ledger'

/** An encoded note, and the number under which it was last appended. */
export type Noted = { readonly seq: number; readonly text: string }

export type Synced = {
  /** Changes whenever the ledger may have forgotten something. */
  readonly epoch: string
  readonly seq: number
  /** Notes up to this number may have been forgotten. */
  readonly floor: number
  /** Oldest first: those after the position that was given, and all that are remembered when it is of another epoch. */
  readonly notes: readonly Noted[]
  /** The other members. */
  readonly members: readonly Standing[]
  readonly lease: 'granted' | LeaseRefusal
}

export type Appended = Pick<Synced, 'epoch' | 'seq' | 'members'>

/** What a ledger says unasked: hints that make it quick; what is lost is found by the next `sync`. */
export type Push =
  | {
      readonly kind: 'noted'
      readonly epoch: string
      readonly seq: number
      readonly writer: string
      readonly notes: readonly string[]
    }
  /** Something was noted, by whoever says so: it has to be asked for. */
  | { readonly kind: 'hint'; readonly epoch: string; readonly seq: number; readonly writer: string }
  | {
      readonly kind: 'applied'
      readonly epoch: string
      readonly seq: number
      readonly member: string
      readonly entries: number
    }

export type Position = { readonly epoch: string; readonly applied: number }

/**
 * The one place through which members agree (docs/decisions/0007). Each call rejects when no answer came in time; it may
 * have been carried out all the same, at any later moment.
 */
export type Ledger = {
  /** Tells what was noted since, and asks for a lease. */
  sync(position: Position): Promise<Synced>
  /** What a write may change, should this process not live to tell. */
  begin(write: string, notes: readonly string[]): Promise<void>
  append(notes: readonly string[], settled: readonly string[]): Promise<Appended>
  /** Tells a writer, or all of them, how far this member has come. Best effort. */
  acknowledge(applied: Position, entries: number, writer: string | undefined): void
  /** A member is known to have ended. */
  forget(member: string): Promise<void>
  /** Called with what comes unasked; once, before anything else. */
  listen(take: (push: Push) => void): void
  /** Ends the connection. `cleanly`: everything that this member knows has been told, so that it can be forgotten at once. */
  leave(cleanly: boolean): Promise<void>
}

/** A note, and the number under which the ledger has it. */
type NotedNote = { readonly seq: number; readonly note: Note }

export type CoherenceOptions = {
  /** Name of this process among the members. */
  readonly member: string
  readonly ledger: Ledger
  /** False where a process that cannot reach the ledger ends. */
  readonly canBeCutOff: boolean
  /** A write that the ledger cannot be told of is not begun. */
  readonly refusesUnheard: boolean
  readonly leaseMs: number
  readonly clock: Clock
  /** Carries notes out in this process's memory; returns the number of stored responses concerned. */
  readonly apply: (notes: readonly NotedNote[]) => number
  /** Drops everything stored: what was noted up to that position is not known. */
  readonly dropAll: (at: Position) => void
  readonly report: (event: CoherenceEvent) => void
}
