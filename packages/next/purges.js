import { randomUUID } from 'node:crypto'
import { LRUCache } from 'lru-cache'

/** Tags that have been purged; of those that are forgotten it is known when the last of them was purged. */
const maxTags = 100_000

/**
 * What one process of Next.js knows of purges. They are numbered: whatever was begun before a purge of one of its tags may show the state
 * before it.
 */
class Purges {
  /** A random text: another process has another one. */
  process = randomUUID()
  #last = 0
  /** Whatever was begun before this purge is void, whichever tags it has. */
  #floor = 0
  #tags = new LRUCache({
    max: maxTags,
    dispose: (number, _, reason) => {
      if (reason === 'evict') this.#floor = Math.max(this.#floor, number)
    },
  })

  /** The number of the last purge: what begins now shows the state after it. */
  get now() {
    return this.#last
  }

  /** @param {Iterable<string>} tags */
  purge(tags) {
    this.#last += 1
    for (const tag of tags) this.#tags.set(tag, this.#last)
  }

  purgeAll() {
    this.#last += 1
    this.#floor = this.#last
  }

  /**
   * May what was begun after purge `begun`, with these tags, still be shown?
   * @param {number} begun
   * @param {readonly string[]} tags
   */
  isCurrent(begun, tags) {
    return begun >= this.#floor && tags.every((tag) => (this.#tags.peek(tag) ?? 0) <= begun)
  }
}

const name = Symbol.for('trellis.next.purges')

globalThis[name] ??= new Purges()

/**
 * Next.js loads this module once for the routes and once for the cache handler: both get the same object.
 * @type {Purges}
 */
export const purges = globalThis[name]
