import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { readCommandLine, words } from '../../bench/command-line.ts'

const flag = { type: 'boolean' } as const

test.each([
  [[], 'run'],
  [['--quick'], 'run'],
  [['100'], 'run'],
  [['100', '7'], 'run'],
  [['--help'], 'help'],
  [['100', '--help'], 'help'],
  [['--unknown'], 'refused'],
  [['--quick=1'], 'refused'],
  [['many'], 'refused'],
  [['0'], 'refused'],
  [['100', '7', '8'], 'refused'],
])('%j: %s', (args, kind) => {
  expect(readCommandLine(args, { quick: flag }, [words.count, words.count]).kind).toBe(kind)
})

/** They have parsers of their own. */
const others = ['src/main.ts', 'test/attack/run.ts']

test('each command of package.json that is a program here refuses what it does not take', async () => {
  const root = fileURLToPath(new URL('../../', import.meta.url))
  const { scripts } = JSON.parse(await readFile(`${root}package.json`, 'utf8')) as {
    scripts: Record<string, string>
  }
  const files = Object.values(scripts).flatMap((script) => /\btsx (\S+\.ts)/.exec(script)?.[1] ?? [])
  const texts = await Promise.all(
    [...new Set(files)]
      .filter((file) => !others.includes(file))
      .map(async (file) => ({ file, text: await readFile(root + file, 'utf8') })),
  )
  expect(texts.length).toBeGreaterThan(10)
  expect(texts.filter(({ text }) => !text.includes('checkCommandLine(')).map(({ file }) => file)).toEqual([])
})
