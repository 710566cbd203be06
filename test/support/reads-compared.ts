import { execFileSync } from 'node:child_process'
import { readFile, writeFile } from 'node:fs/promises'
import { availableParallelism, cpus } from 'node:os'
import { versions } from 'node:process'

/** What a run has compared. `faults`: those that happened in it, writes not included. `older`: reads that broke the promise. */
type Compared = {
  readonly seeds: number
  readonly reads: number
  /** Of `reads`, those that a cache answered. */
  readonly hits: number
  readonly writes: number
  readonly faults: number
  readonly older: number
  readonly seconds: number
}

/** `simulation`: the shipped code with simulated time, sockets and Redis; `wordpress`: a real one behind real sockets. */
type RunKind = 'simulation' | 'wordpress'

/** One row of the ledger: all runs of one kind with one commit on one day and machine. */
export type LedgerRow = Compared & {
  readonly run: RunKind
  readonly date: string
  readonly commit: string
  readonly machine: string
  readonly firstSeed: number
  /** The next run of this kind goes on with it. */
  readonly nextSeed: number
}

const file = new URL('../../docs/evidence/reads-compared.json', import.meta.url)

export const readLedger = async (): Promise<readonly LedgerRow[]> =>
  JSON.parse(await readFile(file, 'utf8').catch(() => '[]')) as readonly LedgerRow[]

export const nextSeedOf = (ledger: readonly LedgerRow[], run: RunKind, otherwise: number): number =>
  Math.max(otherwise, ...ledger.filter((row) => row.run === run).map(({ nextSeed }) => nextSeed))

const sum = (one: LedgerRow, other: LedgerRow): LedgerRow => ({
  ...other,
  firstSeed: Math.min(one.firstSeed, other.firstSeed),
  nextSeed: Math.max(one.nextSeed, other.nextSeed),
  seeds: one.seeds + other.seeds,
  reads: one.reads + other.reads,
  hits: one.hits + other.hits,
  writes: one.writes + other.writes,
  faults: one.faults + other.faults,
  older: one.older + other.older,
  seconds: Math.round(one.seconds + other.seconds),
})

/** The ledger with one more run. */
export const withRun = (ledger: readonly LedgerRow[], row: LedgerRow): readonly LedgerRow[] => {
  const isSame = (one: LedgerRow): boolean =>
    one.run === row.run && one.commit === row.commit && one.date === row.date && one.machine === row.machine
  const same = ledger.find(isSame)
  if (same === undefined) return [...ledger, row]
  return ledger.map((one) => (one === same ? sum(one, row) : one))
}

/** To be asked before a run begins. */
export const currentCommit = (): string =>
  execFileSync('git', ['rev-parse', '--short=8', 'HEAD'], { encoding: 'utf8' }).trim()

type Run = Pick<LedgerRow, 'run' | 'firstSeed' | 'commit'>

/** Writes a run down in the ledger. */
export const recordRun = async ({ run, firstSeed, commit }: Run, compared: Compared): Promise<void> => {
  const row: LedgerRow = {
    ...{ run, firstSeed, nextSeed: firstSeed + compared.seeds },
    ...compared,
    date: new Date().toISOString().slice(0, 10),
    commit,
    machine: `${availableParallelism()} × ${(cpus()[0]?.model ?? 'unknown').trim()}, Node ${versions.node}`,
  }
  await writeFile(file, `${JSON.stringify(withRun(await readLedger(), row), undefined, 2)}\n`)
}

const grouped = (number: number): string => number.toLocaleString('en')

const total = (rows: readonly LedgerRow[], of: 'reads' | 'faults' | 'older' | 'seeds' | 'seconds'): number =>
  rows.reduce((all, row) => all + row[of], 0)

const latest = (rows: readonly LedgerRow[]): string =>
  rows
    .map(({ date }) => date)
    .sort()
    .at(-1) ?? ''

/** The line of README about the simulation. */
export const readmeLine = (ledger: readonly LedgerRow[]): string => {
  const rows = ledger.filter(({ run }) => run === 'simulation')
  const secondsPerSeed = (total(rows, 'seconds') / total(rows, 'seeds')).toFixed(2)
  return `The code that ships, with simulated time, connections, Redis and failing processes: **${grouped(total(rows, 'reads'))} reads compared under ${grouped(total(rows, 'faults'))} faults, ${grouped(total(rows, 'older'))} older**; a seed replays in ${secondsPerSeed} s (run of ${latest(rows)}). [What is simulated, and what is not](docs/evidence/promise.md#simulated).`
}

/** With 95 % confidence fewer than this share are older, where none of `reads` is (the rule of three). */
const boundOf = ({ reads, older }: LedgerRow): string =>
  older > 0 ? '' : (3 / reads).toExponential(1).replace(/e-(\d+)/, '·10^-$1')

const whatOf: Readonly<Record<RunKind, string>> = {
  simulation: 'simulated cluster',
  wordpress: 'real WordPress, random writes',
}

/** The table of all runs. */
export const ledgerTable = (ledger: readonly LedgerRow[]): readonly string[] => [
  '|what|seeds|reads|of them hits|writes|faults|older|with 95 % confidence fewer than|commit|date|machine|',
  '|---|---|---|---|---|---|---|---|---|---|---|',
  ...ledger.map((row) => {
    const seeds = `${row.firstSeed} to ${row.nextSeed - 1}`
    const numbers = [row.reads, row.hits, row.writes, row.faults, row.older].map(grouped)
    const bound = row.run === 'simulation' ? 'not counted' : boundOf(row)
    return `|${[whatOf[row.run], seeds, ...numbers, bound, row.commit, row.date, row.machine].join('|')}|`
  }),
]
