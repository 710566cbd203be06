import { readFile, writeFile } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { exitCodes } from '../../src/cli/exit-codes.ts'
import { configJsonSchema, type JsonSchema } from '../../src/config/json-schema.ts'
import { durationPattern, sizePattern } from '../../src/config/quantities.ts'

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
  if (type === 'number') return `${minimum} to ${maximum}`
  return maximum === Number.MAX_SAFE_INTEGER ? 'size' : `whole number, ${minimum} to ${maximum}`
}

const valuesOf = (schema: JsonSchema): string => {
  const rules = rulesOf(schema)
  if (rules['enum'] !== undefined) return (rules['enum'] as string[]).map((word) => `\`${word}\``).join(', ')
  // An empty text that stands beside the rules of a text is its default, and no list of what it may be.
  if (rules['const'] !== undefined && rules['const'] !== '') return `\`${rules['const']}\``
  if (rules['pattern'] === durationPattern.source) return 'duration'
  if (rules['pattern'] === sizePattern.source) return 'size'
  if (rules['type'] === 'integer' || rules['type'] === 'number') return rangeOf(rules)
  if (rules['type'] === 'boolean') return 'true, false'
  return rules['type'] === 'array' ? 'list' : 'text'
}

const defaultOf = (schema: JsonSchema, required: boolean): string => {
  if (required) return 'required'
  const value = schema['default']
  if (value === undefined) return ''
  const text = Array.isArray(value) ? `[${value.join(', ')}]` : value === '' ? "''" : String(value)
  return `\`${text}\``
}

const cell = (text: unknown): string => String(text ?? '').replaceAll('|', String.raw`\|`)

const rowsOf = (schema: JsonSchema, prefix: string): string[] => {
  const required = (schema['required'] ?? []) as string[]
  return Object.entries(part(schema, 'properties')).flatMap(([key, value]) => {
    const inner = value as JsonSchema
    const path = `${prefix}${key}`
    if (inner['properties'] !== undefined) return rowsOf(inner, `${path}.`)
    if (path === 'services') return []
    const row = `| \`${path}\` | ${defaultOf(inner, required.includes(key))} | ${cell(valuesOf(inner))} | ${cell(inner['description'])} |`
    const items = part(inner, 'items')
    return items['properties'] === undefined ? [row] : [row, ...rowsOf(items, `${path}[].`)]
  })
}

const head = ['| key | default | values | meaning |', '|---|---|---|---|']

const configTables = (): string => {
  const schema = configJsonSchema()
  const contracts = list(
    part(part(schema, 'properties'), 'services')['additionalProperties'] as JsonSchema,
    'oneOf',
  )
  const sections = contracts.map((contract) => {
    const name = part(part(contract, 'properties'), 'contract')['const']
    return ['', `### A service with \`contract: ${name}\``, '', ...head, ...rowsOf(contract, '')].join('\n')
  })
  return ['### The gateway', '', ...head, ...rowsOf(schema, ''), ...sections].join('\n')
}

const exitTable = (): string =>
  [
    '| code | meaning |',
    '|---|---|',
    ...Object.values(exitCodes).map(({ code, meaning }) => `| ${code} | ${cell(meaning)} |`),
  ].join('\n')

const blocks: readonly (readonly [string, () => string])[] = [
  ['keys', configTables],
  ['exit codes', exitTable],
]

/** The formatter pads tables; what they say is the same. */
const unpadded = (text: string | undefined): string =>
  (text ?? '')
    .replaceAll(/ +/g, ' ')
    .replaceAll(/-{2,}/g, '---')
    .replaceAll(/\| ?--- ?(?=\|)/g, '|---')
    .trim()

test.each(blocks)('docs/configuration.md: %s are those of the code', async (name, generate) => {
  const file = 'docs/configuration.md'
  const text = await readFile(file, 'utf8')
  const [begin, end] = [`<!-- ${name}: generated -->\n`, `\n<!-- end of ${name} -->`]
  expect(text).toContain(begin)
  const [before = '', rest = ''] = text.split(begin)
  const [block, after = ''] = rest.split(end)
  if (update) await writeFile(file, `${before}${begin}${generate()}${end}${after}`)
  else expect(unpadded(block)).toBe(unpadded(generate()))
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
    [...configTables().matchAll(/^\| `([^`]+)`/gm)].map(([, path]) => path?.split('.').at(-1) ?? ''),
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
