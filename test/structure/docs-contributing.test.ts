import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'

const text = await readFile('CONTRIBUTING.md', 'utf8')
const section = text.slice(text.indexOf('The folders of `src`:'), text.indexOf('`.dependency-cruiser.cjs`'))
const listed = [...section.matchAll(/^- (.+?): /gm)].flatMap(([, names = '']) =>
  [...names.matchAll(/`([\w-]+)`/g)].map(([, name = '']) => name),
)

test('CONTRIBUTING.md lists every folder of src, and no other', async () => {
  const entries = await readdir('src', { withFileTypes: true })
  const folders = entries.filter((entry) => entry.isDirectory()).map(({ name }) => name)
  expect(listed.sort()).toEqual(folders.sort())
})

test('no file of src is longer than CONTRIBUTING.md allows', async () => {
  const [, most] = /never more than (\d+)/.exec(text) ?? []
  const files = (await readdir('src', { recursive: true })).filter((file) => file.endsWith('.ts'))
  const lengths = await Promise.all(
    files.map(async (file) => ({
      file,
      lines: (await readFile(join('src', file), 'utf8')).split('\n').length - 1,
    })),
  )
  expect(lengths.filter(({ lines }) => lines > Number(most))).toEqual([])
  expect(lengths.length).toBeGreaterThan(100)
})
