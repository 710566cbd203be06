import type { Moment } from './age.ts'
import type { CacheRead } from './cache-read.ts'
import type { MemoryStore } from './memory-store.ts'
import { decideReuse, type Reuse } from './reuse.ts'

/** Whether what is stored here may be believed at this moment: others may have written without this process knowing. */
export type Trust = { mayTrust(at: Moment): boolean }

/** What may be done with what is stored for a read; without trust as if nothing were stored, and nothing is validated or served on error either. */
export const createReuse = (
  store: Pick<MemoryStore, 'variants'>,
  trust: Trust | undefined,
): ((read: CacheRead, at: Moment) => Reuse) => {
  const ofStored = (read: CacheRead, at: Moment): Reuse =>
    decideReuse(store.variants(read.key), read, read.policy.profile, at)
  if (trust === undefined) return ofStored
  const ofNothing = (read: CacheRead, at: Moment): Reuse => {
    const reuse = decideReuse([], read, read.policy.profile, at)
    return reuse.kind === 'fetch' ? { ...reuse, reason: 'bypass' } : reuse
  }
  return (read, at) => (trust.mayTrust(at) ? ofStored(read, at) : ofNothing(read, at))
}
