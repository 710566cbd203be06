import { readdir } from 'node:fs/promises'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'

const root = fileURLToPath(new URL('../../', import.meta.url))

const filesIn = async (folder: string): Promise<readonly string[]> =>
  (await readdir(join(root, folder), { recursive: true, withFileTypes: true }))
    .filter((entry) => entry.isFile() && entry.name.endsWith('.ts'))
    .map((entry) => relative(root, join(entry.parentPath, entry.name)))

const sources = await filesIn('src')

test('no folder of src has more than 15 files', () => {
  const counts = new Map<string, number>()
  for (const file of sources) counts.set(dirname(file), (counts.get(dirname(file)) ?? 0) + 1)
  expect(sources.length).toBeGreaterThan(100)
  expect([...counts].filter(([, count]) => count > 15)).toEqual([])
})
