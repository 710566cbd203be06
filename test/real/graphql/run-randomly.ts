import { createRandom, type Random } from '../promise-fuzz/random.ts'
import { Comparison, type Count } from './compare.ts'
import { randomQueries } from './queries.ts'
import { askWordPress, type GraphqlWorld, openGraphqlWorld } from './world.ts'
import { doorsOf, writeBy } from './writes.ts'

/** The gateway with the companion or without it, or WPGraphQL Smart Cache with its object cache and no gateway. */
export const caches = ['companion', 'no companion', 'Smart Cache'] as const
export type CacheName = (typeof caches)[number]

export type RandomRun = {
  readonly cache: CacheName
  readonly seed: number
  readonly writes: number
  readonly queries: number
}

export type RandomResult = RandomRun & {
  readonly compared: number
  /** How many stored responses were older than what WordPress says. */
  readonly older: number
  readonly firstOlder: readonly string[]
  /** Of Smart Cache it is not known which responses come from it. */
  readonly kept: Count
  /** The share that each kind of write leaves; of Smart Cache, how many are older after it. */
  readonly byWrite: readonly string[]
}

/** Carries out one more write; its number makes it a change. */
type NextWrite = (nth: number) => Promise<string>

const writesOf = (world: GraphqlWorld, random: Random): NextWrite => {
  const doors = Object.entries(doorsOf(world))
  return async (nth) => {
    const [name, door] = random.pick(doors)
    await writeBy(world, door, random, nth)
    return name
  }
}

const nothing: Count = { unchanged: 0, left: 0 }

type Ports = {
  readonly world: GraphqlWorld
  readonly queries: readonly string[]
  readonly write: NextWrite
  tell(line: string): void
}

type Found = Pick<RandomResult, 'compared' | 'older' | 'firstOlder' | 'kept' | 'byWrite'>

const behindGateway = async ({ world, queries, write, tell }: Ports, run: RandomRun): Promise<Found> => {
  const comparison = new Comparison(world, queries, createRandom(run.seed))
  const stored = await comparison.fill()
  if (stored < 0.9 * queries.length) throw new Error(`only ${stored} of ${queries.length} are stored`)
  const { older } = comparison
  for (let nth = 1; nth <= run.writes; nth += 1) {
    await comparison.after(await write(nth))
    if (nth % 10 === 0) tell(`${nth} writes, ${older.length} older, ${JSON.stringify(comparison.left.all)}`)
  }
  const { all, byWrite } = comparison.left
  const { compared } = comparison
  return { compared, older: older.length, firstOlder: older.slice(0, 10), kept: all, byWrite }
}

/** Another operation has another key there: what it gets is no older than the write. */
const renamed = (queries: readonly string[], nth: number): readonly string[] =>
  queries.map((query) => `query Now${nth} ${query}`)

const behindSmartCache = async ({ world, queries, write, tell }: Ports, run: RandomRun): Promise<Found> => {
  const firstOlder: string[] = []
  const byWrite = new Map<string, number>()
  let older = 0
  await askWordPress(world, queries)
  for (let nth = 1; nth <= run.writes; nth += 1) {
    const name = await write(nth)
    const shown = await askWordPress(world, queries)
    const now = await askWordPress(world, renamed(queries, nth))
    const outdated = queries.flatMap((query, at) =>
      shown[at] === now[at] ? [] : [`${name}: ${query} ${shown[at]}, now ${now[at]}`],
    )
    older += outdated.length
    byWrite.set(name, (byWrite.get(name) ?? 0) + outdated.length)
    firstOlder.push(...outdated.slice(0, 10 - firstOlder.length))
    if (nth % 10 === 0) tell(`${nth} writes, ${older} older`)
  }
  const counts = [...byWrite].map(([name, count]) => `${name} ${count}`)
  return { compared: run.writes * queries.length, older, firstOlder, kept: nothing, byWrite: counts }
}

const openWorld = async (cache: CacheName): Promise<GraphqlWorld> => {
  if (cache !== 'Smart Cache') return openGraphqlWorld(cache === 'companion')
  const world = await openGraphqlWorld(true, ['graphql', 'graphql-cache', 'scf'])
  const { code, output } = await world.site.php(
    "update_option( 'graphql_cache_section', array( 'cache_toggle' => 'on' ) );",
  )
  if (code !== 0) throw new Error(output)
  return world
}

/** Random writes by every door of a WordPress with WPGraphQL, after each of which all queries are compared. */
export const runRandomly = async (run: RandomRun, tell: (line: string) => void): Promise<RandomResult> => {
  const world = await openWorld(run.cache)
  try {
    const random = createRandom(run.seed)
    const queries = randomQueries(random, world.ids, run.queries)
    const ports: Ports = { world, queries, write: writesOf(world, random), tell }
    const found = await (run.cache === 'Smart Cache' ? behindSmartCache : behindGateway)(ports, run)
    return { ...run, ...found }
  } finally {
    await world.stop()
  }
}
