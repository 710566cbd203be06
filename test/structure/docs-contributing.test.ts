import { readdir, readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { expect, test } from 'vitest'

type Rule = { readonly name: string; readonly to: { readonly pathNot?: readonly string[] } }

const { forbidden } = createRequire(import.meta.url)('../../.dependency-cruiser.cjs') as {
  readonly forbidden: readonly Rule[]
}

const text = await readFile('CONTRIBUTING.md', 'utf8')
const listed = [...text.matchAll(/^\| (\d?) ?\| `([\w-]+)` \| /gm)].map(([, level = '', folder = '']) => ({
  level,
  folder,
}))

/** Folders with their levels: those that may import the same ones are on one level. */
const levelsOfRules = (): { level: string; folder: string }[] => {
  const end = '-imports-downward'
  const below: string[] = []
  return forbidden
    .filter(({ name }) => name.endsWith(end))
    .map(({ name, to }) => {
      const importable = to.pathNot?.[1] ?? ''
      if (!below.includes(importable)) below.push(importable)
      return { level: String(below.indexOf(importable)), folder: name.slice(0, -end.length) }
    })
}

test('CONTRIBUTING.md lists the folders of src on the levels that .dependency-cruiser.cjs gives them', () => {
  expect(levelsOfRules().length).toBeGreaterThan(10)
  expect(listed.filter(({ level }) => level !== '')).toEqual(levelsOfRules())
})

test('CONTRIBUTING.md lists every folder of src, and no other', async () => {
  const entries = await readdir('src', { withFileTypes: true })
  const folders = entries.filter((entry) => entry.isDirectory()).map(({ name }) => name)
  expect(listed.map(({ folder }) => folder).sort()).toEqual(folders.sort())
})

test('no file of src is longer than CONTRIBUTING.md allows', async () => {
  const [, max] = /never more than (\d+)/.exec(text) ?? []
  const files = (await readdir('src', { recursive: true })).filter((file) => file.endsWith('.ts'))
  const lengths = await Promise.all(
    files.map(async (file) => ({
      file,
      lines: (await readFile(join('src', file), 'utf8')).split('\n').length - 1,
    })),
  )
  expect(lengths.filter(({ lines }) => lines > Number(max))).toEqual([])
  expect(lengths.length).toBeGreaterThan(100)
})
