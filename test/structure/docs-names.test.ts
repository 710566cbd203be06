import { readdir, readFile, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { expect, test } from 'vitest'
import { errorTable } from '../../src/errors.ts'
import { checkConfig } from '../../src/gateway/load-config.ts'
import { metricTable } from '../../src/observability/metrics/registry.ts'
import { refusalOf } from '../support/command.ts'

const pages = (await readdir('docs')).filter((file) => file.endsWith('.md')).map((file) => `docs/${file}`)
const files = ['README.md', 'CONTRIBUTING.md', ...pages]
const texts = new Map(
  await Promise.all(files.map(async (file) => [file, await readFile(file, 'utf8')] as const)),
)
const textOf = (file: string): string => texts.get(file) ?? ''

const found = (text: string, pattern: RegExp): string[] =>
  [...new Set([...text.matchAll(pattern)].map(([, name = '']) => name))].sort()

/** As GitHub names the anchor of a heading. */
const anchorOf = (heading: string): string =>
  heading
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
    .replaceAll(/\s/g, '-')
const anchorsOf = (text: string): string[] =>
  [...text.matchAll(/^#+ (.+)$/gm)].map(([, heading = '']) => anchorOf(heading))

/** All keys of the configuration and their sections; docs-config.test.ts holds this page to the schema. */
const keys = new Set(
  found(textOf('docs/settings.md'), /^\|`([^`]+)`\|/gm).flatMap((key) =>
    key.split('.').map((_, index, steps) => steps.slice(0, index + 1).join('.')),
  ),
)
const sections = new Set([...keys].map((key) => key.split('.')[0] ?? ''))

/** Codes that batch items and validators give are written where they are given. */
const sources = (await readdir('src', { recursive: true })).filter((file) => file.endsWith('.ts'))
const code = (await Promise.all(sources.map((file) => readFile(join('src', file), 'utf8')))).join('\n')

const known = new Set<string>([
  ...Object.values(metricTable).flatMap(({ name }) =>
    ['', '_bucket', '_count', '_sum'].map((end) => `${name}${end}`),
  ),
  ...Object.keys(errorTable).map((name) => `trellis_${name}`),
  ...found(code, /'(trellis_[a-z_]+)'/g),
])

test('docs/README.md leads to every page', () => {
  const linked = found(textOf('docs/README.md'), /\]\((\w[\w-]*\.md)\)/g)
  expect(linked.map((name) => `docs/${name}`)).toEqual(
    pages.filter((page) => page !== 'docs/README.md').sort(),
  )
})

const evidence = (await readdir('docs/evidence')).filter((file) => file.endsWith('.md'))
const linking = [...files, ...evidence.map((file) => `docs/evidence/${file}`)]

test('every page of docs/evidence is linked from a page', async () => {
  const linked = await Promise.all(
    linking.map(async (file) =>
      found(await readFile(file, 'utf8'), /\]\(([^)#\s]+\.md)/g).map((target) => join(dirname(file), target)),
    ),
  )
  const known = new Set(linked.flat())
  expect(evidence.filter((file) => !known.has(`docs/evidence/${file}`))).toEqual([])
})

test.each(linking)('%s: every link leads to a file that is there, and to a heading in it', async (file) => {
  const wrong: string[] = []
  for (const [, target = ''] of (await readFile(file, 'utf8')).matchAll(/\]\(([^)\s]+)\)/g)) {
    if (/^[a-z]+:/.test(target)) continue
    const [path = '', anchor] = target.split('#')
    const resolved = path === '' ? file : join(dirname(file), path)
    if ((await stat(resolved).catch(() => undefined)) === undefined) wrong.push(target)
    else if (anchor !== undefined && !anchorsOf(await readFile(resolved, 'utf8')).includes(anchor))
      wrong.push(target)
  }
  expect(wrong).toEqual([])
})

test.each(files)('%s: every metric and error that it names exists', (file) => {
  const named = found(textOf(file), /\b(trellis_[a-z_]+[a-z])(?![a-z_*])/g)
  expect(named.filter((name) => !known.has(name))).toEqual([])
})

const exists = async (path: string): Promise<boolean> =>
  (await stat(path).catch(() => undefined)) !== undefined

const filesOfTests = (await readdir('test', { recursive: true })).map((file) => `test/${file}`)

/** Variables of the environment that programs of this repository read. */
const programs = await Promise.all(
  ['src', 'test', 'bench', 'demo', 'deploy'].map(async (folder) =>
    (await readdir(folder, { recursive: true }))
      .filter((file) => /\.(?:ts|yaml|php|sh)$/.test(file))
      .map((file) => join(folder, file)),
  ),
)
const namesOfVariables = new Set<string>()
for (const file of programs.flat())
  for (const name of found(await readFile(file, 'utf8'), /\b([A-Z][A-Z_]{3,})\b/g)) namesOfVariables.add(name)
/** A folder that the benchmark writes, and a resource of Kubernetes. */
const otherPaths = new Set(['bench/results', 'deploy/trellis'])
/** Variables that Node reads. */
const foreignVariables = new Set(['NODE_OPTIONS', 'UV_THREADPOOL_SIZE'])

/** A reference for people who have other names for the same. */
const settings = 'docs/evidence/migration-settings.md'

test.each([...files, settings])('%s: every key of the configuration that it names exists', async (file) => {
  const named = found(await readFile(file, 'utf8'), /`([a-zA-Z]+(?:\[\])?(?:\.[a-zA-Z]+(?:\[\])?)+)`/g)
  const meant = named.filter(
    (name) => sections.has(name.split('.')[0] ?? '') && !/\.(md|ts|json|yaml)$/.test(name),
  )
  expect(meant.filter((name) => !keys.has(name))).toEqual([])
})

test.each(files)('%s: every command of trellis that it shows is understood', async (file) => {
  const shown = found(textOf(file), /(?:^|`|\$ |npx )trellis ([a-z][^`#\n]*)/gm)
  // Words as a shell splits them, as far as the documents quote.
  const words = (line: string): string[] =>
    (line.match(/'[^']*'|"[^"]*"|[^\s'"]+/g) ?? []).map((word) => word.replaceAll(/^['"]|['"]$/g, ''))
  const firstCommand = (line: readonly string[]): readonly string[] => {
    const end = line.findIndex((word) => word === '|' || word === '&')
    return end < 0 ? line : line.slice(0, end)
  }
  const refusals = await Promise.all(
    shown.map((line) =>
      refusalOf(
        firstCommand(words(line.replaceAll(/[[\]]/g, '').replace(/\bURL\b/g, 'http://a.example/path'))),
      ),
    ),
  )
  expect(shown.filter((_, index) => refusals[index] !== undefined)).toEqual([])
})

const decisions = (await readdir('docs/decisions')).map((file) => `docs/decisions/${file}`)
const everyPage = [...linking, ...decisions]
const { scripts } = JSON.parse(await readFile('package.json', 'utf8')) as { scripts: Record<string, string> }

/** Scripts, files of this repository and variables of the environment that a text names and that do not exist. */
const missingIn = async (text: string): Promise<string[]> => {
  const missing = found(text, /\bnpm run ([a-z][a-z:-]*)/g).filter((name) => scripts[name] === undefined)
  const paths = found(
    text,
    /(?<![\w./-])((?:src|test|config|deploy|dashboards|bench|docs|demo|public)\/[\w./-]*\w)/g,
  )
  // Vitest takes the beginning of a name as well: test/real/redis-access.
  for (const path of paths)
    if (!otherPaths.has(path) && !filesOfTests.some((file) => file.startsWith(path)) && !(await exists(path)))
      missing.push(path)
  const variables = found(text, /(?<![\w$])([A-Z][A-Z_]{3,})=[\w,.]+/g)
  return [
    ...missing,
    ...variables.filter((name) => !namesOfVariables.has(name) && !foreignVariables.has(name)),
  ]
}

test.each(everyPage)(
  '%s: every script, file and variable of the environment that it names exists',
  async (file) => {
    expect(await missingIn(await readFile(file, 'utf8'))).toEqual([])
  },
)

test('a script, a file and a variable that do not exist are found', async () => {
  const variable = 'absent'.toUpperCase()
  const text = `npm run nothing, ${variable}=1 npx vitest run test/unit/absent, src/absent.ts`
  expect(await missingIn(text)).toEqual(['nothing', 'src/absent.ts', 'test/unit/absent', variable])
})

test('the configuration of the migration has no fault', async () => {
  const [, text = ''] = /^```yaml\n([\s\S]*?)^```$/m.exec(textOf('docs/migration.md')) ?? []
  expect(text).not.toBe('')
  expect(await checkConfig(text, {})).toMatchObject({ kind: 'ok' })
})
