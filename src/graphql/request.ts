import { isUtf8 } from 'node:buffer'
import {
  canonicalJson,
  elementTexts,
  type JsonText,
  nestingDepth,
  parsedJson,
  visitMembers,
} from '../http/json-text.ts'

/** The parameters of a request (GraphQL over HTTP §5.1), as texts of JSON where they may be anything. */
export type GraphqlRequest = {
  readonly kind: 'request'
  readonly document: string | undefined
  /** '' for none. */
  readonly operationName: string
  /** Names and texts of the variables in their order. */
  readonly variables: ReadonlyMap<string, JsonText>
  /** SHA-256 of an automatic persisted query. */
  readonly sha256: string | undefined
  /** All other extensions, as canonical JSON; '' for none. */
  readonly extensions: JsonText
}

/** `opaque`: what servers make of the request is not known; `empty`: it has none of the parameters. */
export type RequestReading = GraphqlRequest | { readonly kind: 'opaque' } | { readonly kind: 'empty' }

const opaque = { kind: 'opaque' } as const
const empty = { kind: 'empty' } as const

const isAbsent = (text: JsonText | undefined): boolean => text === undefined || text === 'null'

/** Members of an object by name; undefined for another value, and for a repeated name, of which servers read different ones. */
const membersOf = (text: JsonText): ReadonlyMap<string, JsonText> | undefined => {
  if (!text.startsWith('{')) return undefined
  const members = new Map<string, JsonText>()
  let isRepeated = false
  visitMembers(text, (name, from, end) => {
    isRepeated ||= members.has(name)
    members.set(name, text.slice(from, end))
  })
  return isRepeated ? undefined : members
}

const stringOf = (text: JsonText | undefined): string | undefined =>
  text?.startsWith('"') === true ? (JSON.parse(text) as string) : undefined

const none: ReadonlyMap<string, JsonText> = new Map()

const sha256Pattern = /^[\da-f]{64}$/

/** Version 1 of automatic persisted queries; undefined for anything else. */
const hashOf = (text: JsonText): string | undefined => {
  const members = membersOf(text)
  const sha256 = stringOf(members?.get('sha256Hash'))
  return members?.get('version') === '1' && sha256 !== undefined && sha256Pattern.test(sha256)
    ? sha256
    : undefined
}

/** Names the library of the client; execution ignores it. */
const clientLibrary = 'clientLibrary'

type Extensions = Pick<GraphqlRequest, 'sha256' | 'extensions'>

const extensionsOf = (text: JsonText | undefined): Extensions | undefined => {
  if (text === undefined || isAbsent(text)) return { sha256: undefined, extensions: '' }
  const members = membersOf(text)
  if (members === undefined) return undefined
  const { persistedQuery, ...more } = Object.fromEntries(members) as { readonly persistedQuery?: JsonText }
  const sha256 = persistedQuery === undefined ? undefined : hashOf(persistedQuery)
  if (persistedQuery !== undefined && sha256 === undefined) return undefined
  const others = Object.entries(more as Readonly<Record<string, JsonText>>)
    .filter(([name]) => name !== clientLibrary)
    .map(([name, value]) => `${JSON.stringify(name)}:${value}`)
  return { sha256, extensions: others.length === 0 ? '' : canonicalJson(`{${others}}`) }
}

type Members = {
  readonly query: JsonText | undefined
  readonly operationName: JsonText | undefined
  readonly variables: JsonText | undefined
  readonly extensions: JsonText | undefined
}

const requestOf = ({ query, operationName, variables, extensions }: Members): RequestReading => {
  const document = isAbsent(query) ? undefined : stringOf(query)
  const name = isAbsent(operationName) ? '' : stringOf(operationName)
  const given = variables === undefined || isAbsent(variables) ? none : membersOf(variables)
  const more = extensionsOf(extensions)
  if (name === undefined || given === undefined || more === undefined) return opaque
  if (document === undefined && (!isAbsent(query) || more.sha256 === undefined)) return opaque
  return { kind: 'request', document, operationName: name, variables: given, ...more }
}

const names: ReadonlySet<string> = new Set(['query', 'operationName', 'variables', 'extensions'])

/** One request of a body. A member of another name may name a stored document (`queryId`, `documentId`, `id`). */
export const readItem = (text: JsonText): RequestReading => {
  const members = membersOf(text)
  if (members === undefined || ![...members.keys()].every((name) => names.has(name))) return opaque
  return requestOf({
    query: members.get('query'),
    operationName: members.get('operationName'),
    variables: members.get('variables'),
    extensions: members.get('extensions'),
  })
}

export type BodyReading = RequestReading | { readonly kind: 'batch'; readonly items: readonly JsonText[] }

/** Reads a JSON body: one request, or a list of them. */
export const readGraphqlBody = (content: Buffer, maxDepth: number): BodyReading => {
  if (!isUtf8(content)) return opaque
  const received = content.toString()
  // Not trimmed before: a byte order mark is no space of JSON.
  if (nestingDepth(received) > maxDepth || parsedJson(received) === undefined) return opaque
  const text = received.trim()
  const items = elementTexts(text)
  return items === undefined ? readItem(text) : { kind: 'batch', items }
}

/** Names that a server may read as one of the parameters, or as that of a stored document: in another case, as a list, with signs that PHP removes. */
const isAlike = (name: string): boolean =>
  /^(?:query|variables|operationname|extensions|doc(?:ument)?id)/.test(
    name.replaceAll(/[^A-Za-z]/g, '').toLowerCase(),
  )

/** A query of a URL: the request in it, and the other parameters as they are written. */
export type QueryReading = { readonly reading: RequestReading; readonly rest: string }

const decodedPart = (part: string): string | undefined => {
  try {
    return decodeURIComponent(part.replaceAll('+', ' '))
  } catch {
    return undefined
  }
}

/** JSON in a parameter: checked, since texts of JSON are cut without a check. */
const jsonParameter = (text: string | undefined, maxDepth: number): JsonText | undefined => {
  if (text === undefined || text === '') return undefined
  const trimmed = text.trim()
  // Not JSON, and no JSON either: the request is opaque.
  return nestingDepth(trimmed) > maxDepth || parsedJson(trimmed) === undefined ? '[' : trimmed
}

type QueryParts = {
  /** Undefined: a parameter is repeated, cannot be decoded, or may be read as another one. */
  readonly given: ReadonlyMap<string, string> | undefined
  readonly rest: string
}

const partsOf = (query: string): QueryParts => {
  const given = new Map<string, string>()
  const rest: string[] = []
  let isOpaque = false
  for (const part of query === '' ? [] : query.split('&')) {
    const [written = '', ...more] = part.split('=')
    const name = decodedPart(written)
    const value = decodedPart(more.join('='))
    const isParameter = name !== undefined && names.has(name)
    if (isParameter && value !== undefined && !given.has(name)) given.set(name, value)
    // Some servers take `;` for `&`.
    else if (isParameter || name === undefined || isAlike(name) || part.includes(';')) isOpaque = true
    if (!isParameter) rest.push(part)
  }
  return { given: isOpaque ? undefined : given, rest: rest.join('&') }
}

/** Reads the parameters of a URL (GraphQL over HTTP §6.3). `query` is without `?`. */
export const readQuery = (query: string, maxDepth: number): QueryReading => {
  const { given, rest } = partsOf(query)
  if (given === undefined) return { reading: opaque, rest }
  if (given.size === 0) return { reading: empty, rest }
  const quoted = (name: string): JsonText | undefined => {
    const text = given.get(name)
    return text === undefined || text === '' ? undefined : JSON.stringify(text)
  }
  const reading = requestOf({
    query: quoted('query'),
    operationName: quoted('operationName'),
    variables: jsonParameter(given.get('variables'), maxDepth),
    extensions: jsonParameter(given.get('extensions'), maxDepth),
  })
  return { reading, rest }
}
