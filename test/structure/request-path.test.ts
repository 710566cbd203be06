import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'

const root = new URL('../..', import.meta.url)

/** Columns of the table in docs/request-path.md, by the requests of bench/request-files.ts. */
const columns = ['hit', 'miss', 'PUT', 'PUT, lost', 'batch of three', 'refused']

test('request-path.md says which functions run for which request, as a running gateway shows', async () => {
  const { stdout } = await promisify(execFile)('npx', ['tsx', 'bench/request-files.ts', '--json'], {
    cwd: root,
  })
  const runs = stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as { name: string; steps: readonly string[] })
  expect(runs.map(({ name }) => name)).toEqual(columns)
  const document = await readFile(new URL('docs/request-path.md', root), 'utf8')
  const rows = [...document.matchAll(/^\|`(\w+)`\|.*?\|((?:×?\|){6})$/gm)]
  expect(rows).toHaveLength(14)
  for (const [, step = '', marks = ''] of rows) {
    const documented = marks.split('|').slice(0, 6)
    expect([step, ...documented]).toEqual([
      step,
      ...runs.map(({ steps }) => (steps.includes(step) ? '×' : '')),
    ])
  }
})
