import { execFile } from 'node:child_process'
import { cp, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { execPath } from 'node:process'
import { fileURLToPath } from 'node:url'
import { planted } from '../support/planted.ts'
import { type FindingTest, foundByTests } from './found-by-tests.ts'
import { protocolFaults } from './protocol-faults.ts'

const root = fileURLToPath(new URL('../../', import.meta.url))
const copied = ['src', 'test', 'contracts', 'config', 'package.json', 'tsconfig.json', 'vitest.config.ts']

/** The name of a test as the pattern that `-t` takes. */
const patternOf = (name: string): string => name.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&')

/** Does the test run and fail? */
const fails = (folder: string, { file, name }: FindingTest): Promise<boolean> =>
  new Promise((resolve) => {
    const vitest = join(root, 'node_modules/vitest/vitest.mjs')
    const options = ['run', '--reporter=tap-flat', file, '-t', patternOf(name)]
    execFile(execPath, [vitest, ...options], { cwd: folder }, (_, stdout) => {
      resolve(stdout.split('\n').some((line) => line.startsWith('not ok') && line.includes(name)))
    })
  })

/** Plants each fault that a test finds in a copy of the code, and runs that test there; the faults that it did not find. */
export const plantInTests = async (
  only: string,
  tell: (line: string) => void,
): Promise<readonly string[]> => {
  const folder = await mkdtemp(join(tmpdir(), 'trellis-planted-'))
  const missed: string[] = []
  try {
    for (const name of copied) await cp(join(root, name), join(folder, name), { recursive: true })
    await symlink(join(root, 'node_modules'), join(folder, 'node_modules'))
    for (const [name, test] of Object.entries(foundByTests)) {
      const fault = protocolFaults.find((one) => one.name === name)
      if (fault === undefined) throw new Error(`no fault is named ${name}`)
      if (!name.includes(only)) continue
      const file = join(folder, fault.file)
      const right = await readFile(file, 'utf8')
      await writeFile(file, planted(right, fault))
      const isFound = await fails(folder, test)
      await writeFile(file, right)
      if (!isFound) missed.push(name)
      tell(`${name}: ${isFound ? 'found' : 'NOT found'} by ${test.file}`)
    }
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
  return missed
}
