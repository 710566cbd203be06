import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import ts from 'typescript'
import { findPrivateParts } from './private-parts.ts'

/** Each measure lists its places; the number is how many there are. */
export type Measure = { readonly name: string; readonly places: readonly string[] }

type Source = { readonly path: string; readonly text: string; readonly tree: ts.SourceFile }

const listFiles = async (folder: string, ends: RegExp): Promise<readonly string[]> =>
  (await readdir(folder, { recursive: true }))
    .filter((name) => ends.test(name) && !name.includes('node_modules'))
    .map((name) => join(folder, name))
    .sort()

const readSource = async (path: string): Promise<Source> => {
  const text = await readFile(path, 'utf8')
  return { path, text, tree: ts.createSourceFile(path, text, ts.ScriptTarget.Latest, true) }
}

const lineOf = ({ tree }: Source, position: number): number =>
  tree.getLineAndCharacterOfPosition(position).line + 1

const visitAll = (source: Source, visit: (node: ts.Node) => void): void => {
  const walk = (node: ts.Node): void => {
    visit(node)
    ts.forEachChild(node, walk)
  }
  walk(source.tree)
}

const placesOf = (
  sources: readonly Source[],
  textOf: (node: ts.Node, source: Source) => string | undefined,
): readonly string[] =>
  sources.flatMap((source) => {
    const places: string[] = []
    visitAll(source, (node) => {
      const text = textOf(node, source)
      if (text !== undefined) places.push(`${source.path}:${lineOf(source, node.getStart())} ${text}`)
    })
    return places
  })

const isFunction = (node: ts.Node): node is ts.FunctionLikeDeclaration =>
  ts.isArrowFunction(node) ||
  ts.isFunctionDeclaration(node) ||
  ts.isFunctionExpression(node) ||
  ts.isMethodDeclaration(node) ||
  ts.isConstructorDeclaration(node)

const nameOfFunction = (node: ts.FunctionLikeDeclaration): string => {
  const named = node.name ?? (ts.isVariableDeclaration(node.parent) ? node.parent.name : undefined)
  return named === undefined ? 'a function' : named.getText()
}

const longFunctions = (sources: readonly Source[], maxLines: number): readonly string[] =>
  placesOf(sources, (node, source) => {
    if (!isFunction(node)) return undefined
    const lines = lineOf(source, node.end) - lineOf(source, node.getStart()) + 1
    return lines > maxLines ? `${nameOfFunction(node)}: ${lines} lines` : undefined
  })

/**
 * Words for which the field has another one, as a whole word of a name; `hold` where it is a quarantine, and not where a client holds a
 * slot. `header` is WordPress's and OpenAPI's own word for members of JSON, and stays in their folders.
 */
const privateWords =
  /^(notes?|noted|spreads?|spreading|heard|unheard|witness(es|ed)?|statements?|permits?|permitted|remembered|most|least|patience|distrust(ed)?|standings?|findings?|sensitivity|withheld|told|outdated|doors?|wings?|overtaken|mend(ed)?|announce(s|d|r)?|announcing|answer(s|ed|able|ing)?|generations?)$/
const quarantineWords = /^(holds?|held)$/
const fieldWords = /^fields?$/
/** Names that users have: settings, labels of metrics, JSON of the admin port and lines of the log. */
const userNames: ReadonlySet<string> = new Set([
  ...['answered', 'answerBytes', 'finding', 'findings', 'notes', 'announced'],
])
const namesOfUsers = /^src\/(admin\/|observability\/event-lines|gateway\/explain\.ts|cli\/cli-ports)/
const wordsOf = (name: string): readonly string[] =>
  name
    .replace(/([a-z0-9])([A-Z])/g, '$1 $2')
    .toLowerCase()
    .split(/[ #$]/)

/** Names of settings stay, as those of metrics: users have them. */
const settingNames = (schema: unknown, names = new Set<string>()): ReadonlySet<string> => {
  if (typeof schema !== 'object' || schema === null) return names
  for (const [key, value] of Object.entries(schema)) {
    if (key === 'properties' && typeof value === 'object' && value !== null)
      for (const name of Object.keys(value)) names.add(name)
    settingNames(value, names)
  }
  return names
}

const isDeclared = (node: ts.Node): node is ts.Identifier | ts.PrivateIdentifier =>
  (ts.isIdentifier(node) || ts.isPrivateIdentifier(node)) &&
  'name' in node.parent &&
  node.parent.name === node &&
  !ts.isPropertyAccessExpression(node.parent)

const isPrivateName = (name: string, path: string): boolean =>
  wordsOf(name).some(
    (word) =>
      privateWords.test(word) ||
      (quarantineWords.test(word) && /^src\/(cache|cluster|exchange)\//.test(path)) ||
      (fieldWords.test(word) && !/^src\/(wordpress|openapi|graphql)\//.test(path)),
  )

const privateLanguage = (sources: readonly Source[], settings: ReadonlySet<string>): readonly string[] =>
  placesOf(sources, (node, { path }) => {
    if (!isDeclared(node)) return undefined
    const name = node.text.replace(/^#/, '')
    const isOfUsers =
      name.includes('_') ||
      userNames.has(name) ||
      settings.has(name.replace(/(Ms|Bytes|Seconds)$/, '')) ||
      namesOfUsers.test(path)
    return !isOfUsers && isPrivateName(name, path) ? name : undefined
  })

const linesMatching = (
  sources: readonly Source[],
  isIn: (path: string) => boolean,
  form: RegExp,
): readonly string[] =>
  sources
    .filter(({ path }) => isIn(path))
    .flatMap(({ path, text }) =>
      text
        .split('\n')
        .flatMap((line, at) =>
          form.test(line) && !/^(import |\} from )/.test(line) ? [`${path}:${at + 1} ${line.trim()}`] : [],
        ),
    )

/** Cookies, headers, codes, paths and names of WordPress; comments that only say for whom something is are prose. */
const wordPressFacts =
  /x-wp-|wp[-_]|\bwp\b|wordpress_|woocommerce|phpsessid|pll_language|rest_(no_route|invalid|batch)|'(cron|posts|users|comments)'|cronMs|api\.w\.org|no-wordpress|_transient_|object cache|all options/i
const knowsWordPress = (path: string): boolean => !/^src\/(wordpress|config|cli)\//.test(path)

const methodNames = /^(GET|HEAD|POST|PUT|PATCH|DELETE|OPTIONS|QUERY|TRACE|MOVE|COPY)$/
const isGeneric = (path: string): boolean => /^src\/(cache|upstream|service|exchange|batch)\//.test(path)
const comparesMethod = (node: ts.Node, source: Source): string | undefined => {
  if (!isGeneric(source.path) || !ts.isBinaryExpression(node)) return undefined
  const { kind } = node.operatorToken
  if (kind !== ts.SyntaxKind.EqualsEqualsEqualsToken && kind !== ts.SyntaxKind.ExclamationEqualsEqualsToken)
    return undefined
  return ts.isStringLiteral(node.right) && methodNames.test(node.right.text) ? node.getText() : undefined
}

const importsOfContracts = (node: ts.Node, { path }: Source): string | undefined => {
  if (!path.startsWith('src/config/') || !ts.isImportDeclaration(node)) return undefined
  const { text } = node.moduleSpecifier as ts.StringLiteral
  return /^(\.\.\/)+(wordpress|openapi|graphql)\//.test(text) ? text : undefined
}

const namesMissingFiles = (sources: readonly Source[], files: readonly string[]): readonly string[] =>
  sources.flatMap(({ path, text }) =>
    text.split('\n').flatMap((line, at) => {
      const [, comment = ''] = /(?:^\s*\*|\/\/ |\/\*\*)(.*)$/.exec(line) ?? []
      return [...comment.matchAll(/(?<![\w./-])(?:\.{1,2}\/)*((?:[\w-]+\/)*[\w-]+\.(?:ts|mjs|cjs))\b/g)]
        .filter(([, name = '']) => !files.some((file) => file === name || file.endsWith(`/${name}`)))
        .map(([name]) => `${path}:${at + 1} ${name}`)
    }),
  )

const foldersWithoutSource = async (): Promise<readonly string[]> => {
  const folders = async (root: string): Promise<readonly string[]> =>
    (await readdir(root, { withFileTypes: true, recursive: true }))
      .filter((entry) => entry.isDirectory())
      .map(({ parentPath, name }) => join(parentPath, name).slice(root.length + 1))
      .filter((name) => !name.split('/').includes('fixtures'))
  const inSource = new Set(await folders('src'))
  return (await folders('test/unit')).filter((name) => !inSource.has(name))
}

const fileNamesInTestSettings = async (): Promise<readonly string[]> => {
  const { tree, path, text } = await readSource('vitest.config.ts')
  return placesOf([{ tree, path, text }], (node) =>
    ts.isStringLiteral(node) &&
    !/^\.{0,2}\/|^node:|^vitest|\*\*/.test(node.text) &&
    ts.isArrayLiteralExpression(node.parent) &&
    node.text.includes('/')
      ? node.text
      : undefined,
  )
}

const readSources = async (): Promise<readonly Source[]> =>
  Promise.all((await listFiles('src', /\.ts$/)).map(readSource))

/** All that `npm run bench:house` counts, in the order of its table. */
export const measureHouse = async (): Promise<readonly Measure[]> => {
  const sources = await readSources()
  const files = (
    await Promise.all(
      ['src', 'demo', 'test', 'bench', 'dashboards', 'packages', 'public'].map((folder) =>
        listFiles(folder, /\.(ts|js|mjs|cjs)$/),
      ),
    )
  ).flat()
  const schema: unknown = JSON.parse(await readFile('config/gateway.schema.json', 'utf8'))
  return [
    { name: 'functions over 100 lines', places: longFunctions(sources, 100) },
    { name: 'functions over 200 lines', places: longFunctions(sources, 200) },
    {
      name: 'names with words for which the field has others',
      places: privateLanguage(sources, settingNames(schema)),
    },
    {
      name: 'lines outside its folder, config and cli that know WordPress',
      places: linesMatching(sources, knowsWordPress, wordPressFacts),
    },
    { name: 'imports of a contract from config', places: placesOf(sources, importsOfContracts) },
    {
      name: 'comparisons of a method in cache, upstream, service, exchange and batch',
      places: placesOf(sources, comparesMethod),
    },
    {
      name: 'comments that name a missing file',
      places: namesMissingFiles(sources, [
        ...files,
        'build.mjs',
        'vitest.config.ts',
        '.dependency-cruiser.cjs',
      ]),
    },
    { name: 'folders of test/unit that are no folder of src', places: await foldersWithoutSource() },
    { name: 'file names in vitest.config.ts', places: await fileNamesInTestSettings() },
    {
      name: 'files that use private parts of Node or of packages',
      places: [...new Set(findPrivateParts(sources).map((place) => place.replace(/ .*/, '')))],
    },
  ]
}
