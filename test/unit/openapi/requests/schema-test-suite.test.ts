import { readFile } from 'node:fs/promises'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { expect, test } from 'vitest'
import { atOnce } from '../../../../src/http/bodies/turns.ts'
import type { ApiBundle } from '../../../../src/openapi/document/bundle.ts'
import { cutEndlessReferences } from '../../../../src/openapi/document/load-document.ts'
import { SchemaTranslator } from '../../../../src/openapi/document/request-schema.ts'
import { createSchemaChecker } from '../../../../src/openapi/requests/schema-checker.ts'
import { readExactJson } from '../../../../src/openapi/requests/values.ts'

type Group = {
  readonly description: string
  readonly schema: unknown
  readonly tests: readonly { readonly description: string; readonly data: unknown; readonly valid: boolean }[]
}

/** The mandatory tests of draft 2020-12 of github.com/json-schema-org/JSON-Schema-Test-Suite, in one file. */
const suite = JSON.parse(
  await readFile(new URL('../../../data/json-schema-test-suite/draft2020-12.json', import.meta.url), 'utf8'),
) as { readonly tests: Readonly<Record<string, readonly Group[]>>; readonly remotes: Record<string, object> }

const vocabularies = [
  ...['meta/core', 'meta/applicator', 'meta/unevaluated', 'meta/validation', 'meta/meta-data'],
  ...['meta/format-annotation', 'meta/content'],
]

type Check = (data: unknown) => boolean

/** ajv has the meta-schemas already. */
const metaSchemas = Object.fromEntries(
  await Promise.all(
    ['schema', ...vocabularies].map(async (name) => {
      const file = new URL(`./refs/json-schema-2020-12/${name}.json`, import.meta.resolve('ajv/dist/2020.js'))
      return [
        `https://json-schema.org/draft/2020-12/${name}`,
        JSON.parse(await readFile(file, 'utf8')),
      ] as const
    }),
  ),
)

/** The remote schemas of the suite are files of the bundle, with their addresses as names: nothing is fetched. */
const ours = (schema: unknown): Check => {
  const files = { 'schema.json': schema, ...suite.remotes, ...metaSchemas }
  const bundle: ApiBundle = { root: 'schema.json', files }
  const translator = new SchemaTranslator(bundle, '3.1', 'request')
  const translated = translator.translate({ file: 'schema.json', path: [], node: schema })
  cutEndlessReferences(translator.definitions)
  const { check } = createSchemaChecker(translator.definitions)
  return (data) => {
    const content = Buffer.from(JSON.stringify(data))
    const reading = atOnce(readExactJson(content, { jsonDepth: 64, hasStrictIntegers: false }))
    return reading.kind === 'read' && check(translated, reading.value, reading.exact).length === 0
  }
}

const theirs = (schema: unknown): Check => {
  const ajv = new Ajv2020({ strict: false, logger: false, validateFormats: false })
  for (const [id, remote] of Object.entries(suite.remotes)) ajv.addSchema(remote, id)
  try {
    return ajv.compile(schema as object)
  } catch {
    return () => {
      throw new Error('not compiled')
    }
  }
}

const isRight = (check: Check, data: unknown, valid: boolean): boolean => {
  try {
    return check(data) === valid
  } catch {
    return false
  }
}

const results = Object.entries(suite.tests).flatMap(([file, groups]) =>
  groups.flatMap(({ description, schema, tests }) => {
    const checks = { ours: ours(schema), theirs: theirs(schema) }
    return tests.map((one) => ({
      file,
      name: `${description}: ${one.description}`,
      ours: isRight(checks.ours, one.data, one.valid),
      theirs: isRight(checks.theirs, one.data, one.valid),
    }))
  }),
)

/** Tests that ajv passes and this checker does not. Formats are assertions, as requests need them, and not annotations. */
const formatsAssert = (
  ['email', 'ipv4', 'ipv6', 'hostname', 'date', 'date-time', 'time', 'uri', 'uuid'] as const
).map((name) => `format: ${name} format: invalid ${name} string is only an annotation by default`)

test('every test that ajv passes is passed here, except for those of formats', () => {
  const worse = results.filter((one) => !one.ours && one.theirs).map(({ file, name }) => `${file}: ${name}`)
  expect(worse).toEqual(formatsAssert)
})

test('at most 22 of the 1,299 tests fail, of which ajv fails 62', () => {
  expect(results).toHaveLength(1299)
  expect(results.filter((one) => !one.ours).length).toBeLessThanOrEqual(22)
  expect(results.filter((one) => !one.theirs)).toHaveLength(62)
})
