import { isJsonObject, type JsonObject } from '../../http/json-text.ts'
import { routeParts } from '../../service/route-paths.ts'
import type { ArgumentSchema, Endpoint, Method, Row, RowKind } from '../../service/row.ts'
import { type ApiBundle, fileOfReference, member } from '../document/bundle.ts'
import {
  batchResponse,
  type DescribedContract,
  jsonSchema,
  objectSchema,
  requestFieldsOf,
  responsesOf,
  securityOf,
  securitySchemes,
  sharedSchemas,
} from './contract-facts.ts'

type Words = Partial<Record<Method, string>>

const update = { POST: 'Update', PUT: 'Update', PATCH: 'Update' } as const
const itemWords: Words = { ...update, GET: 'Read', DELETE: 'Delete' }

/** The effect of a method on a resource of that kind; `*` stands for the collection. */
const summaries: Readonly<Record<RowKind, readonly [words: Words, object: string]>> = {
  index: [{ GET: 'Read' }, 'the index'],
  batch: [{ POST: 'Send' }, 'several requests at once'],
  collection: [{ ...itemWords, GET: 'List', POST: 'Create in' }, '*'],
  item: [itemWords, 'one of *'],
  revisions: [{ GET: 'List' }, 'the revisions of one of *'],
  revision: [itemWords, 'a revision of one of *'],
  autosaves: [{ GET: 'List', POST: 'Create' }, 'autosaves of one of *'],
  autosave: [itemWords, 'an autosave of one of *'],
  lookup: [{ GET: 'Look up' }, '*'],
  action: [{ POST: 'Act on' }, '*'],
  related: [itemWords, 'what belongs to *'],
}

/** One line for a list of operations. */
const summaryOf = (row: Row, method: Method): string => {
  const [words, object] = summaries[row.kind]
  const subject = row.collection === '' ? row.template : row.collection
  return `${words[method] ?? method} ${object.replace('*', subject)}`
}

/** Names in braces, in order. */
const pathNames = (template: string): readonly string[] =>
  [...template.matchAll(/\{([^{}/]+)\}/g)].map(([, name]) => name as string)

/** Short enough that no pattern can take long on them. */
const slashed = ['a/b', '1/2', 'a//b'] as const

/** Whether the identifier of that name may contain slashes, as those of templates and themes do. */
const takesSlashes = (pattern: string, name: string): boolean => {
  const part = routeParts(pattern)?.find(
    (candidate) => candidate.kind === 'parameter' && candidate.name === name,
  )
  if (part?.kind !== 'parameter') return false
  try {
    const group = new RegExp(`^(?:${part.source})$`)
    return slashed.some((text) => group.test(text))
  } catch {
    return false
  }
}

const slashHint = 'May contain slashes, which are sent as they are and not as %2F.'

/** OpenAPI 3.1 has no way to say that a path parameter spans segments; the note and the mark do. */
const pathParameter = (row: Row, endpoint: Endpoint, name: string): JsonObject => {
  const { description, ...schema } = endpoint.arguments[name] ?? { type: 'string' as const }
  const slashes = takesSlashes(row.pattern, name)
  const words = [...(description === undefined ? [] : [description]), ...(slashes ? [slashHint] : [])]
  return {
    name,
    in: 'path',
    required: true,
    ...(words.length > 0 && { description: words.join(' ') }),
    schema: jsonSchema(schema),
    ...(slashes && { 'x-takes-slashes': true }),
  }
}

const typesOf = ({ type }: ArgumentSchema): readonly string[] =>
  type === undefined ? [] : typeof type === 'string' ? [type] : type

/** Lists are read separated by commas, objects as `name[key]=value`. */
const styleOf = (schema: ArgumentSchema): JsonObject => {
  const types = typesOf(schema)
  if (types.includes('array')) return { style: 'form', explode: false }
  return types.includes('object') ? { style: 'deepObject', explode: true } : {}
}

const queryParameter = (name: string, { description, ...schema }: ArgumentSchema): JsonObject => ({
  name,
  in: 'query',
  ...(schema.required === true && { required: true }),
  ...(description !== undefined && { description }),
  ...styleOf(schema),
  schema: jsonSchema(schema),
})

/** Arguments of an endpoint that its path does not carry. */
const ownArguments = (row: Row, endpoint: Endpoint): Endpoint['arguments'] => {
  const inPath = new Set(pathNames(row.template))
  return Object.fromEntries(Object.entries(endpoint.arguments).filter(([name]) => !inPath.has(name)))
}

/** The parameters of an operation: those of the path, and for reads and deletions those of the query. */
const parametersOf = (row: Row, endpoint: Endpoint, inQuery: boolean): readonly JsonObject[] => [
  ...pathNames(row.template).map((name) => pathParameter(row, endpoint, name)),
  ...(inQuery
    ? Object.entries(ownArguments(row, endpoint)).map(([name, schema]) => queryParameter(name, schema))
    : []),
]

export type DescribedService = {
  readonly name: string
  readonly contract: DescribedContract
  /** Public path in front of the rows; '' for the root. */
  readonly mount: string
  /** URL in front of the mount; absent = that of the document. */
  readonly publicUrl?: string
  readonly rows: readonly Row[]
}

/** Names of components and operations: letters, digits, dots, hyphens, underscores. */
const asName = (text: string): string => text.replaceAll(/[^\w.-]+/g, '-').replaceAll(/^-+|-+$/g, '')

const hasContent = (method: Method): boolean => method === 'POST' || method === 'PUT' || method === 'PATCH'

const contentTypes = (contract: DescribedContract, endpoint: Endpoint, schema: JsonObject): JsonObject => {
  if (contract === 'plants') return { 'application/json': { schema } }
  return {
    'application/json': { schema },
    'application/x-www-form-urlencoded': { schema },
    ...(endpoint.acceptsUploads === true && {
      'multipart/form-data': { schema: { type: 'object' } },
      'application/octet-stream': {},
    }),
  }
}

const requestBody = (
  contract: DescribedContract,
  row: Row,
  endpoint: Endpoint,
  schemaName: string,
): { readonly body: JsonObject; readonly schemas: Record<string, JsonObject> } => {
  const members = ownArguments(row, endpoint)
  if (Object.keys(members).length === 0) {
    return { body: { content: contentTypes(contract, endpoint, { type: 'object' }) }, schemas: {} }
  }
  const schema = objectSchema(members)
  const content = contentTypes(contract, endpoint, { $ref: `#/components/schemas/${schemaName}` })
  return {
    // An upload carries its members in another way, so this content is not needed then.
    body: {
      ...('required' in schema && endpoint.acceptsUploads !== true && { required: true }),
      content,
    },
    schemas: { [schemaName]: schema },
  }
}

const tagOf = (service: DescribedService, row: Row): string => {
  const group = row.collection === '' ? row.namespace : row.collection
  return group === '' ? service.name : `${service.name}: ${group}`
}

/** The row of an open service stands for every path under its mount. */
const anyPath = (row: Row): Row => ({ ...row, template: '/{path}', pattern: '/(?P<path>.*)' })

/** The operations of one row, and the schemas of their contents by name. */
const describeRow = (service: DescribedService, listedRow: Row) => {
  const { contract, name, mount, publicUrl } = service
  const row = listedRow.template === '/**' ? anyPath(listedRow) : listedRow
  const operations: Record<string, JsonObject> = {}
  const schemas: Record<string, JsonObject> = {}
  row.endpoints.forEach((endpoint, position) => {
    const schemaName = asName(`${name}.${row.id}.${position}`)
    for (const method of endpoint.methods) {
      // OpenAPI 3.1 has no QUERY.
      if (method === 'QUERY' || operations[method.toLowerCase()] !== undefined) continue
      const content = hasContent(method) ? requestBody(contract, row, endpoint, schemaName) : undefined
      Object.assign(schemas, content?.schemas)
      operations[method.toLowerCase()] = {
        operationId: asName(`${name}.${row.id}.${method.toLowerCase()}`),
        tags: [tagOf(service, row)],
        summary: summaryOf(row, method),
        parameters: [...parametersOf(row, endpoint, content === undefined), ...requestFieldsOf(row)],
        ...(content && { requestBody: content.body }),
        responses: responsesOf(contract, row, endpoint, method),
        ...(contract !== 'open' && { security: securityOf[contract] }),
        ...(endpoint.allowBatch === true && { 'x-batchable': true }),
      }
    }
  })
  return { publicUrl, path: `${mount}${row.template}`, operations, schemas }
}

export type DocumentOptions = {
  /** Origin, and perhaps a path, that clients use; without a slash at the end. */
  readonly publicUrl: string
  readonly version: string
  readonly services: readonly DescribedService[]
  /** Names of the services that have their own document. */
  readonly withOwnDocument?: readonly string[]
}

const description =
  'Every operation of the service: the same rows check the requests. ' +
  'The gateway refuses invalid requests itself, in the error format of the service.'

/** Paths that differ in the names of their parameters only are one path (OpenAPI 3.1 §4.8.8.1). */
const shapeOf = (path: string): string => path.replaceAll(/\{[^{}]*\}/g, '{}')

type Collected = {
  readonly paths: Record<string, JsonObject>
  readonly schemas: Record<string, JsonObject>
  readonly tags: Set<string>
  readonly hidden: JsonObject[]
}

/** One path has operations of one service, so where services of several hosts have it the others are listed as hidden. */
const collect = (rows: readonly ReturnType<typeof describeRow>[], general: string): Collected => {
  const collected: Collected = { paths: {}, schemas: {}, tags: new Set(), hidden: [] }
  const shapes = new Set<string>()
  for (const { path, publicUrl, operations, schemas } of rows) {
    const servers = publicUrl === undefined || publicUrl === general ? {} : { servers: [{ url: publicUrl }] }
    // The first responses, as in the router.
    if (shapes.has(shapeOf(path))) {
      collected.hidden.push({ path, methods: Object.keys(operations), ...servers })
      continue
    }
    shapes.add(shapeOf(path))
    collected.paths[path] = { ...servers, ...operations }
    Object.assign(collected.schemas, schemas)
    for (const operation of Object.values(operations)) {
      for (const tag of operation['tags'] as readonly string[]) collected.tags.add(tag)
    }
  }
  return collected
}

/** The OpenAPI 3.1 document of all services, made of the rows that check their requests. */
export const openApiDocument = ({
  publicUrl,
  version,
  services,
  withOwnDocument = [],
}: DocumentOptions): JsonObject => {
  const links = withOwnDocument.map((name) => `[${name}](docs?service=${encodeURIComponent(name)})`)
  const hint = links.length === 0 ? '' : ` Services with their own document: ${links.join(', ')}.`
  // The longest mount wins where two services could answer.
  const byMount = [...services].sort((a, b) => b.mount.length - a.mount.length)
  const rows = byMount.flatMap((service) => service.rows.map((row) => describeRow(service, row)))
  const { paths, schemas, tags, hidden } = collect(rows, publicUrl)
  return {
    openapi: '3.1.0',
    info: { title: 'Trellis', version, description: description + hint },
    servers: [{ url: publicUrl }],
    tags: [...tags].map((name) => ({ name })),
    paths,
    components: { schemas: { ...sharedSchemas, ...schemas }, securitySchemes },
    ...(hidden.length > 0 && { 'x-paths-of-the-same-shape': hidden }),
  }
}

/** Where the other files of a document stand in the one that is served. */
const filesMember = 'x-files'

const escaped = (step: string): string => encodeURI(step.replaceAll('~', '~0').replaceAll('/', '~1'))

/** A reference as it is in one file: the root keeps its own, and other files are members of it. */
const servedReference = (reference: string, from: string, { root, files }: ApiBundle): string => {
  const file = fileOfReference(reference, from)
  if (file === undefined || !Object.hasOwn(files, file)) return reference
  const fragment = reference.includes('#') ? reference.slice(reference.indexOf('#') + 1) : ''
  return file === root ? `#${fragment}` : `#/${filesMember}/${escaped(file)}${fragment}`
}

const isServerList = (value: unknown): boolean =>
  Array.isArray(value) &&
  value.length > 0 &&
  value.every((server) => typeof member(server, 'url') === 'string')

/** Without the extensions for the gateway, and without the addresses of the upstream. */
const served = (value: unknown, from: string, bundle: ApiBundle): unknown => {
  if (Array.isArray(value)) return value.map((item) => served(item, from, bundle))
  if (!isJsonObject(value)) return value
  return Object.fromEntries(
    Object.entries(value).flatMap(([name, inner]) => {
      if (name.startsWith('x-trellis-') || (name === 'servers' && isServerList(inner))) return []
      const reference =
        name === '$ref' && typeof inner === 'string' ? servedReference(inner, from, bundle) : undefined
      return [[name, reference ?? served(inner, from, bundle)]]
    }),
  )
}

/** OpenAPI 3.0 has no lists of types. */
const withoutTypeLists = (schema: unknown): unknown => {
  if (Array.isArray(schema)) return schema.map(withoutTypeLists)
  if (!isJsonObject(schema)) return schema
  const { type, items, ...rest } = Object.fromEntries(
    Object.entries(schema).map(([name, inner]) => [name, withoutTypeLists(inner)]),
  )
  if (!Array.isArray(type))
    return { ...(type !== undefined && { type }), ...(items !== undefined && { items }), ...rest }
  return {
    ...rest,
    anyOf: type.map((typeName) => (typeName === 'array' ? { type: typeName, items } : { type: typeName })),
  }
}

const problem: JsonObject = { 'application/problem+json': { schema: { type: 'object' } } }

/** The batch route of the gateway, which the document of the upstream does not have. */
const batchPathItem = ({ endpoints }: Row): JsonObject =>
  Object.fromEntries(
    endpoints.map((endpoint) => {
      // Batches of a service with a document always have the extensions.
      const { extensions: _always, ...members } = endpoint.arguments
      const post = {
        summary: 'Send several requests at once',
        parameters: requestFieldsOf({ kind: 'batch' }),
        security: [],
        requestBody: {
          required: true,
          content: { 'application/json': { schema: withoutTypeLists(objectSchema(members)) } },
        },
        responses: {
          ...batchResponse(problem),
          default: { description: 'The batch is refused as a whole.', content: problem },
        },
      }
      return ['post', post]
    }),
  )

/**
 * The document of a service as its clients may use it: one file, with the public URL as its only server, and the batch route where the
 * service has one.
 */
export const servedDocument = (bundle: ApiBundle, publicUrl: string, batch: Row | undefined): JsonObject => {
  const { root, files } = bundle
  const otherFiles = Object.entries(files).filter(([name]) => name !== root)
  const document = served(files[root], root, bundle) as JsonObject
  return {
    ...document,
    servers: [{ url: publicUrl }],
    ...(batch && { paths: { ...Object(document['paths']), [batch.template]: batchPathItem(batch) } }),
    ...(otherFiles.length === 0
      ? {}
      : {
          [filesMember]: Object.fromEntries(
            otherFiles.map(([name, file]) => [name, served(file, name, bundle)]),
          ),
        }),
  }
}
