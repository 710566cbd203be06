import { addCount } from '../../http/bounds/counts.ts'
import { createLastNumbers, createRecentValues } from '../../http/memo.ts'
import { shortText } from '../../http/retained.ts'

/** One key of the store, with all tags that find it. */
export type TagHolder = {
  readonly key: string
  readonly tags: readonly string[]
  /** Holders are numbered as they are added; 0 where none is ever detached. */
  readonly number: number
  /** Belongs to the index: its position among the holders of each of its tags; undefined as long as all are 0. */
  positions: number[] | undefined
}

/** A list in which each holder has its position: adding to a Set was a third of what tags cost a miss (docs/decisions/0014). */
class HolderList<Holder extends TagHolder> {
  readonly tag: string
  list: Holder[]

  constructor(tag: string, list: Holder[]) {
    this.tag = tag
    this.list = list
  }
}

/** Up to this length a list has no spare capacity, which would be most of it. */
const longestTight = 32

/** The position of a tag that its holder has twice: the first one counts. */
const duplicate = -1

const setPosition = (holder: TagHolder, at: number, position: number): void => {
  if (position === 0 && holder.positions === undefined) return
  holder.positions ??= holder.tags.map(() => 0)
  holder.positions[at] = position
}

/** The last holder moves to the position that becomes free. */
const removeAt = <Holder extends TagHolder>({ list, tag }: HolderList<Holder>, position: number): void => {
  const last = list.pop()
  if (last === undefined || position === list.length) return
  list[position] = last
  setPosition(last, last.tags.indexOf(tag), position)
}

const append = <Holder extends TagHolder>(holders: HolderList<Holder>, holder: Holder, at: number): void => {
  const { list } = holders
  if (list.at(-1) === holder) {
    setPosition(holder, at, duplicate)
    return
  }
  setPosition(holder, at, list.length)
  if (list.length < longestTight) holders.list = list.concat(holder)
  else list.push(holder)
}

/** Finds holders by tag. It has entries for stored responses only: removing a holder removes its tags. */
export const createTagIndex = <Holder extends TagHolder>() => {
  // A tag with one holder, as most tags of items, refers to that holder without a list.
  const index = new Map<string, Holder | HolderList<Holder>>()
  /** By tag: the number of the last holder that was detached. */
  const detached = new Map<string, number>()

  const isDetached = (holder: Holder, tag: string): boolean => holder.number <= (detached.get(tag) ?? -1)
  const holdersOf = (tag: string): Holder[] => {
    const holders = index.get(tag)
    if (holders === undefined) return []
    return holders instanceof HolderList ? holders.list : [holders]
  }

  const addTag = (holder: Holder, tag: string, at: number): void => {
    const holders = index.get(tag)
    if (holders instanceof HolderList) append(holders, holder, at)
    else if (holders === undefined) {
      index.set(tag, holder)
      setPosition(holder, at, 0)
    } else if (holders === holder) setPosition(holder, at, duplicate)
    else {
      index.set(tag, new HolderList(tag, [holders, holder]))
      setPosition(holder, at, 1)
    }
  }
  const removeTag = (holder: Holder, tag: string, position: number): void => {
    if (position === duplicate) return
    const holders = index.get(tag)
    if (holders instanceof HolderList) removeAt(holders, position)
    const isEmpty = holders instanceof HolderList ? holders.list.length === 0 : holders === holder
    if (isEmpty) index.delete(tag)
  }
  return {
    get size() {
      return index.size
    },
    add: (holder: Holder) => {
      holder.tags.forEach((tag, at) => {
        addTag(holder, tag, at)
      })
    },
    remove: (holder: Holder) => {
      holder.tags.forEach((tag, at) => {
        if (!isDetached(holder, tag)) removeTag(holder, tag, holder.positions?.[at] ?? 0)
      })
    },
    /** Must not be changed during the iteration. */
    holders: holdersOf as (tag: string) => readonly Holder[],
    /**
     * Takes all holders of a tag from it in one step, however many there are. Each has still to be removed from its other tags;
     * until `forget`, the index knows that it was detached. `last`: the number of the holder that was added last.
     */
    detach: (tag: string, last: number): Holder[] => {
      const holders = holdersOf(tag)
      if (holders.length > 0) detached.set(tag, last)
      index.delete(tag)
      return holders
    },
    wasDetached: (holder: Holder): boolean =>
      detached.size > 0 && holder.tags.some((tag) => isDetached(holder, tag)),
    /** All holders of the tag that were detached up to this number have been removed. */
    forget: (tag: string, last: number): void => {
      if (detached.get(tag) === last) detached.delete(tag)
    },
    /** The same text as the index has it: a tag of many holders is one string in memory. */
    canonical: (tag: string) => {
      const holders = index.get(tag)
      return holders instanceof HolderList ? holders.tag : tag
    },
  }
}

/**
 * Tags of writes that have not ended, or whose outcome is unknown and which may still be carried out: no response with one of them that
 * was requested before then is stored. Bounded: with too many tags at once, no response at all is stored. Times are readings of the monotonic clock.
 */
export class QuarantinedTags {
  readonly #maxTags: number
  readonly #untilByTag = new Map<string, number>()
  /** Tags that are quarantined until they are released, with how often each is. */
  readonly #unreleasedByTag = new Map<string, number>()
  #unreleasedEverything = 0
  #everythingUntil = Number.NEGATIVE_INFINITY

  constructor(maxTags: number) {
    this.#maxTags = maxTags
  }

  get isEmpty(): boolean {
    return (
      this.#untilByTag.size === 0 &&
      this.#unreleasedByTag.size === 0 &&
      this.#unreleasedEverything === 0 &&
      this.#everythingUntil === Number.NEGATIVE_INFINITY
    )
  }

  /** Until the returned function is called, once. */
  addUntilReleased(tags: readonly string[]): () => void {
    if (this.#unreleasedByTag.size + tags.length > this.#maxTags || tags.includes('')) {
      this.#unreleasedEverything += 1
      return () => {
        this.#unreleasedEverything -= 1
      }
    }
    const texts = tags.map(shortText)
    for (const tag of texts) addCount(this.#unreleasedByTag, tag, 1)
    return () => {
      for (const tag of texts) addCount(this.#unreleasedByTag, tag, -1)
    }
  }

  addUntil(tags: readonly string[], now: number, until: number): void {
    if (until <= this.#everythingUntil) return
    // Only when it is full: a search for expired tags costs more than the write that adds some.
    if (this.#untilByTag.size + tags.length > this.#maxTags) this.#removeExpired(now)
    if (this.#untilByTag.size + tags.length > this.#maxTags || tags.includes('')) {
      this.#everythingUntil = Math.max(this.#everythingUntil, until)
      return
    }
    for (const long of tags) {
      const tag = shortText(long)
      this.#untilByTag.set(tag, Math.max(until, this.#untilByTag.get(tag) ?? until))
    }
  }

  /** Was any of the tags quarantined at that time? */
  includes(tags: readonly string[], at: number): boolean {
    return (
      this.#everythingUntil > at ||
      this.#unreleasedEverything > 0 ||
      (this.#untilByTag.size > 0 && tags.some((tag) => (this.#untilByTag.get(shortText(tag)) ?? at) > at)) ||
      (this.#unreleasedByTag.size > 0 && tags.some((tag) => this.#unreleasedByTag.has(shortText(tag))))
    )
  }

  #removeExpired(now: number): void {
    for (const [tag, until] of this.#untilByTag) {
      if (until > now) continue
      this.#untilByTag.delete(tag)
      // For responses that are still on their way.
      this.#everythingUntil = Math.max(this.#everythingUntil, until)
    }
  }
}

type OwnNumbers = Map<string, { readonly at: number; readonly before: number }>

/** Requests, and tags of each, whose invalidations are known to show in their own responses. */
const maxRequests = 128
const maxOwnTags = 1_000

/**
 * When each tag was last invalidated, as a number that grows with every invalidation: a response that was requested before must not
 * be stored. Bounded in tags and in their length: a tag that is not among the last `maxTags` counts as invalidated.
 */
export class InvalidationLog {
  readonly #numbers: {
    set: (long: string, number: number) => void
    setAll: (number: number) => void
    restart: (number: number) => void
    of: (text: string) => number
    isAfter: (texts: readonly string[], number: number) => boolean
  }
  /** By request whose response shows what it has invalidated: the numbers that its tags got by it, and those before. */
  readonly #byRequest = createRecentValues<OwnNumbers>(maxRequests)
  #sequence = 0

  constructor(maxTags: number) {
    this.#numbers = createLastNumbers(maxTags)
  }

  /** Number of the last invalidation. */
  get sequence(): number {
    return this.#sequence
  }

  /** `request`: the one whose response shows the state after it. */
  record(tags: readonly string[], request?: string): void {
    this.#sequence += 1
    if (request !== undefined) this.#recordOwn(tags, request)
    for (const tag of tags) this.#numbers.set(tag, this.#sequence)
  }

  /** Everything counts as invalidated. */
  recordAll(): void {
    this.#sequence += 1
    this.#numbers.restart(this.#sequence)
  }

  /** Was any of the tags invalidated after `since`, other than by the request itself, or may it have been? */
  invalidatedSince(tags: readonly string[], since: number, request?: string): boolean {
    if (this.#sequence <= since || !this.#numbers.isAfter(tags, since)) return false
    const own = request === undefined ? undefined : this.#byRequest.get(request)
    if (own === undefined) return true
    return tags.some((tag) => {
      const [number, known] = [this.#numbers.of(tag), own.get(tag)]
      return number > since && (known?.at !== number || known.before > since)
    })
  }

  #recordOwn(tags: readonly string[], request: string): void {
    const own: OwnNumbers = this.#byRequest.get(request) ?? new Map()
    // It then counts as superseded by itself.
    if (own.size + tags.length > maxOwnTags) return
    for (const tag of tags) {
      const [before, known] = [this.#numbers.of(tag), own.get(tag)]
      own.set(tag, { at: this.#sequence, before: known?.at === before ? known.before : before })
    }
    this.#byRequest.set(request, own)
  }
}
