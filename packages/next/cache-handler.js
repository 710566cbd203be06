import { LRUCache } from 'lru-cache'
import { purges } from './purges.js'
import { underWay } from './under-way.js'

/** Bytes of all entries together. */
const maxBytes = 64 * 1024 * 1024

/** @typedef {{ value: any, lastModified: number, cacheControl: any, begun: number, tags: readonly string[] }} Entry */

const name = Symbol.for('trellis.next.entries')
globalThis[name] ??= {
  /** @type {LRUCache<string, Entry>} */
  entries: new LRUCache({
    maxSize: maxBytes,
    sizeCalculation: (entry, key) => sizeOf(entry.value) + key.length,
  }),
}
const state = globalThis[name]

/** @param {unknown} part */
const bytesOf = (part) => {
  if (typeof part === 'string') return Buffer.byteLength(part)
  if (part instanceof Uint8Array) return part.length
  if (part instanceof Map) return [...part.values()].reduce((sum, value) => sum + bytesOf(value), 0)
  return part === undefined || part === null ? 0 : JSON.stringify(part).length
}

/** @param {Readonly<Record<string, unknown>>} value */
const sizeOf = (value) =>
  1 + Object.values(value).reduce((/** @type {number} */ sum, part) => sum + bytesOf(part), 0)

/**
 * @param {unknown} line
 * @param {string} separator
 */
const listed = (line, separator) => (typeof line === 'string' && line !== '' ? line.split(separator) : [])

/** The tags that an entry has by itself: of a page those of all that it shows, of a `fetch` also those of the response. */
const tagsOf = (value, context) =>
  value.kind === 'FETCH'
    ? [...(value.tags ?? []), ...(context.tags ?? []), ...listed(value.data.headers['surrogate-key'], ' ')]
    : listed(value.headers?.['x-next-cache-tags'], ',')

/** A response that Trellis lets nobody keep, such as one that was sent while a confirmation was awaited. */
const isNotKept = (value) => value.kind === 'FETCH' && value.data.headers['cdn-cache-control'] === 'no-store'

/** Past its time it is shown once more, while it is rendered again. Without a time, or with `false`, it is not. */
const mayBeRenderedAgain = ({ value, lastModified, cacheControl }) => {
  const seconds = cacheControl?.revalidate ?? value.revalidate
  return typeof seconds === 'number' && lastModified + seconds * 1000 <= Date.now()
}

/**
 * For `cacheHandler` in next.config: the memory of one process. It begins empty, so that no page of the build, nor of an earlier process, is
 * shown after a restart; and a rendering that began before a purge of one of its tags is not kept.
 */
export default class TrellisCacheHandler {
  /** When the rendering of a key began; of any other the result is not kept. Next.js makes a handler for each request. */
  #begun = new Map()

  async get(key, context) {
    const entry = state.entries.get(key)
    const tags =
      entry === undefined ? [] : [...entry.tags, ...(context.tags ?? []), ...(context.softTags ?? [])]
    const isFetch = context.kind === 'FETCH'
    if (entry !== undefined && purges.isCurrent(entry.begun, tags)) {
      if (mayBeRenderedAgain(entry)) this.#begin(key, isFetch ? undefined : 'revalidation')
      return { value: entry.value, lastModified: entry.lastModified, cacheControl: entry.cacheControl }
    }
    state.entries.delete(key)
    this.#begin(key, isFetch ? undefined : 'page')
    return null
  }

  async set(key, value, context) {
    const begun = this.#begun.get(key)
    this.#begun.delete(key)
    underWay.end(key)
    if (value === null || begun === undefined || isNotKept(value)) {
      state.entries.delete(key)
      return
    }
    const tags = tagsOf(value, context)
    if (!purges.mayKeep(begun, tags)) return
    const { cacheControl } = context
    state.entries.set(key, { value, lastModified: Date.now(), cacheControl, begun, tags })
  }

  async revalidateTag(tags) {
    purges.purge(typeof tags === 'string' ? [tags] : tags)
  }

  resetRequestCache() {}

  /**
   * Of several in one request the earliest counts. What Next.js fetches is joined by nobody.
   * @param {string} key
   * @param {'page' | 'revalidation' | undefined} kind
   */
  #begin(key, kind) {
    if (!this.#begun.has(key)) this.#begun.set(key, purges.now)
    if (kind !== undefined) underWay.begin(key, kind)
  }
}
