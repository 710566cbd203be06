// npm run sites: what a write leaves of what is stored, on real WordPress with real plugins. `-- shop,languages` names sets of plugins
// (test/real/sites/archives.ts) and `-- yoast+acf` single plugins; CORE=6.9.7 another WordPress, COMPANION=with or without one of both,
// SHOW_DROPPED=1 also what each write has dropped. A run that was interrupted goes on where it was: RESUME=1.
// TAGS=1: only whether the companion lists all that the seven routes of core depend on, and in how many bytes.
// WRITES=2000 SEED=1: random writes, through and past the gateway, fifty to each copy of the site. Of what is left a part is compared after
// each, and all after every tenth; COMPARE=all: all after each.
import { appendFileSync, existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { checkCommandLine, words } from '../../../bench/command-line.ts'
import { type Core, cores, pluginSets, reasonWithoutArchives } from './archives.ts'
import { lessWithCompanion, line, measureSite, type SiteMeasurement } from './measure.ts'
import { describeTags, measureTags, tagFaults } from './measure-tags.ts'
import { meanShareLeft, type RandomResult, togetherOf, writeRandomly } from './write-randomly.ts'

const reason = reasonWithoutArchives()
if (reason !== undefined) throw new Error(reason)

const folder = join(dirname(fileURLToPath(import.meta.url)), '../../../bench/results')
mkdirSync(folder, { recursive: true })

/** What an interrupted run has measured; each result is a line. */
const resultsIn = <Result>(name: string) => {
  const file = join(folder, name)
  if (process.env['RESUME'] !== '1') rmSync(file, { force: true })
  const lines = existsSync(file) ? readFileSync(file, 'utf8').split('\n') : []
  return {
    done: lines.filter((text) => text !== '').map((text) => JSON.parse(text) as Result),
    add: (result: Result) => appendFileSync(file, `${JSON.stringify(result)}\n`),
  }
}

checkCommandLine('npm run sites -- [SETS | PLUGIN+PLUGIN]', {}, [words.any])
const asked = process.argv[2]?.split(',').map((name) => name.replaceAll('+', ','))
const sets = asked ?? Object.keys(pluginSets)
const core = (process.env['CORE'] ?? cores[0]) as Core
const only = process.env['COMPANION']
const writes = Number(process.env['WRITES'] ?? 0)
const seed = Number(process.env['SEED'] ?? Date.now() % 1_000_000)
const withCompanions = [false, true].filter((one) => only === undefined || one === (only === 'with'))

const tell = (text: string): void => {
  process.stdout.write(`${text}\n`)
}

const measurements = writes > 0 ? undefined : resultsIn<SiteMeasurement>('sites.jsonl')

/** Of this run, by set: what was measured without the companion. */
const measuredWithout = new Map<string, SiteMeasurement>()

/** The six writes of one set; how many responses were older than WordPress's own, and writes that leave less with the companion. */
const measure = async (set: string, withCompanion: boolean): Promise<number> => {
  const known = measurements?.done.find(
    (one) => one.set === set && one.core === core && one.withCompanion === withCompanion,
  )
  const measurement = known ?? (await measureSite(set, withCompanion, core))
  if (known === undefined) measurements?.add(measurement)
  tell(line(measurement))
  for (const { write, stale, dropped } of measurement.writes) {
    for (const path of stale) tell(`  OLDER after ${write}: ${path}`)
    if (process.env['SHOW_DROPPED'] === '1') tell(`  ${write} dropped ${dropped.join(' ')}`)
  }
  const without = measuredWithout.get(set)
  const less = without === undefined ? [] : lessWithCompanion(without, measurement)
  for (const write of less) tell(`  LESS with the companion after ${write}`)
  if (!withCompanion) measuredWithout.set(set, measurement)
  return measurement.writes.flatMap(({ stale }) => stale).length + less.length
}

/** A part of a run; it has a copy of the site and a seed of its own. */
type Part = {
  readonly run: string
  readonly nth: number
  readonly result: RandomResult
}
const parts = writes > 0 ? resultsIn<Part>('random-writes.jsonl') : undefined
const writesOfPart = 50

const percent = (share: number): string => `${(100 * share).toFixed(0)} %`

const describeRun = (run: string, result: RandomResult): string => {
  const { refused, bypassing, compared, older, kinds } = result
  const costly = Object.entries(kinds)
    .map(([kind, { writes, left }]) => ({ kind, writes, lost: writes - left, share: left / writes }))
    .sort((one, other) => other.lost - one.lost)
    .slice(0, 6)
    .map(({ kind, writes, share }) => `${kind} (${writes}) leaves ${percent(share)}`)
  return `${run}: ${result.writes} writes (${bypassing} past the gateway, ${refused} refused), ${compared} responses compared, ${percent(meanShareLeft(result))} left in the mean, ${older.length} older; most is lost by ${costly.join(', ')}`
}

const runRandomly = async (set: string, withCompanion: boolean): Promise<number> => {
  const run = `${set} on ${core}, ${withCompanion ? 'with' : 'without'} the companion, seed ${seed}`
  const results: RandomResult[] = []
  for (let nth = 0; nth * writesOfPart < writes; nth += 1) {
    const known = parts?.done.find((part) => part.run === run && part.nth === nth)?.result
    const count = Math.min(writesOfPart, writes - nth * writesOfPart)
    const result =
      known ?? (await writeRandomly({ set, withCompanion, writes: count, seed: seed + nth, core, tell }))
    if (known === undefined) parts?.add({ run, nth, result })
    results.push(result)
    tell(describeRun(run, togetherOf(results)))
  }
  return results.flatMap((result) => result.older).length
}

/** How many routes are not complete, or have more tags than they should. */
const measureTagsOnly = async (set: string): Promise<number> => {
  const routes = await measureTags(set, core)
  tell(`${set} on ${core}: ${describeTags(routes)}`)
  const found = tagFaults(routes)
  for (const fault of found) tell(`  ${fault}`)
  return found.length
}

let faults = 0
if (process.env['TAGS'] === '1') for (const set of sets) faults += await measureTagsOnly(set)
else
  for (const set of sets)
    for (const withCompanion of withCompanions)
      faults += await (writes > 0 ? runRandomly : measure)(set, withCompanion)
process.exitCode = faults === 0 ? 0 : 1
