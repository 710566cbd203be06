import { encodeInvalidation, type Invalidation } from '../../cache/invalidation.ts'
import type { CoherenceOptions } from '../ledger.ts'
import type { createBacklog } from './backlog.ts'
import type { createContact } from './contact.ts'

/** Whether a write may be sent, and the name that settles it later. */
export type Begun = { readonly kind: 'begun'; readonly write: string } | { readonly kind: 'refused' }

type WriteRegistryParts = Pick<CoherenceOptions, 'ledger' | 'member' | 'refusesUnacknowledged' | 'report'> & {
  readonly backlog: Pick<ReturnType<typeof createBacklog>, 'add'>
  readonly contact: Pick<ReturnType<typeof createContact>, 'isFailing' | 'isNews'>
  readonly failed: () => void
}

/** Names writes, and records them in the ledger before they are sent. */
export const createWriteRegistry = (
  parts: WriteRegistryParts,
): ((invalidations: readonly Invalidation[], mayMatter: boolean) => Promise<Begun>) => {
  const { backlog, contact, report } = parts
  let writes = 0

  const unacknowledged = (write: string, mayMatter: boolean): Begun => {
    // If this process ends before the write is settled, the other members drop everything when its lease runs out.
    if (!parts.refusesUnacknowledged || !mayMatter) return { kind: 'begun', write }
    report({ kind: 'write-refused' })
    if (contact.isNews()) report({ kind: 'cut-off', writes: 'refused' })
    return { kind: 'refused' }
  }
  return async (invalidations, mayMatter) => {
    writes += 1
    const write = `${parts.member}#${writes}`
    if (contact.isFailing()) return unacknowledged(write, mayMatter)
    try {
      await parts.ledger.begin(write, invalidations.map(encodeInvalidation))
    } catch {
      parts.failed()
      // The ledger may have it: settle it, or a refused write would count as one with unknown outcome.
      if (parts.refusesUnacknowledged && mayMatter) backlog.add([], write)
      return unacknowledged(write, mayMatter)
    }
    return { kind: 'begun', write }
  }
}
