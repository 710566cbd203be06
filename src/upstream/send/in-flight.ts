/** What can be ended before its time; it keeps the number of its place among those under way, -1 outside. */
export type Abortable = { place: number; abort(reason: Error): void }

/**
 * The requests under way. A list with numbered places and no Set: V8 makes a Set that is added to and deleted from anew every
 * few dozen steps, and a table that was left behind keeps what stood in it, and the next table, until the next full collection.
 * Once one of them is old, none of the requests after it dies young: that was a sixth of what a pass-through costs.
 */
export class UnderWay<One extends Abortable> {
  readonly #all: One[] = []

  get size(): number {
    return this.#all.length
  }

  /** In no order; not to be kept. */
  get all(): readonly One[] {
    return this.#all
  }

  enter(one: One): void {
    one.place = this.#all.length
    this.#all.push(one)
  }

  /** The last one takes the place that is free now. */
  leave(one: One): void {
    const { place } = one
    if (place === -1) return
    one.place = -1
    const last = this.#all.pop()
    if (last === undefined || last === one) return
    this.#all[place] = last
    last.place = place
  }

  abortAll(reason: Error): void {
    for (const one of [...this.#all]) one.abort(reason)
  }
}
