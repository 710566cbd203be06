import { readdir, readFile } from 'node:fs/promises'
import { dirname, join, normalize, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'

const root = fileURLToPath(new URL('../../', import.meta.url))

const filesIn = async (folder: string): Promise<readonly string[]> =>
  (await readdir(join(root, folder), { recursive: true, withFileTypes: true }))
    .filter((entry) => entry.isFile() && entry.name.endsWith('.ts'))
    .map((entry) => relative(root, join(entry.parentPath, entry.name)))

/** The files of this repository that a source imports. */
const importsOf = async (file: string): Promise<readonly string[]> =>
  [...(await readFile(join(root, file), 'utf8')).matchAll(/(?:from|import\()\s*'(\.[^']+)'/g)].map(
    ([, path]) => normalize(join(dirname(file), path ?? '')),
  )

const sources = await filesIn('src')

test('no folder of src has more than 15 files', () => {
  const counts = new Map<string, number>()
  for (const file of sources) counts.set(dirname(file), (counts.get(dirname(file)) ?? 0) + 1)
  expect(sources.length).toBeGreaterThan(100)
  expect([...counts].filter(([, count]) => count > 15)).toEqual([])
})

test('at most 25 files have one importer, in their own folder', async () => {
  const importers = new Map<string, string[]>()
  for (const file of sources) {
    for (const imported of await importsOf(file))
      importers.set(imported, [...(importers.get(imported) ?? []), file])
  }
  const single = sources.filter((file) => {
    const [one, ...others] = importers.get(file) ?? []
    return (
      one !== undefined && others.length === 0 && dirname(one) === dirname(file) && dirname(file) !== 'src'
    )
  })
  expect(single.length, single.join('\n')).toBeLessThanOrEqual(25)
})
