import { execFile } from 'node:child_process'
import { readFile, rm, writeFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import { execPath } from 'node:process'
import { promisify } from 'node:util'
import { bundleSimulation, type ProtocolFault } from './bundle.ts'
import { equivalent, foundByTests } from './found-by-tests.ts'
import { protocolFaults } from './protocol-faults.ts'

const run = promisify(execFile)

type Result = {
  readonly name: string
  readonly seed: number | undefined
  readonly seconds: number
  readonly seeds: number
  /** Found with the plans of seeds as they were before the last change of them, and not looked for since for long enough. */
  readonly isFormer?: true
}

const resultsFile = new URL('./found-faults.json', import.meta.url)

const page = new URL('../../docs/evidence/planted-protocol-faults.md', import.meta.url)

/** The page with all results. */
const pageOf = (results: readonly Result[]): string => {
  const found = results.filter(({ seed }) => seed !== undefined)
  const others = results.filter(({ seed }) => seed === undefined)
  const byTests = others.flatMap(({ name }) => {
    const test = foundByTests[name]
    return test === undefined ? [] : [{ name, test }]
  })
  const former = found.filter(({ isFormer }) => isFormer === true)
  const alike = others.filter(({ name }) => name in equivalent)
  const missed = others.filter(({ name }) => !(name in equivalent) && !(name in foundByTests))
  const all = results.length - alike.length
  const share = Math.floor((100 * (found.length + byTests.length)) / all)
  return `# Faults planted in the protocol

Would the simulation of the cluster find a fault in a lease, an epoch, an order of steps, a note, a fence, a purge? Written by \`npm run simulate:cluster -- --plant\`. Each fault is a part of the text of src that is removed or weakened ([the list](../../test/cluster-simulation/protocol-faults.ts)); the command then runs seeds from 1 on, until a read is older than an acknowledged write, for at most a minute (\`--seconds\`) of processor time, the seconds in the table. It keeps what was found before; \`--only NAME\` looks for one again, \`--first SEED\` from there. A change of the plans gives each seed another meaning: look for all again, in a few minutes of a machine with nothing else to do, with \`--only :\`. What no read can show, mostly since another step guards the same, tests of single steps find: \`npm run simulate:cluster -- --plant --by-tests\` plants each and runs its test. [What is simulated](scale.md#simulated).

${all} faults: ${found.length} found by the simulation (${former.length} of them with former plans of the seeds, and not looked for or not found again since), ${byTests.length} by a test of the step, ${missed.length} not found: ${share} % found.

| fault | seed | seconds |
| --- | --- | --- |
${found.map(({ name, seed, seconds, isFormer }) => `| ${name} | ${isFormer === true ? `${seed}, former plans` : seed} | ${seconds} |`).join('\n')}

## Found by a test of the step

| fault | test |
| --- | --- |
${byTests.map(({ name, test: { file, name: title } }) => `| ${name} | [${file.split('/').at(-1)}](../../${file}): ${title} |`).join('\n')}

## Nobody can see them

| text | why |
| --- | --- |
${alike.map(({ name }) => `| ${name} | ${equivalent[name]} |`).join('\n')}
${missed.length === 0 ? '' : `\n## Not found\n\n| fault | seeds |\n| --- | --- |\n${missed.map(({ name, seeds }) => `| ${name} | ${seeds} |`).join('\n')}\n`}`
}

/** What the last hunt has found. */
export const readResults = async (): Promise<readonly Result[]> =>
  JSON.parse(await readFile(resultsFile, 'utf8').catch(() => '[]')) as readonly Result[]

const parts: Readonly<Record<string, string>> = {
  front: 'front',
  'front: next': 'next',
  graphql: 'graphql',
  batch: 'site',
}

/** What a seed needs to find a fault of that name: the others are passed over. */
const partOf = (name: string): string =>
  Object.entries(parts).findLast(([begin]) => name.startsWith(begin))?.[1] ?? ''

/** Runs some seeds with a fault in the code; the seed of the first read that was too old. */
export const hunt = async (
  fault: ProtocolFault,
  first: number,
  seeds: number,
  maxSeconds: number,
): Promise<Result> => {
  const program = await bundleSimulation(fault)
  const args = [
    '--first',
    String(first),
    '--seeds',
    String(seeds),
    '--seconds',
    String(maxSeconds),
    '--as-is',
    '--with',
    partOf(fault.name),
  ]
  const { stdout } = await run(execPath, ['--max-semi-space-size=64', program, ...args], {
    maxBuffer: 1 << 28,
  }).catch((error: { stdout: string }) => error)
  await rm(dirname(program), { recursive: true })
  const seed = /^seed (\d+): /m.exec(stdout)?.[1]
  const total = Number(/"seeds":(\d+)/.exec(stdout)?.[1] ?? 0)
  // It broke off: that is not a fault that no read shows.
  if (total === 0) throw new Error(`${fault.name}: the simulation did not end`)
  return {
    name: fault.name,
    seed: seed === undefined ? undefined : Number(seed),
    seconds: Number(/"cpuSeconds":([\d.]+)/.exec(stdout)?.[1] ?? 0),
    seeds: total,
  }
}

type HuntOptions = {
  /** Looks for the faults whose names have the text; '' = for all that were not found before. */
  readonly only: string
  readonly first: number
  readonly seeds: number
  readonly seconds: number
}

/** Keeps the results of the faults that it does not look for. */
export const huntFaults = async (
  { only, first, seeds, seconds }: HuntOptions,
  tell: (line: string) => void,
): Promise<void> => {
  const known = new Map((await readResults()).map((result) => [result.name, result]))
  const writeDown = async (): Promise<void> => {
    const inOrder = protocolFaults.flatMap(({ name }) => known.get(name) ?? [])
    await writeFile(resultsFile, `${JSON.stringify(inOrder, undefined, 2)}\n`)
    await writeFile(page, pageOf(inOrder))
  }
  // The list of faults, or the reasons, may have changed.
  await writeDown()
  for (const fault of protocolFaults) {
    // What a test of the step finds is looked for by its name only.
    const isLeft = known.get(fault.name)?.seed === undefined && !(fault.name in foundByTests)
    const isMeant = only === '' ? isLeft : fault.name.includes(only)
    if (!isMeant) continue
    const result = await hunt(fault, first, seeds, seconds)
    known.set(fault.name, result)
    tell(
      `${fault.name}: ${result.seed === undefined ? `not found in ${result.seeds} seeds` : `seed ${result.seed}`}, ${result.seconds} s`,
    )
    await writeDown()
  }
}
