import { LRUCache } from 'lru-cache'
import { isPublicKey, publicKeyOf, targetKeyOf } from '../cache-read.ts'
import {
  addForm,
  bytesOfForm,
  type CodedForm,
  compact,
  createIntern,
  heapBytesOf,
  type StoredResponse,
} from './stored-response.ts'
import { createTagIndex, type TagHolder } from './tag-index.ts'

/** All that is stored under one key; without variants after it was removed. Changed by the store alone. */
export type StoredVariants = TagHolder & {
  variants: readonly StoredResponse[]
  readonly heapBytes: number
}

type MemoryStoreOptions = {
  readonly maxBytes: number
  /** For what of them is in the JavaScript heap: the process ends when that is full. */
  readonly maxHeapBytes: number
  readonly maxEntryBytes: number
  readonly onEvict: (bytes: number) => void
}

/** Many values of a selecting header (Origin, say) must not make one key unbounded, nor its search slow. */
const maxVariants = 16

/** To pass over more entries would take milliseconds. */
const maxSkipped = 50_000

const none: readonly StoredResponse[] = []

const bytesOf = (variants: readonly StoredResponse[]): number =>
  variants.reduce((sum, stored) => sum + stored.bytes, 0)

/** Tags of all variants, and the target, which finds the entries of all partitions but the public one: that has its own key. */
const indexedTags = (key: string, variants: readonly StoredResponse[]): readonly string[] => {
  const [first, ...others] = variants
  const firstTags = first?.tags ?? []
  const tags = others.length === 0 ? firstTags : [...new Set(variants.flatMap((stored) => stored.tags))]
  return isPublicKey(key) ? tags : [targetKeyOf(key), ...tags]
}

const isSameVariant = (a: StoredResponse, b: StoredResponse): boolean =>
  a.varyKey === b.varyKey && a.varyNames.join(',') === b.varyNames.join(',')

/** Stored responses by key and by tag, bounded in bytes: the least recently read are evicted. */
export const createMemoryStore = (options: MemoryStoreOptions) => {
  const { maxBytes, maxHeapBytes, maxEntryBytes, onEvict } = options
  const intern = createIntern()
  let responses = 0
  let heapBytes = 0
  let index = createTagIndex<StoredVariants>()
  let deleted: StoredVariants[] = []
  const createLru = (): LRUCache<string, StoredVariants> =>
    new LRUCache({
      maxSize: maxBytes,
      sizeCalculation: ({ variants }) => bytesOf(variants),
      dispose: (entry, _key, reason) => {
        const { variants } = entry
        responses -= variants.length
        heapBytes -= entry.heapBytes
        // A purge in turns may still refer to it.
        entry.variants = none
        // `write` has removed an entry that it replaces from the index.
        if (reason === 'set') return
        index.remove(entry)
        if (reason === 'evict' && variants.length > 0) onEvict(bytesOf(variants))
      },
    })
  let lru = createLru()

  const write = (
    key: string,
    before: StoredVariants | undefined,
    variants: readonly StoredResponse[],
  ): void => {
    if (before !== undefined) index.remove(before)
    responses += variants.length
    const entry = {
      key,
      variants,
      heapBytes: variants.reduce((sum, stored) => sum + heapBytesOf(stored), 0),
      tags: indexedTags(key, variants),
      positions: undefined,
    }
    heapBytes += entry.heapBytes
    index.add(entry)
    lru.set(key, entry)
    while (heapBytes > maxHeapBytes && lru.size > 1) lru.pop()
  }
  /** Newest last; the oldest variants are dropped when there are too many of them or when together they are too large. */
  const fitting = (variants: readonly StoredResponse[]): readonly StoredResponse[] => {
    let newest = variants.length > maxVariants ? variants.slice(-maxVariants) : variants
    while (newest.length > 1 && bytesOf(newest) > maxEntryBytes * 4) newest = newest.slice(1)
    return bytesOf(newest) > maxBytes ? newest.slice(-1) : newest
  }
  function* withTag(tag: string): Generator<StoredVariants> {
    yield* index.holders(tag)
    const publicEntry = lru.peek(publicKeyOf(tag))
    if (publicEntry !== undefined) yield publicEntry
  }
  /** Another variant that was stored meanwhile may have replaced the entry. */
  const current = (entry: StoredVariants): StoredVariants | undefined =>
    entry.variants.length > 0 ? entry : lru.peek(entry.key)

  return {
    /** One stored response for each combination of selecting headers. */
    variants: (key: string) => lru.get(key)?.variants ?? none,
    /** As `variants`, without counting as a read. */
    peek: (key: string) => lru.peek(key)?.variants ?? none,
    /** False when it is too large. */
    put: (stored: StoredResponse) => {
      const { key } = stored
      if (stored.bytes > maxBytes || stored.content.length > maxEntryBytes) return false
      const added = compact(stored, intern, index.canonical)
      const before = lru.peek(key)
      const others = before?.variants.filter((variant) => !isSameVariant(variant, added)) ?? none
      write(key, before, others.length === 0 ? [added] : fitting([...others, added]))
      return true
    },
    /** Adds a content coding to a stored response; false when there is no space for it. */
    addForm: (stored: StoredResponse, form: CodedForm) => {
      const before = lru.peek(stored.key)
      const variants = before?.variants ?? none
      if (bytesOf(variants) + bytesOfForm(form, stored.headers) > maxBytes) return false
      addForm(stored, form)
      write(stored.key, before, variants)
      return true
    },
    /** Returns the number of responses removed. */
    delete: (key: string) => {
      const count = lru.peek(key)?.variants.length ?? 0
      lru.delete(key)
      return count
    },
    /**
     * As `delete` for every reader, at a tenth of its cost: `sweep` removes them from the index, and from the bytes that are counted,
     * later.
     */
    markDeleted: (marked: StoredVariants) => {
      const entry = current(marked)
      const count = entry?.variants.length ?? 0
      if (entry === undefined || count === 0) return 0
      responses -= count
      entry.variants = none
      deleted.push(entry)
      return count
    },
    currentVariants: (entry: StoredVariants) => current(entry)?.variants ?? none,
    /** Returns whether more are left. */
    sweep: (max: number) => {
      for (const entry of deleted.splice(-max)) {
        // Unless something new was stored under its key.
        if (lru.peek(entry.key) === entry) lru.delete(entry.key)
      }
      return deleted.length > 0
    },
    /** To look up many keys takes longer than all else. Nothing may be stored during the iteration. */
    withTag,
    all: () => [...lru.values()],
    /** Up to so many entries that lie beside each other in the order of use, from a random one on. */
    some: (max: number) => {
      const entries: StoredVariants[] = []
      let skipped = Math.floor(Math.random() * Math.min(lru.size, maxSkipped))
      for (const entry of lru.values()) {
        if (skipped > 0) skipped -= 1
        else if (entries.push(entry) >= max) break
      }
      return entries
    },
    /** An upper bound of the keys with these tags: a key with several of them counts for each. */
    countWithTags: (tags: readonly string[]) => tags.reduce((sum, tag) => sum + index.holders(tag).length, 0),
    /** At once, however many there are; returns the number of responses removed. */
    clear: () => {
      const count = responses
      // New ones, and the old ones for the garbage collector: to remove each entry would take too long.
      index = createTagIndex<StoredVariants>()
      lru = createLru()
      deleted = []
      responses = 0
      heapBytes = 0
      return count
    },
    usedShare: () => Math.max(lru.calculatedSize / maxBytes, heapBytes / maxHeapBytes),
    stats: () => ({ entries: responses, bytes: lru.calculatedSize, tags: index.size }),
  }
}

export type MemoryStore = ReturnType<typeof createMemoryStore>
