import { randomUUID } from 'node:crypto'
import { LRUCache } from 'lru-cache'

/** On what shows a response that Trellis lets nobody keep: neither the entry nor a page with it is kept. */
export const notKept = 'trellis-not-kept'

const readClock = () => performance.timeOrigin + performance.now()

/** The least that two times differ by; the clock is no finer. */
const tick = 2 ** -11

/** Tags that have been purged; of those that are forgotten it is known when the last of them was purged. */
const maxTags = 100_000

/**
 * What one process of Next.js knows of purges, and when they were: whatever was begun before a purge of one of its tags may show the state
 * before it. Times are of the clock by which Next.js says when a function with `'use cache'` began.
 */
class Purges {
  /** A random text: another process has another one. */
  process = randomUUID()
  /**
   * Before the first purge of everything, Trellis may not know of this process, and purge only others: what is made until then is not kept.
   */
  isKnown = false
  /** Set by the handler for `'use cache'`, where it is configured. */
  hasUseCacheHandler = false
  #last = 0
  /** Whatever was begun before this purge is void, whichever tags it has. */
  #floor = 0
  #tags = new LRUCache({
    max: maxTags,
    dispose: (time, _, reason) => {
      if (reason === 'evict') this.#floor = Math.max(this.#floor, time)
    },
  })

  /** Behind the last purge: what begins now shows the state after it. */
  get now() {
    return Math.max(readClock(), this.#last + tick)
  }

  /** @param {Iterable<string>} tags */
  purge(tags) {
    this.#last = this.now
    for (const tag of tags) this.#tags.set(tag, this.#last)
  }

  purgeAll() {
    this.isKnown = true
    this.#last = this.now
    this.#floor = this.#last
  }

  /**
   * May what was begun at that time, with these tags, be kept?
   * @param {number} begun
   * @param {readonly string[]} tags
   */
  mayKeep(begun, tags) {
    return this.isKnown && !tags.includes(notKept) && this.isCurrent(begun, tags)
  }

  /**
   * May what was begun at that time, with these tags, still be shown?
   * @param {number} begun
   * @param {readonly string[]} tags
   */
  isCurrent(begun, tags) {
    return begun > this.#floor && tags.every((tag) => (this.#tags.peek(tag) ?? 0) < begun)
  }
}

const name = Symbol.for('trellis.next.purges')

globalThis[name] ??= new Purges()

/**
 * Next.js loads this module once for the routes and once for the cache handler: both get the same object.
 * @type {Purges}
 */
export const purges = globalThis[name]
