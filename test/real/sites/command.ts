// npm run sites: what a write leaves of what is stored, on real WordPress with real plugins. `-- shop,languages` names sets of plugins
// (test/real/sites/archives.ts) and `-- yoast+acf` single plugins; CORE=6.9.7 another WordPress, COMPANION=with or without one of both,
// SHOW_DROPPED=1 also what each write has dropped. A run that was interrupted goes on where it was: RESUME=1.
import { appendFileSync, existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Core, cores, pluginSets, reasonWithoutArchives } from './archives.ts'
import { line, measureSite, type SiteMeasurement } from './measure.ts'

const reason = reasonWithoutArchives()
if (reason !== undefined) throw new Error(reason)

const results = join(dirname(fileURLToPath(import.meta.url)), '../../../bench/results/sites.jsonl')
mkdirSync(dirname(results), { recursive: true })
if (process.env['RESUME'] !== '1') rmSync(results, { force: true })
const done: readonly SiteMeasurement[] = existsSync(results)
  ? readFileSync(results, 'utf8')
      .split('\n')
      .filter((text) => text !== '')
      .map((text) => JSON.parse(text) as SiteMeasurement)
  : []

const asked = process.argv[2]?.split(',').map((name) => name.replaceAll('+', ','))
const sets = asked ?? Object.keys(pluginSets)
const core = (process.env['CORE'] ?? cores[0]) as Core
const only = process.env['COMPANION']
const withCompanions = [false, true].filter((one) => only === undefined || one === (only === 'with'))

let stale = 0
for (const set of sets) {
  for (const withCompanion of withCompanions) {
    const known = done.find(
      (one) => one.set === set && one.core === core && one.withCompanion === withCompanion,
    )
    const measurement = known ?? (await measureSite(set, withCompanion, core))
    if (known === undefined) appendFileSync(results, `${JSON.stringify(measurement)}\n`)
    process.stdout.write(`${line(measurement)}\n`)
    for (const { write, stale: older, dropped } of measurement.writes) {
      stale += older.length
      for (const path of older) process.stdout.write(`  OLDER after ${write}: ${path}\n`)
      if (process.env['SHOW_DROPPED'] === '1')
        process.stdout.write(`  ${write} dropped ${dropped.join(' ')}\n`)
    }
  }
}
process.exitCode = stale === 0 ? 0 : 1
