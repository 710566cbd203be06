import { encodeNote } from '../../cache/invalidation-note.ts'
import { deferred, type Heard } from './acknowledgements.ts'

/** How the wait of one change ended. */
export type Delivery = Heard | 'isolated'

type Waiting = { readonly done: (delivery: Delivery) => void }

/** What goes to the ledger in one append. */
export type Batch = {
  readonly notes: readonly string[]
  readonly settled: readonly string[]
  readonly waiting: readonly Waiting[]
}

/**
 * Changes that are not in the ledger yet. While an append is under way those that come are gathered for the next one;
 * while nobody can be reached they are kept for when somebody can.
 */
export type Backlog = {
  add(
    notes: readonly string[],
    write: string | undefined,
  ): { readonly heard: Promise<Delivery>; readonly nothing: boolean }
  isEmpty(): boolean
  take(): Batch
  putBack(batch: Batch): void
  /** Nobody trusts its memory any more: those who wait need not. What they changed stays to be told. */
  release(): void
}

/** One text is some hundred bytes at most times; more of them than the ledger remembers mean everything. */
const mostNotes = 16_384
/** Of their texts: clients choose how long the targets are that they write to. */
const mostCharacters = 4 * 1024 * 1024
const mostSettled = 65_536
const everything = encodeNote({ kind: 'all', mode: 'hard' })

export const createBacklog = (): Backlog => {
  let notes = new Set<string>()
  let characters = 0
  let settled: string[] = []
  let waiting: Waiting[] = []
  const addNotes = (more: readonly string[]): void => {
    for (const note of more) {
      if (notes.has(note)) continue
      notes.add(note)
      characters += note.length
    }
    if (notes.size <= mostNotes && characters <= mostCharacters) return
    notes = new Set([everything])
    characters = everything.length
  }
  return {
    add: (more, write) => {
      addNotes(more)
      // Pending writes that are never settled are taken for unknown when this member ends: too much, never too little.
      if (write !== undefined && settled.length < mostSettled) settled.push(write)
      const { promise, resolve } = deferred<Delivery>()
      const nothing = more.length === 0
      if (!nothing) waiting.push({ done: resolve })
      return { heard: promise, nothing }
    },
    isEmpty: () => notes.size === 0 && settled.length === 0,
    take: () => {
      const batch = { notes: [...notes], settled, waiting }
      notes = new Set()
      characters = 0
      settled = []
      waiting = []
      return batch
    },
    putBack: (batch) => {
      const later = [...notes]
      notes = new Set()
      characters = 0
      addNotes(batch.notes)
      addNotes(later)
      settled = [...batch.settled, ...settled].slice(0, mostSettled)
      waiting = [...batch.waiting, ...waiting]
    },
    release: () => {
      for (const { done } of waiting) done('isolated')
      waiting = []
    },
  }
}
