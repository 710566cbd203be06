import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { findPrivateParts } from '../../bench/private-parts.ts'

test('the table of decision 0024 names every private part of Node and packages', async () => {
  const names = (await readdir('src', { recursive: true })).filter((name) => name.endsWith('.ts'))
  const paths = names.map((name) => join('src', name))
  const found = findPrivateParts(
    await Promise.all(paths.map(async (path) => ({ path, text: await readFile(path, 'utf8') }))),
  )
  const decision = await readFile('docs/decisions/0024-the-house.md', 'utf8')
  const [, table = ''] = decision.split('## Private parts')
  const named = [...table.matchAll(/^\| (src\/\S+) \| (.*?) \|/gm)].flatMap(([, file, parts = '']) =>
    [...parts.matchAll(/`([^`]+)`/g)].map(([, part]) => `${file} ${part}`),
  )
  expect(found).toEqual(named.sort())
})
