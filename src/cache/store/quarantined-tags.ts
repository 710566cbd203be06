import { addCount } from '../../http/bounds/counts.ts'
import { shortText } from '../../http/retained.ts'

/**
 * Tags of writes that have not ended, or whose outcome is unknown and which may still be carried out: no response with one of them that
 * was requested before then is stored. Bounded: with too many tags at once, no response at all is stored. Times are readings of the monotonic clock.
 */
export class QuarantinedTags {
  readonly #maxTags: number
  readonly #untilByTag = new Map<string, number>()
  /** Tags that are quarantined until they are released, with how often each is. */
  readonly #unreleasedByTag = new Map<string, number>()
  #unreleasedEverything = 0
  #everythingUntil = Number.NEGATIVE_INFINITY

  constructor(maxTags: number) {
    this.#maxTags = maxTags
  }

  get isEmpty(): boolean {
    return (
      this.#untilByTag.size === 0 &&
      this.#unreleasedByTag.size === 0 &&
      this.#unreleasedEverything === 0 &&
      this.#everythingUntil === Number.NEGATIVE_INFINITY
    )
  }

  /** Until the returned function is called, once. */
  addUntilReleased(tags: readonly string[]): () => void {
    if (this.#unreleasedByTag.size + tags.length > this.#maxTags || tags.includes('')) {
      this.#unreleasedEverything += 1
      return () => {
        this.#unreleasedEverything -= 1
      }
    }
    const texts = tags.map(shortText)
    for (const tag of texts) addCount(this.#unreleasedByTag, tag, 1)
    return () => {
      for (const tag of texts) addCount(this.#unreleasedByTag, tag, -1)
    }
  }

  addUntil(tags: readonly string[], now: number, until: number): void {
    if (until <= this.#everythingUntil) return
    // Only when it is full: a search for expired tags costs more than the write that adds some.
    if (this.#untilByTag.size + tags.length > this.#maxTags) this.#removeExpired(now)
    if (this.#untilByTag.size + tags.length > this.#maxTags || tags.includes('')) {
      this.#everythingUntil = Math.max(this.#everythingUntil, until)
      return
    }
    for (const long of tags) {
      const tag = shortText(long)
      this.#untilByTag.set(tag, Math.max(until, this.#untilByTag.get(tag) ?? until))
    }
  }

  /** When the last one ends, of those whose end is known. */
  get lastUntil(): number {
    let last = this.#everythingUntil
    for (const until of this.#untilByTag.values()) last = Math.max(last, until)
    return last
  }

  /** Was any of the tags quarantined at that time? */
  includes(tags: readonly string[], at: number): boolean {
    return (
      this.#everythingUntil > at ||
      this.#unreleasedEverything > 0 ||
      (this.#untilByTag.size > 0 && tags.some((tag) => (this.#untilByTag.get(shortText(tag)) ?? at) > at)) ||
      (this.#unreleasedByTag.size > 0 && tags.some((tag) => this.#unreleasedByTag.has(shortText(tag))))
    )
  }

  #removeExpired(now: number): void {
    for (const [tag, until] of this.#untilByTag) {
      if (until > now) continue
      this.#untilByTag.delete(tag)
      // For responses that are still on their way.
      this.#everythingUntil = Math.max(this.#everythingUntil, until)
    }
  }
}
