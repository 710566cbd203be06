import { shortText } from '../http/short-text.ts'

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
