import { readdir, readFile, writeFile } from 'node:fs/promises'
import { describe, expect, test } from 'vitest'
import { parse, stringify } from 'yaml'
import { exitCodes } from '../../src/cli/cli-ports.ts'
import { configJsonSchema, type JsonSchema } from '../../src/config/json-schema.ts'
import { durationPattern, sizePattern } from '../../src/config/quantities.ts'
import { checkConfig } from '../../src/gateway/load-config.ts'
import { settingExamples } from '../support/setting-examples.ts'

/** `UPDATE_DOCS=1 npx vitest run test/structure/docs-config.test.ts` writes what is generated; format it afterwards. */
const update = process.env['UPDATE_DOCS'] !== undefined

const part = (schema: JsonSchema, keyword: string): JsonSchema => (schema[keyword] ?? {}) as JsonSchema
const list = (schema: JsonSchema, keyword: string): JsonSchema[] => (schema[keyword] ?? []) as JsonSchema[]

/** The rules of a value, without the alternative that it comes from the environment. */
const rulesOf = (schema: JsonSchema): JsonSchema => {
  const alternatives = list(schema, 'anyOf')
  const own = alternatives.find((alternative) => alternative['pattern'] !== String.raw`\$\{[A-Za-z_]`)
  return own === undefined ? schema : rulesOf(own)
}

const rangeOf = ({ minimum, maximum, type }: JsonSchema): string => {
  if (type === 'integer' && maximum === Number.MAX_SAFE_INTEGER) return 'size'
  return Number(minimum) < 0 ? `${minimum} to ${maximum}` : `${minimum}-${maximum}`
}

/** Words that a value may be beside its other forms, such as `sample` beside true and false. */
const wordsBeside = (schema: JsonSchema): string[] =>
  list(schema, 'anyOf').flatMap((each) => [
    ...(typeof each['const'] === 'string' && each['const'] !== '' ? [`\`${each['const']}\``] : []),
    ...wordsBeside(each),
  ])

const unitOf = (schema: JsonSchema): string =>
  [unitOfRules(rulesOf(schema)), ...wordsBeside(schema)].join(', ')

const unitOfRules = (rules: JsonSchema): string => {
  if (rules['enum'] !== undefined) return (rules['enum'] as string[]).map((word) => `\`${word}\``).join(', ')
  // An empty text beside the rules of a text is its default, not a list of allowed values.
  if (rules['const'] !== undefined && rules['const'] !== '') return `\`${rules['const']}\``
  if (rules['pattern'] === durationPattern.source) return 'duration'
  if (rules['pattern'] === sizePattern.source) return 'size'
  if (rules['type'] === 'integer' || rules['type'] === 'number') return rangeOf(rules)
  if (rules['type'] === 'boolean') return 'boolean'
  if (rules['type'] === 'object') return 'map'
  return rules['type'] === 'array' ? 'list' : 'text'
}

/** `section`: what may be absent as a whole; only where it is used, the setting is required. */
const requiredIn = (section: string): string => (section === '' ? 'required' : `required in \`${section}\``)

const defaultOf = (schema: JsonSchema): string => {
  const value = schema['default']
  if (value === undefined || value === '') return ''
  const text = Array.isArray(value)
    ? `[${value.join(', ')}]`
    : typeof value === 'object'
      ? JSON.stringify(value)
      : String(value)
  return `\`${text}\``
}

const cell = (text: unknown): string => String(text ?? '').replaceAll('|', String.raw`\|`)

type Row = {
  readonly key: string
  readonly unit: string
  readonly fallback: string
  readonly meaning: string
}

const rowsOf = (schema: JsonSchema, prefix: string, section = ''): Row[] => {
  const required = (schema['required'] ?? []) as string[]
  return Object.entries(part(schema, 'properties')).flatMap(([name, value]) => {
    const inner = value as JsonSchema
    const key = `${prefix}${name}`
    const isRequired = required.includes(name)
    if (inner['properties'] !== undefined) {
      const isOptional = !isRequired && inner['default'] === undefined
      return rowsOf(inner, `${key}.`, isOptional ? key : section)
    }
    if (key === 'services') return []
    const row = {
      key,
      unit: unitOf(inner),
      fallback: isRequired ? requiredIn(section) : defaultOf(inner),
      meaning: String(inner['description'] ?? ''),
    }
    const items = part(inner, 'items')
    return items['properties'] === undefined ? [row] : [row, ...rowsOf(items, `${key}[].`)]
  })
}

const exampleOf = (key: string): string => {
  const example = settingExamples[key]
  return example === undefined ? '' : `\`${example}\``
}

const table = (rows: readonly Row[]): string[] => [
  '',
  '|key|unit|default|example|meaning|',
  '|---|---|---|---|---|',
  ...rows.map(
    ({ key, unit, fallback, meaning }) =>
      `|\`${key}\`|${cell(unit)}|${fallback}|${exampleOf(key)}|${cell(meaning)}|`,
  ),
]

type Contract = { readonly name: string; readonly rows: readonly Row[] }

const contracts = (): Contract[] =>
  list(
    part(part(configJsonSchema(), 'properties'), 'services')['additionalProperties'] as JsonSchema,
    'oneOf',
  ).map((schema) => ({
    name: String(part(part(schema, 'properties'), 'contract')['const']),
    rows: rowsOf(schema, ''),
  }))

/** What all texts begin with, up to a colon. */
const sharedStart = (texts: readonly string[]): string => {
  const [start = ''] = /^.*?: /.exec(texts[0] ?? '') ?? []
  return texts.every((text) => text.startsWith(start)) ? start : ''
}

/** Texts that differ by contract, each with the contracts that it holds for; one text where they agree. */
const byContract = (texts: readonly (readonly [contract: string, text: string])[]): string => {
  const [first] = texts
  if (texts.every(([, text]) => text === first?.[1])) return first?.[1] ?? ''
  const shared = sharedStart(texts.map(([, text]) => text))
  const named = new Map<string, string[]>()
  for (const [contract, text] of texts.filter(([, each]) => each !== '')) {
    const own = text.slice(shared.length)
    named.set(own, [...(named.get(own) ?? []), contract])
  }
  return `${shared}${[...named].map(([text, names]) => `${names.join(', ')}: ${text}`).join('; ')}`
}

/** A key that only some contracts have is required with these alone. */
const requiredWith = (fallback: string, names: readonly string[], isOfAll: boolean): string =>
  fallback === 'required' && !isOfAll ? `${names.join(', ')}: required` : fallback

/** One row for each key of a service, by the contracts that have it. */
const serviceTables = (): string[] => {
  const all = contracts()
  const sections = new Map<string, Row[]>()
  for (const key of new Set(all.flatMap(({ rows }) => rows.map((row) => row.key)))) {
    const having = all.flatMap(({ name, rows }) => {
      const row = rows.find((each) => each.key === key)
      return row === undefined ? [] : [{ name, row }]
    })
    const merged = (pick: (row: Row) => string): string =>
      byContract(having.map(({ name, row }) => [name, pick(row)]))
    const title =
      having.length < all.length
        ? `Only with ${having.map(({ name }) => `\`contract: ${name}\``).join(' or ')}`
        : key.startsWith('upstream.')
          ? 'Upstream of a service'
          : key.startsWith('cache.')
            ? 'Cache of a service'
            : 'Every service'
    const names = having.map(({ name }) => name)
    const isOfAll = having.length === all.length
    const row =
      key === 'contract'
        ? {
            key,
            unit: all.map(({ name }) => `\`${name}\``).join(', '),
            fallback: 'required',
            meaning: having[0]?.row.meaning ?? '',
          }
        : {
            key,
            unit: merged(({ unit }) => unit),
            fallback: requiredWith(
              merged(({ fallback }) => fallback),
              names,
              isOfAll,
            ),
            meaning: merged(({ meaning }) => meaning),
          }
    sections.set(title, [...(sections.get(title) ?? []), row])
  }
  const order = ['Every service', 'Upstream of a service', 'Cache of a service']
  const titles = [...order, ...[...sections.keys()].filter((title) => !order.includes(title))]
  return titles.flatMap((title) => ['', `### ${title}`, ...table(sections.get(title) ?? [])])
}

const configTables = (): string =>
  ['### The gateway', ...table(rowsOf(configJsonSchema(), '')), ...serviceTables()].join('\n')

const exitTable = (): string =>
  [
    '|code|meaning|',
    '|---|---|',
    ...Object.values(exitCodes).map(({ code, meaning }) => `|${code}|${cell(meaning)}|`),
  ].join('\n')

const blocks: readonly (readonly [file: string, name: string, generate: () => string])[] = [
  ['docs/settings.md', 'keys', configTables],
  ['docs/configuration.md', 'exit codes', exitTable],
]

describe('what is generated', () => {
  test.each(blocks)('%s: %s are those of the code', async (file, name, generate) => {
    const text = await readFile(file, 'utf8')
    const [begin, end] = [`<!-- ${name}: generated -->\n`, `\n<!-- end of ${name} -->`]
    expect(text).toContain(begin)
    const [before = '', rest = ''] = text.split(begin)
    const [block, after = ''] = rest.split(end)
    if (update) await writeFile(file, `${before}${begin}${generate()}${end}${after}`)
    else expect(block).toBe(generate())
  })
})

test('config/gateway.schema.json is the schema of the code', async () => {
  const file = 'config/gateway.schema.json'
  const text = `${JSON.stringify(configJsonSchema(), null, 2)}\n`
  if (update) await writeFile(file, text)
  else expect(await readFile(file, 'utf8')).toBe(text)
})

test('every key of the gateway is in config/gateway.yaml, where people look first', async () => {
  const text = await readFile('config/gateway.yaml', 'utf8')
  const keys = new Set(
    [...configTables().matchAll(/^\|`([^`]+)`/gm)].map(([, path]) => path?.split('.').at(-1) ?? ''),
  )
  // The identity is for `source: static` only.
  for (const key of ['name', 'description', 'url', 'home', 'gmtOffset', 'timezone']) keys.delete(key)
  const missing = [...keys].filter((key) => !new RegExp(`\\b${key.replaceAll('[]', '')}:`).test(text))
  expect(missing).toEqual([])
})

test('docs/configuration.md names the variables that config/gateway.yaml takes, and no others', async () => {
  const named = async (file: string, pattern: RegExp) =>
    new Set([...(await readFile(file, 'utf8')).matchAll(pattern)].map(([, name]) => name))
  expect(await named('docs/configuration.md', /`(TRELLIS_(?!CONFIG`)\w+)`/g)).toEqual(
    await named('config/gateway.yaml', /\$\{(TRELLIS_\w+)/g),
  )
})

const pages = (await readdir('docs')).filter((file) => file.endsWith('.md'))
const examples = (
  await Promise.all(
    pages.map(async (page) =>
      [...(await readFile(`docs/${page}`, 'utf8')).matchAll(/^```yaml\n([\s\S]*?)^```$/gm)].map(
        ([, example = '']) => ({ page, example }),
      ),
    ),
  )
)
  .flat()
  // Others are a section of a service, an OpenAPI document, or for Prometheus.
  .filter(({ example }) => /^(?:services|listen|publicUrl|workers|tracing):/.test(example))

test('the pages show at least eight configurations', () => {
  expect(examples.length).toBeGreaterThanOrEqual(8)
})

test.each(examples)(
  'an example of docs/$page has no fault but files that are absent here',
  async ({ example }) => {
    const checked = await checkConfig(example, {})
    const faults = checked.kind === 'ok' ? [] : checked.faults
    expect(faults.filter(({ message }) => !message.includes('does not exist'))).toEqual([])
  },
)

test.each(examples.filter(({ example }) => /mount: \S*\/wp-json$/m.test(example)))(
  'an example of docs/$page with the path of WordPress keeps its names',
  ({ example }) => {
    expect(example).toContain('names: same')
  },
)

test('docs/settings.md has one row for each key of an upstream', async () => {
  const text = await readFile('docs/settings.md', 'utf8')
  const keys = [...text.matchAll(/^\|`(upstream\.[^`]+)`\|/gm)].map(([, key]) => key)
  expect(keys.length).toBeGreaterThan(30)
  expect([...new Set(keys)]).toEqual(keys)
})

type Row5 = {
  readonly key: string
  readonly unit: string
  readonly fallback: string
  readonly example: string
}

const settingRows = (): Row5[] =>
  [...configTables().matchAll(/^\|`([^`]+)`\|(.*)\|$/gm)].map(([, key = '', rest = '']) => {
    const [unit = '', fallback = '', example = ''] = rest.split(/(?<!\\)\|/)
    return { key, unit, fallback, example }
  })

test('docs/settings.md shows a value of every setting: a default, a word of its unit or an example', () => {
  const shown = ({ unit, fallback, example }: Row5): boolean =>
    example !== '' || unit.startsWith('`') || /`[^`]*[^[\]{}`][^`]*`/.test(fallback)
  expect(settingRows().filter((row) => !shown(row))).toEqual([])
})

test('every example of a setting is of a setting that exists', () => {
  const keys = new Set(settingRows().map(({ key }) => key))
  expect(Object.keys(settingExamples).filter((key) => !keys.has(key))).toEqual([])
})

type Tree = Record<string, unknown>

/** Sets a value at a path such as `a.b[].c`: in the first item of a list, which the example of the list has made. */
const setAt = (tree: Tree, path: string, value: unknown): void => {
  const [step = '', ...rest] = path.split('.')
  const name = step.replace('[]', '')
  if (rest.length === 0) {
    tree[name] = value
    return
  }
  if (!step.endsWith('[]')) {
    tree[name] ??= {}
    setAt(tree[name] as Tree, rest.join('.'), value)
    return
  }
  tree[name] ??= [{}]
  setAt((tree[name] as Tree[])[0] ?? {}, rest.join('.'), value)
}

/** What an example needs beside it to mean anything. */
const besides: Readonly<Record<string, Tree>> = {
  'discovery.identity.name': { discovery: { source: 'static' } },
}

/** A rule names what it is for by one of two settings. */
const alternatives = { match: 'operation', operation: 'match' } as const

/** Rules of GraphQL name operations of another kind. */
const graphqlExamples: Readonly<Record<string, string>> = {
  'cache.rules': '[{ match: query Posts, ttl: 60s }]',
  'cache.rules[].match': 'query Posts',
}

const examplesOf = (rows: readonly Row[], tree: Tree, by: 'match' | 'operation'): Tree => {
  const own = tree['contract'] === 'graphql' ? graphqlExamples : {}
  for (const { key } of rows) {
    const example = own[key] ?? settingExamples[key]
    if (example === undefined || key === 'contract') continue
    if (key.endsWith(`[].${alternatives[by]}`) && rows.some((row) => row.key === key.replace(/\w+$/, by))) {
      setAt(tree, key, undefined)
      continue
    }
    for (const [name, value] of Object.entries(besides[key] ?? {})) Object.assign(tree, { [name]: value })
    setAt(tree, key, parse(example))
  }
  return tree
}

const checkedBy = contracts().flatMap((contract) =>
  (['match', 'operation'] as const).map((by) => ({ ...contract, by })),
)

test.each(checkedBy)(
  'the examples of docs/settings.md pass the check: $name, by $by',
  async ({ name, rows, by }) => {
    const pages = examplesOf(rows, { contract: name }, by)
    const config = examplesOf(rowsOf(configJsonSchema(), ''), { services: { pages } }, 'match')
    // Its document is absent here, so that no limit can name the service.
    if (name === 'openapi') delete config['rateLimits']
    const checked = await checkConfig(stringify(config), {})
    const faults = checked.kind === 'ok' ? [] : checked.faults
    expect(faults.filter(({ message }) => !/does not exist|cannot be read/.test(message))).toEqual([])
  },
)

test('docs/configuration.md names 25 settings to start with, each with its default', async () => {
  const text = await readFile('docs/configuration.md', 'utf8')
  const all = settingRows()
  const first = [...text.matchAll(/^\|`([^`]+)`\|(.*?)\|/gm)].map(([, key = '', fallback = '']) => ({
    key,
    fallback,
  }))
  expect(first.map(({ key }) => key)).toHaveLength(25)
  const wrong = first.filter(({ key, fallback }) => {
    const defaults = all.filter((row) => row.key === key).map((row) => row.fallback)
    return !defaults.includes(fallback)
  })
  expect(wrong).toEqual([])
})
