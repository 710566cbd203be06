import { encodeNote, type Note } from '../../cache/invalidation-note.ts'
import type { CoherenceOptions } from '../ledger.ts'
import type { Backlog } from './backlog.ts'

/** Whether the ledger can be reached; times are readings of the monotonic clock. */
type Contact = {
  succeeded(): void
  failed(now: number): void
  /** Call it regularly: a process that was suspended has not tried to reach the ledger meanwhile. */
  tick(now: number): void
  isFailing(): boolean
  /** True once in each outage, so that an outage is reported once. */
  isNews(): boolean
  /** Has the ledger been unreachable for longer than any lease can last? */
  isIsolated(now: number): boolean
}

/** No lease outlasts a silent member by more than this many lease times (docs/decisions/0007, 7). */
const isolatedAfterLeases = 3

/** `canBeCutOff` false: a process that cannot reach the ledger is about to exit, and waits until then. */
export const createContact = (leaseMs: number, canBeCutOff: boolean): Contact => {
  let failingSince: number | undefined
  let lastTick = Number.POSITIVE_INFINITY
  let isReported = false
  return {
    succeeded: () => {
      failingSince = undefined
      isReported = false
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
      const wasReported = isReported
      isReported = true
      return !wasReported
    },
    isIsolated: (now) =>
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
  readonly backlog: Pick<Backlog, 'add'>
  readonly contact: Pick<Contact, 'isFailing' | 'isNews'>
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
