import { LRUCache } from 'lru-cache'
import { isPublicKey, publicKeyOf, targetKeyOf } from '../cache-key.ts'
import { compacted, type StoredResponse } from './stored-response.ts'
import { createTagIndex, type TagHolder } from './tag-index.ts'

/**
 * Gives equal short texts one string: names and most values of fields are the same in all responses, and each
 * response brings its own copies from the wire. Bounded in texts and in their length.
 */
type Intern = (text: string) => string

const longest = 64
const perGeneration = 2048

/** Two generations: what is used stays, what was seen once goes when the young one is full. */
export const createIntern = (): Intern => {
  let young = new Map<string, string>()
  let old = new Map<string, string>()
  return (text) => {
    if (text.length > longest) return text
    const known = young.get(text)
    if (known !== undefined) return known
    const kept = old.get(text) ?? text
    if (young.size >= perGeneration) {
      old = young
      young = new Map()
    }
    young.set(kept, kept)
    return kept
  }
}

/** What is stored under one key, until something else is. */
export type Held = { readonly key: string; readonly variants: readonly StoredResponse[] }

/** Stored responses by key and by tag, bounded in bytes, least recently read first out. */
export type MemoryStore = {
  /** All stored responses of a key: one for each combination of selecting fields. */
  variants(key: string): readonly StoredResponse[]
  /** False when it is too large. */
  put(stored: StoredResponse): boolean
  /** Number of responses dropped. */
  delete(key: string): number
  /**
   * As `delete` for all who look, at a tenth of its cost: `sweep` gives back the places in the index and the bytes that it counts
   * for.
   */
  blank(held: Held): number
  /** Gives back those of some blanked keys; false when there are no more. */
  sweep(most: number): boolean
  keysTagged(tag: string): readonly string[]
  /** By themselves, not by their keys: to look up many takes longer than all else. Nothing may be stored while one looks at them. */
  tagged(tag: string): Iterable<Held>
  held(): readonly Held[]
  /** Of what is stored under its key by now. */
  variantsOf(held: Held): readonly StoredResponse[]
  /** How many keys the tags find at most; one that carries several of them counts for each. */
  countTagged(tags: readonly string[]): number
  /** As `variants`, without counting as a read. */
  peek(key: string): readonly StoredResponse[]
  replace(key: string, variants: readonly StoredResponse[]): void
  /** However many there are, at once; returns the number of responses dropped. */
  clear(): number
  stats(): { readonly entries: number; readonly bytes: number; readonly tags: number }
}

type MemoryStoreOptions = {
  readonly maxBytes: number
  readonly maxEntryBytes: number
  readonly onEvict: (bytes: number) => void
}

/** A flood of selecting fields (Origin, say) must not make one key unbounded, nor its search slow. */
const mostVariants = 16

const none: readonly StoredResponse[] = []

const bytesOf = (variants: readonly StoredResponse[]): number =>
  variants.reduce((sum, stored) => sum + stored.bytes, 0)

/** What is stored under one key; no variants: it was blanked, or has gone. */
type Slot = TagHolder & { variants: readonly StoredResponse[] }

/** Every one of them is made here, with more to it than others see. */
const known = (held: Held): Slot => held as Slot

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
  const intern = createIntern()
  let responses = 0
  let index = createTagIndex<Slot>()
  let blanked: Slot[] = []
  const createLru = (): LRUCache<string, Slot> =>
    new LRUCache({
      maxSize: options.maxBytes,
      sizeCalculation: ({ variants }) => bytesOf(variants),
      // `set` replaces: `write` below has already taken the old tags out of the index.
      dispose: (slot, _key, reason) => {
        const { variants } = slot
        responses -= variants.length
        // Whoever is about to look at it, in turns, finds nothing.
        slot.variants = none
        if (reason === 'set') return
        index.remove(slot)
        if (reason === 'evict' && variants.length > 0) options.onEvict(bytesOf(variants))
      },
    })
  let lru = createLru()
  const write = (key: string, before: Slot | undefined, variants: readonly StoredResponse[]): void => {
    if (before !== undefined) index.remove(before)
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
  function* tagged(tag: string): Generator<Slot> {
    yield* index.holders(tag)
    const own = lru.peek(publicKeyOf(tag))
    if (own !== undefined) yield own
  }
  /** What was stored beside it meanwhile may have taken its variants along. */
  const current = (slot: Slot): Slot | undefined => (slot.variants.length > 0 ? slot : lru.peek(slot.key))
  const blank = (slot: Slot): number => {
    const dropped = slot.variants.length
    if (dropped === 0) return 0
    responses -= dropped
    slot.variants = none
    blanked.push(slot)
    return dropped
  }
  return {
    variants: (key) => lru.get(key)?.variants ?? none,
    peek: (key) => lru.peek(key)?.variants ?? none,
    put: (stored) => {
      const { key } = stored
      if (stored.bytes > options.maxBytes || stored.content.length > options.maxEntryBytes) return false
      // As small as it gets: with as few strings of its own as possible, and no slack in its lists.
      const kept = compacted(stored, intern, index.canonical)
      const before = lru.peek(key)
      const variants = before === undefined ? [kept] : fitting([...others(before.variants, kept), kept])
      write(key, before, bytesOf(variants) > options.maxBytes ? variants.slice(-1) : variants)
      return true
    },
    delete: (key) => {
      const dropped = lru.peek(key)?.variants.length ?? 0
      lru.delete(key)
      return dropped
    },
    blank: (held) => {
      const slot = current(known(held))
      return slot === undefined ? 0 : blank(slot)
    },
    variantsOf: (held) => current(known(held))?.variants ?? none,
    sweep: (most) => {
      for (const slot of blanked.splice(-most)) {
        // Unless something new was stored under its key.
        if (lru.peek(slot.key) === slot) lru.delete(slot.key)
      }
      return blanked.length > 0
    },
    replace: (key, variants) => {
      const before = lru.peek(key)
      if (before !== undefined && isCountedAlike(before.variants, variants)) before.variants = variants
      else write(key, before, variants)
    },
    keysTagged: (tag) => Array.from(tagged(tag), ({ key }) => key),
    tagged,
    held: () => [...lru.values()],
    countTagged: (tags) => tags.reduce((sum, tag) => sum + index.holders(tag).length, 0),
    clear: () => {
      const dropped = responses
      // To take each out of the index would hold all readers up: all of it is left to the collector.
      index = createTagIndex<Slot>()
      lru = createLru()
      blanked = []
      responses = 0
      return dropped
    },
    stats: () => ({ entries: responses, bytes: lru.calculatedSize, tags: index.size }),
  }
}

const others = (known: readonly StoredResponse[], stored: StoredResponse): readonly StoredResponse[] =>
  known.filter((variant) => !sameSelection(variant, stored))

const sameSelection = (a: StoredResponse, b: StoredResponse): boolean =>
  a.varyKey === b.varyKey && a.varyNames.join(',') === b.varyNames.join(',')

/** The same tags and the same bytes: nothing changes in the index, nor in what is counted. */
const isCountedAlike = (known: readonly StoredResponse[], variants: readonly StoredResponse[]): boolean =>
  known.length === variants.length &&
  known.every(({ tags, bytes }, at) => variants[at]?.tags === tags && variants[at]?.bytes === bytes)

/** Reading more of them, or longer ones, would cost more than it can spare; so would looking for them among all that carry the tag. */
const mostContents = 8
const mostLooks = 64
const longestContent = 65_536

/** Contents of a few complete stored responses with that tag, short ones only. */
export const contentsTagged = (store: MemoryStore, tag: string): readonly Buffer[] => {
  const contents: Buffer[] = []
  let looks = 0
  for (const { variants } of store.tagged(tag)) {
    for (const { status, extent, content } of variants) {
      if (status === 200 && extent === undefined && content.length <= longestContent) contents.push(content)
    }
    looks += 1
    if (contents.length >= mostContents || looks === mostLooks) break
  }
  return contents.slice(0, mostContents)
}
