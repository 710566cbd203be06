import { ask, askWordPress, type GraphqlWorld, type Shown } from './world.ts'

export type Count = { unchanged: number; left: number }

export const shareOf = ({ unchanged, left }: Count): number => (unchanged === 0 ? 1 : left / unchanged)

/** What writes leave of the stored responses to these queries, and whether any is older than WordPress. */
export class Comparison {
  readonly world: GraphqlWorld
  readonly queries: readonly string[]
  readonly older: string[] = []
  readonly #byWrite = new Map<string, Count>()
  #before: readonly Shown[] = []

  constructor(world: GraphqlWorld, queries: readonly string[]) {
    this.world = world
    this.queries = queries
  }

  /** Reads all queries twice; returns how many are stored then. */
  async fill(): Promise<number> {
    await this.#read()
    this.#before = await this.#read()
    return this.#before.filter(({ isHit }) => isHit).length
  }

  /** To be called when the write is acknowledged. */
  async after(write: string): Promise<void> {
    const shown = await this.#read()
    const now = await askWordPress(this.world, this.queries)
    const count = this.#byWrite.get(write) ?? { unchanged: 0, left: 0 }
    this.#byWrite.set(write, count)
    for (const [at, { isHit, result }] of shown.entries()) {
      const isUnchanged = this.#before[at]?.result === now[at]
      if (isUnchanged) count.unchanged += 1
      if (isUnchanged && isHit) count.left += 1
      if (result !== now[at]) this.older.push(`${write}: ${this.queries[at]} ${result}, now ${now[at]}`)
    }
    this.#before = shown
  }

  /** Of the responses that writes did not change, those that they have left in the cache; also by the kind of write. */
  get left(): { readonly all: Count; readonly byWrite: readonly string[] } {
    const counts = [...this.#byWrite.values()]
    const sum = (of: keyof Count): number => counts.reduce((total, count) => total + count[of], 0)
    return {
      all: { unchanged: sum('unchanged'), left: sum('left') },
      byWrite: [...this.#byWrite].map(([write, count]) => `${write} ${shareOf(count).toFixed(2)}`),
    }
  }

  async #read(): Promise<readonly Shown[]> {
    const all: Shown[] = []
    for (const query of this.queries) all.push(await ask(this.world, query))
    return all
  }
}
