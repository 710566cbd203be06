import { type Clock, readClock } from '../clock.ts'
import { varyKey } from '../http/headers/caching-headers.ts'
import { partsOfKey } from './cache-key.ts'
import { currentAgeMs, type Lease, lifetimeAt } from './policy/reuse.ts'
import type { InvalidationLog } from './store/invalidation-log.ts'
import type { MemoryStore } from './store/memory-store.ts'
import type { QuarantinedTags } from './store/quarantined-tags.ts'
import { isQuarantined, isSuperseded } from './store/response-storage.ts'
import type { StoredResponse } from './store/stored-response.ts'

/** What a request for a verification sends of the headers that a response may depend on. */
export const verifyingHeaders: Readonly<Record<string, string>> = {
  accept: '*/*',
  'user-agent': 'trellis-verify',
}

/** To compare longer contents would hold up other requests. */
export const longestVerified = 262_144

export const verifiedStatuses: ReadonlySet<number> = new Set([200, 404, 410])

type VerificationOptions = {
  readonly store: MemoryStore
  readonly log: InvalidationLog
  readonly quarantined: QuarantinedTags
  readonly lease: Lease | undefined
  readonly clock: Clock
}

/** Which stored responses can be fetched again for a comparison, and what such a comparison is worth. */
export const createVerification = (options: VerificationOptions) => {
  const { store, log, quarantined, lease, clock } = options
  /** Would an anonymous GET get it now? */
  const isServed = (stored: StoredResponse): boolean => {
    const at = readClock(clock)
    return (
      (lease === undefined || lease.isCurrent(at)) &&
      lifetimeAt(stored, at) > currentAgeMs(stored, at) &&
      store.peek(stored.key).some((variant) => variant === stored)
    )
  }
  const isVerifiable = (stored: StoredResponse): boolean => {
    const { partition } = partsOfKey(stored.key)
    return (
      partition === 'public' &&
      verifiedStatuses.has(stored.status) &&
      !stored.validateAlways &&
      stored.content.length <= longestVerified &&
      varyKey(stored.varyNames, { sentHeader: (name) => verifyingHeaders[name] }) === stored.varyKey
    )
  }
  return {
    /** Some, from a random one on. */
    sample: (max: number): readonly StoredResponse[] =>
      store.some(max).flatMap(({ variants }) => variants.filter(isVerifiable)),
    isServed,
    ageMs: (stored: StoredResponse): number => currentAgeMs(stored, readClock(clock)),
    /** Number of the last invalidation. */
    sequence: () => log.sequence,
    /** Was nothing that it shows invalidated since, and is no write to it of unknown outcome? */
    stands: (stored: StoredResponse, since: number): boolean =>
      (lease === undefined || lease.isCurrent(readClock(clock))) &&
      !isSuperseded(log, stored, since) &&
      !isQuarantined(quarantined, stored, clock.monotonic()),
  }
}

export type { StoredResponse }

export type Verification = ReturnType<typeof createVerification>
