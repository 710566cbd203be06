import { type ArgumentSchema, type Endpoint, mapParts, mapSchemas, type Row } from '../../contracts/row.ts'
import { isJsonObject, type JsonObject, ownMember } from '../../http/json-text.ts'
import { endpointWith } from './index-document.ts'

/** PHP has one kind of array, so WordPress writes `[]` for a map without entries. */
const orEmptyList = (map: JsonObject): JsonObject | readonly [] => (Object.keys(map).length === 0 ? [] : map)

const describeParts = (schema: ArgumentSchema): JsonObject => ({
  ...schema,
  ...mapParts(schema, describeParts, (properties) => orEmptyList(mapSchemas(properties, describeParts))),
})

/** WordPress announces neither for an argument itself, only for its parts, and `required` for each argument. */
const describeArgument = (schema: ArgumentSchema): JsonObject => {
  const { context: _context, readonly: _readonly, ...announced } = schema
  return { ...describeParts(announced), required: schema.required === true }
}

/** An endpoint as WordPress announces it, with the arguments that the gateway enforces. */
export const describeEndpoint = (endpoint: Endpoint): JsonObject => ({
  methods: endpoint.methods,
  ...(endpoint.allowBatch === undefined ? {} : { allow_batch: { v1: endpoint.allowBatch } }),
  args: orEmptyList(mapSchemas(endpoint.arguments, describeArgument)),
})

const wordsOf = (schema: JsonObject): string | undefined => {
  const words = ownMember(schema, 'description')
  return typeof words === 'string' ? words : undefined
}

/** The same, described as the upstream describes it, in the language of the site; what it does not announce keeps its words. */
const inWordsOf = (ours: unknown, theirs: unknown): unknown => {
  if (Array.isArray(ours)) {
    return Array.isArray(theirs) ? ours.map((part, at) => inWordsOf(part, theirs[at])) : ours
  }
  if (!isJsonObject(ours) || !isJsonObject(theirs)) return ours
  const words = wordsOf(theirs)
  const parts = Object.entries(ours)
    .filter(([name, part]) => name !== 'description' || typeof part !== 'string')
    .map(([name, part]) => [name, inWordsOf(part, ownMember(theirs, name))])
  return { ...(words === undefined ? {} : { description: words }), ...Object.fromEntries(parts) }
}

/**
 * A row's entry in the discovery document: the very arguments that the gateway enforces, in WordPress's shape. Descriptions are
 * the upstream's, as far as its own entry for the route has them.
 */
export const describeRow = (row: Row, publicRoot: string, theirs: JsonObject | undefined): JsonObject => ({
  namespace: row.namespace,
  methods: [...new Set(row.endpoints.flatMap((endpoint) => endpoint.methods))],
  endpoints: row.endpoints.map((endpoint) =>
    inWordsOf(describeEndpoint(endpoint), endpointWith(theirs, endpoint.methods[0])),
  ),
  // A route with parameters has no single URL.
  ...(row.pattern.includes('(?P<') ? {} : { _links: { self: [{ href: publicRoot + row.pattern }] } }),
})
