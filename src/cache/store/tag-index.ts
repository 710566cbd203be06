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
