import { createHmac, randomBytes } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import { withVaryByCoding } from '../../http/content-coding.ts'
import { type GatewayResponse, headerValue, type ResponseHead, withoutHeaders } from '../../http/message.ts'
import { type CacheRead, isPublicKey, publicKeyOf, targetKeyOf } from '../cache-read.ts'
import type { CacheEvent, NoStoreReason } from '../events.ts'
import { declaredLength } from '../fetch/fill.ts'
import { downstreamLifetimeMs, type ExchangeTimes } from '../policy/freshness.ts'
import {
  addForm,
  bytesOfForm,
  type CodedForm,
  compact,
  createIntern,
  createStoredResponse,
  heapBytesOf,
  isCodable,
  type StoredResponse,
  setForDownstream,
  setTags,
} from './stored-response.ts'
import { createTagIndex, type InvalidationLog, type TagHolder, type UnsettledTags } from './tag-index.ts'

/** `second-request`: while the cache is nearly full, a response is stored from the second request for its key on. */
export type AdmissionMode = 'always' | 'second-request'

/** Responses that are requested once must not evict those that are requested often. */
type Admission = {
  admits(key: string): boolean
}

type AdmissionOptions = {
  readonly mode: AdmissionMode
  /** Of the space for stored responses. */
  readonly usedShare: () => number
}

/** From this share on the cache is nearly full. */
const fullShare = 0.9

/** Of 4 bytes each: more keys shorten the memory of earlier ones and never enlarge it. */
const slots = 65_536

/**
 * Keeps a fingerprint of each first request in a slot, both from a salted hash, so that no client can aim at the slots of other
 * keys. A newer key overwrites the slot of an older one, which then needs another request.
 */
export const createAdmission = ({ mode, usedShare }: AdmissionOptions): Admission => {
  if (mode === 'always') return { admits: () => true }
  const salt = randomBytes(16)
  const fingerprints = new Uint32Array(slots)

  return {
    admits: (key) => {
      if (usedShare() < fullShare) return true
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

const maxPassBytes = 1_048_576
const overheadOfPass = 100
/** Long enough to help a busy key, short enough to find out that its responses have become shareable. */
const passMs = 5_000

/**
 * Keys whose last response was for one client only: requests for them are sent in parallel from the start instead of waiting for
 * each other. Bounded in bytes, because clients choose keys. `now` is a reading of the monotonic clock.
 */
export const createHitForPass = () => {
  const until = new LRUCache<string, number>({
    maxSize: maxPassBytes,
    sizeCalculation: (_, key) => key.length + overheadOfPass,
  })
  return {
    add: (key: string, now: number) => {
      until.set(key, now + passMs)
    },
    has: (key: string, now: number) => (until.get(key) ?? 0) > now,
    delete: (key: string) => {
      until.delete(key)
    },
  }
}

export type HitForPass = ReturnType<typeof createHitForPass>

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

/** To read more of them, or longer ones, or to search more entries, would cost more than it can spare. */
const maxContents = 8
const maxSearched = 64
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
    if (contents.length >= maxContents || searched === maxSearched) break
  }
  return contents.slice(0, maxContents)
}

export type CompleteResponse = { readonly head: ResponseHead; readonly content: Buffer }

/** For which read, and in which order among all that is stored. */
type StoredFor = { readonly read: CacheRead; readonly order: number }

/** What of a stored response does not follow from the response alone; the key is that of the read where it is absent. */
type StoredDetails = Pick<StoredResponse, 'upstreamTag'> &
  Partial<Pick<StoredResponse, 'key' | 'partial' | 'forms'>>

type StorageOptions = {
  readonly store: MemoryStore
  readonly log: InvalidationLog
  readonly unsettled: UnsettledTags
  readonly admission: Admission
  readonly report: (event: CacheEvent) => void
  readonly codedFrom: (read: CacheRead) => number
}

const noForms: StoredResponse['forms'] = []
const noContent = Buffer.alloc(0)

const tagsOf = (stored: StoredResponse): readonly string[] => [targetKeyOf(stored.key), ...stored.tags]

/** Was anything that the response shows invalidated after `since`, or may it have been? */
export const isSuperseded = (log: InvalidationLog, stored: StoredResponse, since: number): boolean =>
  log.invalidatedSince(tagsOf(stored), since, stored.hints?.request)

const addForDownstream = (
  { forDownstream, policy }: Pick<CacheRead, 'forDownstream' | 'policy'>,
  stored: StoredResponse,
): void => {
  if (forDownstream === undefined || stored.partial !== undefined || stored.validateAlways) return
  const lines = forDownstream(tagsOf(stored), (longestMs) =>
    downstreamLifetimeMs(stored, policy, stored.received.now, longestMs),
  )
  if (lines !== undefined) setForDownstream(stored, lines)
}

/** Turns responses into stored responses: the only way into the memory store. */
export const createResponseStorage = (options: StorageOptions) => {
  const { store, log, unsettled, admission, report, codedFrom } = options

  /** A response as it would be stored, without its tags. */
  const create = (
    { read, order }: StoredFor,
    { head, content }: CompleteResponse,
    times: ExchangeTimes,
    details?: StoredDetails,
  ): StoredResponse =>
    createStoredResponse({
      key: details?.key ?? read.key,
      head,
      content,
      partial: details?.partial,
      selecting: read,
      times,
      policy: read.policy,
      upstreamTag: details === undefined ? headerValue(head.headers, 'etag') : details.upstreamTag,
      order,
      codedFrom: codedFrom(read),
      forms: details?.forms ?? noForms,
    })

  /** Sets the tags by which it is invalidated; undefined when its target cannot have answered so. */
  const describe = (read: CacheRead, stored: StoredResponse): StoredResponse | undefined => {
    const { status, headers, content, hints } = stored
    const response = { status, headers, content, hints } as const
    setTags(stored, read.tags(response))
    return read.isReadable?.(response) === false ? undefined : stored
  }

  const doubtAbout = (stored: StoredResponse, since: number): NoStoreReason | undefined => {
    const tags = tagsOf(stored)
    if (log.invalidatedSince(tags, since, stored.hints?.request)) return 'overtaken'
    // It may show the state before a write that was carried out while it was on its way.
    return unsettled.includes(tags, stored.requestedAt) ? 'unsettled' : undefined
  }

  /** `since`: number of the last invalidation when the response was requested. Returns why it is not stored. */
  const storeIfCurrent = (
    read: Pick<CacheRead, 'forDownstream' | 'policy'>,
    stored: StoredResponse,
    since: number,
  ): NoStoreReason | undefined => {
    // Mostly nothing was invalidated meanwhile, and no tag is looked up.
    const isUndisputed = log.sequence === since && unsettled.isEmpty
    const doubt = isUndisputed ? undefined : doubtAbout(stored, since)
    if (doubt !== undefined) return doubt
    const variants = store.peek(stored.key)
    if (variants.some((variant) => variant.order > stored.order && variant.varyKey === stored.varyKey)) {
      return 'overtaken'
    }
    if (variants.length === 0 && !admission.admits(stored.key)) return 'not-admitted'
    addForDownstream(read, stored)
    return store.put(stored) ? undefined : 'too-large'
  }

  return {
    create,
    /**
     * Its facts before the content has arrived: without an entity tag made here, and with a length only where the upstream
     * sent one.
     */
    createHead: (storedFor: StoredFor, response: GatewayResponse, times: ExchangeTimes): StoredResponse => {
      const stored = create(storedFor, { head: response, content: noContent }, times)
      const declared = declaredLength(response)
      const hasTag = headerValue(response.headers, 'etag') !== undefined
      const unknown = new Set(hasTag ? ['content-length'] : ['content-length', 'etag'])
      const headers = withoutHeaders(stored.headers, unknown)
      if (declared !== undefined) headers.push('Content-Length', String(declared))
      const isCoded = isCodable(stored, declared ?? Number.MAX_SAFE_INTEGER, codedFrom(storedFor.read))
      return { ...stored, headers: isCoded ? withVaryByCoding(headers) : headers, content: noContent }
    },
    describe,
    storeIfCurrent,
    /** `describe`, then `storeIfCurrent`, and reports which. The result has its tags whether it is stored or not. */
    store: (read: CacheRead, stored: StoredResponse, since: number) => {
      const isReadable = describe(read, stored) !== undefined
      const isOutOfConfiguration = read.isOutOfConfiguration?.() === true
      const notStored = !isReadable
        ? 'unreadable'
        : isOutOfConfiguration
          ? 'overtaken'
          : storeIfCurrent(read, stored, since)
      report(
        notStored === undefined
          ? { kind: 'stored', service: read.service, bytes: stored.bytes }
          : { kind: 'not-stored', service: read.service, route: read.route, reason: notStored },
      )
      return { stored, notStored }
    },
  }
}

export type ResponseStorage = ReturnType<typeof createResponseStorage>
