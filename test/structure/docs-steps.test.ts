import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'

test.each([
  ['an upstream request', 7],
  ['a batch', 22],
])(
  'docs/request-path.md names each step of %s as the code does, with the file that has it',
  async (what, least) => {
    const page = await readFile('docs/request-path.md', 'utf8')
    const [, section = ''] = page.split(`## The steps of ${what}\n`)
    const [table = ''] = section.split('\n## ')
    const rows = [...table.matchAll(/^\|`(\w+)`\|\[[\w-]+\.ts\]\(([^)]+)\)\|/gm)]
    expect(rows.length).toBeGreaterThan(least)
    expect(rows).toHaveLength([...table.matchAll(/^\|`/gm)].length)
    for (const [, name, file = ''] of rows)
      expect(await readFile(join('docs', file), 'utf8')).toMatch(
        new RegExp(`^(?:export )?(?:const|class|function\\*?) ${name}\\b`, 'm'),
      )
  },
)

test.each([
  ['an invalidation in another process', 6],
  ['a purge in front', 4],
  ['a reload', 5],
])('docs/request-path.md names each step of %s as a file has it', async (what, least) => {
  const page = await readFile('docs/request-path.md', 'utf8')
  const [, section = ''] = page.split(`## The steps of ${what}\n`)
  const [table = ''] = section.split('\n## ')
  const rows = [...table.matchAll(/^\|`(#?\w+)`\|\[[\w-]+\.ts\]\(([^)]+)\)\|/gm)]
  expect(rows.length).toBeGreaterThan(least)
  expect(rows).toHaveLength([...table.matchAll(/^\|`/gm)].length)
  for (const [, name, file = ''] of rows)
    expect(await readFile(join('docs', file), 'utf8')).toMatch(new RegExp(`(?:^|[\\s.])${name}\\b`, 'm'))
})
