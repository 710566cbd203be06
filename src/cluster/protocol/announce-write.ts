import { encodeNote, type Note } from '../../cache/invalidation.ts'
import type { CoherenceOptions } from '../ledger.ts'
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

/** More notes than the ledger stores become one note for everything. */
const mostNotes = 16_384
/** Total length of all notes: clients choose the length of the targets that they write to. */
const mostCharacters = 4 * 1024 * 1024
const mostSettled = 65_536
const everything = encodeNote({ kind: 'all', mode: 'hard' })

/**
 * Changes that are not in the ledger yet. During an append, new ones are collected for the next append; while the ledger
 * is unreachable, they wait.
 */
export const createBacklog = () => {
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
    add: (more: readonly string[], write: string | undefined) => {
      addNotes(more)
      // A write that is never settled counts as one with unknown outcome when this member ends: safe, only less precise.
      if (write !== undefined && settled.length < mostSettled) settled.push(write)
      const { promise, resolve } = deferred<Delivery>()
      const nothing = more.length === 0
      if (!nothing) waiting.push({ done: resolve })
      return { heard: promise, nothing }
    },
    isEmpty: (): boolean => notes.size === 0 && settled.length === 0,
    take: (): Batch => {
      const batch = { notes: [...notes], settled, waiting }
      notes = new Set()
      characters = 0
      settled = []
      waiting = []
      return batch
    },
    putBack: (batch: Batch): void => {
      const later = [...notes]
      notes = new Set()
      characters = 0
      addNotes(batch.notes)
      addNotes(later)
      settled = [...batch.settled, ...settled].slice(0, mostSettled)
      waiting = [...batch.waiting, ...waiting]
    },
    /** Ends all waits: every lease has run out. The changes stay queued. */
    release: (): void => {
      for (const { done } of waiting) done('isolated')
      waiting = []
    },
  }
}

/** No lease outlasts a silent member by more than this many lease times (docs/decisions/0007, 7). */
const isolatedAfterLeases = 3

/**
 * Whether the ledger can be reached; times are readings of the monotonic clock. `canBeCutOff` false: a process that cannot reach the
 * ledger is about to exit, and waits until then.
 */
export const createContact = (leaseMs: number, canBeCutOff: boolean) => {
  let failingSince: number | undefined
  let lastTick = Number.POSITIVE_INFINITY
  let isReported = false
  return {
    succeeded: (): void => {
      failingSince = undefined
      isReported = false
    },
    failed: (now: number): void => {
      failingSince ??= now
    },
    /** Call it regularly: a process that was suspended has not tried to reach the ledger meanwhile. */
    tick: (now: number): void => {
      if (now - lastTick > leaseMs && failingSince !== undefined) failingSince = now
      lastTick = now
    },
    isFailing: (): boolean => failingSince !== undefined,
    /** True once in each outage, so that an outage is reported once. */
    isNews: (): boolean => {
      const wasReported = isReported
      isReported = true
      return !wasReported
    },
    /** Has the ledger been unreachable for longer than any lease can last? */
    isIsolated: (now: number): boolean =>
      canBeCutOff &&
      // After a suspension another timer may fire before the tick: wait for the tick.
      now - lastTick <= leaseMs &&
      failingSince !== undefined &&
      now - failingSince >= isolatedAfterLeases * leaseMs,
  }
}

/** Whether a write may be sent, and the name that settles it later. */
export type Begun = { readonly kind: 'begun'; readonly write: string } | { readonly kind: 'refused' }

type Parts = Pick<CoherenceOptions, 'ledger' | 'member' | 'refusesUnheard' | 'report'> & {
  readonly backlog: Pick<ReturnType<typeof createBacklog>, 'add'>
  readonly contact: Pick<ReturnType<typeof createContact>, 'isFailing' | 'isNews'>
  readonly failed: () => void
}

/** Names writes, and records them in the ledger before they are sent. */
export const createWriteAnnouncer = (
  parts: Parts,
): ((notes: readonly Note[], mayMatter: boolean) => Promise<Begun>) => {
  const { backlog, contact, report } = parts
  let writes = 0

  const unheard = (write: string, mayMatter: boolean): Begun => {
    // If this process ends before the write is settled, the other members drop everything when its lease runs out.
    if (!parts.refusesUnheard || !mayMatter) return { kind: 'begun', write }
    report({ kind: 'write-refused' })
    if (contact.isNews()) report({ kind: 'cut-off', writes: 'refused' })
    return { kind: 'refused' }
  }
  return async (notes, mayMatter) => {
    writes += 1
    const write = `${parts.member}#${writes}`
    if (contact.isFailing()) return unheard(write, mayMatter)
    try {
      await parts.ledger.begin(write, notes.map(encodeNote))
    } catch {
      parts.failed()
      // The ledger may have it: settle it, or a refused write would count as one with unknown outcome.
      if (parts.refusesUnheard && mayMatter) backlog.add([], write)
      return unheard(write, mayMatter)
    }
    return { kind: 'begun', write }
  }
}
