/** What stands in the table; `next` is the table's own. */
export type Joining<Self> = {
  readonly key: string
  /** Secondary key, where the selecting fields were already known; '' otherwise. */
  readonly variant: string
  next: Self | undefined
}

/** Chains stay short as long as fewer are under way. */
const chains = 1024

/** Of long keys some characters will do: who aims at one chain makes it as long as what is under way, and no longer. */
const chainOf = (key: string): number => {
  const step = 1 + (key.length >> 6)
  let hash = key.length
  for (let i = key.length - 1; i >= 0; i -= step) hash = (Math.imul(hash, 31) + key.charCodeAt(i)) | 0
  return hash & (chains - 1)
}

/**
 * What later readers of a key may join. No Map, for the reason that under-way.ts of the upstream room has no Set: the tables that a
 * Map leaves behind kept each forward alive until the next full collection, and two fifths of what a miss left to the collector was
 * that (docs/decisions/0014).
 */
export class Joinable<One extends Joining<One>> {
  readonly #first: (One | undefined)[] = Array.from({ length: chains }, () => undefined)

  find(key: string, variant: string): One | undefined {
    let one = this.#first[chainOf(key)]
    while (one !== undefined && (one.key !== key || one.variant !== variant)) one = one.next
    return one
  }

  add(one: One): void {
    const chain = chainOf(one.key)
    one.next = this.#first[chain]
    this.#first[chain] = one
  }

  /** Nothing happens where it is not in the table. */
  remove(one: One): void {
    const chain = chainOf(one.key)
    let before: One | undefined
    let other = this.#first[chain]
    while (other !== undefined && other !== one) {
      before = other
      other = other.next
    }
    if (other !== undefined) this.#unlink(chain, before, other)
  }

  /** Number of those that were there. */
  removeAll(key: string): number {
    const chain = chainOf(key)
    let count = 0
    let before: One | undefined
    let one = this.#first[chain]
    while (one !== undefined) {
      const { next } = one
      if (one.key === key) {
        this.#unlink(chain, before, one)
        count += 1
      } else before = one
      one = next
    }
    return count
  }

  /** Number of those that were there. */
  clear(): number {
    let count = 0
    for (const first of this.#first) for (let one = first; one !== undefined; one = one.next) count += 1
    this.#first.fill(undefined)
    return count
  }

  #unlink(chain: number, before: One | undefined, one: One): void {
    if (before === undefined) this.#first[chain] = one.next
    else before.next = one.next
    one.next = undefined
  }
}
