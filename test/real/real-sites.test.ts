import { expect, test } from 'vitest'
import { isAll } from '../support/breadth.ts'
import { type PluginSet, pluginSets, shortSets } from './sites/archives.ts'
import { describeSite } from './sites/describe-site.ts'
import { line, measureSite } from './sites/measure.ts'

/** Every set, on both versions of WordPress and with SHOW_DROPPED: `npm run sites`. */
const sets: readonly PluginSet[] = isAll ? (Object.keys(pluginSets) as PluginSet[]) : shortSets

describeSite('a real WordPress with real plugins', () => {
  test.each(sets.flatMap((set) => [[set, false] as const, [set, true] as const]))(
    '%s: what each of six writes leaves is not older than what WordPress says (companion: %s)',
    async (set, withCompanion) => {
      const measurement = await measureSite(set, withCompanion)
      process.stdout.write(`${line(measurement)}\n`)
      const older = measurement.writes.flatMap(({ write, stale }) => stale.map((path) => `${write}: ${path}`))
      expect(older).toEqual([])
      expect(measurement.storedAtSecond).toBeGreaterThan(0)
    },
    600_000,
  )
})
