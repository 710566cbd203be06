import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'

const root = fileURLToPath(new URL('../../', import.meta.url))

const filesIn = (folder: string): readonly string[] =>
  readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith('.ts'))
    .map((entry) => join(entry.parentPath, entry.name).slice(root.length))

const textOf = (file: string): string => readFileSync(join(root, file), 'utf8')

const linesOfCode = (file: string): number =>
  textOf(file)
    .split('\n')
    .filter((line) => line.trim() !== '' && !/^\s*(\*|\/\*|\/\/)/.test(line)).length

const sources = filesIn('src').filter((file) => linesOfCode(file) > 60)
const tests = filesIn('test').filter((file) => file.endsWith('.test.ts'))

const importsOf = (file: string): readonly string[] =>
  [...textOf(file).matchAll(/from '(\.[^']+)'/g)].map(([, path = '']) => join(dirname(file), path))
const importedBy = new Map(filesIn('test/unit').map((file) => [file, importsOf(file)]))

/** `test/unit/cache/policy/freshness.test.ts`, or another file of that folder that imports the source. */
const hasUnitTest = (source: string): boolean => {
  const stem = source.replace(/^src\//, 'test/unit/').replace(/\.ts$/, '')
  const folder = `${dirname(stem)}/`
  return (
    tests.some((file) => file.startsWith(`${stem}.`) || file.startsWith(`${stem}/`)) ||
    [...importedBy].some(([file, imports]) => file.startsWith(folder) && imports.includes(source))
  )
}

/** The rows "files | tests" of CONTRIBUTING.md. */
const rows = [...textOf('CONTRIBUTING.md').matchAll(/^\| `(src\/[\w./-]+)` \| (.+) \|$/gm)].map(
  ([, files = '', suites = '']) => ({ files, suites: suites.split(', ').map((suite) => suite.slice(1, -1)) }),
)

test('each file of src with more than 60 lines of code has a unit test, or a row in CONTRIBUTING.md', () => {
  expect(sources.length).toBeGreaterThan(200)
  const unseen = sources.filter(
    (source) => !hasUnitTest(source) && !rows.some(({ files }) => source.startsWith(files)),
  )
  expect(unseen).toEqual([])
})

test('each row of CONTRIBUTING.md names files that need it, and tests that exist', () => {
  for (const { files, suites } of rows) {
    expect(
      sources.some((source) => source.startsWith(files) && !hasUnitTest(source)),
      files,
    ).toBe(true)
    for (const suite of suites)
      expect(
        tests.some((file) => file.startsWith(suite)),
        suite,
      ).toBe(true)
  }
})

test('each folder of test/unit is a folder of src', () => {
  const folders = new Set(tests.filter((file) => file.startsWith('test/unit/')).map(dirname))
  const known = new Set(filesIn('src').map(dirname))
  const unknown = [...folders]
    .map((folder) => folder.replace(/^test\/unit/, 'src'))
    .filter((folder) => ![...known].some((one) => one === folder || one.startsWith(`${folder}/`)))
  expect(unknown).toEqual([])
})
