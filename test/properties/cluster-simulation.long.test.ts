import { execFile } from 'node:child_process'
import { readFile, rm } from 'node:fs/promises'
import { dirname } from 'node:path'
import { execPath } from 'node:process'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { bundleSimulation } from '../cluster-simulation/bundle.ts'
import { equivalent, foundByTests } from '../cluster-simulation/found-by-tests.ts'
import { hunt, readResults } from '../cluster-simulation/hunt-faults.ts'
import { protocolFaults } from '../cluster-simulation/protocol-faults.ts'
import { isAll, rowsOf, times } from '../support/breadth.ts'
import { planted } from '../support/planted.ts'

const run = promisify(execFile)

let program: string
beforeAll(async () => {
  program = await bundleSimulation()
})
afterAll(() => rm(dirname(program), { recursive: true }))

const simulate = async (...args: readonly string[]): Promise<string> => {
  const { stdout } = await run(execPath, [program, ...args], { maxBuffer: 1 << 28 }).catch(
    (error: { stdout: string }) => error,
  )
  return stdout
}

const digestsIn = (output: string): readonly string[] => output.match(/^\d+ [0-9a-f]{8}$/gm) ?? []

/** With every row the seeds are others each time: a failure names its own. */
const first = times(1_000, Math.floor(Date.now() / 1000))

test('seeds show nothing older than an acknowledged write; each has the same steps, whichever ran before it', {
  timeout: 300_000,
}, async () => {
  const seeds = times(4, 200)
  const output = await simulate('--first', String(first), '--seeds', String(seeds), '--digests')
  expect(output).toMatch(new RegExp(`^{"seeds":${seeds},"violations":0,`, 'm'))
  const digests = digestsIn(output)
  expect(new Set(digests).size).toBe(seeds)
  const alone = digestsIn(await simulate('--first', String(first + 2), '--seeds', '1', '--digests'))
  expect(alone).toEqual([digests[2]])
})

const found = (await readResults()).flatMap(({ name, seed, isFormer }) => {
  const fault = protocolFaults.find((one) => one.name === name)
  return fault === undefined || seed === undefined ? [] : [{ name, fault, seed, isFormer }]
})

/** Each has found a fault that was planted in the protocol, or one that the protocol or the simulation had. */
const oldSeeds = [1_447, 301_969, 303_591, 3_010_551, 8_000_793, ...new Set(found.map(({ seed }) => seed))]

test.each(rowsOf(oldSeeds, 48))('seed %i shows nothing older than an acknowledged write', async (seed) => {
  expect(await simulate('--first', String(seed), '--seeds', '1')).toMatch(/^{"seeds":1,/)
})

test('the text of each fault stands in src once', async () => {
  for (const fault of protocolFaults) planted(await readFile(fault.file, 'utf8'), fault)
  expect(new Set(protocolFaults.map(({ name }) => name)).size).toBe(protocolFaults.length)
})

/** Those that nearly each seed finds: a change of src gives seeds another meaning, and the others need a minute of search. */
const easy = found.filter(({ seed, isFormer }) => seed <= 3 && isFormer !== true)

const rows = isAll ? found : rowsOf(easy, 24)

test.each(rows)('a fault in the protocol is found: $name', { timeout: 300_000 }, async ({ fault }) => {
  const { seed } = await hunt(fault, 1, 10_000, isAll ? 120 : 20)
  expect(seed).toBeGreaterThan(0)
})

test('each fault is found by a seed or by a test that exists, or nobody can see it', async () => {
  const names = new Set(protocolFaults.map(({ name }) => name))
  for (const name of [...Object.keys(foundByTests), ...Object.keys(equivalent)]) expect(names).toContain(name)
  const ofPorts = await readFile('test/support/port-suites/ledger.ts', 'utf8')
  for (const { file, name } of Object.values(foundByTests)) {
    // Names of tests that are made of rows stand nowhere as a whole.
    const isOfRows = name.startsWith('a ledger that has lost its') || name.includes('breakOff')
    expect((await readFile(file, 'utf8')) + ofPorts).toContain(isOfRows ? 'test.each' : name)
  }
  const seeds = new Set(found.map(({ name }) => name))
  const missed = [...names].filter(
    (name) => !seeds.has(name) && !(name in foundByTests) && !(name in equivalent),
  )
  expect(missed.length / names.size).toBeLessThan(0.05)
})
