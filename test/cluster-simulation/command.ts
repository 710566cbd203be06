import { type ChildProcess, spawn } from 'node:child_process'
import { rm } from 'node:fs/promises'
import { availableParallelism, cpus } from 'node:os'
import { dirname } from 'node:path'
import process, { argv, execPath, exit, stdout, versions } from 'node:process'
import { createInterface } from 'node:readline'
import { checkCommandLine } from '../../bench/command-line.ts'
import { currentCommit, nextSeedOf, readLedger, recordRun } from '../support/reads-compared.ts'
import { bundleSimulation } from './bundle.ts'
import { huntFaults } from './hunt-faults.ts'
import { plantInTests } from './plant-in-tests.ts'

// npm run simulate:cluster -- --seeds N --first K [--seconds S] [--processes P]: runs the seeds K to K+N-1, or as many as P processes
// finish in S seconds of processor time each, or until SIGTERM. Exits with 1 at a read that is older than an acknowledged write, and
// prints its seed and the shortest list of actions that leads to one.
// --ledger: writes the totals down in docs/evidence/reads-compared.json, and without --first goes on behind the seeds that are there.
// --plant [--only TEXT] [--first K] [--seeds N] [--seconds S]: plants each fault of protocol-faults.ts that was not found before, or each with that
// text in its name, and writes down the first seed that finds it. --plant --by-tests [--only TEXT]: plants those that tests find, and runs
// these tests.

const usage = `npm run simulate:cluster -- [--seeds N] [--first K] [--seconds S] [--processes P] [--ledger]
npm run simulate:cluster -- --plant [--only TEXT] [--first K] [--seeds N] [--seconds S]
npm run simulate:cluster -- --plant --by-tests [--only TEXT]`
const text = { type: 'string' } as const
const flag = { type: 'boolean' } as const
checkCommandLine(usage, {
  ...{ seeds: text, first: text, seconds: text, processes: text, only: text },
  ...{ ledger: flag, plant: flag, 'by-tests': flag },
})
const given = argv.slice(2)
const optionOf = (name: string, otherwise: string): string =>
  given.includes(name) ? (given[given.indexOf(name) + 1] ?? otherwise) : otherwise
if (given.includes('--plant') && given.includes('--by-tests')) {
  const missed = await plantInTests(optionOf('--only', ''), (line) => stdout.write(`${line}\n`))
  exit(missed.length > 0 ? 1 : 0)
}
if (given.includes('--plant')) {
  await huntFaults(
    {
      only: optionOf('--only', ''),
      first: Number(optionOf('--first', '1')),
      seeds: Number(optionOf('--seeds', '100000')),
      seconds: Number(optionOf('--seconds', '60')),
    },
    (line) => stdout.write(`${line}\n`),
  )
  exit(0)
}

type Totals = { readonly [name: string]: number }

const numberOf = (name: string, otherwise: number): number => {
  const at = given.indexOf(name)
  return at < 0 ? otherwise : Number(given[at + 1])
}
const isRecorded = given.includes('--ledger')
const first = numberOf('--first', isRecorded ? nextSeedOf(await readLedger(), 'simulation', 1) : 1)
const processes = numberOf('--processes', 1)
const seedsOfEach = Math.ceil(numberOf('--seeds', 100) / processes)

const commit = isRecorded ? currentCommit() : ''
const program = await bundleSimulation()
const children: ChildProcess[] = []
for (const signal of ['SIGINT', 'SIGTERM'] as const)
  process.on(signal, () => {
    for (const child of children) child.kill(signal)
  })

/** Runs a part of the seeds; everything but its totals is printed. */
const part = (at: number): Promise<Totals> =>
  new Promise((resolve) => {
    const own = ['--first', String(first + at * seedsOfEach), '--seeds', String(seedsOfEach)]
    // Of an option that is given twice the last one counts.
    const passedOn = given.filter((option) => option !== '--ledger')
    const args = ['--max-semi-space-size=64', program, ...passedOn, ...own]
    const child = spawn(execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] })
    children.push(child)
    let totals: Totals = { violations: 1 }
    createInterface({ input: child.stdout }).on('line', (line) => {
      if (line.startsWith('{"seeds":')) totals = JSON.parse(line) as Totals
      else stdout.write(`${line}\n`)
    })
    child.on('close', () => resolve(totals))
  })

const parts = await Promise.all(Array.from({ length: processes }, (_, at) => part(at)))
await rm(dirname(program), { recursive: true })
const sumOf = (name: string): number => parts.reduce((sum, totals) => sum + (totals[name] ?? 0), 0)
const seconds = Math.max(...parts.map((totals) => totals['seconds'] ?? 0))
const violations = sumOf('violations')
stdout.write(
  `${JSON.stringify({
    seeds: sumOf('seeds'),
    operations: sumOf('steps'),
    violations,
    reads: sumOf('reads'),
    hits: sumOf('hits'),
    frontHits: sumOf('frontHits'),
    writes: sumOf('writes'),
    batches: sumOf('batches'),
    faults: sumOf('faults'),
    seconds,
    cpuSeconds: Math.round(sumOf('cpuSeconds')),
    operationsPerSecond: Math.round(sumOf('steps') / seconds),
    machine: `${availableParallelism()} × ${cpus()[0]?.model ?? 'unknown'}, Node ${versions.node}`,
  })}\n`,
)
if (isRecorded)
  await recordRun(
    { run: 'simulation', firstSeed: first, commit },
    {
      ...{ seeds: sumOf('seeds'), reads: sumOf('reads'), hits: sumOf('hits') + sumOf('frontHits') },
      ...{ writes: sumOf('writes'), faults: sumOf('faults'), older: violations },
      seconds: sumOf('cpuSeconds'),
    },
  )
exit(violations > 0 ? 1 : 0)
