import { LRUCache } from 'lru-cache'
import { targetKeyOf } from './cache-key.ts'
import { createIntern } from './interned.ts'
import type { StoredResponse } from './stored-response.ts'
import { createTagIndex } from './tag-index.ts'

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

/** Tags of all variants, and the target itself, by which all its variants and partitions are found. */
const indexedTags = (key: string, variants: readonly StoredResponse[]): readonly string[] => {
  const [first, ...others] = variants
  const tags = first?.tags ?? []
  return others.length === 0
    ? [targetKeyOf(key), ...tags]
    : [targetKeyOf(key), ...new Set([...tags, ...others.flatMap((stored) => stored.tags)])]
}

export const createMemoryStore = (options: MemoryStoreOptions): MemoryStore => {
  const index = createTagIndex()
  const intern = createIntern()
  let responses = 0
  const lru = new LRUCache<string, readonly StoredResponse[]>({
    maxSize: options.maxBytes,
    sizeCalculation: (variants) => bytesOf(variants),
    // `set` replaces: `write` below has already taken the old tags out of the index.
    dispose: (variants, key, reason) => {
      responses -= variants.length
      if (reason === 'set') return
      index.remove(key, indexedTags(key, variants))
      if (reason === 'evict') options.onEvict(bytesOf(variants))
    },
  })
  /** As small as it gets: with as few strings of its own as possible, and no slack in its lists. */
  const compact = (stored: StoredResponse): StoredResponse => ({
    ...stored,
    fields: stored.fields.map(intern),
    tags: stored.tags.length === 0 ? stored.tags : stored.tags.map(index.canonical),
  })
  const write = (
    key: string,
    known: readonly StoredResponse[],
    variants: readonly StoredResponse[],
  ): void => {
    if (known.length > 0) index.remove(key, indexedTags(key, known))
    responses += variants.length
    index.add(key, indexedTags(key, variants))
    lru.set(key, variants)
  }
  /** Newest last; the oldest variants go when there are too many of them or when together they are too large. */
  const fitting = (variants: readonly StoredResponse[]): readonly StoredResponse[] => {
    let kept = variants.length > mostVariants ? variants.slice(-mostVariants) : variants
    while (kept.length > 1 && bytesOf(kept) > options.maxEntryBytes * 4) kept = kept.slice(1)
    return kept
  }
  return {
    variants: (key) => lru.get(key) ?? none,
    peek: (key) => lru.peek(key) ?? none,
    put: (stored) => {
      if (stored.bytes > options.maxBytes || stored.content.length > options.maxEntryBytes) return false
      const known = lru.peek(stored.key) ?? none
      const others = known.filter((variant) => !sameSelection(variant, stored))
      const variants = fitting([...others, compact(stored)])
      write(stored.key, known, bytesOf(variants) > options.maxBytes ? variants.slice(-1) : variants)
      return true
    },
    delete: (key) => {
      const dropped = lru.peek(key)?.length ?? 0
      lru.delete(key)
      return dropped
    },
    replace: (key, variants) => write(key, lru.peek(key) ?? none, variants),
    keysTagged: (tag) => index.keys(tag),
    keys: () => lru.keys(),
    clear: () => lru.clear(),
    stats: () => ({ entries: responses, bytes: lru.calculatedSize, tags: index.size }),
  }
}

const sameSelection = (a: StoredResponse, b: StoredResponse): boolean =>
  a.varyKey === b.varyKey && a.varyNames.join(',') === b.varyNames.join(',')
