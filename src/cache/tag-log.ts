/**
 * When each tag was last invalidated, as a number that grows with every invalidation. A forward that began before
 * must not be believed about content that was invalidated since. Bounded: what was forgotten counts as invalidated.
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
  const noteOne = (tag: string): void => {
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
      sequence > since && (forgotten > since || tags.some((tag) => (last.get(tag) ?? 0) > since)),
  }
}
