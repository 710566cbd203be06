import type { StoredResponse } from './stored-response.ts'

/** The most changes that wait: an entry that is looked at is compared with each. */
const maxWaiting = 1_000
/** The most comparisons of an entry with a change in one turn. Each is by the key, and all together take some tenths of a millisecond. */
const comparedPerTurn = 1_000

/** A change of all that is stored under some keys. */
export type WideChange = {
  readonly isMeant: (key: string) => boolean
  /** Returns what remains of the variants. */
  readonly change: (variants: readonly StoredResponse[]) => readonly StoredResponse[]
  /** Called when all entries have been compared, with the number of responses concerned. */
  readonly ended: (count: number) => void
}

/** An entry of the store, for which `apply` must be called before anyone sees its variants. */
export type ChangedLater = {
  readonly key: string
  variants: readonly StoredResponse[]
  /** The number of the last change that it was compared with. */
  compared: number
}

type Waiting = { readonly change: WideChange; count: number }

/**
 * Changes of all that is stored under some keys: each holds at once, however much is stored, since an entry is compared with those that
 * are new to it before anyone sees it. One walk at a time compares the entries that nobody looks at with all that wait.
 */
export class WideChanges<Entry extends ChangedLater> {
  /** The oldest is the first. */
  #waiting: Waiting[] = []
  #last = 0
  /** `last` is the number of the last change that the walk ends. */
  #walk: { readonly entries: Entry[]; readonly last: number } | undefined

  /** The number of the last change, which an entry that is stored now gets. */
  get last(): number {
    return this.#last
  }

  get areWaiting(): boolean {
    return this.#waiting.length > 0
  }

  get areTooMany(): boolean {
    return this.#waiting.length >= maxWaiting
  }

  add(change: WideChange): void {
    this.#last += 1
    this.#waiting.push({ change, count: 0 })
  }

  /** Returns with how many changes `apply` compares the entry. */
  comparisons({ compared }: Entry): number {
    return Math.min(this.#waiting.length, this.#last - compared)
  }

  /** Returns how many of its responses are removed. */
  apply(entry: Entry): number {
    if (entry.compared === this.#last) return 0
    const before = entry.variants.length
    const first = this.#waiting.length - this.comparisons(entry)
    entry.compared = this.#last
    for (let at = first; at < this.#waiting.length && entry.variants.length > 0; at += 1) {
      const waiting = this.#waiting[at] as Waiting
      if (!waiting.change.isMeant(entry.key)) continue
      waiting.count += entry.variants.length
      entry.variants = waiting.change.change(entry.variants)
    }
    return before - entry.variants.length
  }

  /** Returns some entries to be looked at next, at most `max`. `all` returns what is stored when a walk begins. */
  next(all: () => Entry[], max: number): readonly Entry[] {
    if (this.#waiting.length === 0) return []
    this.#walk ??= { entries: all(), last: this.#last }
    return this.#walk.entries.splice(-Math.min(max, Math.ceil(comparedPerTurn / this.#waiting.length)))
  }

  /** Must be called when those entries have been looked at. */
  looked(): void {
    if (this.#walk === undefined || this.#walk.entries.length > 0) return
    const { last } = this.#walk
    this.#walk = undefined
    this.#end(this.#waiting.length - (this.#last - last))
  }

  /** Must be called when nothing is stored any more. */
  clear(): void {
    this.#walk = undefined
    this.#end(this.#waiting.length)
  }

  #end(count: number): void {
    for (const { change, count: concerned } of this.#waiting.splice(0, count)) change.ended(concerned)
  }
}
