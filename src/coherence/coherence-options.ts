import type { Clock } from '../clock.ts'
import type { CoherenceEvent } from './events.ts'
import type { Ledger, Position } from './ledger.ts'
import type { Note } from './note.ts'

/** A note, and the number under which the ledger has it. */
export type NotedNote = { readonly seq: number; readonly note: Note }

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
