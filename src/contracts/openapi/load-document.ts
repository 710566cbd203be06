import type { Method } from '../method.ts'
import type { Row } from '../row.ts'
import { type ApiBundle, below, dereferenced, isObject, type Located, membersOf } from './bundle.ts'
import { hasUnseenCredential, isPublicOperation, type Operation } from './operation.ts'
import { type DocumentFault, nowhere, OperationReader } from './read-operation.ts'
import { cutEndlessReferences, type Dialect, type RequestSchema } from './request-schema.ts'

/** A document as requests need it. */
export type ApiContract = {
  readonly dialect: Dialect
  readonly rows: readonly Row[]
  readonly operations: readonly Operation[]
  /** Definitions that schemas of operations refer to. */
  readonly definitions: ReadonlyMap<string, RequestSchema>
  /** Names of all headers that carry API keys, in lower case. */
  readonly keyHeaders: readonly string[]
  /** Names of all parameters of a query that carry API keys. */
  readonly keyParameters: readonly string[]
  /** Parts of the document that are accepted but not checked, for `trellis check`. */
  readonly unchecked: readonly DocumentFault[]
}

export type DocumentReading =
  | { readonly kind: 'contract'; readonly contract: ApiContract }
  | { readonly kind: 'faults'; readonly faults: readonly DocumentFault[] }

/** TRACE would show a client fields that the gateway adds (RFC 9110 §9.3.8). */
const methods: readonly (readonly [member: string, method: Method])[] = [
  ['get', 'GET'],
  ['head', 'HEAD'],
  ['post', 'POST'],
  ['put', 'PUT'],
  ['patch', 'PATCH'],
  ['delete', 'DELETE'],
  ['options', 'OPTIONS'],
]

/** Path without a query or fragment: some documents tell operations apart by them. */
const barePath = (key: string): string => key.replace(/[?#].*$/s, '')

/** Templates with the same shape match the same paths (OpenAPI 3.1 §4.8.8). */
const shapeOf = (template: string): string => template.replaceAll(/\{[^{}]*\}/g, '{}')

const dialectOf = (version: unknown): Dialect | undefined => {
  if (typeof version !== 'string') return undefined
  if (/^3\.0(?:\.|$)/.test(version)) return '3.0'
  return /^3\.1(?:\.|$)/.test(version) ? '3.1' : undefined
}

/** One request may be for any of them: it may take the credential of each, its response may depend on the fields of each. */
const ambiguous = (first: Operation, all: readonly Operation[]): Operation => ({
  ...first,
  operationId: '',
  parameters: all
    .flatMap(({ parameters }) => parameters)
    .filter(({ location }) => location === 'header' || location === 'cookie'),
  body: {
    required: false,
    contents: [{ mediaType: '*/*', reading: 'size', schema: true, members: new Map() }],
  },
  security: all.every(isPublicOperation) ? [] : [...all.flatMap(({ security }) => security), []],
  cache: undefined,
  effect: all.some(({ effect }) => effect === 'writes')
    ? 'writes'
    : all.every(({ effect }) => effect === 'safe')
      ? 'safe'
      : 'as-method',
  isAmbiguous: true,
})

const rowOf = (operations: readonly Operation[]): Row => {
  const template = operations[0]?.template ?? ''
  return {
    id: template,
    template,
    pattern: template,
    namespace: '',
    collection: '',
    kind: 'item',
    handledBy: 'upstream',
    endpoints: operations.map((operation) => ({
      methods: [operation.method],
      arguments: {},
      operation,
      readsFields: operation.parameters.some(
        ({ location }) => location === 'header' || location === 'cookie',
      ),
    })),
  }
}

/** Operations of one method and of templates that match the same paths. */
type Slots = Map<string, Operation[]>

const addOperation = (
  reader: OperationReader,
  slots: Slots,
  operation: Operation,
  located: Located,
): void => {
  const { method, template } = operation
  if (hasUnseenCredential(operation))
    reader.note(
      located,
      `${method} ${template} takes a credential that is not described: its responses are not stored`,
    )
  const key = `${method} ${shapeOf(template)}`
  const slot = slots.get(key) ?? []
  slots.set(key, slot)
  const [other] = slot
  if (other !== undefined && other.template !== template) {
    reader.fault(
      located,
      `${method} of ${other.template} matches the same requests: two templates may not differ in names only`,
    )
    return
  }
  slot.push(operation)
  if (slot.length === 2)
    reader.note(
      located,
      `${method} ${template} stands for several operations: neither parameters nor bodies are checked`,
    )
}

const addPath = (
  reader: OperationReader,
  slots: Slots,
  listed: Located,
  path: Located | undefined,
  key: string,
): void => {
  if (path === undefined) reader.fault(listed, nowhere)
  else if (!key.startsWith('/')) reader.fault(listed, 'a path starts with "/"')
  else {
    const template = barePath(key)
    for (const [name, method] of methods) {
      const located = below(path, name)
      if (!isObject(located.node)) continue
      addOperation(reader, slots, reader.operation(path, located, method, template), located)
    }
  }
}

/** Templates that differ in names have one row when their methods differ. */
const rowsOf = (operations: readonly Operation[]): readonly Row[] => {
  const byShape = new Map<string, Operation[]>()
  for (const operation of operations) {
    const shape = shapeOf(operation.template)
    byShape.set(shape, [...(byShape.get(shape) ?? []), operation])
  }
  return [...byShape.values()].map(rowOf)
}

/** Reads a document: its operations with parameters, bodies and credentials, or every fault. */
export const loadDocument = (bundle: ApiBundle): DocumentReading => {
  const root: Located = { file: bundle.root, path: [], node: bundle.files[bundle.root] }
  const at = (path: readonly string[], message: string): DocumentReading => ({
    kind: 'faults',
    faults: [{ file: bundle.root, path, message }],
  })
  if (!isObject(root.node)) return at([], 'expected an OpenAPI document')
  const dialect = dialectOf(root.node['openapi'])
  if (dialect === undefined) return at(['openapi'], 'expected an OpenAPI document of version 3.0 or 3.1')
  const paths = below(root, 'paths')
  if (paths.node !== undefined && !isObject(paths.node)) return at(['paths'], 'expected an object')

  const reader = new OperationReader(bundle, dialect)
  const slots: Slots = new Map()
  for (const [key] of membersOf(paths.node)) {
    const listed = below(paths, key)
    if (!key.startsWith('x-')) addPath(reader, slots, listed, dereferenced(bundle, listed), key)
  }
  cutEndlessReferences(reader.definitions)
  if (reader.faults.length > 0) return { kind: 'faults', faults: reader.faults }
  const operations = [...slots.values()].map((all) => {
    const [first] = all as [Operation]
    return all.length === 1 ? first : ambiguous(first, all)
  })
  return {
    kind: 'contract',
    contract: {
      dialect,
      rows: rowsOf(operations),
      operations,
      definitions: reader.definitions,
      keyHeaders: [...reader.keyHeaders],
      keyParameters: [...reader.keyParameters],
      unchecked: reader.unchecked,
    },
  }
}
