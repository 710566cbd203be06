import type { Command } from 'commander'
import { describe, expect, test } from 'vitest'
import { commandNames, programOf, runCommand } from '../../support/command.ts'

const commandAt = (path: readonly string[]): Command =>
  path.reduce<Command>(
    (command, name) => command.commands.find((below) => below.name() === name) as Command,
    programOf(),
  )

describe('trellis --help', () => {
  test('names every command, what each does, and the exit codes', async () => {
    const { end, stdout } = await runCommand(['--help'])
    expect(end).toBe(0)
    expect(stdout).toMatch(/^Usage: trellis \[options\] \[command\]\n/)
    for (const [name = ''] of commandNames())
      expect(stdout).toMatch(new RegExp(`^ {2}${name} (?:[\\[<].*?)? {2,}\\w`, 'm'))
    expect(stdout).toContain('  2  wrong command line\n')
  })

  test('is what `help` and `trellis help` show, too', async () => {
    const { stdout } = await runCommand(['--help'])
    expect((await runCommand(['help'])).stdout).toBe(stdout)
    expect((await runCommand(['help', 'check'])).stdout).toBe((await runCommand(['check', '--help'])).stdout)
  })
})

test.each(commandNames().map((path) => [path.join(' '), path]))(
  'trellis %s --help shows the usage, and describes every option and argument',
  async (name, path) => {
    const command = commandAt(path)
    const { end, stdout } = await runCommand([...path, '--help'])
    expect(end).toBe(0)
    expect(stdout.startsWith(`Usage: trellis ${name}`)).toBe(true)
    const shown = command.options.filter(({ hidden }) => !hidden)
    for (const { flags, description } of shown) {
      expect([flags, description]).toEqual([flags, expect.stringMatching(/^\w/)])
      expect(stdout).toContain(`  ${flags} `)
    }
    expect(stdout.split('\n').filter((line) => line.length > 100)).toEqual([])
    expect(stdout).not.toMatch(/--(?:port|host|token) </)
  },
)

test.each(['--version', '-v', 'version'])('trellis %s prints the version', async (word) => {
  expect(await runCommand([word])).toEqual({ end: 0, stdout: 'test\n', stderr: '' })
})

test('a value that may be a secret is not shown', async () => {
  const { stderr } = await runCommand(['status', '--token', 'hunter2'])
  expect(stderr).not.toContain('hunter2')
})
