import { forAll } from '../for-all.ts'
import type { Random } from '../promise-fuzz/random.ts'
import { ask, askWordPress, type GraphqlWorld, type Shown } from './world.ts'

export type Count = { unchanged: number; left: number }

export const shareOf = ({ unchanged, left }: Count): number => (unchanged === 0 ? 1 : left / unchanged)

/** Of the responses that are fetched anew, those that are compared too. A stale one can hardly be among them. */
const shareOfFetched = 0.2

/** What writes leave of the stored responses to these queries, and whether any is older than WordPress. */
export class Comparison {
  readonly world: GraphqlWorld
  readonly queries: readonly string[]
  readonly older: string[] = []
  /** Responses that were compared with what WordPress says. */
  compared = 0
  readonly #random: Random
  readonly #byWrite = new Map<string, Count>()
  #before: readonly Shown[] = []

  constructor(world: GraphqlWorld, queries: readonly string[], random: Random) {
    this.world = world
    this.queries = queries
    this.#random = random
  }

  /** Reads all queries twice; returns how many are stored then. */
  async fill(): Promise<number> {
    await this.#read()
    this.#before = await this.#read()
    return this.#before.filter(({ isHit }) => isHit).length
  }

  /** To be called when the write is acknowledged: compares each response that is still stored, and stores the others anew. */
  async after(write: string): Promise<void> {
    const shown = await this.#read()
    const chosen = [...shown.entries()].filter(
      ([, { isHit }]) => isHit || this.#random.chance(shareOfFetched),
    )
    const asked = chosen.map(([at]) => this.queries[at] ?? '')
    const said = await askWordPress(this.world, asked)
    this.compared += chosen.length
    for (const [nth, [, { result }]] of chosen.entries())
      if (result !== said[nth]) this.older.push(`${write}: ${asked[nth]} ${result}, now ${said[nth]}`)
    this.#count(write, shown)
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

  #read(): Promise<readonly Shown[]> {
    return forAll(this.queries, (query) => ask(this.world, query))
  }

  #count(write: string, shown: readonly Shown[]): void {
    const count = this.#byWrite.get(write) ?? { unchanged: 0, left: 0 }
    this.#byWrite.set(write, count)
    for (const [at, { isHit, result }] of shown.entries()) {
      if (this.#before[at]?.result !== result) continue
      count.unchanged += 1
      if (isHit) count.left += 1
    }
  }
}
