import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import type { FaultInLine } from './fault-in-line.ts'

type Result = {
  readonly name: string
  readonly status: string
  readonly startTime: number
  readonly endTime: number
  readonly assertionResults: readonly { readonly status: string; readonly fullName: string }[]
}

/** For the setup file of the tests: makes the fault that is meant for a test file, and notes all that the file reaches. */
const setup = `
import { appendFileSync, existsSync, readFileSync } from 'node:fs'
import { beforeEach, expect } from 'vitest'
const file = expect.getState().testPath
const folder = file.slice(0, file.indexOf('/test/'))
const meant = existsSync(folder + '/meant.json') ? JSON.parse(readFileSync(folder + '/meant.json', 'utf8')) : undefined
const reached = new Set()
let hasFailed = false
if (meant !== undefined) process.env.PLANTED = String(meant[file])
globalThis.reachFault = (fault) => {
  if (meant !== undefined || reached.has(fault)) return
  reached.add(fault)
  appendFileSync(folder + '/reached.txt', fault + ' ' + file + '\\n')
}
beforeEach(({ skip, onTestFailed }) => {
  if (meant === undefined) return
  if (hasFailed) skip()
  onTestFailed(() => { hasFailed = true })
})
`

/** A copy of the repository in which all faults stand, each behind a variable of the environment. */
export class Tree {
  readonly #folder: string
  /** The test files of `npm test` that reach each fault, the shortest first; those of units before the others. */
  readonly #reached = new Map<number, string[]>()

  constructor(folder: string) {
    this.#folder = folder
  }

  plant(faults: readonly FaultInLine[], placeOf: (fault: FaultInLine) => FaultInLine['after']): void {
    for (const [index, fault] of faults.entries()) {
      const { file, line } = placeOf(fault)
      const lines = readFileSync(join(this.#folder, file), 'utf8').split('\n')
      const whole = lines[line] ?? ''
      const start = whole.length - whole.trimStart().length + fault.start
      const end = start + fault.end - fault.start
      const isMeant = `(globalThis.reachFault?.(${index}), process.env.PLANTED === '${index}')`
      const both = `(${isMeant} ? (${fault.becomes}) : (${whole.slice(start, end)}))`
      const isStatement = fault.becomes === 'undefined'
      lines[line] = whole.slice(0, start) + (isStatement ? `void ${both}` : both) + whole.slice(end)
      writeFileSync(join(this.#folder, file), lines.join('\n'))
    }
    const first = join(this.#folder, 'test/support/own-fetch.ts')
    writeFileSync(first, readFileSync(first, 'utf8') + setup)
  }

  /** Runs `npm test` without a fault, once. What fails then says nothing later. */
  async noteWhatIsReached(): Promise<readonly string[]> {
    const kept = join(this.#folder, 'all.json')
    rmSync(join(this.#folder, 'meant.json'), { force: true })
    if (!existsSync(kept)) writeFileSync(kept, JSON.stringify(await this.#run([])))
    const all: Result[] = JSON.parse(readFileSync(kept, 'utf8'))
    const broken = all.filter(({ status }) => status !== 'passed').map(({ name }) => name)
    const isUnit = (name: string): number => (/\/test\/(unit|exchange)\//.test(name) ? 0 : 1)
    const timed = new Map(all.map(({ name, startTime, endTime }) => [name, endTime - startTime]))
    const costOf = (name: string): number => isUnit(name) * 1e9 + (timed.get(name) ?? 0)
    for (const line of readFileSync(join(this.#folder, 'reached.txt'), 'utf8').split('\n').toSorted()) {
      const [fault, name] = line.split(' ')
      if (name === undefined || !timed.has(name) || broken.includes(name)) continue
      const names = this.#reached.get(Number(fault)) ?? []
      this.#reached.set(
        Number(fault),
        [...names, name].toSorted((a, b) => costOf(a) - costOf(b)),
      )
    }
    return broken.map((name) => relative(this.#folder, name))
  }

  /**
   * Makes one fault in each file of a run, since loading the modules takes most of its time: of the faults that the file
   * reaches and that are not found yet, the one that the fewest files reach.
   */
  async findMore(found: Record<string, string>, tried: Record<string, string[]>): Promise<boolean> {
    const meant: Record<string, number> = {}
    const rare = [...this.#reached].toSorted(([, a], [, b]) => a.length - b.length)
    for (const [fault, names] of rare) {
      if (found[fault] !== undefined) continue
      const before = tried[fault] ?? []
      const left = names.filter((name) => !before.includes(name) && meant[name] === undefined)
      // Most faults are found by the first file; each further run tries as many as all before it, and one.
      for (const name of left.slice(0, before.length + 1)) meant[name] = fault
    }
    return this.tryFiles(meant, found, tried)
  }

  async tryFiles(
    meant: Readonly<Record<string, number>>,
    found: Record<string, string>,
    tried: Record<string, string[]>,
  ): Promise<boolean> {
    const files = Object.keys(meant)
    if (files.length === 0) return false
    writeFileSync(join(this.#folder, 'meant.json'), JSON.stringify(meant))
    const results = await this.#run(files)
    for (const name of files) {
      const fault = meant[name] ?? -1
      tried[fault] = [...(tried[fault] ?? []), name]
      const result = results.find((one) => one.name === name)
      if (result === undefined || result.status === 'passed') continue
      const test = result.assertionResults.find(({ status }) => status === 'failed')?.fullName
      found[fault] ??= `${relative(this.#folder, name)}: ${test ?? 'does not load'}`
    }
    return true
  }

  /** Forgets what was found by files that pass when they run again with the fault, or fail without one. */
  async confirm(found: Record<string, string>, confirmed: Record<string, true>): Promise<void> {
    const fileOf = (test: string): string => join(this.#folder, test.slice(0, test.indexOf(': ')))
    const unsure = Object.entries(found).filter(([fault]) => confirmed[fault] !== true)
    const left = new Map(unsure.map(([fault, test]) => [fault, fileOf(test)]))
    const files = [...new Set(left.values())]
    const passesAlone = await this.#passing(Object.fromEntries(files.map((name) => [name, -1])))
    while (left.size > 0) {
      const meant = Object.fromEntries([...left].map(([fault, name]) => [name, Number(fault)]))
      const passes = await this.#passing(meant)
      for (const [name, fault] of Object.entries(meant)) {
        left.delete(String(fault))
        if (passes.has(name) || !passesAlone.has(name)) delete found[fault]
        else confirmed[fault] = true
      }
    }
  }

  async #passing(meant: Readonly<Record<string, number>>): Promise<ReadonlySet<string>> {
    writeFileSync(join(this.#folder, 'meant.json'), JSON.stringify(meant))
    const results = await this.#run(Object.keys(meant))
    return new Set(results.filter(({ status }) => status === 'passed').map(({ name }) => name))
  }

  async #run(files: readonly string[]): Promise<readonly Result[]> {
    const output = join(this.#folder, 'results.json')
    rmSync(output, { force: true })
    const options = ['run', '--project=quick', '--reporter=json', `--outputFile=${output}`]
    // Each run loads the same modules.
    options.push('--experimental.fsModuleCache')
    const vitest = join(this.#folder, 'node_modules/vitest/vitest.mjs')
    const bounds = files.length === 0 ? [] : [`--testTimeout=${maxTestMs}`, `--hookTimeout=${maxTestMs}`]
    const args = ['-n', '19', process.execPath, vitest, ...options, ...bounds, ...files]
    await once(spawn('nice', args, { cwd: this.#folder, stdio: 'ignore' }), 'exit')
    return JSON.parse(readFileSync(output, 'utf8')).testResults
  }
}

/** A test that waits for what a fault keeps from coming about is stopped after this time. */
const maxTestMs = 20_000
