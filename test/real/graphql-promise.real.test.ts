import { expect, test } from 'vitest'
import { rowsOf } from '../support/breadth.ts'
import { shareOf } from './graphql/compare.ts'
import { type CacheName, runRandomly } from './graphql/run-randomly.ts'
import { describeSite } from './sites/describe-site.ts'

/** `npm run fuzz:graphql` makes thousands, in many runs; another SEED makes other writes. */
const numberOf = (name: string, otherwise: number): number => Number(process.env[name] ?? otherwise)
const [writes, queries, seed] = [numberOf('WRITES', 5), numberOf('QUERIES', 10), numberOf('SEED', 20_261_129)]

const tell = (line: string): void => {
  process.stdout.write(`${line}\n`)
}

describeSite('WPGraphQL on a real WordPress', () => {
  test.each(rowsOf<CacheName>(['companion', 'no companion'], 2))(
    'after each of many writes no stored query is older than what WordPress says (%s)',
    async (cache) => {
      const { older, firstOlder, kept, byWrite, compared } = await runRandomly(
        { cache, seed, writes, queries },
        tell,
      )
      const share = shareOf(kept)
      tell(`${cache}, seed ${seed}: ${writes} writes, ${compared} compared, ${older} older`)
      tell(`${share.toFixed(3)} of the unchanged left (${byWrite.join('; ')})`)
      expect(firstOlder).toEqual([])
      // The first visit of the administration writes settings of plugins that every query reads.
      if (cache === 'companion') expect(share).toBeGreaterThan(writes < 100 ? 0.3 : 0.85)
    },
    86_400_000,
  )
})
