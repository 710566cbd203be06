import { readFile } from 'node:fs/promises'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { expect, test } from 'vitest'
import type { ApiBundle } from '../../../../src/contracts/openapi/bundle.ts'
import {
  createSchemaTranslator,
  cutEndlessReferences,
} from '../../../../src/contracts/openapi/request-schema.ts'
import { readExactJson } from '../../../../src/request/openapi/exact-json.ts'
import { createSchemaChecker } from '../../../../src/request/openapi/schema-checker.ts'

type Group = {
  readonly description: string
  readonly schema: unknown
  readonly tests: readonly { readonly description: string; readonly data: unknown; readonly valid: boolean }[]
}

/** The mandatory tests of draft 2020-12 of github.com/json-schema-org/JSON-Schema-Test-Suite, in one file. */
const suite = JSON.parse(
  await readFile(new URL('../../../data/json-schema-test-suite/draft2020-12.json', import.meta.url), 'utf8'),
) as { readonly tests: Readonly<Record<string, readonly Group[]>>; readonly remotes: Record<string, object> }

type Check = (data: unknown) => boolean

const ours = (schema: unknown): Check => {
  const bundle: ApiBundle = { root: 'schema.json', files: { 'schema.json': schema } }
  const { translate, definitions } = createSchemaTranslator(bundle, '3.1', 'request')
  const translated = translate({ file: 'schema.json', path: [], node: schema })
  cutEndlessReferences(definitions)
  const { check } = createSchemaChecker(definitions)
  return (data) => {
    const reading = readExactJson(Buffer.from(JSON.stringify(data)), {
      jsonDepth: 64,
      hasStrictIntegers: false,
    })
    return reading.kind === 'read' && check(translated, reading.value, reading.exact) === undefined
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

type Deviation = { readonly reason: string; readonly names: readonly string[] }

/** Tests that ajv passes and this checker does not, with the reason. */
const deviations: Readonly<Record<string, Deviation>> = {
  anchor: {
    reason:
      '`$id` and `$anchor` name no schema: references of a document are JSON Pointers and files below its folder',
    names: [
      'Location-independent identifier: mismatch',
      'Location-independent identifier with absolute URI: mismatch',
      'Location-independent identifier with base URI change in subschema: mismatch',
      'same $anchor with different base uri: $ref does not resolve to /$defs/A/allOf/0',
    ],
  },
  defs: {
    reason: 'the meta-schema is a remote document',
    names: ['validate definition against metaschema: invalid definition schema'],
  },
  dynamicRef: {
    reason: '`$dynamicRef` has no meaning',
    names: [
      'A $dynamicRef to a $dynamicAnchor in the same schema resource behaves like a normal $ref to an $anchor: An array containing non-strings is invalid',
      'A $dynamicRef to an $anchor in the same schema resource behaves like a normal $ref to an $anchor: An array containing non-strings is invalid',
      'A $ref to a $dynamicAnchor in the same schema resource behaves like a normal $ref to an $anchor: An array containing non-strings is invalid',
      'A $dynamicRef resolves to the first $dynamicAnchor still in scope that is encountered when the schema is evaluated: An array containing non-strings is invalid',
      'A $dynamicRef without anchor in fragment behaves identical to $ref: An array of strings is invalid',
      "A $dynamicRef with intermediate scopes that don't include a matching $dynamicAnchor does not affect dynamic scope resolution: An array containing non-strings is invalid",
      'strict-tree schema, guards against misspelled properties: instance with correct field',
      'tests for implementation dynamic anchor and reference link: incorrect parent schema',
      'tests for implementation dynamic anchor and reference link: incorrect extended schema',
      '$ref and $dynamicAnchor are independent of order - $defs first: incorrect parent schema',
      '$ref and $dynamicAnchor are independent of order - $defs first: incorrect extended schema',
      '$ref and $dynamicAnchor are independent of order - $ref first: incorrect parent schema',
      '$ref and $dynamicAnchor are independent of order - $ref first: incorrect extended schema',
      '$dynamicRef skips over intermediate resources - direct reference: string property fails',
    ],
  },
  format: {
    reason: 'formats are assertions, as requests need them',
    names: [
      'email format: invalid email string is only an annotation by default',
      'ipv4 format: invalid ipv4 string is only an annotation by default',
      'ipv6 format: invalid ipv6 string is only an annotation by default',
      'hostname format: invalid hostname string is only an annotation by default',
      'date format: invalid date string is only an annotation by default',
      'date-time format: invalid date-time string is only an annotation by default',
      'time format: invalid time string is only an annotation by default',
      'uri format: invalid uri string is only an annotation by default',
      'uuid format: invalid uuid string is only an annotation by default',
    ],
  },
  pattern: {
    reason: 'this property of characters is not known to RE2: the pattern is not checked',
    names: ['pattern with Unicode property escape requires unicode mode: Digits do not match'],
  },
  properties: {
    reason: 'a member named `__proto__` is not described: JSON bodies with one are refused',
    names: ['properties whose names are Javascript object property names: __proto__ not valid'],
  },
  ref: {
    reason: '`$id` names no schema: references of a document are JSON Pointers and files below its folder',
    names: [
      'remote ref, containing refs itself: remote ref invalid',
      'Recursive references between schemas: invalid tree',
      '$id must be resolved against nearest parent, not just immediate parent: non-number is invalid',
      'order of evaluation: $id and $ref: data is invalid against first definition',
      'order of evaluation: $id and $anchor and $ref: data is invalid against first definition',
      'order of evaluation: $id and $ref on nested schema: data is invalid against nested sibling',
      'simple URN base URI with $ref via the URN: invalid under the URN IDed schema',
      'URN base URI with URN and JSON pointer ref: a non-string is invalid',
      'URN base URI with URN and anchor ref: a non-string is invalid',
      'ref to if: a non-integer is invalid due to the $ref',
      'ref to then: a non-integer is invalid due to the $ref',
      'ref to else: a non-integer is invalid due to the $ref',
      'ref with absolute-path-reference: an integer is invalid',
    ],
  },
  refRemote: {
    reason: 'nothing is fetched',
    names: [
      'remote ref: remote ref invalid',
      'fragment within remote ref: remote fragment invalid',
      'anchor within remote ref: remote anchor invalid',
      'ref within remote ref: ref within ref invalid',
      'base URI change: base URI change ref invalid',
      'base URI change - change folder: string is invalid',
      'base URI change - change folder in subschema: string is invalid',
      'root ref in remote ref: object is invalid',
      'remote ref with ref to defs: invalid',
      'Location-independent identifier in remote ref: string is invalid',
      'retrieved nested refs resolve relative to their URI not $id: number is invalid',
      'remote HTTP ref with different $id: number is invalid',
      'remote HTTP ref with different URN $id: number is invalid',
      'remote HTTP ref with nested absolute ref: number is invalid',
      '$ref to $ref finds detached $anchor: non-number is invalid',
    ],
  },
}

test('every test that ajv passes is passed here, except for those that are listed with their reason', () => {
  const worse = results.filter((one) => !one.ours && one.theirs).map(({ file, name }) => `${file}: ${name}`)
  const listed = Object.entries(deviations).flatMap(([file, { names }]) =>
    names.map((name) => `${file}: ${name}`),
  )
  expect(worse).toEqual(listed)
})

test('some tests are passed here that ajv fails', () => {
  expect(results).toHaveLength(1299)
  expect(results.filter((one) => one.ours && !one.theirs).length).toBeGreaterThanOrEqual(27)
})
