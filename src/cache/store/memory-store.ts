import { LRUCache } from 'lru-cache'
import { isPublicKey, publicKeyOf, targetKeyOf } from '../cache-key.ts'
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
import { type ChangedLater, type WideChange, WideChanges } from './wide-changes.ts'

/** All that is stored under one key; without variants after it was removed. Changed by the store alone. */
export type StoredVariants = TagHolder &
  ChangedLater & {
    readonly heapBytes: number
    /** Its position among all entries. */
    place: number
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

/** What was dropped by a tag and is still to be removed. `last`: see TagHolder. */
type Dropped = { readonly tag: string; readonly last: number; readonly entries: StoredVariants[] }

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
  /** In the order in which they were dropped. */
  #dropped: Dropped[] = []
  readonly #changes = new WideChanges<StoredVariants>()
  /** Unordered. Copying it is fast; iterating over the library's entries takes a microsecond for each. */
  #entries: StoredVariants[] = []
  /** Of `#responses`, about so many were dropped without a look at them. */
  #unseen = 0
  /** Of the entry that was written last. */
  #number = 0
  /** Of the last entry that was written before everything was removed. */
  #cleared = 0
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
    return this.#variantsOf(this.#lru.get(key))
  }

  /** Was it stored, and would it still be if there were more room? */
  wasEvicted(key: string): boolean {
    return this.#evicted.has(key)
  }

  /** As `variants`, without counting as a read. */
  peek(key: string): readonly StoredResponse[] {
    return this.#variantsOf(this.#lru.peek(key))
  }

  /** False when it is too large. */
  put(stored: StoredResponse): boolean {
    const { key } = stored
    if (stored.bytes > this.#maxBytes || stored.content.length > this.#maxEntryBytes) return false
    const added = compact(stored, this.#intern, this.#index.canonical)
    const before = this.#lru.peek(key)
    const others = this.#variantsOf(before).filter((variant) => !isSameVariant(variant, added))
    this.#write(key, before, others.length === 0 ? [added] : this.#fitting([...others, added]))
    return true
  }

  /** Adds a content coding to a stored response; false when there is no space for it. */
  addForm(stored: StoredResponse, form: CodedForm): boolean {
    const before = this.#lru.peek(stored.key)
    const variants = this.#variantsOf(before)
    if (bytesOf(variants) + bytesOfForm(form, stored.headers) > this.#maxBytes) return false
    addForm(stored, form)
    this.#write(stored.key, before, variants)
    return true
  }

  /** Returns the number of responses removed. */
  delete(key: string): number {
    const count = this.peek(key).length
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

  /**
   * As `delete` of all that have one of the tags, in one step however many they are: readers that look see it by the tags, and `sweep`
   * removes them later. Returns about how many: an entry counts for each of the tags that it has, and once for all its variants.
   */
  drop(tags: readonly string[]): number {
    const last = this.#number
    let count = 0
    for (const tag of tags) {
      count += this.delete(publicKeyOf(tag))
      const entries = this.#index.detach(tag, last)
      count += entries.length
      this.#unseen += entries.length
      if (entries.length > 0) this.#dropped.push({ tag, last, entries })
    }
    return Math.min(count, this.#responses)
  }

  /**
   * Removes all that is stored under keys that are meant, or changes it by `change`, in one step however much it is: readers that look
   * see it, and `sweep` does the rest. Where too many changes wait, everything is removed.
   */
  changeAll(change: WideChange): void {
    if (this.#changes.areTooMany) change.ended(this.clear())
    else this.#changes.add(change)
  }

  /** Number of keys. */
  get size(): number {
    return this.#entries.length
  }

  /** With how many purges that wait `currentVariants` compares the entry. */
  comparisons(entry: StoredVariants): number {
    return this.#changes.comparisons(entry)
  }

  currentVariants(entry: StoredVariants): readonly StoredResponse[] {
    return this.#current(entry)?.variants ?? none
  }

  /** Returns whether more are left. */
  sweep(max: number): boolean {
    this.#remove(this.#deleted.splice(-max))
    const [dropped] = this.#dropped
    if (dropped !== undefined) {
      this.#remove(dropped.entries.splice(-max))
      if (dropped.entries.length === 0) {
        this.#dropped.shift()
        this.#index.forget(dropped.tag, dropped.last)
      }
    }
    if (this.#dropped.length === 0) this.#unseen = 0
    this.#remove(this.#changes.next(() => this.all(), max).filter((entry) => this.#isRemoved(entry)))
    this.#changes.looked()
    return this.#deleted.length > 0 || this.#dropped.length > 0 || this.#changes.areWaiting
  }

  /** To look up many keys takes longer than all else. Nothing may be stored during the iteration. */
  *withTag(tag: string): Generator<StoredVariants> {
    for (const entry of this.#index.holders(tag)) yield this.#seen(entry)
    const publicEntry = this.#lru.peek(publicKeyOf(tag))
    if (publicEntry !== undefined) yield this.#seen(publicEntry)
  }

  /** Would `withTag` find the key by one of the tags? */
  hasTag(key: string, tags: ReadonlySet<string>): boolean {
    const entry = this.#lru.peek(key)
    if (entry === undefined) return false
    return entry.tags.some((tag) => tags.has(tag)) || (isPublicKey(key) && tags.has(targetKeyOf(key)))
  }

  /** To be read by `currentVariants`. */
  all(): StoredVariants[] {
    return this.#entries.slice()
  }

  /** Up to so many entries, from a random one on, behind the last of which the first follows. */
  some(max: number): StoredVariants[] {
    const start = Math.floor(Math.random() * this.#entries.length)
    const sample = this.#entries.slice(start, start + max)
    return [...sample, ...this.#entries.slice(0, Math.min(start, max - sample.length))].map((entry) =>
      this.#seen(entry),
    )
  }

  /** An upper bound of the keys with these tags: a key with several of them counts for each. */
  countWithTags(tags: readonly string[]): number {
    return tags.reduce((sum, tag) => sum + this.#index.holders(tag).length, 0)
  }

  /** At once, however many there are; returns the number of responses removed. */
  clear(): number {
    const count = this.stats().entries
    // New ones, and the old ones for the garbage collector: to remove each entry would take too long.
    this.#index = createTagIndex<StoredVariants>()
    this.#lru = this.#createLru()
    this.#entries = []
    this.#deleted = []
    this.#dropped = []
    this.#changes.clear()
    this.#unseen = 0
    this.#cleared = this.#number
    this.#responses = 0
    this.#heapBytes = 0
    return count
  }

  usedShare(): number {
    return Math.max(this.#lru.calculatedSize / this.#maxBytes, this.#heapBytes / this.#maxHeapBytes)
  }

  stats(): { entries: number; bytes: number; tags: number } {
    return {
      entries: Math.max(0, this.#responses - this.#unseen),
      bytes: this.#lru.calculatedSize,
      tags: this.#index.size,
    }
  }

  #createLru(): LRUCache<string, StoredVariants> {
    return new LRUCache({
      maxSize: this.#maxBytes,
      sizeCalculation: ({ variants }) => bytesOf(variants),
      dispose: (entry, key, reason) => {
        const { variants } = this.#seen(entry)
        this.#responses -= variants.length
        this.#heapBytes -= entry.heapBytes
        // A purge in turns may still refer to it.
        entry.variants = none
        this.#leave(entry)
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
    this.#number += 1
    const entry = {
      key,
      number: this.#number,
      variants,
      heapBytes: variants.reduce((sum, stored) => sum + heapBytesOf(stored), 0),
      tags: indexedTags(key, variants),
      positions: undefined,
      place: this.#entries.length,
      compared: this.#changes.last,
    }
    this.#entries.push(entry)
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
    if (this.#seen(entry).variants.length > 0) return entry
    const other = this.#lru.peek(entry.key)
    return other && this.#seen(other)
  }

  #variantsOf(entry: StoredVariants | undefined): readonly StoredResponse[] {
    return entry === undefined ? none : this.#seen(entry).variants
  }

  /** The entry: without variants where they were dropped by a tag. */
  #seen(entry: StoredVariants): StoredVariants {
    const { variants } = entry
    if (entry.number <= this.#cleared) entry.variants = none
    else if (this.#dropped.length > 0 && variants.length > 0 && this.#index.wasDetached(entry)) {
      entry.variants = none
      this.#responses -= variants.length
      this.#unseen = Math.max(0, this.#unseen - variants.length)
    }
    this.#responses -= this.#changes.apply(entry)
    return entry
  }

  #isRemoved(entry: StoredVariants): boolean {
    return this.#seen(entry).variants.length === 0
  }

  /** The last entry moves to the place that becomes free. */
  #leave({ place }: StoredVariants): void {
    const last = this.#entries.pop()
    if (last === undefined || last.place === place) return
    last.place = place
    this.#entries[place] = last
  }

  /** Unless something new was stored under its key. */
  #remove(entries: readonly StoredVariants[]): void {
    for (const entry of entries) if (this.#lru.peek(entry.key) === entry) this.#lru.delete(entry.key)
  }
}
