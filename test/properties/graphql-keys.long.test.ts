import { buildSchema, type ExecutionResult, execute, type OperationTypeNode, parse } from 'graphql'
import { expect, test } from 'vitest'
import { Requests } from '../../src/graphql/requests.ts'
import type { ValidationInput } from '../../src/service/contract.ts'
import { times } from '../support/breadth.ts'
import { oneOf, randomFrom } from '../support/random.ts'

// No two requests that differ in meaning share a key, and no request that writes counts as a read. What a request means, the
// reference implementation says by executing it against a schema whose fields have effects.

const documents = Number(process.env['GRAPHQL_DOCUMENTS'] ?? times(1_000, 3_000))

const schema = buildSchema(`
  type Node { id(x: Int, y: String, list: [Int]): String node(x: Int, y: String, list: [Int]): Node }
  type Query { id(x: Int, y: String, list: [Int]): String node(x: Int, y: String, list: [Int]): Node }
  type Mutation { id(x: Int, y: String, list: [Int]): String node(x: Int, y: String, list: [Int]): Node }
  schema { query: Query mutation: Mutation }
`)

const random = randomFrom(Number(process.env['GRAPHQL_SEED'] ?? 1))
const pick = <Value>(choices: readonly Value[]): Value => oneOf(random, choices)
const chance = (probability: number): boolean => random() < probability
const int = (below: number): number => Math.floor(random() * below)

const values = {
  x: () => pick(['0', '1', '-1', 'null', '$v', '$w']),
  y: () => pick(['"a"', '"A"', '"a b"', '"a  b"', '"#"', '"\\u0061"', '"""a"""', '"mutation {"', 'null']),
  list: () => pick(['[]', '[1]', '[1,2]', '[2,1]', '[[1]]'.slice(1, -1)]),
}

const argumentsText = (): string => {
  const names = (['x', 'y', 'list'] as const).filter(() => chance(0.3))
  return names.length === 0
    ? ''
    : `(${names.map((name) => `${name}:${values[name]()}`).join(pick([' ', ',']))})`
}

const selectionText = (depth: number, fragments: readonly string[]): string => {
  const parts = Array.from({ length: 1 + int(2) }, () => {
    if (fragments.length > 0 && chance(0.2)) return `...${pick(fragments)}`
    const alias = chance(0.3) ? `${pick(['a', 'b', 'mutation', 'query'])}:` : ''
    const directive = chance(0.1) ? `@${pick(['skip', 'include'])}(if:${pick(['true', 'false'])})` : ''
    return depth > 0 && chance(0.4)
      ? `${alias}node${argumentsText()}${directive}${selectionText(depth - 1, fragments)}`
      : `${alias}id${argumentsText()}${directive}`
  })
  return `{${parts.join(' ')}}`
}

type Parts = {
  readonly operations: readonly string[]
  readonly fragments: readonly string[]
  readonly operationName: string | undefined
  readonly variables: Readonly<Record<string, unknown>>
}

const partsOf = (): Parts => {
  const hasFragment = chance(0.3)
  const names = hasFragment ? ['F'] : []
  const types = ['Query', 'Mutation', 'Node']
  const fragments = hasFragment ? [`fragment F on ${pick(types)}${selectionText(1, [])}`] : []
  const count = chance(0.2) ? 2 : 1
  const operations = Array.from({ length: count }, (_, at) => {
    const type = chance(0.25) ? 'mutation' : 'query'
    const declared = pick(['($v:Int)', '($v:Int,$w:Int=1)', '($v:Int=0,$w:Int)', ''])
    const name = count === 2 || chance(0.5) ? `Op${at}` : ''
    const isShort = type === 'query' && name === '' && declared === '' && chance(0.5)
    return isShort ? selectionText(2, names) : `${type} ${name}${declared}${selectionText(2, names)}`
  })
  return {
    operations,
    fragments,
    operationName: count === 2 || chance(0.2) ? pick(['Op0', 'Op1']) : undefined,
    variables: Object.fromEntries(
      ['v', 'w', 'z'].filter(() => chance(0.4)).map((name) => [name, pick([0, 1, null])]),
    ),
  }
}

const noise = (): string => pick([' ', '\n', '\t', ', ', ' # mutation { id }\n', ''])

/** The same request in another spelling. */
const bodyOf = ({ operations, fragments, operationName, variables }: Parts): string => {
  const definitions = [...operations, ...fragments]
  if (chance(0.5)) definitions.unshift(...definitions.splice(operations.length))
  const query = definitions
    .map((text) => noise() + text.replaceAll(/[{}](?=[^"]*(?:"[^"]*"[^"]*)*$)/g, (brace) => brace + noise()))
    .join('\n')
  const members = Object.entries({
    query,
    ...(operationName === undefined ? {} : { operationName }),
    variables: Object.fromEntries(Object.entries(variables).reverse()),
    ...(chance(0.2) ? { extensions: { clientLibrary: { name: 'x' } } } : {}),
  })
  return JSON.stringify(Object.fromEntries(chance(0.5) ? members : members.reverse()), undefined, int(2))
}

type Executed = { readonly result: ExecutionResult; readonly effects: readonly string[] }

const executed = async (body: string): Promise<Executed | undefined> => {
  const { query, operationName, variables } = JSON.parse(body) as {
    readonly query: string
    readonly operationName?: string
    readonly variables: Record<string, unknown>
  }
  const document = parse(query)
  const effects: string[] = []
  const result = await execute({
    schema,
    document,
    operationName: operationName ?? null,
    variableValues: variables,
    rootValue: {},
    fieldResolver: (
      parent: { readonly path?: string },
      given,
      _context,
      { fieldName: headerName, operation },
    ) => {
      const path = `${parent.path ?? (operation.operation satisfies `${OperationTypeNode}`)}/${headerName}${JSON.stringify(given)}`
      if (operation.operation !== 'query') effects.push(path)
      return headerName === 'id' ? path : { path }
    },
  })
  // Nothing was executed: no operation of that name, or a variable of another type.
  return result.data === undefined ? undefined : { result, effects }
}

const rule = {
  ttlMs: 1,
  staleWhileRevalidateMs: 0,
  staleIfErrorMs: 0,
  override: false,
  negativeTtlMs: 0,
  scope: 'public',
} as const

const requests = new Requests(
  {
    maxDepth: 15,
    maxAliases: 50,
    maxTokens: 2_000,
    maxBytes: 65_536,
    introspection: true,
    persisted: true,
    batch: 10,
    tags: 'partial',
  },
  64,
  () => ({ profile: 'safe', rule }),
)

const meaningOf = (method: string, query: string, content: Buffer | undefined) => {
  const input = {
    method,
    query,
    content,
    contentType: 'application/json',
    headers: {},
  } as unknown as ValidationInput
  const validation = requests.validate(input)
  return validation.kind === 'valid' ? validation.meaning : undefined
}

const urlOf = (body: string): string =>
  Object.entries(JSON.parse(body) as Record<string, unknown>)
    .map(
      ([name, value]) =>
        `${name}=${encodeURIComponent(typeof value === 'string' ? value : JSON.stringify(value))}`,
    )
    .join('&')

const byKey = new Map<string, string>()
const counted = { reads: 0, writes: 0, shared: 0 }

/** The key of a read; undefined for a request that writes, or that is no read. */
const checkedKey = async (body: string): Promise<string | undefined> => {
  const outcome = await executed(body)
  if (outcome === undefined) return undefined
  const meaning = meaningOf('POST', '', Buffer.from(body))
  const byGet = meaningOf('GET', urlOf(body), undefined)
  if (outcome.effects.length > 0) {
    counted.writes += 1
    expect(meaning?.effect, body).toBe('write')
    expect(byGet?.effect, body).not.toBe('read')
    return undefined
  }
  if (meaning?.effect !== 'read') return undefined
  counted.reads += 1
  expect(byGet?.key, body).toBe(meaning.key)
  const text = JSON.stringify(outcome.result.data)
  const before = byKey.get(meaning.key)
  if (before !== undefined) counted.shared += 1
  expect(text, body).toBe(before ?? text)
  byKey.set(meaning.key, text)
  return meaning.key
}

test('requests that share a key mean the same, in every spelling, and none of them writes', async () => {
  for (let i = 0; i < documents; i += 1) {
    const parts = partsOf()
    const bodies = [bodyOf(parts), bodyOf(parts)]
    const keys = await Promise.all(bodies.map(checkedKey))
    expect(new Set(keys).size, bodies.join('\n')).toBe(1)
  }
  expect(counted.reads).toBeGreaterThan(documents / 4)
  expect(counted.writes).toBeGreaterThan(documents / 50)
  expect(counted.shared).toBeGreaterThan(documents / 8)
  process.stdout.write(`${documents} documents: ${JSON.stringify(counted)}\n`)
}, 7_200_000)
