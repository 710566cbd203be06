import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { chooseFaults } from './fault-in-line.ts'
import { pageOf } from './page.ts'
import { reasons } from './reasons.ts'
import { Tree } from './tree.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))
const { values } = parseArgs({
  options: {
    before: { type: 'string' },
    page: { type: 'string' },
    /** More about the run, for the page. */
    note: { type: 'string', default: '' },
    seed: { type: 'string', default: '1' },
    folder: { type: 'string', default: join(tmpdir(), 'trellis-planted-lines') },
  },
})

const copyOf = (commit: string, name: string): string => {
  const folder = join(values.folder, name)
  if (existsSync(folder)) return folder
  mkdirSync(folder, { recursive: true })
  const archive = execFileSync('git', ['archive', commit], { cwd: root, maxBuffer: 2 ** 30 })
  execFileSync('tar', ['x'], { cwd: folder, input: archive })
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'))
  return folder
}

const { before } = values
if (before === undefined) throw new Error('--before COMMIT')
const trees = { before: copyOf(before, 'before'), after: copyOf('HEAD', 'after') }
const chosen = join(values.folder, 'faults.json')
if (!existsSync(chosen)) {
  const faults = chooseFaults(trees.before, trees.after, values.seed)
  writeFileSync(chosen, JSON.stringify(faults, undefined, 1))
  new Tree(trees.before).plant(faults, (fault) => fault.before)
  new Tree(trees.after).plant(faults, (fault) => fault.after)
}
const faults: ReturnType<typeof chooseFaults> = JSON.parse(readFileSync(chosen, 'utf8'))

const run = async (name: 'before' | 'after'): Promise<Record<string, string>> => {
  const tree = new Tree(trees[name])
  const broken = await tree.noteWhatIsReached()
  process.stdout.write(`${name}: without a fault fail ${broken.join(', ') || 'none'}\n`)
  const file = join(values.folder, `${name}.json`)
  const state = existsSync(file)
    ? JSON.parse(readFileSync(file, 'utf8'))
    : { found: {}, tried: {}, confirmed: {} }
  while (await tree.findMore(state.found, state.tried)) {
    await tree.confirm(state.found, state.confirmed)
    process.stdout.write(`${name}: ${Object.keys(state.found).length} of ${faults.length} found\n`)
    writeFileSync(file, JSON.stringify(state, undefined, 1))
  }
  return state.found
}
const [foundBefore, foundAfter] = await Promise.all([run('before'), run('after')])
const { seed, note, page } = values
const text = pageOf({ commit: before, seed, note, faults, before: foundBefore, after: foundAfter, reasons })
if (page !== undefined) writeFileSync(page, text)
process.stdout.write(text)
