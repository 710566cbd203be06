import type { ArgumentSchema, Arguments, Endpoint, Row } from '../contracts/row.ts'
import type { NameSwap } from './name-swap.ts'
import { mapPath } from './names/urls.ts'

const mapSchema = (schema: ArgumentSchema, swap: NameSwap): ArgumentSchema => {
  const { properties, items, oneOf, anyOf, additionalProperties } = schema
  return {
    ...schema,
    ...(properties === undefined ? {} : { properties: mapArguments(properties, swap) }),
    ...(items === undefined ? {} : { items: mapSchema(items, swap) }),
    ...(oneOf === undefined ? {} : { oneOf: oneOf.map((option) => mapSchema(option, swap)) }),
    ...(anyOf === undefined ? {} : { anyOf: anyOf.map((option) => mapSchema(option, swap)) }),
    ...(typeof additionalProperties === 'object'
      ? { additionalProperties: mapSchema(additionalProperties, swap) }
      : {}),
  }
}

const mapArguments = (args: Arguments, swap: NameSwap): Arguments =>
  Object.fromEntries(
    Object.entries(args).map(([name, schema]) => [swap.keys.get(name) ?? name, mapSchema(schema, swap)]),
  )

/** The `namespace` argument of an index defaults to that index's own namespace. */
const mapNamespaceDefault = (args: Arguments, swap: NameSwap): Arguments => {
  const schema = args['namespace']
  const other = typeof schema?.default === 'string' ? swap.namespaces.get(schema.default) : undefined
  return schema === undefined || other === undefined
    ? args
    : { ...args, namespace: { ...schema, default: other } }
}

const mapEndpoint = (endpoint: Endpoint, swap: NameSwap): Endpoint => ({
  ...endpoint,
  arguments: mapNamespaceDefault(mapArguments(endpoint.arguments, swap), swap),
})

/** The rows in the other spelling. Ids and collections stay, so that tags and metric labels are the same in both. */
export const mapRows = (rows: readonly Row[], swap: NameSwap): Row[] =>
  rows.map((row) => ({
    ...row,
    template: mapPath(row.template, swap),
    pattern: mapPath(row.pattern, swap),
    namespace: swap.namespaces.get(row.namespace) ?? row.namespace,
    endpoints: row.endpoints.map((endpoint) => mapEndpoint(endpoint, swap)),
  }))
