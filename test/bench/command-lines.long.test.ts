import { spawnSync } from 'node:child_process'
import { execPath } from 'node:process'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { rowsOf } from '../support/breadth.ts'

const root = fileURLToPath(new URL('../../', import.meta.url))

const run = (file: string, ...words: readonly string[]) =>
  spawnSync(execPath, ['--import', 'tsx', file, ...words], { cwd: root, encoding: 'utf8' })

/** Each is a process that reads its whole program: in CI the first, which is the smallest. */
const commands = [
  ['test/cluster-simulation/command.ts', 'npm run simulate:cluster'],
  ['bench/run.ts', 'npm run bench'],
  ['bench/house.ts', 'npm run bench:house'],
  ['test/real/promise-fuzz/command.ts', 'npm run fuzz:promise'],
  ['test/real/sites/command.ts', 'npm run sites'],
] as const

describe.each(rowsOf(commands, commands.length))('%s', (file, usage) => {
  test('--help prints the usage, and runs nothing', () => {
    const { status, stdout } = run(file, '--help')
    expect([status, stdout]).toEqual([0, expect.stringContaining(usage)])
  })

  test.each(rowsOf([[['--unknown']], [['one', 'two']]] as const, 2))(
    '%j is refused with the usage',
    (words) => {
      const { status, stdout, stderr } = run(file, ...words)
      expect([status, stdout, stderr]).toEqual([2, '', expect.stringContaining(usage)])
    },
  )
})
