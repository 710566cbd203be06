import { shortText } from '../../http/fields.ts'

/**
 * Tags of writes whose outcome is unknown and which may still be carried out: for a while nothing that carries one is
 * kept. Bounded: when too many are held at once, everything is.
 */
export type HeldTags = {
  /** Nothing has to be asked about. */
  readonly idle: boolean
  hold(tags: readonly string[], now: number, until: number): void
  /** Is any of them held? */
  holds(tags: readonly string[], now: number): boolean
}

/** Times are readings of the monotonic clock, in milliseconds. */
export const createHeldTags = (maxTags: number): HeldTags => {
  const heldUntil = new Map<string, number>()
  let everythingUntil = Number.NEGATIVE_INFINITY
  const release = (now: number): void => {
    for (const [tag, until] of heldUntil) if (until <= now) heldUntil.delete(tag)
  }
  return {
    get idle() {
      return heldUntil.size === 0 && everythingUntil === Number.NEGATIVE_INFINITY
    },
    hold: (tags, now, until) => {
      // To look for what is over among all of them, for each write, would cost more than the write.
      if (until <= everythingUntil) return
      if (heldUntil.size + tags.length > maxTags) release(now)
      if (heldUntil.size + tags.length > maxTags) {
        everythingUntil = Math.max(everythingUntil, until)
        return
      }
      for (const named of tags) {
        const tag = shortText(named)
        heldUntil.set(tag, Math.max(until, heldUntil.get(tag) ?? until))
      }
    },
    holds: (tags, now) =>
      everythingUntil > now ||
      (heldUntil.size > 0 && tags.some((tag) => (heldUntil.get(shortText(tag)) ?? now) > now)),
  }
}

/**
 * When each tag was last invalidated, as a number that grows with every invalidation. A forward that began before
 * must not be believed about content that was invalidated since. Bounded in tags and in their length: what was forgotten counts as invalidated.
 */
export type TagLog = {
  /** Number of the last invalidation. */
  readonly sequence: number
  note(tags: readonly string[]): void
  /** Everything that began before now is in doubt. */
  noteAll(): void
  /** Was any of the tags invalidated after `sequence`, or may it have been? */
  touchedSince(tags: readonly string[], sequence: number): boolean
}

/** Remembers the last `maxTags` tags that were invalidated. */
export const createTagLog = (maxTags: number): TagLog => {
  const last = new Map<string, number>()
  let sequence = 0
  // Invalidations up to this one may have been forgotten.
  let forgotten = 0
  const noteOne = (named: string): void => {
    // Of a target as long as a client makes it only a digest.
    const tag = shortText(named)
    // Deleted first, so that the map's order is the order of the last invalidation.
    last.delete(tag)
    last.set(tag, sequence)
    if (last.size <= maxTags) return
    for (const [oldest, at] of last) {
      last.delete(oldest)
      forgotten = at
      break
    }
  }
  return {
    get sequence() {
      return sequence
    },
    note: (tags) => {
      sequence += 1
      for (const tag of tags) noteOne(tag)
    },
    noteAll: () => {
      sequence += 1
      forgotten = sequence
      last.clear()
    },
    // Most often nothing was.
    touchedSince: (tags, since) =>
      sequence > since && (forgotten > since || tags.some((tag) => (last.get(shortText(tag)) ?? 0) > since)),
  }
}
