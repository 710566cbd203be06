import { shortText } from '../../http/fields.ts'

/**
 * Tags of writes whose outcome is unknown and which may still be carried out: until then no response with one of them is stored.
 * Bounded: with too many tags at once, no response at all is stored. Times are readings of the monotonic clock.
 */
export type UnsettledTags = {
  readonly isEmpty: boolean
  add(tags: readonly string[], now: number, until: number): void
  /** Is any of the tags unsettled? */
  includes(tags: readonly string[], now: number): boolean
}

export const createUnsettledTags = (maxTags: number): UnsettledTags => {
  const untilByTag = new Map<string, number>()
  let everythingUntil = Number.NEGATIVE_INFINITY
  const removeSettled = (now: number): void => {
    for (const [tag, until] of untilByTag) if (until <= now) untilByTag.delete(tag)
  }
  return {
    get isEmpty() {
      return untilByTag.size === 0 && everythingUntil === Number.NEGATIVE_INFINITY
    },
    add: (tags, now, until) => {
      if (until <= everythingUntil) return
      // Only when it is full: a search for settled tags costs more than the write that adds some.
      if (untilByTag.size + tags.length > maxTags) removeSettled(now)
      if (untilByTag.size + tags.length > maxTags) {
        everythingUntil = Math.max(everythingUntil, until)
        return
      }
      for (const long of tags) {
        const tag = shortText(long)
        untilByTag.set(tag, Math.max(until, untilByTag.get(tag) ?? until))
      }
    },
    includes: (tags, now) =>
      everythingUntil > now ||
      (untilByTag.size > 0 && tags.some((tag) => (untilByTag.get(shortText(tag)) ?? now) > now)),
  }
}

/**
 * When each tag was last invalidated, as a number that grows with every invalidation: a response that was requested before must not
 * be stored. Bounded in tags and in their length; a tag that was dropped from the log counts as invalidated.
 */
export type InvalidationLog = {
  /** Number of the last invalidation. */
  readonly sequence: number
  record(tags: readonly string[]): void
  /** Everything counts as invalidated. */
  recordAll(): void
  /** Was any of the tags invalidated after `sequence`, or may it have been? */
  invalidatedSince(tags: readonly string[], sequence: number): boolean
}

/** Remembers the last `maxTags` tags that were invalidated. */
export const createInvalidationLog = (maxTags: number): InvalidationLog => {
  const last = new Map<string, number>()
  let sequence = 0
  /** Invalidations up to this one may have been dropped. */
  let dropped = 0
  const recordOne = (long: string): void => {
    // A target may be as long as a client makes it: only its digest is kept.
    const tag = shortText(long)
    // Deleted first, so that the map is in the order of the last invalidation.
    last.delete(tag)
    last.set(tag, sequence)
    if (last.size <= maxTags) return
    for (const [oldest, at] of last) {
      last.delete(oldest)
      dropped = at
      break
    }
  }
  return {
    get sequence() {
      return sequence
    },
    record: (tags) => {
      sequence += 1
      for (const tag of tags) recordOne(tag)
    },
    recordAll: () => {
      sequence += 1
      dropped = sequence
      last.clear()
    },
    invalidatedSince: (tags, since) =>
      sequence > since && (dropped > since || tags.some((tag) => (last.get(shortText(tag)) ?? 0) > since)),
  }
}
