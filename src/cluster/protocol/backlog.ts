import { encodeNote } from '../../cache/invalidation-note.ts'
import { deferred, type Heard } from './acknowledgements.ts'

/** How the wait of one change ended. */
export type Delivery = Heard | 'isolated'

type Waiting = { readonly done: (delivery: Delivery) => void }

/** The content of one append to the ledger. */
export type Batch = {
  readonly notes: readonly string[]
  readonly settled: readonly string[]
  readonly waiting: readonly Waiting[]
}

/**
 * Changes that are not in the ledger yet. During an append, new ones are collected for the next append; while the ledger
 * is unreachable, they wait.
 */
export type Backlog = {
  add(
    notes: readonly string[],
    write: string | undefined,
  ): { readonly heard: Promise<Delivery>; readonly nothing: boolean }
  isEmpty(): boolean
  take(): Batch
  putBack(batch: Batch): void
  /** Ends all waits: every lease has run out. The changes stay queued. */
  release(): void
}

/** More notes than the ledger stores become one note for everything. */
const mostNotes = 16_384
/** Total length of all notes: clients choose the length of the targets that they write to. */
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
      // A write that is never settled counts as one with unknown outcome when this member ends: safe, only less precise.
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
