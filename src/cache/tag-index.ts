/** Which cache keys carry a tag. As large as what is stored: an entry that goes takes its tags along. */
export type TagIndex = {
  readonly size: number
  add(key: string, tags: readonly string[]): void
  remove(key: string, tags: readonly string[]): void
  keys(tag: string): readonly string[]
}

/** A tag with one key holds the key itself: most item tags have one, and a Set costs more than the entry it is for. */
type Holders = string | Set<string>

const without = (holders: Holders, key: string): Holders | undefined => {
  if (typeof holders === 'string') return holders === key ? undefined : holders
  holders.delete(key)
  return holders.size === 0 ? undefined : holders
}

const withKey = (holders: Holders | undefined, key: string): Holders => {
  if (holders === undefined || holders === key) return key
  if (typeof holders === 'string') return new Set([holders, key])
  return holders.add(key)
}

export const createTagIndex = (): TagIndex => {
  const index = new Map<string, Holders>()
  return {
    get size() {
      return index.size
    },
    add: (key, tags) => {
      for (const tag of tags) index.set(tag, withKey(index.get(tag), key))
    },
    remove: (key, tags) => {
      for (const tag of tags) {
        const holders = index.get(tag)
        const left = holders === undefined ? undefined : without(holders, key)
        if (left === undefined) index.delete(tag)
        else index.set(tag, left)
      }
    },
    keys: (tag) => {
      const holders = index.get(tag)
      if (holders === undefined) return []
      return typeof holders === 'string' ? [holders] : [...holders]
    },
  }
}
