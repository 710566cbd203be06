import type { Invalidation } from '../../cache/invalidation.ts'
import { maxLedgerEntries } from '../ledger.ts'

type Quarantine = Extract<Invalidation, { kind: 'quarantine' }>

/**
 * Writes of this process with unknown outcome that the upstream may still carry out: they are registered again with a new ledger. Times
 * are readings of the monotonic clock.
 */
export const createQuarantines = () => {
  const until = new Map<string, { readonly quarantine: Quarantine; readonly at: number }>()
  const tidy = (now: number): void => {
    for (const [tag, { at }] of until) if (at <= now) until.delete(tag)
  }
  return {
    record: (invalidations: readonly Invalidation[], now: number): void => {
      for (const invalidation of invalidations) {
        if (invalidation.kind !== 'quarantine') continue
        if (until.size >= maxLedgerEntries) tidy(now)
        // Above this number the cache quarantines everything anyway.
        if (until.size < maxLedgerEntries)
          until.set(invalidation.tag, { quarantine: invalidation, at: now + invalidation.forMs })
      }
    },
    /** Those that have not expired. */
    current: (now: number): readonly Quarantine[] => {
      tidy(now)
      return [...until.values()].map(({ quarantine }) => quarantine)
    },
  }
}
