import { encodeNote, type Note } from '../../cache/invalidation-note.ts'
import type { CoherenceOptions } from '../ledger.ts'
import type { Backlog } from './backlog.ts'

/** Whether the ledger can be reached; times are readings of the monotonic clock. */
type Contact = {
  succeeded(): void
  failed(now: number): void
  /** To be called often: a process that was stopped has not been looking for the ledger meanwhile. */
  tick(now: number): void
  isFailing(): boolean
  /** True once in each outage: what is the same for every write is told once. */
  isNews(): boolean
  /** Has it been looked for in vain for so long that nobody can trust its memory any more? */
  isIsolated(now: number): boolean
}

/** After so many leases without a word from a member nobody trusts its memory (docs/decisions/0007, 7). */
const isolatedAfterLeases = 3

/** `canBeCutOff` false: who cannot reach the ledger is about to end, and waits for it until then. */
export const createContact = (leaseMs: number, canBeCutOff: boolean): Contact => {
  let failingSince: number | undefined
  let lastTick = Number.POSITIVE_INFINITY
  let isTold = false
  return {
    succeeded: () => {
      failingSince = undefined
      isTold = false
    },
    failed: (now) => {
      failingSince ??= now
    },
    tick: (now) => {
      if (now - lastTick > leaseMs && failingSince !== undefined) failingSince = now
      lastTick = now
    },
    isFailing: () => failingSince !== undefined,
    isNews: () => {
      const wasTold = isTold
      isTold = true
      return !wasTold
    },
    isIsolated: (now) =>
      canBeCutOff &&
      // What is due first after a stop may not be the tick: nothing is known until that has looked.
      now - lastTick <= leaseMs &&
      failingSince !== undefined &&
      now - failingSince >= isolatedAfterLeases * leaseMs,
  }
}

/** Whether a write may be sent, and the name to settle it by. */
export type Begun = { readonly kind: 'begun'; readonly write: string } | { readonly kind: 'refused' }

type Parts = Pick<CoherenceOptions, 'ledger' | 'member' | 'refusesUnheard' | 'report'> & {
  readonly backlog: Pick<Backlog, 'add'>
  readonly contact: Pick<Contact, 'isFailing' | 'isNews'>
  readonly failed: () => void
}

/** Names writes, and tells the ledger of them before they are sent. */
export const createBeginnings = (
  parts: Parts,
): ((notes: readonly Note[], mayMatter: boolean) => Promise<Begun>) => {
  const { backlog, contact, report } = parts
  let writes = 0

  const unheard = (write: string, mayMatter: boolean): Begun => {
    // When this process ends before it is settled, a member that fell silent makes all drop everything.
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
      // It may have arrived all the same: what was refused must not count as carried out, perhaps.
      if (parts.refusesUnheard && mayMatter) backlog.add([], write)
      return unheard(write, mayMatter)
    }
    return { kind: 'begun', write }
  }
}
