import { expect, test } from 'vitest'
import { Comparison } from './graphql/compare.ts'
import { randomQueries } from './graphql/queries.ts'
import { openGraphqlWorld } from './graphql/world.ts'
import { doorsOf, writeBy } from './graphql/writes.ts'
import { createRandom } from './promise-fuzz/random.ts'
import { describeSite } from './sites/describe-site.ts'

/** `WRITES=10000 QUERIES=40 npx vitest run test/real/graphql-promise.real.test.ts` takes hours; another SEED makes other writes. */
const numberOf = (name: string, otherwise: number): number => Number(process.env[name] ?? otherwise)
const [writes, queryCount, seed] = [
  numberOf('WRITES', 5),
  numberOf('QUERIES', 16),
  numberOf('SEED', 20_261_129),
]

const tell = (line: string): void => {
  process.stdout.write(`${line}\n`)
}

describeSite('WPGraphQL on a real WordPress', () => {
  test.each([false, true])(
    'after each of many writes no stored query is older than what WordPress says (companion: %s)',
    async (withCompanion) => {
      const world = await openGraphqlWorld(withCompanion)
      const random = createRandom(seed)
      const comparison = new Comparison(world, randomQueries(random, world.ids, queryCount))
      const { queries, older } = comparison
      try {
        const stored = await comparison.fill()
        expect(stored).toBeGreaterThan(0.9 * queries.length)
        const doors = Object.entries(doorsOf(world))
        for (let nth = 1; nth <= writes && older.length < 10; nth += 1) {
          const [name, door] = random.pick(doors)
          await writeBy(world, door, random, nth)
          await comparison.after(name)
          if (nth % 100 === 0) tell(`${nth} writes, ${older.length} older, ${comparison.left.all} left`)
        }
      } finally {
        await world.stop()
      }
      const { all, byWrite } = comparison.left
      const what = `companion ${withCompanion}, seed ${seed}: ${writes} writes, ${queries.length} queries`
      tell(`${what}: ${older.length} older, ${all.toFixed(3)} of the unchanged left (${byWrite.join('; ')})`)
      expect(older).toEqual([])
      // The first visit of the administration writes settings of plugins that every query reads.
      if (withCompanion) expect(all).toBeGreaterThan(writes < 100 ? 0.3 : 0.8)
    },
    86_400_000,
  )
})
