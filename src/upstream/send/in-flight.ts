/** A request that can be aborted; `index` is its position in the list, -1 if it is not in it. */
export type Abortable = { index: number; abort(reason: Error): void }

/** The requests in flight. A list instead of a Set, whose tables would keep old requests alive: docs/decisions/0013. */
export class InFlight<One extends Abortable> {
  readonly #all: One[] = []

  get size(): number {
    return this.#all.length
  }

  /** Unordered; the next call changes it. */
  get all(): readonly One[] {
    return this.#all
  }

  add(one: One): void {
    one.index = this.#all.length
    this.#all.push(one)
  }

  /** The last request moves to the free position. */
  remove(one: One): void {
    const { index } = one
    if (index === -1) return
    one.index = -1
    const last = this.#all.pop()
    if (last === undefined || last === one) return
    this.#all[index] = last
    last.index = index
  }

  abortAll(reason: Error): void {
    for (const one of [...this.#all]) one.abort(reason)
  }
}
