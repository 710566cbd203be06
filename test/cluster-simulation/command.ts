import { type ChildProcess, spawn } from 'node:child_process'
import { rm } from 'node:fs/promises'
import { availableParallelism, cpus } from 'node:os'
import { dirname } from 'node:path'
import process, { argv, execPath, exit, stdout, versions } from 'node:process'
import { createInterface } from 'node:readline'
import { bundleSimulation } from './bundle.ts'
import { huntFaults } from './hunt-faults.ts'

// npm run simulate:cluster -- --seeds N --first K [--seconds S] [--processes P]: runs the seeds K to K+N-1, or as many as P processes
// finish in S seconds of processor time each, or until SIGTERM. Exits with 1 at a read that is older than an acknowledged write, and
// prints its seed and the shortest list of actions that leads to one.
// --plant [--only TEXT] [--seeds N] [--seconds S]: plants each fault of protocol-faults.ts that was not found before, or each with that
// text in its name, and writes down the first seed that finds it.

const given = argv.slice(2)
if (given.includes('--plant')) {
  const optionOf = (name: string, otherwise: string): string =>
    given.includes(name) ? (given[given.indexOf(name) + 1] ?? otherwise) : otherwise
  await huntFaults(
    {
      only: optionOf('--only', ''),
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
const first = numberOf('--first', 1)
const processes = numberOf('--processes', 1)
const seedsOfEach = Math.ceil(numberOf('--seeds', 100) / processes)

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
    const args = ['--max-semi-space-size=64', program, ...given, ...own]
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
    writes: sumOf('writes'),
    faults: sumOf('faults'),
    seconds,
    cpuSeconds: Math.round(sumOf('cpuSeconds')),
    operationsPerSecond: Math.round(sumOf('steps') / seconds),
    machine: `${availableParallelism()} × ${cpus()[0]?.model ?? 'unknown'}, Node ${versions.node}`,
  })}\n`,
)
exit(violations > 0 ? 1 : 0)
