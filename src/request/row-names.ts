import { type ArgumentSchema, type Arguments, type Endpoint, mapParts, type Row } from '../contracts/row.ts'
import type { NameSwap } from './name-swap.ts'
import { mapPath } from './names/urls.ts'

const mapSchema = (schema: ArgumentSchema, swap: NameSwap): ArgumentSchema => ({
  ...schema,
  ...mapParts(
    schema,
    (part) => mapSchema(part, swap),
    (properties) => mapArguments(properties, swap),
  ),
})

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
