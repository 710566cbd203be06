import { atOnce, type Pieces } from '../../http/bodies/turns.ts'
import { isJsonObject, type JsonObject, jsonTypes, ownMember } from '../../http/json-text.ts'
import type { RouteRefusal } from '../../service/connection.ts'
import { routeTemplate } from '../../service/route-paths.ts'
import type {
  ArgumentSchema,
  Arguments,
  Endpoint,
  Method,
  Row,
  RowKind,
  UpstreamDefault,
} from '../../service/row.ts'
import { isCoreNamespace } from '../names/name-table.ts'
import { collectionCreatedBy } from '../tags/uncacheable.ts'
import { endpointsIn, type IndexDocument, methodsIn } from './index-document.ts'

/** Far beyond what WordPress and its large plugins announce. */
const schemaLimits = {
  arguments: 256,
  depth: 8,
  options: 64,
  members: 1000,
  text: 2000,
  default: 4096,
  pattern: 512,
} as const

type SchemaReader = (value: unknown, depth: number) => unknown

const text =
  (longest: number): SchemaReader =>
  (value) =>
    typeof value === 'string' && value.length <= longest ? value : undefined

const list =
  (longest: number, reader: SchemaReader): SchemaReader =>
  (value, depth) => {
    if (!Array.isArray(value) || value.length > longest) return undefined
    const items = value.map((item: unknown) => reader(item, depth))
    return items.includes(undefined) ? undefined : items
  }

const truth: SchemaReader = (value) => (typeof value === 'boolean' ? value : undefined)
const finite: SchemaReader = (value) =>
  typeof value === 'number' && Number.isFinite(value) ? value : undefined
const count: SchemaReader = (value) =>
  Number.isSafeInteger(value) && (value as number) >= 0 ? value : undefined
/** A PHP list with explicit keys is written as a map: `users?has_published_posts` announces its enum so. */
const listOrMap =
  (reader: SchemaReader): SchemaReader =>
  (value, depth) =>
    reader(isJsonObject(value) ? Object.values(value) : value, depth)
const typeName: SchemaReader = (value) => (jsonTypes.has(value) ? value : undefined)
const scalar: SchemaReader = (value) =>
  value === null || typeof value === 'boolean'
    ? value
    : (finite(value, 0) ?? text(schemaLimits.text)(value, 0))
const small: SchemaReader = (value) =>
  JSON.stringify(value).length <= schemaLimits.default ? value : undefined
const schema: SchemaReader = (value, depth) =>
  isJsonObject(value) && depth < schemaLimits.depth ? cleanSchema(value, depth + 1) : undefined
const map: SchemaReader = (value, depth) =>
  depth < schemaLimits.depth ? cleanMap(value, depth + 1) : undefined
const schemas = list(schemaLimits.options, schema)

/** One reader a keyword: gives the value back when it is what the keyword takes, else undefined. */
const keywords: Readonly<Record<keyof ArgumentSchema, SchemaReader>> = {
  title: text(schemaLimits.text),
  description: text(schemaLimits.text),
  type: (value, depth) => typeName(value, depth) ?? list(jsonTypes.size, typeName)(value, depth),
  format: text(64),
  enum: listOrMap(list(schemaLimits.members, scalar)),
  default: small,
  minimum: finite,
  maximum: finite,
  exclusiveMinimum: truth,
  exclusiveMaximum: truth,
  minLength: count,
  maxLength: count,
  pattern: text(schemaLimits.pattern),
  items: schema,
  minItems: count,
  maxItems: count,
  uniqueItems: truth,
  properties: map,
  minProperties: count,
  maxProperties: count,
  additionalProperties: (value, depth) => truth(value, depth) ?? schema(value, depth),
  oneOf: schemas,
  anyOf: schemas,
  required: truth,
  readonly: truth,
  context: list(schemaLimits.options, text(64)),
}

const cleanSchema = (value: object, depth: number): ArgumentSchema => {
  const clean: [string, unknown][] = []
  for (const [keyword, reader] of Object.entries(keywords)) {
    const raw = isJsonObject(value) ? ownMember(value, keyword) : undefined
    const cleanValue = raw === undefined ? undefined : reader(raw, depth)
    if (cleanValue !== undefined) clean.push([keyword, cleanValue])
  }
  return Object.fromEntries(clean)
}

/**
 * Arguments as the rows of the contract have them. A keyword with a value it cannot take is left out: the argument is then
 * checked less here, and still by the upstream. Undefined when there are too many or it is no map: WordPress writes `[]` for a map
 * without entries.
 */
const cleanMap = (value: unknown, depth: number): Arguments | undefined => {
  if (Array.isArray(value)) return value.length === 0 ? {} : undefined
  const entries = isJsonObject(value) ? Object.entries(value) : undefined
  if (entries === undefined || entries.length > schemaLimits.arguments) return undefined
  // In PHP's output, a list in place of a schema means that the argument has none.
  return Object.fromEntries(
    entries.map(([name, raw]) => [name, isJsonObject(raw) ? cleanSchema(raw, depth) : {}]),
  )
}

const longestPattern = 512

/** Rows of the routes that no row lists yet, and the routes of which none could be made. */
export type LearnedRows = {
  readonly rows: readonly Row[]
  readonly refusals: readonly { readonly pattern: string; readonly reason: RouteRefusal }[]
}

const maxNamed = 10

/** A list of texts of an upstream, for a person: bounded, without control characters. */
export const namedList = (names: readonly string[]): string => {
  const texts = names.slice(0, maxNamed).map((name) => name.replace(/[^\x20-\x7e]/g, '?').slice(0, 100))
  return names.length <= maxNamed
    ? texts.join(', ')
    : `${texts.join(', ')} and ${names.length - maxNamed} more`
}

/** What the refusals mean, for a person; undefined where there are none. */
export const refusedText = ({ refusals }: LearnedRows): string | undefined =>
  refusals.length === 0
    ? undefined
    : `${refusals.length} announced routes are passed on unread: ${namedList(refusals.map(({ pattern, reason }) => `${reason} ${pattern}`))}`

const methodNames: readonly Method[] = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE']
const writing: ReadonlySet<string> = new Set(['POST', 'PUT', 'PATCH'])

const allowsBatch = (endpoint: JsonObject): boolean | undefined => {
  const marker = ownMember(endpoint, 'allow_batch')
  const v1 = isJsonObject(marker) ? ownMember(marker, 'v1') : undefined
  return typeof v1 === 'boolean' ? v1 : undefined
}

/** Is an argument known to be checked as it is announced? */
type IsChecked = (name: string, registered: unknown) => boolean

const endpointOf = (
  methods: readonly Method[],
  args: Arguments,
  asSent: Readonly<Record<string, UpstreamDefault>>,
  allowBatch: boolean | undefined,
): Endpoint => ({
  methods,
  arguments: args,
  asSent,
  ...(allowBatch === undefined ? {} : { allowBatch }),
  // The document does not say whether a route takes files; the upstream refuses others.
  ...(methods.some((method) => writing.has(method)) ? { acceptsUploads: true } : {}),
})

/**
 * WordPress checks type, enum and range of an argument only where its callbacks leave that to the schema (`has_valid_params`,
 * `sanitize_params` of WP_REST_Request), and the index shows no callbacks. Defaults may differ by user and day.
 */
const sentAsTheyCome = (args: Arguments, registered: unknown, isChecked: IsChecked) =>
  Object.fromEntries(
    Object.keys(args)
      .filter((name) => !isChecked(name, isJsonObject(registered) ? ownMember(registered, name) : undefined))
      .map((name): [string, UpstreamDefault] => [name, { kind: 'own' }]),
  )

const endpointsOf = (entry: JsonObject, isChecked: IsChecked): Endpoint[] | RouteRefusal => {
  const registered = endpointsIn(entry)
  if (registered === undefined) return 'not-a-route'
  const endpoints: Endpoint[] = []
  for (const endpoint of registered) {
    const methods = methodNames.filter((method) => methodsIn(endpoint).includes(method))
    const rawArguments = ownMember(endpoint, 'args') ?? []
    const args = cleanMap(rawArguments, 0)
    if (args === undefined) return 'too-many-arguments'
    const asSent = sentAsTheyCome(args, rawArguments, isChecked)
    if (methods.length > 0) endpoints.push(endpointOf(methods, args, asSent, allowsBatch(endpoint)))
  }
  return endpoints.length === 0 ? 'no-methods' : endpoints
}

const isParameter = (segment: string | undefined): boolean => segment?.startsWith('{') ?? false

const attachmentKind = (segments: readonly string[]): RowKind | undefined => {
  const isOne = isParameter(segments.at(-1))
  const name = segments.at(isOne ? -2 : -1)
  if (segments.length < 3) return undefined
  if (name === 'revisions') return isOne ? 'revision' : 'revisions'
  if (name === 'autosaves') return isOne ? 'autosave' : 'autosaves'
  return undefined
}

/** The kind of a route, from the shape of its path and its methods. */
const kindOf = (segments: readonly string[], endpoints: readonly Endpoint[]): RowKind => {
  if (segments.length === 0) return 'index'
  const attachment = attachmentKind(segments)
  if (attachment !== undefined) return attachment
  const methods = new Set(endpoints.flatMap((endpoint) => endpoint.methods))
  if (!methods.has('GET')) return 'action'
  if (segments.length > 2) return 'related'
  if (segments.length === 2) return isParameter(segments[1]) || methods.size > 1 ? 'item' : 'lookup'
  const pages = endpoints.some((endpoint) => Object.hasOwn(endpoint.arguments, 'per_page'))
  return methods.size > 1 || pages ? 'collection' : 'lookup'
}

/** Collections in namespaces of the contract keep their plain name; names of all others cannot collide with them. */
const collectionOf = (namespace: string, segment: string | undefined, plain: ReadonlySet<string>): string => {
  if (segment === undefined || isParameter(segment)) return ''
  const created = collectionCreatedBy(namespace, segment)
  if (created !== undefined) return created
  return plain.has(namespace) ? segment : `${namespace}/${segment}`
}

const never: IsChecked = () => false

const rowOf = (
  pattern: string,
  entry: JsonObject,
  plain: ReadonlySet<string>,
  isCoreArgument: IsChecked,
): Row | RouteRefusal => {
  if (pattern.length > longestPattern) return 'pattern-too-long'
  const template = pattern.startsWith('/') ? routeTemplate(pattern) : undefined
  if (template === undefined) return 'pattern-unreadable'
  const registered = ownMember(entry, 'namespace')
  const namespace = typeof registered === 'string' && isWithin(template, registered) ? registered : ''
  const endpoints = endpointsOf(entry, isCoreNamespace(namespace) ? isCoreArgument : never)
  if (typeof endpoints === 'string') return endpoints
  const behind = namespace === '' ? template : template.slice(namespace.length + 1)
  const segments = behind.split('/').filter((segment) => segment !== '')
  const kind = kindOf(segments, endpoints)
  return {
    id: template.slice(1),
    template,
    pattern,
    namespace,
    collection: collectionOf(namespace, segments[0], plain),
    kind,
    handledBy: kind === 'index' && namespace !== '' ? 'discovery' : 'upstream',
    endpoints,
  }
}

const isWithin = (template: string, namespace: string): boolean =>
  template === `/${namespace}` || template.startsWith(`/${namespace}/`)

/** Routes compare as WordPress matches them: without regard to case. A pattern may differ between versions, its template not. */
const routeKeys = (pattern: string, template: string): string[] => [
  pattern.toLowerCase(),
  template.toLowerCase(),
]

export function* unlistedPatterns(index: IndexDocument, rows: readonly Row[]): Pieces<readonly string[]> {
  const keys = new Set(rows.flatMap((row) => routeKeys(row.pattern, row.template)))
  const unlisted: string[] = []
  let left = patternsOfPiece
  for (const pattern of index.routes.keys()) {
    if (!routeKeys(pattern, routeTemplate(pattern) ?? pattern).some((key) => keys.has(key)))
      unlisted.push(pattern)
    left -= 1
    if (left > 0) continue
    left = patternsOfPiece
    yield
  }
  return unlisted
}

const patternsOfPiece = 256

/**
 * Arguments that routes of the contract announce word for word: those of content types that plugins add come from the same functions
 * of WordPress, with the same callbacks.
 */
const coreArguments = (index: IndexDocument, patterns: ReadonlySet<string>): IsChecked => {
  const texts = new Set<string>()
  const textOf = (name: string, schema: unknown): string => `${name} ${JSON.stringify(schema)}`
  for (const [pattern, entry] of index.routes) {
    if (!patterns.has(pattern)) continue
    for (const endpoint of endpointsIn(entry) ?? []) {
      const args = ownMember(endpoint, 'args')
      if (!isJsonObject(args)) continue
      for (const [name, schema] of Object.entries(args)) texts.add(textOf(name, schema))
    }
  }
  return (name, registered) => texts.has(textOf(name, registered))
}

/** Routes that are read in one piece: about a millisecond. */
const routesOfPiece = 32

/**
 * Compiles rows for the routes that an index announces beyond the known rows, `unlistedPatterns`. Whether a pattern is safe to match is
 * the router's decision.
 */
export function* learnInPieces(
  index: IndexDocument,
  knownRows: readonly Row[],
  unlisted: readonly string[],
): Pieces<LearnedRows> {
  const plain = new Set(
    knownRows
      .filter((row) => row.whereRegistered !== true && row.collection !== '')
      .map((row) => row.namespace),
  )
  const rows: Row[] = []
  const refusals: { pattern: string; reason: RouteRefusal }[] = []
  const templates = new Set<string>()
  const isCoreArgument = coreArguments(index, new Set(knownRows.map((row) => row.pattern)))
  for (const [at, pattern] of unlisted.entries()) {
    if (at % routesOfPiece === 0) yield
    const entry = index.routes.get(pattern) as JsonObject
    const row = rowOf(pattern, entry, plain, isCoreArgument)
    if (typeof row === 'string') refusals.push({ pattern, reason: row })
    else if (templates.has(row.template)) refusals.push({ pattern, reason: 'template-taken' })
    else {
      templates.add(row.template)
      rows.push(row)
    }
  }
  return { rows, refusals }
}

/** The same at once. */
export const learnRows = (index: IndexDocument, knownRows: readonly Row[]): LearnedRows =>
  atOnce(learnInPieces(index, knownRows, atOnce(unlistedPatterns(index, knownRows))))
