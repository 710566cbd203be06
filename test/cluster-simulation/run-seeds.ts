import { appendFileSync } from 'node:fs'
import process, { argv, cpuUsage, hrtime, stdout } from 'node:process'
import { parseArgs } from 'node:util'
import { type Plan, planOf } from './plan.ts'
import { runPlan } from './run-plan.ts'
import { shrink, told } from './shrink.ts'

const { values } = parseArgs({
  args: argv.slice(2),
  options: {
    first: { type: 'string', default: '1' },
    seeds: { type: 'string', default: '100' },
    /** Time of the processor, which depends less on what else the machine does; 0: as long as it takes. */
    seconds: { type: 'string', default: '0' },
    /** Prints all steps of each seed. */
    trace: { type: 'boolean', default: false },
    /** Prints a digest of all steps of each seed. */
    digests: { type: 'boolean', default: false },
    /** A file to which each read and each write of each seed is appended (history.ts). */
    history: { type: 'string', default: '' },
    /** A failure is not made shorter. */
    'as-is': { type: 'boolean', default: false },
    /** Passes over seeds without it: `front`, `next`, `graphql`, or a contract. */
    with: { type: 'string', default: '' },
    /** For the command, which starts several of these programs. */
    processes: { type: 'string' },
  },
})

const out = (text: string): void => {
  stdout.write(`${text}\n`)
}

const began = hrtime.bigint()
const secondsSince = (): number => Number(hrtime.bigint() - began) / 1e9
const begunWith = cpuUsage()
const cpuSeconds = (): number => {
  const { user, system } = cpuUsage(begunWith)
  return (user + system) / 1e6
}
const longest = Number(values.seconds) || Number.POSITIVE_INFINITY
const first = Number(values.first)
const totals = { steps: 0, reads: 0, hits: 0, frontHits: 0, writes: 0, batches: 0, faults: 0 }
let seeds = 0
let code = 0
let isStopped = false
// Such as more listeners than anything has: what is never removed fills the memory of a gateway.
process.on('warning', (warning) => {
  code = 1
  out(`warning: ${warning.stack}`)
})
for (const signal of ['SIGINT', 'SIGTERM'] as const)
  process.on(signal, () => {
    isStopped = true
  })

/** What the plan of a seed has, beside what all have. */
const partsOf = ({ settings: { contract, frontKind, hasFront, hasGraphql } }: Plan): readonly string[] => [
  contract,
  ...(hasGraphql ? ['graphql'] : []),
  ...(hasFront ? ['front', frontKind] : []),
]

const fail = async (seed: number, violation: string): Promise<void> => {
  code = 1
  out(`seed ${seed}: ${violation}`)
  if (values['as-is']) return
  const plan = await shrink(planOf(seed))
  const shortest = await runPlan(plan, true)
  out(JSON.stringify({ ...plan, actions: plan.actions.length }))
  out(`actions:\n${plan.actions.map(told).join('\n')}`)
  out(`steps:\n${shortest.trace.join('\n')}`)
  out(`${shortest.violation}`)
}

for (
  let seed = first;
  seed < first + Number(values.seeds) && cpuSeconds() < longest && !isStopped;
  seed += 1
) {
  const plan = planOf(seed)
  if (values.with !== '' && !partsOf(plan).includes(values.with)) continue
  const outcome = await runPlan(plan, values.trace, values.history !== '')
  if (outcome.history.length > 0) appendFileSync(values.history, outcome.history.join(''))
  seeds += 1
  for (const name of ['steps', 'reads', 'hits', 'frontHits', 'writes', 'batches', 'faults'] as const)
    totals[name] += outcome[name]
  if (values.digests) out(`${seed} ${outcome.digest}`)
  if (values.trace) out(outcome.trace.join('\n'))
  if (outcome.violation === undefined) continue
  await fail(seed, outcome.violation)
  break
}
const cpu = cpuSeconds()
out(
  JSON.stringify({
    seeds,
    violations: code,
    ...totals,
    seconds: Math.round(secondsSince() * 10) / 10,
    cpuSeconds: Math.round(cpu * 10) / 10,
    stepsPerCpuSecond: Math.round(totals.steps / cpu),
  }),
)
process.exitCode = code
