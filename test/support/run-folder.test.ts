import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, readdir, utimes } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { beforeEach, expect, test } from 'vitest'

/** A run of tests that leaves a file behind. */
const run = (rest: string): readonly string[] => [
  ...['--import', 'tsx', '--input-type=module', '--eval'],
  `import { mkdtempSync } from 'node:fs'
   import { tmpdir } from 'node:os'
   import { useRunFolder } from './test/support/run-folder.ts'
   useRunFolder()
   console.log(mkdtempSync(tmpdir() + '/left-'))
   ${rest}`,
]

let folder: string
let env: NodeJS.ProcessEnv

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'runs-'))
  env = { ...process.env, TMPDIR: folder, TSX_DISABLE_CACHE: '1' }
})

test('a run of the tests leaves no temporary files', async () => {
  const { stdout } = await promisify(execFile)(process.execPath, run(''), { env })
  expect(stdout).toContain(join(folder, 'trellis-tests-'))
  expect(await readdir(folder)).toEqual([])
})

test.each([
  ['SIGTERM', 143],
  ['SIGHUP', 129],
] as const)('a run that %s ends leaves no temporary files', async (signal, code) => {
  const child = spawn(process.execPath, run('setInterval(() => {}, 1000)'), { env })
  const [line] = await once(child.stdout, 'data')
  expect(existsSync(String(line).trim())).toBe(true)
  child.kill(signal)
  expect(await once(child, 'exit')).toEqual([code, null])
  expect(await readdir(folder)).toEqual([])
})

test('files of a run that was killed are removed a day later, other files never', async () => {
  const yesterday = Date.now() / 1000 - 90_000
  for (const name of ['trellis-tests-old', 'trellis-tests-new', 'another']) await mkdir(join(folder, name))
  for (const name of ['trellis-tests-old', 'another']) await utimes(join(folder, name), yesterday, yesterday)
  await promisify(execFile)(process.execPath, run(''), { env })
  expect(await readdir(folder)).toEqual(['another', 'trellis-tests-new'])
})
