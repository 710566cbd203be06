import type { ArgumentSchema, Arguments, Endpoint, Method, Row, RowKind } from '../../service/row.ts'
import data from './core-routes.json' with { type: 'json' }
import { endpointFor, row } from './row-builders.ts'

/** A schema, or `#name` for one that several routes share. */
type Written = ArgumentSchema | `#${string}`

type WrittenRoute = {
  readonly pattern: string
  readonly namespace: string
  readonly collection: string
  readonly kind: RowKind
  readonly endpoints: readonly {
    readonly methods: readonly Method[]
    readonly allowBatch?: boolean
    readonly arguments: Readonly<Record<string, Written>>
  }[]
}

// The compiler reads the texts of a JSON file as any text.
const { shared, routes } = data as unknown as {
  readonly shared: Arguments
  readonly routes: readonly WrittenRoute[]
}

const schemaOf = (schema: Written): ArgumentSchema =>
  typeof schema === 'string' ? (shared[schema.slice(1)] ?? {}) : schema

const endpoint = ({ methods, allowBatch, arguments: args }: WrittenRoute['endpoints'][number]): Endpoint => {
  const schemas = Object.fromEntries(Object.entries(args).map(([name, schema]) => [name, schemaOf(schema)]))
  return endpointFor(methods)(schemas, {
    ...(allowBatch === undefined ? {} : { allowBatch }),
    // WordPress reads the parameters of a multipart form on every route.
    ...(methods.includes('POST') ? { acceptsUploads: true } : {}),
  })
}

/** `(?P<id>[\\d]+)` → `{id}`; no group of these routes has a parenthesis behind its first inner one. */
const templateOf = (pattern: string): string =>
  pattern.replace(/\(\?P<(\w+)>(?:[^()]|\([^()]*\))*\)/g, '{$1}')

const rowOf = ({ pattern, namespace, collection, kind, endpoints }: WrittenRoute): Row => {
  const template = templateOf(pattern)
  return row({
    whereRegistered: true,
    id: template.slice(1),
    template,
    pattern,
    namespace,
    collection,
    kind,
    handledBy: kind === 'index' ? 'discovery' : 'upstream',
    endpoints: endpoints.map(endpoint),
  })
}

/** The routes of WordPress 6.9 that the specification of the site content leaves out, in the order of their registration. */
export const coreRows: readonly Row[] = routes.map(rowOf)
