import type { Clock } from '../../clock.ts'
import { targetKeyOf } from '../cache-key.ts'
import type { NoStoreReason } from '../policy/storability.ts'
import type { Admission } from './admission.ts'
import type { MemoryStore } from './memory-store.ts'
import type { StoredResponse } from './stored-response.ts'
import type { HeldTags, TagLog } from './tag-log.ts'

export type KeepOptions = {
  readonly store: MemoryStore
  readonly log: TagLog
  readonly held: HeldTags
  readonly admission: Admission
  readonly clock: Clock
}

/** Stores what was made of a forward that began after the invalidation of that number; undefined when it did. */
export type Keep = (stored: StoredResponse, since: number) => NoStoreReason | undefined

const tagsOf = (stored: StoredResponse): readonly string[] => [targetKeyOf(stored.key), ...stored.tags]

/** Was anything that the response holds invalidated after that point, or may it have been? */
export const overtaken = (log: TagLog, stored: StoredResponse, since: number): boolean =>
  log.touchedSince(tagsOf(stored), since)

/** Why a response is not kept although it may be: a write or a newer answer came first, or there is no room. */
export const createKeep = ({ store, log, held, admission, clock }: KeepOptions): Keep => {
  const doubtAbout = (stored: StoredResponse, since: number): NoStoreReason | undefined => {
    const tags = tagsOf(stored)
    if (log.touchedSince(tags, since)) return 'overtaken'
    return held.holds(tags, clock.monotonic()) ? 'unsettled' : undefined
  }

  return (stored, since) => {
    // Most often nothing was written meanwhile, and there is nothing to look its tags up in.
    const doubt = log.sequence === since && held.idle ? undefined : doubtAbout(stored, since)
    if (doubt !== undefined) return doubt
    const known = store.peek(stored.key)
    if (known.some((other) => other.order > stored.order && other.varyKey === stored.varyKey)) {
      return 'overtaken'
    }
    if (known.length === 0 && !admission.admits(stored.key)) return 'not-admitted'
    return store.put(stored) ? undefined : 'too-large'
  }
}
