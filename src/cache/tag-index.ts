/** Which cache keys carry a tag. As large as what is stored: an entry that goes takes its tags along. */
export type TagIndex = {
  readonly size: number
  add(key: string, tags: readonly string[]): void
  remove(key: string, tags: readonly string[]): void
  keys(tag: string): readonly string[]
  /** The same text as the index holds it: a tag of many entries is kept once, not once for each. */
  canonical(tag: string): string
}

type Many = { readonly tag: string; keys: string[] | Set<string> }

/**
 * A tag with one key holds the key itself: most item tags have one. A few keys are a list, since a Set costs as much as
 * a small entry.
 */
type Holders = string | Many

const longestList = 32

const withKey = (holders: Holders | undefined, key: string, tag: string): Holders => {
  if (holders === undefined || holders === key) return key
  if (typeof holders === 'string') return { tag, keys: [holders, key] }
  const { keys } = holders
  if (!Array.isArray(keys)) keys.add(key)
  else if (!keys.includes(key)) {
    // Not pushed: that would make room for a dozen more.
    holders.keys = keys.length < longestList ? keys.concat(key) : new Set(keys).add(key)
  }
  return holders
}

const withoutListed = (keys: string[], key: string): void => {
  const at = keys.indexOf(key)
  const last = keys.pop()
  // The last one takes the place of the one that goes, unless it is that one.
  if (at !== -1 && at < keys.length && last !== undefined) keys[at] = last
  else if (at === -1 && last !== undefined) keys.push(last)
}

const without = (holders: Holders, key: string): Holders | undefined => {
  if (typeof holders === 'string') return holders === key ? undefined : holders
  const { keys } = holders
  if (!Array.isArray(keys)) {
    keys.delete(key)
    return keys.size === 0 ? undefined : holders
  }
  withoutListed(keys, key)
  return keys.length === 0 ? undefined : holders
}

export const createTagIndex = (): TagIndex => {
  const index = new Map<string, Holders>()
  return {
    get size() {
      return index.size
    },
    add: (key, tags) => {
      for (const tag of tags) {
        const holders = index.get(tag)
        const grown = withKey(holders, key, tag)
        if (grown !== holders) index.set(tag, grown)
      }
    },
    remove: (key, tags) => {
      for (const tag of tags) {
        const holders = index.get(tag)
        const left = holders === undefined ? undefined : without(holders, key)
        if (left === undefined) index.delete(tag)
        else if (left !== holders) index.set(tag, left)
      }
    },
    keys: (tag) => {
      const holders = index.get(tag)
      if (holders === undefined) return []
      return typeof holders === 'string' ? [holders] : [...holders.keys]
    },
    canonical: (tag) => {
      const holders = index.get(tag)
      return holders === undefined || typeof holders === 'string' ? tag : holders.tag
    },
  }
}
