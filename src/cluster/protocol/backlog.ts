import { encodeInvalidation, longestQuarantine, quarantineEverything } from '../../cache/invalidation.ts'
import { maxLedgerEntries } from '../ledger.ts'
import type { Acknowledgement } from './acknowledgements.ts'
import { deferred } from './deferred.ts'

type Delivery = Acknowledgement | 'isolated'

type WaitingWrite = { readonly done: (delivery: Delivery) => void }

export type PendingAppend = {
  readonly invalidations: readonly string[]
  readonly settled: readonly string[]
  readonly waiting: readonly WaitingWrite[]
}

/** Total length of all invalidations: clients choose the length of the targets that they write to. */
const maxCharacters = 4 * 1024 * 1024
const maxSettled = 65_536
const everything = encodeInvalidation({ kind: 'all', mode: 'hard' })

/**
 * Changes that are not in the ledger yet. During an append, new ones are collected for the next append; while the ledger
 * is unreachable, they wait.
 */
export const createBacklog = () => {
  let invalidations = new Set<string>()
  let characters = 0
  let settled: string[] = []
  let waiting: WaitingWrite[] = []
  const addInvalidations = (more: readonly string[]): void => {
    for (const invalidation of more) {
      if (invalidations.has(invalidation)) continue
      invalidations.add(invalidation)
      characters += invalidation.length
    }
    // More invalidations than the ledger stores become one invalidation for everything, and one quarantine.
    if (invalidations.size <= maxLedgerEntries && characters <= maxCharacters) return
    const forMs = longestQuarantine([...invalidations])
    invalidations = new Set(forMs > 0 ? [everything, quarantineEverything(forMs)] : [everything])
    characters = everything.length
  }
  return {
    add: (more: readonly string[], write: string | undefined) => {
      addInvalidations(more)
      // A write that is never settled counts as one with unknown outcome when this member ends: safe, only less precise.
      if (write !== undefined && settled.length < maxSettled) settled.push(write)
      const { promise, resolve } = deferred<Delivery>()
      const nothing = more.length === 0
      if (!nothing) waiting.push({ done: resolve })
      return { acknowledged: promise, nothing }
    },
    isEmpty: (): boolean => invalidations.size === 0 && settled.length === 0,
    take: (): PendingAppend => {
      const batch = { invalidations: [...invalidations], settled, waiting }
      invalidations = new Set()
      characters = 0
      settled = []
      waiting = []
      return batch
    },
    putBack: (batch: PendingAppend): void => {
      const later = [...invalidations]
      invalidations = new Set()
      characters = 0
      addInvalidations(batch.invalidations)
      addInvalidations(later)
      settled = [...batch.settled, ...settled].slice(0, maxSettled)
      waiting = [...batch.waiting, ...waiting]
    },
    /** Ends all waits: every lease has run out. The changes stay queued. */
    release: (): void => {
      for (const { done } of waiting) done('isolated')
      waiting = []
    },
  }
}
