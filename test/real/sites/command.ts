// npm run sites: what a write leaves of what is stored, on real WordPress with real plugins. `-- shop,languages` names sets of plugins
// (test/real/sites/archives.ts) and `-- yoast+acf` single plugins; CORE=6.9.7 another WordPress, COMPANION=with or without one of both,
// SHOW_DROPPED=1 also what each write has dropped. WRITES=2000 SEED=1: as many random writes instead, through and past the gateway. A run that was interrupted goes on where it was: RESUME=1.
import { appendFileSync, existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Core, cores, pluginSets, reasonWithoutArchives } from './archives.ts'
import { line, measureSite, type SiteMeasurement } from './measure.ts'
import { writeRandomly } from './write-randomly.ts'

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

const tell = (text: string): void => {
  process.stdout.write(`${text}\n`)
}

/** The six writes of one set; how many responses were older than WordPress's own. */
const measure = async (set: string, withCompanion: boolean): Promise<number> => {
  const known = done.find(
    (one) => one.set === set && one.core === core && one.withCompanion === withCompanion,
  )
  const measurement = known ?? (await measureSite(set, withCompanion, core))
  if (known === undefined) appendFileSync(results, `${JSON.stringify(measurement)}\n`)
  tell(line(measurement))
  for (const { write, stale, dropped } of measurement.writes) {
    for (const path of stale) tell(`  OLDER after ${write}: ${path}`)
    if (process.env['SHOW_DROPPED'] === '1') tell(`  ${write} dropped ${dropped.join(' ')}`)
  }
  return measurement.writes.flatMap(({ stale }) => stale).length
}

const writes = Number(process.env['WRITES'] ?? 0)
const seed = Number(process.env['SEED'] ?? Date.now() % 1_000_000)

const runRandomly = async (set: string, withCompanion: boolean): Promise<number> => {
  const result = await writeRandomly({ set, withCompanion, writes, seed, core, tell })
  const { refused, bypassing, compared, left, older } = result
  tell(
    `${set} on ${core}, ${withCompanion ? 'with' : 'without'} the companion, seed ${seed}: ${writes} writes (${bypassing} past the gateway, ${refused} refused), ${compared} responses compared, ${(100 * left).toFixed(0)} % left in the mean, ${older.length} older`,
  )
  return older.length
}

let older = 0
for (const set of sets)
  for (const withCompanion of withCompanions)
    older += await (writes > 0 ? runRandomly : measure)(set, withCompanion)
process.exitCode = older === 0 ? 0 : 1
