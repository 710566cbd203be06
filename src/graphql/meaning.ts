import { hash } from 'node:crypto'
import { canonicalJson, type JsonText } from '../http/json-text.ts'
import type { DocumentReading, Documents, Operation, ParsedDocument } from './document.ts'
import type { RefusedDocument } from './limits.ts'
import type { GraphqlRequest, RequestReading } from './request.ts'

/** A query in its one spelling: what is keyed is what is sent. */
export type CanonicalQuery = {
  readonly kind: 'query'
  /** '' for one without a name. */
  readonly operation: string
  /** The members of the request, as texts of JSON; absent members are not sent. */
  readonly members: Readonly<Record<string, JsonText>>
  /** The client gives a hash, so that the upstream needs the request as the client sent it. */
  readonly isSentAsReceived: boolean
}

/** What a request asks for. */
export type Meaning =
  | CanonicalQuery
  | { readonly kind: 'mutation' | 'subscription'; readonly operation: string }
  /** Servers may execute it, or refuse it. */
  | { readonly kind: 'undetermined'; readonly mayWrite: boolean }
  /** A hash alone, with which no client has sent a document. */
  | { readonly kind: 'unknown-hash' }
  | RefusedDocument

const undetermined = (mayWrite: boolean): Meaning => ({ kind: 'undetermined', mayWrite })

/** The one operation, or the one that the request names (GraphQL §6.1). */
const chosenOperation = (
  { operations, isAmbiguous }: ParsedDocument,
  name: string,
): Operation | undefined => {
  if (isAmbiguous) return undefined
  if (name !== '') return operations.find((operation) => operation.name === name)
  return operations.length === 1 ? operations[0] : undefined
}

/** The declared variables that the request gives, in canonical JSON: servers read no others (GraphQL §6.1.2). */
const variablesText = ({ variables }: GraphqlRequest, { variables: declared }: Operation): JsonText => {
  const given = [...variables].filter(([name]) => declared.has(name))
  return given.length === 0
    ? ''
    : canonicalJson(`{${given.map(([name, value]) => `${JSON.stringify(name)}:${value}`)}}`)
}

const canonicalMembers = (
  request: GraphqlRequest,
  { text }: ParsedDocument,
  operation: Operation,
): CanonicalQuery['members'] => {
  const variables = variablesText(request, operation)
  return {
    query: JSON.stringify(text),
    ...(operation.name === '' ? {} : { operationName: JSON.stringify(operation.name) }),
    ...(variables === '' ? {} : { variables }),
    ...(request.extensions === '' ? {} : { extensions: request.extensions }),
  }
}

/** A document that is sent as it came must mean the same to every parser: some end a comment where others go on. */
const isPlain = (document: string): boolean => !document.includes('#')

const hasOnlyQueries = ({ operations }: ParsedDocument): boolean =>
  operations.every(({ type }) => type === 'query')

const ofDocument = (request: GraphqlRequest, document: ParsedDocument): Meaning => {
  const operation = chosenOperation(document, request.operationName)
  if (operation === undefined) return undetermined(!hasOnlyQueries(document))
  if (operation.type !== 'query') return { kind: operation.type, operation: operation.name }
  return {
    kind: 'query',
    operation: operation.name,
    members: canonicalMembers(request, document, operation),
    isSentAsReceived: request.sha256 !== undefined,
  }
}

const ofReading = (request: GraphqlRequest, reading: DocumentReading): Meaning => {
  switch (reading.kind) {
    case 'parsed':
      return ofDocument(request, reading)
    case 'unparsable':
      return undetermined(true)
    case 'refused':
      return reading
  }
}

/** Both are sent as they came; a document that is not plain is kept under its hash as one of which nothing is known. */
const ofBoth = (
  request: GraphqlRequest,
  {
    text,
    reading,
    sha256,
  }: { readonly text: string; readonly reading: DocumentReading; readonly sha256: string },
  documents: Documents,
): Meaning => {
  const isCertain = isPlain(text)
  const isNamed = documents.nameByHash(text, isCertain ? reading : { kind: 'unparsable' }, sha256)
  const meaning = ofReading(request, reading)
  if (meaning.kind === 'mutation') return meaning
  // Servers may know the hash of another document, and execute that.
  const isSure = isNamed && (isCertain || meaning.kind !== 'query')
  return isSure ? meaning : undetermined(true)
}

/** What a request asks for. A hash stands for the document that some client has sent with it. */
export const meaningOf = (reading: RequestReading, documents: Documents): Meaning => {
  if (reading.kind !== 'request') return undetermined(reading.kind === 'opaque')
  const { document, sha256 } = reading
  if (document === undefined) {
    if (sha256 === undefined) return undetermined(true)
    const named = documents.withHash(sha256)
    return named === undefined ? { kind: 'unknown-hash' } : ofReading(reading, named)
  }
  const parsed = documents.read(document)
  return sha256 === undefined || parsed.kind === 'refused'
    ? ofReading(reading, parsed)
    : ofBoth(reading, { text: document, reading: parsed, sha256 }, documents)
}

/** The body of a query by POST or QUERY. */
export const bodyOf = ({ members }: CanonicalQuery): Buffer =>
  Buffer.from(`{${Object.entries(members).map(([name, text]) => `"${name}":${text}`)}}`)

/** The query of a URL; strings are written without their quotation marks (GraphQL over HTTP §6.3). */
export const urlQueryOf = ({ members }: CanonicalQuery, rest: string): string =>
  [
    ...Object.entries(members).map(
      ([name, text]) =>
        `${name}=${encodeURIComponent(text.startsWith('"') ? (JSON.parse(text) as string) : text)}`,
    ),
    ...(rest === '' ? [] : [rest]),
  ].join('&')

/** Media types of responses, of which the client may name some: their part of the key. */
const acceptedType =
  /application\/(?:graphql-response\+)?json|\*\/\*|application\/\*|text\/event-stream|multipart\/mixed/g

/** One text for clients that accept the same media types; an unusual field counts as it is. */
const acceptedTypes = (accept: string): string => {
  const types = accept.toLowerCase()
  return /q=0(?:\.0*)?(?:[,;\s]|$)/.test(types)
    ? types
    : [...new Set(types.match(acceptedType))].sort().join()
}

/** The part of the cache key beside path and other parameters; two different queries never share it. */
export const keyOf = ({ members }: CanonicalQuery, accept: string): string =>
  hash(
    'sha256',
    JSON.stringify([
      acceptedTypes(accept),
      ...['query', 'operationName', 'variables', 'extensions'].map((name) => members[name] ?? null),
    ]),
    'base64url',
  )
