import { shortText } from '../http/short-text.ts'

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
