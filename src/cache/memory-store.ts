import { LRUCache } from 'lru-cache'
import { isPublicKey, publicKeyOf, targetKeyOf } from './cache-key.ts'
import { createIntern } from './interned.ts'
import { compacted, type StoredResponse } from './stored-response.ts'
import { createTagIndex, type TagHolder } from './tag-index.ts'

/** Stored responses by key and by tag, bounded in bytes, least recently read first out. */
export type MemoryStore = {
  /** All stored responses of a key: one for each combination of selecting fields. */
  variants(key: string): readonly StoredResponse[]
  /** False when it is too large. */
  put(stored: StoredResponse): boolean
  /** Number of responses dropped. */
  delete(key: string): number
  keysTagged(tag: string): readonly string[]
  keys(): Iterable<string>
  /** As `variants`, without counting as a read. */
  peek(key: string): readonly StoredResponse[]
  replace(key: string, variants: readonly StoredResponse[]): void
  clear(): void
  stats(): { readonly entries: number; readonly bytes: number; readonly tags: number }
}

export type MemoryStoreOptions = {
  readonly maxBytes: number
  readonly maxEntryBytes: number
  readonly onEvict: (bytes: number) => void
}

/** A flood of selecting fields (Origin, say) must not make one key unbounded, nor its search slow. */
const mostVariants = 16

const none: readonly StoredResponse[] = []

const bytesOf = (variants: readonly StoredResponse[]): number =>
  variants.reduce((sum, stored) => sum + stored.bytes, 0)

/** What is stored under one key. */
type Slot = TagHolder & { readonly variants: readonly StoredResponse[] }

/**
 * Tags of all variants, and the target itself, by which what other partitions hold of it is found: in the public part it is
 * the key that tells.
 */
const indexedTags = (key: string, variants: readonly StoredResponse[]): readonly string[] => {
  const [first, ...others] = variants
  const own = first?.tags ?? []
  const tags = others.length === 0 ? own : [...new Set(variants.flatMap((stored) => stored.tags))]
  return isPublicKey(key) ? tags : [targetKeyOf(key), ...tags]
}

const slotOf = (key: string, variants: readonly StoredResponse[]): Slot => ({
  key,
  variants,
  tags: indexedTags(key, variants),
  places: undefined,
})

export const createMemoryStore = (options: MemoryStoreOptions): MemoryStore => {
  const index = createTagIndex()
  const intern = createIntern()
  let responses = 0
  const lru = new LRUCache<string, Slot>({
    maxSize: options.maxBytes,
    sizeCalculation: ({ variants }) => bytesOf(variants),
    // `set` replaces: `write` below has already taken the old tags out of the index.
    dispose: (slot, _key, reason) => {
      responses -= slot.variants.length
      if (reason === 'set') return
      index.remove(slot)
      if (reason === 'evict') options.onEvict(bytesOf(slot.variants))
    },
  })
  const write = (key: string, known: Slot | undefined, variants: readonly StoredResponse[]): void => {
    if (known !== undefined) index.remove(known)
    responses += variants.length
    const slot = slotOf(key, variants)
    index.add(slot)
    lru.set(key, slot)
  }
  /** Newest last; the oldest variants go when there are too many of them or when together they are too large. */
  const fitting = (variants: readonly StoredResponse[]): readonly StoredResponse[] => {
    let kept = variants.length > mostVariants ? variants.slice(-mostVariants) : variants
    while (kept.length > 1 && bytesOf(kept) > options.maxEntryBytes * 4) kept = kept.slice(1)
    return kept
  }
  return {
    variants: (key) => lru.get(key)?.variants ?? none,
    peek: (key) => lru.peek(key)?.variants ?? none,
    put: (stored) => {
      const { key } = stored
      if (stored.bytes > options.maxBytes || stored.content.length > options.maxEntryBytes) return false
      // As small as it gets: with as few strings of its own as possible, and no slack in its lists.
      const kept = compacted(stored, intern, index.canonical)
      const known = lru.peek(key)
      const variants = known === undefined ? [kept] : fitting([...others(known.variants, kept), kept])
      write(key, known, bytesOf(variants) > options.maxBytes ? variants.slice(-1) : variants)
      return true
    },
    delete: (key) => {
      const dropped = lru.peek(key)?.variants.length ?? 0
      lru.delete(key)
      return dropped
    },
    replace: (key, variants) => write(key, lru.peek(key), variants),
    keysTagged: (tag) => {
      const tagged = index.keys(tag)
      const own = publicKeyOf(tag)
      return lru.has(own) ? [...tagged, own] : tagged
    },
    keys: () => lru.keys(),
    clear: () => lru.clear(),
    stats: () => ({ entries: responses, bytes: lru.calculatedSize, tags: index.size }),
  }
}

const others = (known: readonly StoredResponse[], stored: StoredResponse): readonly StoredResponse[] =>
  known.filter((variant) => !sameSelection(variant, stored))

const sameSelection = (a: StoredResponse, b: StoredResponse): boolean =>
  a.varyKey === b.varyKey && a.varyNames.join(',') === b.varyNames.join(',')
