import { execFile } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { commandNames, runCommand } from '../support/command.ts'

let folder: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'trellis-completion-'))
  await writeFile(join(folder, 'trellis.bash'), (await runCommand(['completion', 'bash'])).stdout)
})
afterAll(() => rm(folder, { recursive: true }))

/** What bash offers for the last word. */
const offered = async (...words: readonly string[]): Promise<readonly string[]> => {
  const show = `echo "\${COMPREPLY[*]}"`
  const script = `source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _trellis; ${show}`
  const args = ['--noprofile', '-c', script, 'bash', join(folder, 'trellis.bash'), 'trellis', ...words]
  const { stdout } = await promisify(execFile)('bash', args)
  return stdout.split(/\s+/).filter((word) => word !== '')
}

test('bash completes every command, its kinds and its options', async () => {
  const top = commandNames().filter((names) => names.length === 1)
  expect((await offered('')).toSorted()).toEqual(top.flat().toSorted())
  expect((await offered('ch')).toSorted()).toEqual(['changed', 'check'])
  expect(await offered('init', 'w')).toEqual(['wordpress'])
  expect(await offered('init', 'open', '--f')).toEqual(['--force'])
  expect(await offered('purge', '--url', '/a', '--pre')).toEqual(['--prefix'])
  expect(await offered('completion', '')).toEqual(['bash', 'zsh', 'fish'])
})

test('bash completes files after -c, and for the file of check', async () => {
  expect(await offered('start', '-c', 't')).toEqual([])
  expect(await offered('check', '')).toEqual([])
  const { stdout } = await promisify(execFile)('bash', [
    '-c',
    'source "$1"; complete -p trellis',
    'bash',
    join(folder, 'trellis.bash'),
  ])
  expect(stdout).toBe('complete -o default -F _trellis trellis\n')
})

test('no script offers what help hides', async () => {
  for (const shell of ['bash', 'zsh', 'fish']) {
    const { end, stdout } = await runCommand(['completion', shell])
    expect([shell, end, stdout.includes('upstreams')]).toEqual([shell, 0, true])
    expect(stdout).not.toMatch(/-(?:l |-)token/)
  }
})

test('another shell is refused with those that there are', async () => {
  const { end, stderr } = await runCommand(['completion', 'tcsh'])
  expect([end, stderr]).toEqual([2, expect.stringContaining('Allowed choices are bash, zsh, fish.')])
})
