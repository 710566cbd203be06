/** What a tag finds: a key of the store, with all tags that find it. */
export type TagHolder = {
  readonly key: string
  readonly tags: readonly string[]
  /** Written by the index alone: where it stands among the holders of each of its tags; undefined as long as all are 0. */
  places: number[] | undefined
}

/** Which holders carry a tag. As large as what is stored: an entry that goes takes its tags along. */
export type TagIndex<Holder extends TagHolder> = {
  readonly size: number
  add(holder: Holder): void
  remove(holder: Holder): void
  /** Nobody may be added or removed as long as they are looked at. */
  holders(tag: string): readonly Holder[]
  /** The same text as the index holds it: a tag of many entries is kept once, not once for each. */
  canonical(tag: string): string
}

/**
 * Holders of one tag, in a list in which each knows its place: to put a key into a Set of so many was a third of what tags cost a
 * miss (docs/decisions/0014).
 */
class Many<Holder extends TagHolder> {
  readonly tag: string
  list: Holder[]

  constructor(tag: string, list: Holder[]) {
    this.tag = tag
    this.list = list
  }
}

/** A tag with one holder is that holder: most item tags have one. */
type Holders<Holder extends TagHolder> = Holder | Many<Holder>

/** Up to here a list has no room to spare, which would be most of it. */
const longestTight = 32

/** Said twice by the same holder: the first one counts. */
const repeated = -1

const setPlace = (holder: TagHolder, at: number, place: number): void => {
  if (place === 0 && holder.places === undefined) return
  holder.places ??= holder.tags.map(() => 0)
  holder.places[at] = place
}

/** The last one takes the place of the one that goes. */
const leave = <Holder extends TagHolder>(many: Many<Holder>, place: number): void => {
  const last = many.list.pop()
  if (last === undefined || place === many.list.length) return
  many.list[place] = last
  setPlace(last, last.tags.indexOf(many.tag), place)
}

const join = <Holder extends TagHolder>(many: Many<Holder>, holder: Holder, at: number): void => {
  const { list } = many
  if (list.at(-1) === holder) {
    setPlace(holder, at, repeated)
    return
  }
  setPlace(holder, at, list.length)
  if (list.length < longestTight) many.list = list.concat(holder)
  else list.push(holder)
}

/** Makes an empty index. */
export const createTagIndex = <Holder extends TagHolder>(): TagIndex<Holder> => {
  const index = new Map<string, Holders<Holder>>()

  const add = (holder: Holder, tag: string, at: number): void => {
    const holders = index.get(tag)
    if (holders instanceof Many) join(holders, holder, at)
    else if (holders === undefined) {
      index.set(tag, holder)
      setPlace(holder, at, 0)
    } else if (holders === holder) setPlace(holder, at, repeated)
    else {
      index.set(tag, new Many(tag, [holders, holder]))
      setPlace(holder, at, 1)
    }
  }
  const remove = (holder: Holder, tag: string, place: number): void => {
    if (place === repeated) return
    const holders = index.get(tag)
    if (holders instanceof Many) leave(holders, place)
    if (holders === holder || (holders instanceof Many && holders.list.length === 0)) index.delete(tag)
  }
  return {
    get size() {
      return index.size
    },
    add: (holder) => {
      holder.tags.forEach((tag, at) => {
        add(holder, tag, at)
      })
    },
    remove: (holder) => {
      holder.tags.forEach((tag, at) => {
        remove(holder, tag, holder.places?.[at] ?? 0)
      })
    },
    holders: (tag) => {
      const holders = index.get(tag)
      if (holders === undefined) return []
      return holders instanceof Many ? holders.list : [holders]
    },
    canonical: (tag) => {
      const holders = index.get(tag)
      return holders instanceof Many ? holders.tag : tag
    },
  }
}
