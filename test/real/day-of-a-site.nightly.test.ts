import { expect, test } from 'vitest'
import { type DayOutcome, playDay } from './hit-ratio/play-day.ts'
import type { DayName } from './sites/archives.ts'
import { describeSite } from './sites/describe-site.ts'

/**
 * READS=20000 for a whole day, which must reach the goals; SEED=n to see the same again; COMPANION=off without the companion.
 * SHOW_MISSES=1 lists the reads that were no hits, SHOW_DROPPED=1 what each event has dropped, and what was reported of it.
 */
const isLong = process.env['READS'] !== undefined
const withCompanion = process.env['COMPANION'] !== 'off'
const reads = Number(process.env['READS'] ?? 2000)
const seed = Number(process.env['SEED'] ?? 2)

const tell = (line: string): void => {
  process.stdout.write(`${line}\n`)
}

const ratio = ({ hits, reads: all }: DayOutcome['all']): number => (all === 0 ? 0 : hits / all)

const report = (
  day: DayName,
  { all, REST, GraphQL, older, compared, misses, causes, left }: DayOutcome,
): void => {
  tell(
    `${day}: hit ratio ${ratio(all).toFixed(3)} of ${all.reads} reads (REST ${ratio(REST).toFixed(3)}, GraphQL ${ratio(GraphQL).toFixed(3)}), ${older.length} of ${compared} compared older`,
  )
  const changed = [...causes.values()].reduce((sum, cause) => sum + cause.changed, 0)
  tell(
    `  ${all.reads - all.hits} misses, of which ${changed} got another response than the read before; ${ratio({ reads: all.reads - changed, hits: all.hits }).toFixed(3)} of the other reads were hits`,
  )
  for (const [cause, count] of [...causes].sort(([, one], [, other]) => other.misses - one.misses))
    tell(`  ${count.misses} misses, ${count.changed} of changed responses: ${cause}`)
  for (const [name, { times: sent, before, after }] of [...left].sort())
    tell(`  ${name}: ${sent} times, ${(after / before).toFixed(3)} of the stored responses stay`)
  if (process.env['SHOW_MISSES'] === undefined) return
  for (const [shape, count] of [...misses].sort(([, one], [, other]) => other - one).slice(0, 60))
    tell(`  ${count} ${shape}`)
}

describeSite('the day of a real WordPress with the companion', () => {
  const days: readonly [DayName, number][] = [
    ['blog', 0.92],
    ['shop', 0.85],
    ['headless', 0.85],
  ]
  test.each(days)(
    `%s: of ${reads} reads beside an editor, carts, bots and cron no hit is older than what WordPress says (SEED=${seed})`,
    async (day, goal) => {
      const outcome = await playDay({ day, withCompanion, reads, seed, ...(isLong ? {} : { pages: 40 }) })
      report(day, outcome)
      expect(outcome.older).toEqual([])
      expect(outcome.all.hits).toBeGreaterThan(0)
      if (!isLong || !withCompanion) return
      expect(ratio(outcome.all)).toBeGreaterThanOrEqual(goal)
      if (outcome.GraphQL.reads > 0)
        expect(ratio(outcome.GraphQL)).toBeGreaterThan(ratio(outcome.REST) - 0.02)
    },
    86_400_000,
  )
})
