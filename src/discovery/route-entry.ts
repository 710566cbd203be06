import type { ArgumentSchema, Arguments, Endpoint, Row } from '../contracts/row.ts'
import { type JsonObject, orEmptyList } from './json.ts'

/** Keywords that hold schemas need a second look, all others are written as they stand. */
const describeParts = (schema: ArgumentSchema): JsonObject => {
  const { properties, items, oneOf, anyOf, additionalProperties } = schema
  return {
    ...schema,
    ...(properties && { properties: orEmptyList(describeMap(properties, describeParts)) }),
    ...(items && { items: describeParts(items) }),
    ...(oneOf && { oneOf: oneOf.map(describeParts) }),
    ...(anyOf && { anyOf: anyOf.map(describeParts) }),
    ...(typeof additionalProperties === 'object' && {
      additionalProperties: describeParts(additionalProperties),
    }),
  }
}

const describeMap = (map: Arguments, describe: (schema: ArgumentSchema) => JsonObject): JsonObject =>
  Object.fromEntries(Object.entries(map).map(([name, schema]) => [name, describe(schema)]))

/** WordPress announces neither for an argument itself, only for its parts; and says of each argument whether it is required. */
const describeArgument = (schema: ArgumentSchema): JsonObject => {
  const { context: _context, readonly: _readonly, ...announced } = schema
  return { ...describeParts(announced), required: schema.required === true }
}

const describeEndpoint = (endpoint: Endpoint): JsonObject => ({
  methods: endpoint.methods,
  ...(endpoint.allowBatch === undefined ? {} : { allow_batch: { v1: endpoint.allowBatch } }),
  args: orEmptyList(describeMap(endpoint.arguments, describeArgument)),
})

/** A row's entry in the discovery document: the very arguments that the gateway enforces, in WordPress's shape. */
export const describeRow = (row: Row, publicRoot: string): JsonObject => ({
  namespace: row.namespace,
  methods: [...new Set(row.endpoints.flatMap((endpoint) => endpoint.methods))],
  endpoints: row.endpoints.map(describeEndpoint),
  // A route with parameters has no address of its own.
  ...(row.pattern.includes('(?P<') ? {} : { _links: { self: [{ href: publicRoot + row.pattern }] } }),
})
