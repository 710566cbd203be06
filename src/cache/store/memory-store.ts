import { createHmac, randomBytes } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import { remembered } from '../../http/memo.ts'
import { isPublicKey, publicKeyOf, targetKeyOf } from '../cache-key.ts'
import { addForm, bytesOfForm, type CodedForm, compact, type StoredResponse } from './stored-response.ts'
import { createTagIndex, type TagHolder } from './tag-index.ts'

/** `second-request`: while the cache is nearly full, a response is stored from the second request for its key on. */
export type AdmissionMode = 'always' | 'second-request'

/** Responses that are requested once must not evict those that are requested often. */
export type Admission = {
  admits(key: string): boolean
}

type AdmissionOptions = {
  readonly mode: AdmissionMode
  readonly maxBytes: number
  readonly storedBytes: () => number
}

/** From this share of `maxBytes` on the cache is nearly full. */
const fullShare = 0.9

/** Of 4 bytes each: more keys shorten the memory of earlier ones and never enlarge it. */
const slots = 65_536

/**
 * Keeps a fingerprint of each first request in a slot, both from a salted hash, so that no client can aim at the slots of other
 * keys. A newer key overwrites the slot of an older one, which then needs another request.
 */
export const createAdmission = ({ mode, maxBytes, storedBytes }: AdmissionOptions): Admission => {
  if (mode === 'always') return { admits: () => true }
  const salt = randomBytes(16)
  const fingerprints = new Uint32Array(slots)

  return {
    admits: (key) => {
      if (storedBytes() < maxBytes * fullShare) return true
      const hash = createHmac('sha256', salt).update(key).digest()
      const slot = hash.readUInt32LE(0) % slots
      // 0 is an empty slot.
      const fingerprint = hash.readUInt32LE(4) || 1
      if (fingerprints[slot] === fingerprint) return true
      fingerprints[slot] = fingerprint
      return false
    },
  }
}

/** Longer texts are seldom the same in two responses. */
const longestShared = 64

/** Gives equal short texts one string: field names and most values are the same in all responses, each with its copy from the wire. */
export const createIntern = (): ((text: string) => string) => {
  const shared = remembered((text) => text, 2048)
  return (text) => (text.length > longestShared ? text : shared(text))
}

/** All that is stored under one key; without variants after it was removed. Changed by the store alone. */
export type StoredVariants = TagHolder & { variants: readonly StoredResponse[] }

type MemoryStoreOptions = {
  readonly maxBytes: number
  readonly maxEntryBytes: number
  readonly onEvict: (bytes: number) => void
}

/** Many values of a selecting field (Origin, say) must not make one key unbounded, nor its search slow. */
const mostVariants = 16

const none: readonly StoredResponse[] = []

const bytesOf = (variants: readonly StoredResponse[]): number =>
  variants.reduce((sum, stored) => sum + stored.bytes, 0)

/** Tags of all variants, and the target, which finds the entries of all partitions but the public one: that has its own key. */
const indexedTags = (key: string, variants: readonly StoredResponse[]): readonly string[] => {
  const [first, ...others] = variants
  const own = first?.tags ?? []
  const tags = others.length === 0 ? own : [...new Set(variants.flatMap((stored) => stored.tags))]
  return isPublicKey(key) ? tags : [targetKeyOf(key), ...tags]
}

const isSameVariant = (a: StoredResponse, b: StoredResponse): boolean =>
  a.varyKey === b.varyKey && a.varyNames.join(',') === b.varyNames.join(',')

/** Stored responses by key and by tag, bounded in bytes: the least recently read are evicted. */
export const createMemoryStore = (options: MemoryStoreOptions) => {
  const { maxBytes, maxEntryBytes, onEvict } = options
  const intern = createIntern()
  let responses = 0
  let index = createTagIndex<StoredVariants>()
  let deleted: StoredVariants[] = []
  const createLru = (): LRUCache<string, StoredVariants> =>
    new LRUCache({
      maxSize: maxBytes,
      sizeCalculation: ({ variants }) => bytesOf(variants),
      dispose: (entry, _key, reason) => {
        const { variants } = entry
        responses -= variants.length
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
    const entry = { key, variants, tags: indexedTags(key, variants), positions: undefined }
    index.add(entry)
    lru.set(key, entry)
  }
  /** Newest last; the oldest variants are dropped when there are too many of them or when together they are too large. */
  const fitting = (variants: readonly StoredResponse[]): readonly StoredResponse[] => {
    let kept = variants.length > mostVariants ? variants.slice(-mostVariants) : variants
    while (kept.length > 1 && bytesOf(kept) > maxEntryBytes * 4) kept = kept.slice(1)
    return bytesOf(kept) > maxBytes ? kept.slice(-1) : kept
  }
  function* withTag(tag: string): Generator<StoredVariants> {
    yield* index.holders(tag)
    const own = lru.peek(publicKeyOf(tag))
    if (own !== undefined) yield own
  }
  /** Another variant that was stored meanwhile may have replaced the entry. */
  const current = (entry: StoredVariants): StoredVariants | undefined =>
    entry.variants.length > 0 ? entry : lru.peek(entry.key)

  return {
    /** One stored response for each combination of selecting fields. */
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
      if (bytesOf(variants) + bytesOfForm(form, stored.fields) > maxBytes) return false
      addForm(stored, form)
      write(stored.key, before, variants)
      return true
    },
    /** Returns the number of responses removed. */
    delete: (key: string) => {
      const dropped = lru.peek(key)?.variants.length ?? 0
      lru.delete(key)
      return dropped
    },
    /**
     * As `delete` for every reader, at a tenth of its cost: `sweep` removes them from the index, and from the bytes that are counted,
     * later.
     */
    markDeleted: (marked: StoredVariants) => {
      const entry = current(marked)
      const dropped = entry?.variants.length ?? 0
      if (entry === undefined || dropped === 0) return 0
      responses -= dropped
      entry.variants = none
      deleted.push(entry)
      return dropped
    },
    /** The responses now stored under its key. */
    currentVariants: (entry: StoredVariants) => current(entry)?.variants ?? none,
    /** Returns whether more are left. */
    sweep: (most: number) => {
      for (const entry of deleted.splice(-most)) {
        // Unless something new was stored under its key.
        if (lru.peek(entry.key) === entry) lru.delete(entry.key)
      }
      return deleted.length > 0
    },
    /** To look up many keys takes longer than all else. Nothing may be stored during the iteration. */
    withTag,
    all: () => [...lru.values()],
    /** An upper bound of the keys with these tags: a key with several of them counts for each. */
    countWithTags: (tags: readonly string[]) => tags.reduce((sum, tag) => sum + index.holders(tag).length, 0),
    /** At once, however many there are; returns the number of responses removed. */
    clear: () => {
      const dropped = responses
      // New ones, and the old ones for the garbage collector: to remove each entry would take too long.
      index = createTagIndex<StoredVariants>()
      lru = createLru()
      deleted = []
      responses = 0
      return dropped
    },
    stats: () => ({ entries: responses, bytes: lru.calculatedSize, tags: index.size }),
  }
}

export type MemoryStore = ReturnType<typeof createMemoryStore>

/** To read more of them, or longer ones, or to search more entries, would cost more than it can spare. */
const mostContents = 8
const mostSearched = 64
const longestContent = 65_536

/** Contents of a few complete and short stored responses with the tag. */
export const contentsTagged = (store: MemoryStore, tag: string): readonly Buffer[] => {
  const contents: Buffer[] = []
  let searched = 0
  for (const { variants } of store.withTag(tag)) {
    for (const { status, partial, content } of variants) {
      if (status === 200 && partial === undefined && content.length <= longestContent) contents.push(content)
    }
    searched += 1
    if (contents.length >= mostContents || searched === mostSearched) break
  }
  return contents.slice(0, mostContents)
}
