import { atOnce, type Pieces } from '../../http/bodies/turns.ts'
import { isJsonObject } from '../../http/json-text.ts'
import type { Row } from '../../service/row.ts'
import { type ApiBundle, below, dereferenced, type Located, membersOf } from './bundle.ts'
import {
  barePath,
  endpointOfOperation,
  hasUnseenCredential,
  isPublicOperation,
  type Operation,
  operationsAt,
} from './operation.ts'
import { type DocumentFault, nowhere, OperationReader } from './read-operation.ts'
import { type Dialect, definitionName, type RequestSchema } from './request-schema.ts'
import { templateShape } from './resources.ts'

type GrowingSchema = Record<string, unknown>

/** Keywords with schemas for the same value as the one that contains them, and not for a part of it. */
const inPlace = ['allOf', 'anyOf', 'oneOf', 'not', 'if', 'then', 'else'] as const

/**
 * Removes references that lead back to a schema for the same value: a base with `oneOf` its kinds, each of which has `allOf` the base,
 * would be checked without end. Without one of its schemas any other keyword than `allOf` would mean something else, so it goes as well.
 */
export const cutEndlessReferences = (definitions: ReadonlyMap<string, RequestSchema>): void => {
  const done = new Set<string>()
  const open = new Set<string>()
  const visitKeyword = (schema: GrowingSchema, keyword: (typeof inPlace)[number]): boolean => {
    const inner = [schema[keyword]]
      .flat()
      .filter((subschema): subschema is GrowingSchema => isJsonObject(subschema))
    const isCut = inner.map(visitSchema).includes(true)
    if (keyword !== 'allOf' && isCut) delete schema[keyword]
    return isCut
  }
  /** Was something of this schema removed? */
  const visitSchema = (schema: GrowingSchema): boolean => {
    const isCut = inPlace.map((keyword) => visitKeyword(schema, keyword)).includes(true)
    const target = schema['$ref']
    if (typeof target !== 'string') return isCut
    if (!open.has(target)) {
      visit(target)
      return isCut
    }
    delete schema['$ref']
    return true
  }
  const visit = (name: string): void => {
    const schema = definitions.get(name)
    if (done.has(name) || typeof schema !== 'object') return
    open.add(name)
    visitSchema(schema)
    open.delete(name)
    done.add(name)
  }
  // In the order in which the operations lead to them, so that the schemas of bodies stay whole.
  for (let index = 0; index < definitions.size; index += 1) visit(definitionName(index))
}

/** A document as requests need it. */
export type ApiContract = {
  readonly dialect: Dialect
  readonly rows: readonly Row[]
  readonly operations: readonly Operation[]
  /** Definitions that schemas of operations refer to. */
  readonly definitions: ReadonlyMap<string, RequestSchema>
  /** Some integers may only be written in their shortest form (`x-trellis-integer: strict`). */
  readonly hasStrictIntegers: boolean
  /** Queries have the encoding of a form: order of different names and spelling have no meaning (`x-trellis-query: form`). */
  readonly hasFormQueries: boolean
  /** Names of all headers that carry API keys, in lower case. */
  readonly keyHeaders: readonly string[]
  /** Names of all parameters of a query that carry API keys. */
  readonly keyParameters: readonly string[]
  /** Names of all parameters of a query with `format: password`. */
  readonly passwordParameters: readonly string[]
  /** Parts of the document that are accepted but not checked, for `trellis check`. */
  readonly unchecked: readonly DocumentFault[]
}

export type DocumentReading =
  | { readonly kind: 'contract'; readonly contract: ApiContract }
  | { readonly kind: 'faults'; readonly faults: readonly DocumentFault[] }

const dialectOf = (version: unknown): Dialect | undefined => {
  if (typeof version !== 'string') return undefined
  if (/^3\.0(?:\.|$)/.test(version)) return '3.0'
  // The schemas of 3.2 are those of 3.1.
  return /^3\.[12](?:\.|$)/.test(version) ? '3.1' : undefined
}

/** One request may be for any of them: it may take the credential of each, its response may depend on the fields of each. */
const ambiguous = (first: Operation, operations: readonly Operation[]): Operation => ({
  ...first,
  operationId: '',
  parameters: operations
    .flatMap(({ parameters }) => parameters)
    .filter(({ location }) => location === 'header' || location === 'cookie'),
  queryString: undefined,
  body: {
    required: false,
    contents: [{ mediaType: '*/*', reading: 'size', schema: true, members: new Map() }],
  },
  security: operations.every(isPublicOperation)
    ? []
    : [...operations.flatMap(({ security }) => security), []],
  cache: undefined,
  effect: operations.some(({ effect }) => effect === 'writes')
    ? 'writes'
    : operations.every(({ effect }) => effect === 'safe')
      ? 'safe'
      : 'as-method',
  resource: undefined,
  invalidates: undefined,
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
    endpoints: operations.map(endpointOfOperation),
  }
}

type Declared = Pick<Operation, 'template' | 'resource' | 'invalidates'>

const namedTemplates = ({ resource, invalidates }: Declared): readonly string[] => [
  ...(resource?.collection === undefined ? [] : [resource.collection]),
  ...Object.values(resource?.members ?? {}),
  ...(invalidates ?? []),
]

/** Misspelt, an extension would leave stored responses that a write has made stale. */
const extensionFault = (declaration: Declared, shapes: ReadonlySet<string>): string | undefined => {
  const id = declaration.resource?.id
  if (id !== undefined && !declaration.template.includes(`{${id}}`))
    return `the path has no parameter {${id}}`
  const unknown = namedTemplates(declaration).find((template) => !shapes.has(templateShape(template)))
  return unknown === undefined ? undefined : `the document has no path that is or begins with ${unknown}`
}

/** Checks the extensions about resources, of a document or in the configuration. `/` stands for the whole service. */
export const createExtensionCheck = (
  operations: readonly Pick<Operation, 'template'>[],
): ((declaration: Declared) => string | undefined) => {
  const shapes = new Set(['/'])
  for (const { template } of operations) {
    const segments = templateShape(template).split('/')
    segments.forEach((_, index) => {
      if (index > 0) shapes.add(segments.slice(0, index + 1).join('/'))
    })
  }
  return (declaration) => extensionFault(declaration, shapes)
}

type LocatedOperation = { readonly operation: Operation; readonly located: Located }

/** Operations of one method and of templates that match the same paths. */
type OperationSlots = Map<string, LocatedOperation[]>

const addOperation = (reader: OperationReader, slots: OperationSlots, entry: LocatedOperation): void => {
  const { operation, located } = entry
  const { method, template } = operation
  if (hasUnseenCredential(operation))
    reader.hint(
      located,
      `${method} ${template} takes a credential that is not described: its responses are not stored`,
    )
  const key = `${method} ${templateShape(template)}`
  const slot = slots.get(key) ?? []
  slots.set(key, slot)
  const [other] = slot
  slot.push(entry)
  if (other === undefined || slot.length > 2) return
  const unchecked = 'neither parameters nor bodies are checked'
  reader.hint(
    located,
    other.operation.template === template
      ? `${method} ${template} stands for several operations: ${unchecked}`
      : `${method} ${template} matches the same requests as ${other.operation.template}, because the two differ in names only: ${unchecked}`,
    other.located,
  )
}

/** Templates that match the same paths are faults (OpenAPI 3.1 §4.8.8), but 2 % of the documents in use have some. */
const recordEquivalentTemplates = (reader: OperationReader, entries: readonly LocatedOperation[]): void => {
  const firsts = new Map<string, LocatedOperation>()
  const recorded = new Set<string>()
  const methods = new Set<string>()
  for (const entry of entries) {
    const { method, template } = entry.operation
    const shape = templateShape(template)
    const first = firsts.get(shape) ?? entry
    firsts.set(shape, first)
    const isAmbiguous = methods.has(`${method} ${shape}`)
    methods.add(`${method} ${shape}`)
    if (first.operation.template === template || recorded.has(template) || isAmbiguous) continue
    recorded.add(template)
    reader.hint(
      entry.located,
      `${template} differs from ${first.operation.template} in names only, which OpenAPI does not allow: requests are checked by their method`,
      first.located,
    )
  }
}

const operationsOf = (
  reader: OperationReader,
  pathItem: Located,
  path: Located | undefined,
  key: string,
): readonly LocatedOperation[] => {
  if (path === undefined) reader.fault(pathItem, nowhere)
  else if (!key.startsWith('/')) reader.fault(pathItem, 'a path starts with "/"')
  else {
    return operationsAt(path).map(([method, located]) => ({
      operation: reader.operation(path, located, method, barePath(key)),
      located,
    }))
  }
  return []
}

/** Operations that are read in one piece: about a millisecond. */
const operationsOfPiece = 128

/** Templates that differ in names have one row when their methods differ. */
export function* rowsOf(operations: readonly Operation[]): Pieces<readonly Row[]> {
  const byShape = new Map<string, Operation[]>()
  for (const [at, operation] of operations.entries()) {
    const shape = templateShape(operation.template)
    byShape.set(shape, [...(byShape.get(shape) ?? []), operation])
    if (at % operationsOfPiece === operationsOfPiece - 1) yield
  }
  const rows: Row[] = []
  for (const alike of byShape.values()) {
    rows.push(rowOf(alike))
    if (rows.length % operationsOfPiece === 0) yield
  }
  return rows
}

/** Reads a document: its operations with parameters, bodies and credentials, or every fault. */
export const loadDocument = (bundle: ApiBundle): DocumentReading => {
  const root: Located = { file: bundle.root, path: [], node: bundle.files[bundle.root] }
  const at = (path: readonly string[], message: string): DocumentReading => ({
    kind: 'faults',
    faults: [{ file: bundle.root, path, message }],
  })
  if (!isJsonObject(root.node))
    return at([], 'expected an OpenAPI document, which begins with openapi: 3.1.0')
  const dialect = dialectOf(root.node['openapi'])
  if (dialect === undefined)
    return at(
      ['openapi'],
      root.node['swagger'] === undefined
        ? 'expected an OpenAPI document of version 3.0, 3.1 or 3.2'
        : 'expected an OpenAPI document of version 3.0, 3.1 or 3.2: convert this one of Swagger 2.0',
    )
  const paths = below(root, 'paths')
  if (paths.node !== undefined && !isJsonObject(paths.node)) return at(['paths'], 'expected an object')

  const reader = new OperationReader(bundle, dialect)
  const slots: OperationSlots = new Map()
  const entries = membersOf(paths.node).flatMap(([key]) => {
    const pathItem = below(paths, key)
    return key.startsWith('x-') ? [] : operationsOf(reader, pathItem, dereferenced(bundle, pathItem), key)
  })
  const faultIn = createExtensionCheck(entries.map(({ operation }) => operation))
  for (const { operation, located } of entries) {
    addOperation(reader, slots, { operation, located })
    const fault = faultIn(operation)
    if (fault !== undefined) reader.fault(located, fault)
  }
  recordEquivalentTemplates(reader, entries)
  cutEndlessReferences(reader.definitions)
  if (reader.faults.length > 0) return { kind: 'faults', faults: reader.faults }
  const operations = [...slots.values()].map((slot) => {
    const alternatives = slot.map(({ operation }) => operation)
    const [first] = alternatives as [Operation]
    return alternatives.length === 1 ? first : ambiguous(first, alternatives)
  })
  return {
    kind: 'contract',
    contract: {
      dialect,
      rows: atOnce(rowsOf(operations)),
      operations,
      definitions: reader.definitions,
      hasStrictIntegers: reader.hasStrictIntegers,
      hasFormQueries: root.node['x-trellis-query'] === 'form',
      keyHeaders: [...reader.keyHeaders],
      keyParameters: [...reader.keyParameters],
      passwordParameters: [...reader.passwordParameters],
      unchecked: reader.unchecked,
    },
  }
}
