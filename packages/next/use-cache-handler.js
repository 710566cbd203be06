import { LRUCache } from 'lru-cache'
import { purges } from './purges.js'
import { underWay } from './under-way.js'

/** Bytes of all entries together. */
const maxBytes = 64 * 1024 * 1024

/**
 * @typedef {import('next/dist/server/lib/cache-handlers/types.js').CacheEntry} CacheEntry
 * @typedef {{ facts: Omit<CacheEntry, 'value'>, bytes: Uint8Array }} Kept
 */

const name = Symbol.for('trellis.next.use-cache')
globalThis[name] ??= {
  /** @type {LRUCache<string, Kept>} */
  entries: new LRUCache({
    maxSize: maxBytes,
    sizeCalculation: ({ bytes }, key) => 1 + bytes.length + key.length,
  }),
  /** Results that are still being written. @type {Map<string, Promise<void>>} */
  pending: new Map(),
}
const state = globalThis[name]
purges.hasUseCacheHandler = true

/** @param {Uint8Array} bytes */
const streamOf = (bytes) =>
  new ReadableStream({
    start(controller) {
      controller.enqueue(bytes)
      controller.close()
    },
  })

/** @param {CacheEntry} entry */
const isPast = ({ timestamp, revalidate, expire }) =>
  Date.now() > timestamp + Math.min(revalidate, expire) * 1000

/**
 * @param {string} key
 * @param {Promise<CacheEntry>} pendingEntry
 */
const keep = async (key, pendingEntry) => {
  const { value, ...facts } = await pendingEntry
  // Read in any case: the stream is this handler's, and nobody else ends it.
  const bytes = new Uint8Array(await new Response(value).arrayBuffer())
  // The timestamp is when the function began.
  if (purges.mayKeep(facts.timestamp, facts.tags)) state.entries.set(key, { facts, bytes })
}

/**
 * For `cacheHandlers.default` in next.config, the memory of `'use cache'`: what began before a purge of one of its tags is not kept, and
 * neither is what shows a response that Trellis lets nobody keep.
 */
export default {
  /**
   * @param {string} key
   * @param {readonly string[]} softTags
   */
  async get(key, softTags) {
    await state.pending.get(key)
    const entry = state.entries.get(key)
    if (entry !== undefined) {
      const tags = [...entry.facts.tags, ...softTags]
      if (purges.isCurrent(entry.facts.timestamp, tags) && !isPast(entry.facts))
        return { ...entry.facts, value: streamOf(entry.bytes) }
      state.entries.delete(key)
    }
    underWay.begin(key, 'function')
    return undefined
  },

  /**
   * @param {string} key
   * @param {Promise<CacheEntry>} pendingEntry
   */
  async set(key, pendingEntry) {
    // What fails in the middle is not kept.
    const pending = keep(key, pendingEntry).catch(() => {})
    state.pending.set(key, pending)
    await pending
    underWay.end(key)
    if (state.pending.get(key) === pending) state.pending.delete(key)
  },

  async refreshTags() {},

  /** Soft tags are compared by `get`. */
  async getExpiration() {
    return Number.POSITIVE_INFINITY
  },

  /** @param {readonly string[]} tags */
  async updateTags(tags) {
    purges.purge(tags)
  },
}
