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

/** A reader compares its key with each. */
const maxPending = 16

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

/** A change of all that is stored under some keys. Readers see it at once; it is carried out for the rest in turns. */
type PendingChange = {
  /** See TagHolder: later entries are not concerned. */
  readonly last: number
  readonly isMeant: (key: string) => boolean
  /** What remains of the variants; called twice it changes nothing more. */
  readonly change: (variants: readonly StoredResponse[]) => readonly StoredResponse[]
  readonly entries: StoredVariants[]
  /** Responses concerned, so far. */
  count: number
  readonly ended: (count: number) => void
}

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
  #pending: PendingChange[] = []
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
   * see it, and `sweep` does the rest. `ended` is called then, with the number of responses concerned.
   */
  changeAll({ isMeant, change, ended }: Pick<PendingChange, 'isMeant' | 'change' | 'ended'>): void {
    const entries = Array.from(this.#lru.values())
    this.#pending.push({ last: this.#number, isMeant, change, entries, count: 0, ended })
  }

  /** Has it so many keys, or more, and are so few changes pending that a reader can look at each? */
  mayChangeLater(keys: number): boolean {
    return this.#lru.size >= keys && this.#pending.length < maxPending
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
    const [pending] = this.#pending
    if (pending !== undefined) this.#carryOut(pending, max)
    return this.#deleted.length > 0 || this.#dropped.length > 0 || this.#pending.length > 0
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

  all(): StoredVariants[] {
    return Array.from(this.#lru.values(), (entry) => this.#seen(entry))
  }

  /** Up to so many entries that lie beside each other in the order of use, from a random one on. */
  some(max: number): StoredVariants[] {
    const entries: StoredVariants[] = []
    let skipped = Math.floor(Math.random() * Math.min(this.#lru.size, maxSkipped))
    for (const entry of this.#lru.values()) {
      if (skipped > 0) skipped -= 1
      else if (entries.push(this.#seen(entry)) >= max) break
    }
    return entries
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
    this.#deleted = []
    this.#dropped = []
    for (const { ended, count: changed } of this.#pending.splice(0)) ended(changed)
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
    for (const pending of this.#pending) this.#changeEntry(pending, entry)
    return entry
  }

  #changeEntry(pending: PendingChange, entry: StoredVariants): void {
    const { variants } = entry
    if (variants.length === 0 || entry.number > pending.last || !pending.isMeant(entry.key)) return
    entry.variants = pending.change(variants)
    const removed = variants.length - entry.variants.length
    this.#responses -= removed
    pending.count += removed
  }

  #carryOut(pending: PendingChange, max: number): void {
    const removed: StoredVariants[] = []
    for (const entry of pending.entries.splice(-max)) {
      const { variants } = this.#seen(entry)
      if (variants.length === 0) removed.push(entry)
      else if (entry.number <= pending.last && pending.isMeant(entry.key)) pending.count += variants.length
    }
    this.#remove(removed)
    if (pending.entries.length > 0) return
    this.#pending.shift()
    pending.ended(pending.count)
  }

  /** Unless something new was stored under its key. */
  #remove(entries: readonly StoredVariants[]): void {
    for (const entry of entries) if (this.#lru.peek(entry.key) === entry) this.#lru.delete(entry.key)
  }
}
