import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { latencyTurns } from './latency.ts'
import { pairedRounds } from './pairs.ts'
import { factsOf, type Scenario } from './scenarios.ts'
import { median, quantile } from './statistics.ts'

const execute = promisify(execFile)

type Row = {
  readonly scenario: Scenario
  readonly against: string
  /** Of the response time at half of what this build can serve; otherwise of the requests in the same processor time. */
  readonly p99?: true
}

const hits = (...scenarios: readonly Scenario[]): readonly Row[] =>
  scenarios.map((scenario) => ({ scenario, against: factsOf(scenario).yardstick }))

/** Each configuration of docs/evidence/performance.md. */
export const rows: readonly Row[] = [
  ...hits('hit', 'not-modified', 'refusal', 'zipf'),
  { scenario: 'hit', against: 'nginx' },
  { scenario: 'hit', against: 'varnish' },
  ...hits('hit-cors', 'hit-cors-none', 'hit-headers', 'hit-limits', 'hit-all'),
  ...hits('hit-tls', 'hit-h2', 'not-modified-h2'),
  ...hits('miss', 'miss-site', 'pass', 'upload', 'write'),
  { scenario: 'hit', against: 'nginx', p99: true },
  { scenario: 'pass', against: 'http-proxy', p99: true },
]

/** The ratio with its quartiles, and what a request takes here: µs of processor time, or ms at the 99th percentile. */
type Result = { readonly ratios: readonly number[]; readonly own: number }

/** One row with the Node that runs this, as JSON. */
export async function printRow(index: number, pairs: number): Promise<void> {
  const row = rows[index]
  if (row === undefined) throw new RangeError(`no row ${index}`)
  const { scenario, against, p99 } = row
  const result: Result = p99 ? await p99Of(against, scenario, pairs) : await costOf(against, scenario, pairs)
  console.log(JSON.stringify(result))
}

const costOf = async (against: string, scenario: Scenario, pairs: number): Promise<Result> => {
  const rounds = await pairedRounds(against, scenario, pairs)
  return {
    ratios: rounds.map(([mine, theirs]) => mine.perProcessorSecond / theirs.perProcessorSecond),
    own: median(rounds.map(([{ perProcessorSecond }]) => 1e6 / perProcessorSecond)),
  }
}

const p99Of = async (against: string, scenario: Scenario, pairs: number): Promise<Result> => {
  const turns = await latencyTurns(against, scenario, pairs)
  return {
    ratios: turns.map(([mine, theirs]) => mine.p99Ms / theirs.p99Ms),
    own: median(turns.map(([{ p99Ms }]) => p99Ms)),
  }
}

/** What docs/evidence/performance.md says beside the table, by this Node: contracts beside each other, writes on a full cache, starts. */
const beside = ['contracts', 'writes', 'startup'] as const

/**
 * The table of docs/evidence/performance.md: each row with each of the Nodes (paths of programs), in a process of its own, so that
 * one that cannot be measured leaves the others; then what is beside the table. BENCH_SCENARIOS=hit-h2,pass: some of the rows.
 */
export async function benchTable(pairs = 4, nodes: readonly string[] = []): Promise<void> {
  const programs = [process.execPath, ...nodes]
  const versions = await Promise.all(
    programs.map(async (node) => (await execute(node, ['-v'])).stdout.trim()),
  )
  const columns = versions.map((version) => `Node ${version.slice(1)}|`).join('own|')
  console.log(`|scenario|against|${columns}own|\n|---|---|${'---|'.repeat(2 * programs.length)}`)
  const chosen = process.env['BENCH_SCENARIOS']?.split(',')
  for (const [index, { scenario, against, p99 }] of rows.entries()) {
    if (chosen?.includes(scenario) === false) continue
    const cells: string[] = []
    for (const node of programs) cells.push(await cellsOf(node, index, pairs, p99 === true ? 'ms' : 'µs'))
    const title = `${p99 === true ? 'p99 at half of saturation: ' : ''}${factsOf(scenario).title}`
    console.log(`|${title}|${against}|${cells.join('')}`)
  }
  if (chosen !== undefined) return
  for (const name of beside) {
    const file = fileURLToPath(new URL(`./${name}.ts`, import.meta.url))
    const ended = await execute(process.execPath, ['--import', 'tsx', file]).catch((error: unknown) => {
      console.error(error)
      return undefined
    })
    console.log(`\n${name}\n${ended?.stdout.trim() ?? '–'}`)
  }
}

/** Quartiles further apart than this share of the median: the median says little. */
const widest = 0.15

const run = fileURLToPath(new URL('./run.ts', import.meta.url))

const cellsOf = async (node: string, row: number, pairs: number, unit: string): Promise<string> => {
  try {
    const { stdout } = await execute(node, ['--import', 'tsx', run, 'row', String(row), String(pairs)])
    const { ratios, own } = JSON.parse(stdout.trim().split('\n').at(-1) ?? '') as Result
    const [low, high] = [quantile(ratios, 0.25), quantile(ratios, 0.75)]
    const middle = median(ratios)
    const width = (high - low) / middle > widest ? ', wide' : ''
    return `${middle.toFixed(2)} (${low.toFixed(2)}–${high.toFixed(2)}${width})|${own.toFixed(1)} ${unit}|`
  } catch (error) {
    console.error(error)
    return '–|–|'
  }
}
