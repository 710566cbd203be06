import { readFile } from 'node:fs/promises'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { parse } from 'yaml'
import { z } from 'zod'
import { configJsonSchema } from '../../../src/config/json-schema.ts'
import { secretPaths } from '../../../src/config/schema/shape.ts'
import { checkConfig } from '../../../src/gateway/load-config.ts'

const files = ['config/gateway.yaml', 'config/production.example.yaml', 'config/wordpress.example.yaml']

/** A value that a person could put where another one belongs. */
const anything = fc.oneof(
  fc.constantFrom(
    null,
    true,
    '',
    '0s',
    '5',
    -1,
    1e9,
    0.5,
    'embedded',
    'file:/etc/hostname',
    [],
    {},
    [[]],
    // biome-ignore lint/suspicious/noTemplateCurlyInString: a reference as the file spells it
    '${X}',
    '*',
  ),
  fc.jsonValue({ maxDepth: 3 }),
)

const keys = fc.constantFrom(
  ...[
    'listen',
    'admin',
    'limits',
    'cache',
    'services',
    'site',
    'plants',
    'contract',
    'mount',
    'upstream',
    'targets',
    'rules',
  ],
  ...[
    'match',
    'ttl',
    'port',
    'host',
    'token',
    'shared',
    'url',
    'discovery',
    'identity',
    'trustedProxies',
    '__proto__',
    'constructor',
  ],
)

const tree: fc.Arbitrary<unknown> = fc.letrec((tie) => ({
  node: fc.oneof(
    { maxDepth: 5, depthSize: 'medium' },
    anything,
    fc.dictionary(keys, tie('node'), { maxKeys: 6 }),
  ),
})).node

test('any file gives a configuration or faults with positions, never an exception', async () => {
  await fc.assert(
    fc.asyncProperty(tree, async (value) => {
      const result = await checkConfig(JSON.stringify(value) ?? '', {})
      if (result.kind === 'ok') return
      expect(result.faults.length).toBeGreaterThan(0)
      for (const { line, column, message } of result.faults) {
        expect(line).toBeGreaterThanOrEqual(1)
        expect(column).toBeGreaterThanOrEqual(1)
        expect(message).not.toMatch(/^Invalid|undefined|\[object/)
      }
    }),
    { numRuns: 150 },
  )
})

test('parsing any text never throws', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.oneof(fc.string(), fc.string({ unit: fc.constantFrom(...'{}[]:,-&*!|>#"\'\n \t$aA0') })),
      async (text) => {
        expect(['ok', 'faults']).toContain((await checkConfig(text, {})).kind)
      },
    ),
    { numRuns: 150 },
  )
})

test('a few lines of aliases that expand to gigabytes are refused', async () => {
  const lines = ['a0: &a0 [x, x, x, x, x, x, x, x, x, x]']
  for (let level = 1; level < 12; level += 1) {
    lines.push(`a${level}: &a${level} [${Array.from({ length: 10 }, () => `*a${level - 1}`).join(', ')}]`)
  }
  const result = await checkConfig(lines.join('\n'), {})
  expect(result).toMatchObject({
    kind: 'faults',
    faults: [{ message: expect.stringMatching(/^not YAML: .*alias/i) }],
  })
})

test('anchors work, and a fault in one is reported at its definition', async () => {
  const text = [
    'services:',
    '  a: { contract: plants, upstream: &u { maxConcurrent: 0 } }',
    '  b: { contract: plants, mount: /b, upstream: *u }',
  ].join('\n')
  const result = await checkConfig(text, {})
  expect(
    result.kind === 'faults' && result.faults.map(({ path, line, column }) => `${line}:${column} ${path}`),
  ).toEqual(['2:56 services.a.upstream.maxConcurrent', '2:56 services.b.upstream.maxConcurrent'])
})

test.each(files)('the JSON Schema accepts %s', async (file) => {
  const schema = z.fromJSONSchema(configJsonSchema() as Parameters<typeof z.fromJSONSchema>[0])
  const parsed = schema.safeParse(parse(await readFile(file, 'utf8')))
  expect(parsed.error?.issues).toBeUndefined()
})

test.each([
  ['an unknown key', { lsiten: {} }],
  ['a port out of range', { listen: { port: 70_000 } }],
  ['a duration without its unit', { drain: { delay: '5' } }],
  ['an unknown contract', { services: { a: { contract: 'b' } } }],
])('the JSON Schema refuses %s', (_description, value) => {
  const schema = z.fromJSONSchema(configJsonSchema() as Parameters<typeof z.fromJSONSchema>[0])
  expect(schema.safeParse(value).success).toBe(false)
})

test('the keys of secrets are those with "Secret" in their description', () => {
  const found: string[] = []
  const visit = (schema: unknown, path: readonly string[]): void => {
    if (typeof schema !== 'object' || schema === null) return
    const { description, properties, additionalProperties, anyOf, items, oneOf } = schema as {
      description?: string
      properties?: object
      additionalProperties?: unknown
      anyOf?: readonly unknown[]
      items?: unknown
      oneOf?: readonly unknown[]
    }
    if (description?.startsWith('Secret.') === true) found.push(path.join('.'))
    for (const [key, inner] of Object.entries(properties ?? {})) visit(inner, [...path, key])
    for (const inner of [...(oneOf ?? []), ...(anyOf ?? [])]) visit(inner, path)
    visit(items, [...path, '*'])
    visit(additionalProperties, [...path, '*'])
  }
  visit(configJsonSchema(), [])
  expect([...new Set(found)]).toEqual(secretPaths.map((path) => path.join('.')))
})
