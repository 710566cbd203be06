/** A member of the table; `next` belongs to the table. */
export type FetchInFlight<Self> = {
  readonly key: string
  /** Secondary key, where the selecting headers were already known; '' otherwise. */
  readonly variant: string
  next: Self | undefined
}

/** Chains stay short as long as fewer fetches are in flight. */
const chains = 1024

/** Of a long key only some characters count: keys aimed at one chain make it as long as the number of fetches in flight, no longer. */
const chainOf = (key: string): number => {
  const step = 1 + (key.length >> 6)
  let hash = key.length
  for (let i = key.length - 1; i >= 0; i -= step) hash = (Math.imul(hash, 31) + key.charCodeAt(i)) | 0
  return hash & (chains - 1)
}

/**
 * The fetches that later readers of a key may join. A hash table of fixed length, not a Map: the tables that a growing and shrinking
 * Map leaves behind kept each fetch alive until the next full collection (docs/decisions/0014).
 */
export class InFlightTable<Fetch extends FetchInFlight<Fetch>> {
  readonly #first: (Fetch | undefined)[] = Array.from({ length: chains }, () => undefined)

  find(key: string, variant: string): Fetch | undefined {
    let fetch = this.#first[chainOf(key)]
    while (fetch !== undefined && (fetch.key !== key || fetch.variant !== variant)) fetch = fetch.next
    return fetch
  }

  add(fetch: Fetch): void {
    const chain = chainOf(fetch.key)
    fetch.next = this.#first[chain]
    this.#first[chain] = fetch
  }

  /** Does nothing for a fetch that is not in the table. */
  remove(fetch: Fetch): void {
    this.#removeWhere(fetch.key, (candidate) => candidate === fetch)
  }

  removeAll(key: string): number {
    return this.#removeWhere(key, (fetch) => fetch.key === key)
  }

  clear(): number {
    let count = 0
    for (const first of this.#first)
      for (let fetch = first; fetch !== undefined; fetch = fetch.next) count += 1
    this.#first.fill(undefined)
    return count
  }

  #removeWhere(key: string, matches: (fetch: Fetch) => boolean): number {
    const chain = chainOf(key)
    let count = 0
    let previous: Fetch | undefined
    let fetch = this.#first[chain]
    while (fetch !== undefined) {
      const { next } = fetch
      if (matches(fetch)) {
        if (previous === undefined) this.#first[chain] = next
        else previous.next = next
        fetch.next = undefined
        count += 1
      } else previous = fetch
      fetch = next
    }
    return count
  }
}
