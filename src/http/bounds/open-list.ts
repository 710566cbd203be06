/** `index`: its position in the list, -1 if it is in none. */
type Listed = { index: number }

/** Requests that come and go. A list in place of a Set, whose tables would keep old requests alive: docs/decisions/0013. */
export class OpenList<One extends Listed> {
  readonly #all: One[] = []

  get size(): number {
    return this.#all.length
  }

  /** Unordered; the next call changes it. */
  get all(): readonly One[] {
    return this.#all
  }

  add(item: One): void {
    item.index = this.#all.length
    this.#all.push(item)
  }

  /** The last one moves to the free position. */
  remove(item: One): void {
    const { index } = item
    if (index === -1) return
    item.index = -1
    const last = this.#all.pop()
    if (last === undefined || last === item) return
    this.#all[index] = last
    last.index = index
  }
}
