import { LRUCache } from 'lru-cache'
import { isPublicKey, publicKeyOf, targetKeyOf } from '../cache-read.ts'
import { EvictedKeys } from './evicted-keys.ts'
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
export class MemoryStore {
  readonly #maxBytes: number
  readonly #maxHeapBytes: number
  readonly #maxEntryBytes: number
  readonly #onEvict: (bytes: number) => void
  readonly #intern = createIntern()
  readonly #evicted = new EvictedKeys()
  #responses = 0
  #heapBytes = 0
  #index = createTagIndex<StoredVariants>()
  #deleted: StoredVariants[] = []
  #lru: LRUCache<string, StoredVariants, unknown>

  constructor(options: MemoryStoreOptions) {
    this.#maxBytes = options.maxBytes
    this.#maxHeapBytes = options.maxHeapBytes
    this.#maxEntryBytes = options.maxEntryBytes
    this.#onEvict = options.onEvict
    this.#lru = this.#createLru()
  }

  /** One stored response for each combination of selecting headers. */
  variants(key: string): readonly StoredResponse[] {
    return this.#lru.get(key)?.variants ?? none
  }

  /** Was it stored, and would it still be if there were more room? */
  wasEvicted(key: string): boolean {
    return this.#evicted.has(key)
  }

  /** As `variants`, without counting as a read. */
  peek(key: string): readonly StoredResponse[] {
    return this.#lru.peek(key)?.variants ?? none
  }

  /** False when it is too large. */
  put(stored: StoredResponse): boolean {
    const { key } = stored
    if (stored.bytes > this.#maxBytes || stored.content.length > this.#maxEntryBytes) return false
    const added = compact(stored, this.#intern, this.#index.canonical)
    const before = this.#lru.peek(key)
    const others = before?.variants.filter((variant) => !isSameVariant(variant, added)) ?? none
    this.#write(key, before, others.length === 0 ? [added] : this.#fitting([...others, added]))
    return true
  }

  /** Adds a content coding to a stored response; false when there is no space for it. */
  addForm(stored: StoredResponse, form: CodedForm): boolean {
    const before = this.#lru.peek(stored.key)
    const variants = before?.variants ?? none
    if (bytesOf(variants) + bytesOfForm(form, stored.headers) > this.#maxBytes) return false
    addForm(stored, form)
    this.#write(stored.key, before, variants)
    return true
  }

  /** Returns the number of responses removed. */
  delete(key: string): number {
    const count = this.#lru.peek(key)?.variants.length ?? 0
    this.#lru.delete(key)
    return count
  }

  /**
   * As `delete` for every reader, at a tenth of its cost: `sweep` removes them from the index, and from the bytes that are counted,
   * later.
   */
  markDeleted(marked: StoredVariants): number {
    const entry = this.#current(marked)
    const count = entry?.variants.length ?? 0
    if (entry === undefined || count === 0) return 0
    this.#responses -= count
    entry.variants = none
    this.#deleted.push(entry)
    return count
  }

  currentVariants(entry: StoredVariants): readonly StoredResponse[] {
    return this.#current(entry)?.variants ?? none
  }

  /** Returns whether more are left. */
  sweep(max: number): boolean {
    for (const entry of this.#deleted.splice(-max)) {
      // Unless something new was stored under its key.
      if (this.#lru.peek(entry.key) === entry) this.#lru.delete(entry.key)
    }
    return this.#deleted.length > 0
  }

  /** To look up many keys takes longer than all else. Nothing may be stored during the iteration. */
  *withTag(tag: string): Generator<StoredVariants> {
    yield* this.#index.holders(tag)
    const publicEntry = this.#lru.peek(publicKeyOf(tag))
    if (publicEntry !== undefined) yield publicEntry
  }

  all(): StoredVariants[] {
    return [...this.#lru.values()]
  }

  /** Up to so many entries that lie beside each other in the order of use, from a random one on. */
  some(max: number): StoredVariants[] {
    const entries: StoredVariants[] = []
    let skipped = Math.floor(Math.random() * Math.min(this.#lru.size, maxSkipped))
    for (const entry of this.#lru.values()) {
      if (skipped > 0) skipped -= 1
      else if (entries.push(entry) >= max) break
    }
    return entries
  }

  /** An upper bound of the keys with these tags: a key with several of them counts for each. */
  countWithTags(tags: readonly string[]): number {
    return tags.reduce((sum, tag) => sum + this.#index.holders(tag).length, 0)
  }

  /** At once, however many there are; returns the number of responses removed. */
  clear(): number {
    const count = this.#responses
    // New ones, and the old ones for the garbage collector: to remove each entry would take too long.
    this.#index = createTagIndex<StoredVariants>()
    this.#lru = this.#createLru()
    this.#deleted = []
    this.#responses = 0
    this.#heapBytes = 0
    return count
  }

  usedShare(): number {
    return Math.max(this.#lru.calculatedSize / this.#maxBytes, this.#heapBytes / this.#maxHeapBytes)
  }

  stats(): { entries: number; bytes: number; tags: number } {
    return { entries: this.#responses, bytes: this.#lru.calculatedSize, tags: this.#index.size }
  }

  #createLru(): LRUCache<string, StoredVariants> {
    return new LRUCache({
      maxSize: this.#maxBytes,
      sizeCalculation: ({ variants }) => bytesOf(variants),
      dispose: (entry, key, reason) => {
        const { variants } = entry
        this.#responses -= variants.length
        this.#heapBytes -= entry.heapBytes
        // A purge in turns may still refer to it.
        entry.variants = none
        // `write` has removed an entry that it replaces from the index.
        if (reason === 'set') return
        this.#index.remove(entry)
        if (reason !== 'evict' || variants.length === 0) return
        this.#evicted.add(key)
        this.#onEvict(bytesOf(variants))
      },
    })
  }

  #write(key: string, before: StoredVariants | undefined, variants: readonly StoredResponse[]): void {
    if (before !== undefined) this.#index.remove(before)
    this.#responses += variants.length
    const entry = {
      key,
      variants,
      heapBytes: variants.reduce((sum, stored) => sum + heapBytesOf(stored), 0),
      tags: indexedTags(key, variants),
      positions: undefined,
    }
    this.#heapBytes += entry.heapBytes
    this.#evicted.delete(key)
    this.#index.add(entry)
    this.#lru.set(key, entry)
    while (this.#heapBytes > this.#maxHeapBytes && this.#lru.size > 1) this.#lru.pop()
  }

  /** Newest last; the oldest variants are dropped when there are too many of them or when together they are too large. */
  #fitting(variants: readonly StoredResponse[]): readonly StoredResponse[] {
    let newest = variants.length > maxVariants ? variants.slice(-maxVariants) : variants
    while (newest.length > 1 && bytesOf(newest) > this.#maxEntryBytes * 4) newest = newest.slice(1)
    return bytesOf(newest) > this.#maxBytes ? newest.slice(-1) : newest
  }

  /** Another variant that was stored meanwhile may have replaced the entry. */
  #current(entry: StoredVariants): StoredVariants | undefined {
    return entry.variants.length > 0 ? entry : this.#lru.peek(entry.key)
  }
}
