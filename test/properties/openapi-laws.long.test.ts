import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { readDocument } from '../../src/cli/document-config.ts'
import { atOnce } from '../../src/http/bodies/turns.ts'
import { type ApiContract, loadDocument } from '../../src/openapi/document/load-document.ts'
import { type Operation, operationOf } from '../../src/openapi/document/operation.ts'
import { createOpenApiRequests } from '../../src/openapi/requests/openapi-requests.ts'
import { times } from '../support/breadth.ts'

// `npm run laws:openapi` tries a million requests and a million integers.
const count = Number(process.env['OPENAPI_LAWS'] ?? times(1_000, 30_000))
const firstSeed = Number(process.env['OPENAPI_SEED'] ?? 1)

/** Mulberry32: the same numbers for the same seed. */
const randomFrom = (seed: number) => {
  let state = seed
  const next = (): number => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return (mixed ^ (mixed >>> 14)) >>> 0
  }
  const below = (max: number): number => next() % max
  const one = <Value>(values: readonly Value[]): Value => values[below(values.length)] as Value
  return { below, one }
}

type Random = ReturnType<typeof randomFrom>

const array = { type: 'array', items: { type: 'string' } }
const object = { type: 'object', properties: { a: {}, b: { type: 'string' } }, additionalProperties: false }
const query = (name: string, schema: object, more: object = {}) => ({ name, in: 'query', schema, ...more })

/** Every style of a query. */
const styles = {
  openapi: '3.1.0',
  paths: {
    '/x': {
      get: {
        parameters: [
          query('n', { type: 'integer', format: 'int64' }),
          query('flag', { type: 'boolean' }),
          query('text', { type: 'string' }, { allowEmptyValue: true }),
          query('list', array),
          query('csv', array, { explode: false }),
          query('pipes', array, { style: 'pipeDelimited', explode: false }),
          query('spaces', array, { style: 'spaceDelimited', explode: false }),
          query('o', object, { style: 'deepObject', explode: true }),
        ],
      },
    },
  },
}

/** Every style of a query, with all that a document may allow to be changed. */
const rewrites = {
  openapi: '3.1.0',
  paths: {
    '/x': {
      get: {
        parameters: [
          query('n', { type: 'integer', default: 7 }, { 'x-trellis-drop-default': true }),
          query('flag', { type: 'boolean', default: true }, { 'x-trellis-drop-default': true }),
          query('text', { type: 'string', default: 'a' }, { 'x-trellis-drop-default': true }),
          query('list', array, { 'x-trellis-set': true }),
          query(
            'csv',
            { ...array, default: ['a', '1'] },
            {
              explode: false,
              'x-trellis-set': true,
              'x-trellis-drop-default': true,
            },
          ),
          query('order', array, { explode: false }),
        ],
      },
    },
  },
}

const contractAt = async (path: string): Promise<ApiContract> => {
  const read = await readDocument(fileURLToPath(new URL(path, import.meta.url)), '.')
  if (read.kind === 'faults') throw new Error(read.messages.join('\n'))
  return read.document.contract
}

const contractOf = (document: object): ApiContract => {
  const reading = loadDocument({ root: 'styles.json', files: { 'styles.json': document } })
  if (reading.kind === 'faults') throw new Error(JSON.stringify(reading.faults))
  return reading.contract
}

const contracts = [
  { title: 'the styles of the specification', contract: contractOf(styles) },
  { title: 'sets and defaults that may be left out', contract: contractOf(rewrites) },
  { title: 'a shop', contract: await contractAt('../contracts/openapi/shop.yaml') },
  { title: 'a pet store', contract: await contractAt('../contracts/openapi/petstore.yaml') },
]

const values = ['', '1', '9223372036854775808', '05', 'true', 'a', 'ä€', 'a b']
const integers = ['1', '7', '42', '9223372036854775807']
const characters = ['a', '1', ',', '+', '|', ' ', '/', '%', '&', '=', '~', 'ß', '[', ']', '.', '#']

const textOf = (random: Random): string =>
  random.below(2) === 0
    ? random.one(values)
    : Array.from({ length: random.below(5) }, () => random.one(characters)).join('')

type Schema = Operation['parameters'][number]['schema']

/** A text that the schema takes, most of the time. */
const valueFor = (schema: Schema | undefined, random: Random): string => {
  if (typeof schema !== 'object' || random.below(20) === 0) return textOf(random)
  if (Array.isArray(schema['enum'])) return String(random.one(schema['enum'] as unknown[]))
  switch (schema['type']) {
    case 'integer':
      return random.one(integers)
    case 'boolean':
      return random.one(['true', 'false'])
    case 'array':
      return valueFor(schema['items'] as Schema, random)
    default:
      return textOf(random)
  }
}

/** A text in one of its spellings: unreserved characters escaped or not, digits of escapes in either case. */
const spelled = (text: string, random: Random, kept = ''): string =>
  Array.from(text, (character) => {
    if (kept.includes(character)) return character
    if (/[\w.~-]/.test(character) && random.below(4) > 0) return character
    const escaped = Array.from(
      Buffer.from(character),
      (octet) => `%${octet.toString(16).padStart(2, '0')}`,
    ).join('')
    return random.below(2) === 0 ? escaped : escaped.toUpperCase()
  }).join('')

type Part = { readonly group: string; readonly name: string; readonly value: string; readonly kept: string }

const undeclared = ['u_b', 'u_a']

/** Names under which a query has the parts of a parameter. */
const namesOf = ({ name, style }: Operation['parameters'][number]): readonly string[] =>
  style === 'deepObject' ? [`${name}[a]`, `${name}[b]`, `${name}[color]`] : [name]

const partsOf = ({ parameters }: Operation, random: Random): readonly Part[] => {
  const declared = parameters.filter(({ location }) => location === 'query')
  const parts: Part[] = []
  for (const parameter of declared) {
    if (random.below(3) === 0) continue
    const isList = typeof parameter.schema === 'object' && parameter.schema['type'] === 'array'
    const repeats = parameter.explode && isList && random.below(2) === 0 ? 2 : 1
    for (let repeat = 0; repeat < repeats; repeat += 1) {
      const name = random.one(namesOf(parameter))
      parts.push({
        group: parameter.name,
        name,
        value: valueFor(parameter.schema, random),
        kept: parameter.explode ? '' : ',|',
      })
    }
  }
  for (const name of undeclared)
    if (random.below(3) === 0) parts.push({ group: '', name, value: textOf(random), kept: '' })
  return parts
}

/** Delimiters are written as they are or escaped, which differ; a query keeps one of both in all its spellings. */
const written = (parts: readonly Part[], random: Random): string =>
  parts.map(({ name, value, kept }) => `${spelled(name, random)}=${spelled(value, random, kept)}`).join('&')

/** The declared parameters in another order, and the parts of a set; parts of others, and undeclared parts, keep theirs. */
const reordered = (parts: readonly Part[], { parameters }: Operation, random: Random): readonly Part[] => {
  const groups = new Map<string, Part[]>()
  for (const part of parts) groups.set(part.group, [...(groups.get(part.group) ?? []), part])
  for (const { name, isSet, explode } of parameters) {
    const own = groups.get(name)
    if (isSet !== true || own === undefined) continue
    const parts = explode
      ? own.toReversed()
      : own.map((part) => ({ ...part, value: part.value.split(',').toReversed().join(',') }))
    groups.set(name, parts)
  }
  return [...groups.values()].sort(() => random.below(3) - 1).flat()
}

/** The values of a parameter as its document says that they are meant. */
const meant = (
  values: readonly string[],
  parameter: Operation['parameters'][number] | undefined,
): readonly string[] => {
  const { isSet, explode, droppedDefault } = parameter ?? {}
  if (isSet === undefined && droppedDefault === undefined) return values
  const isOneValue = isSet === true && explode === false
  const items = isOneValue ? values.flatMap((value) => (value === '' ? [] : value.split(','))) : [...values]
  const [sorted, wanted] = [items, [...(droppedDefault ?? [])]].map((list) =>
    isSet === true ? list.sort() : list,
  )
  return JSON.stringify(sorted) === JSON.stringify(wanted) && droppedDefault !== undefined
    ? []
    : (sorted ?? [])
}

/** What a decoder of forms reads: values by name, each in its order, and the order of undeclared names. */
const decoded = (text: string, { parameters: declared }: Operation): string => {
  const parameters = [...new URLSearchParams(text)]
  const byName = new Map<string, string[]>()
  for (const [name, value] of parameters) byName.set(name, [...(byName.get(name) ?? []), value])
  const values = [...byName]
    .map(
      ([name, all]) =>
        [
          name,
          meant(
            all,
            declared.find((one) => one.name === name),
          ),
        ] as const,
    )
    .filter(([, all]) => all.length > 0)
    .sort(([a], [b]) => (a < b ? -1 : 1))
  return JSON.stringify([values, parameters.filter(([name]) => name.startsWith('u_'))])
}

describe.each(contracts)('canonical queries of $title', ({ contract }) => {
  const { validator } = atOnce(
    createOpenApiRequests(contract, {
      limits: { queryParameters: 256, jsonDepth: 64 },
      unknownParameters: 'forward',
      trackingParameters: [],
    }),
  )
  const endpoints = contract.rows.flatMap((row) =>
    row.endpoints
      .map((endpoint) => ({ row, endpoint, operation: operationOf(endpoint) as Operation }))
      .filter(({ operation }) => operation.parameters.some(({ location }) => location === 'query')),
  )
  const share = Math.ceil(count / contracts.length)

  test(`are canonical, decode as the original, and are one for all spellings: ${share} requests`, {
    timeout: 60_000 + share,
  }, () => {
    const random = randomFrom(firstSeed)
    const differences: unknown[] = []
    let valid = 0
    for (let round = 0; round < share && differences.length < 5; round += 1) {
      const { row, endpoint, operation } = random.one(endpoints)
      const canonical = (text: string): string | undefined => {
        const result = validator.validate({
          method: operation.method,
          row,
          endpoint,
          pathParameters: { id: '1', petId: '1', format: 'csv' },
          query: text,
          contentType: undefined,
          content: undefined,
        })
        return result.kind === 'valid' ? result.query : undefined
      }
      const parts = partsOf(operation, random)
      const [first, second] = [written(parts, random), written(reordered(parts, operation, random), random)]
      const [one, other] = [canonical(first), canonical(second)]
      const isSame = one === other
      const keeps =
        one === undefined || (canonical(one) === one && decoded(one, operation) === decoded(first, operation))
      if (!isSame || !keeps) differences.push({ first, second, one, other, again: one && canonical(one) })
      if (one !== undefined) valid += 1
    }
    process.stderr.write(`canonical laws: ${JSON.stringify({ tried: share, valid })}\n`)
    expect(differences).toEqual([])
    // Not a test that passes because everything is refused.
    expect(valid).toBeGreaterThan(share / 4)
  })
})

test(`64-bit integers are compared as BigInt compares them: ${count} integers`, {
  timeout: 60_000 + count,
}, () => {
  const contract = contractOf(styles)
  const requests = atOnce(
    createOpenApiRequests(contract, {
      limits: { queryParameters: 256, jsonDepth: 64 },
      unknownParameters: 'forward',
      trackingParameters: [],
    }),
  )
  const found = requests.find('GET', '/x')
  if (found.kind !== 'found') throw new Error(found.kind)
  const random = randomFrom(firstSeed)
  const edges = [2n ** 63n, -(2n ** 63n), 2n ** 53n, -(2n ** 53n), 0n, 2n ** 31n, 10n ** 18n]
  const differences: string[] = []
  let inside = 0
  for (let round = 0; round < count; round += 1) {
    const near = random.one(edges) + BigInt(random.below(7)) - 3n
    const wide = BigInt.asIntN(66, (BigInt(random.below(2 ** 31)) << 35n) ^ BigInt(random.below(2 ** 31)))
    const value = random.below(2) === 0 ? near : wide
    const fits = value >= -(2n ** 63n) && value < 2n ** 63n
    const result = requests.validator.validate({
      method: 'GET',
      row: found.row,
      endpoint: found.endpoint,
      pathParameters: {},
      query: `n=${value}`,
      contentType: undefined,
      content: undefined,
    })
    if ((result.kind === 'valid') !== fits) differences.push(String(value))
    if (fits) inside += 1
  }
  expect(differences.slice(0, 5)).toEqual([])
  expect(inside).toBeGreaterThan(count / 4)
})
