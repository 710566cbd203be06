import { readFileSync } from 'node:fs'
import type { Endpoint, Row } from '../../src/service/row.ts'
import { keyNames, namespaceNames, segmentNames } from '../../src/wordpress/names/name-table.ts'

/** A route as a discovery document announces it, and as a row would be announced. */
type AnnouncedRoute = {
  readonly namespace: string
  readonly methods: readonly string[]
  readonly endpoints: readonly AnnouncedEndpoint[]
}

type AnnouncedEndpoint = {
  readonly methods: readonly string[]
  readonly allow_batch?: { readonly v1: boolean }
  readonly args: unknown
}

export type AnnouncedRoutes = Readonly<Record<string, AnnouncedRoute>>

const publicNamespaces = new Map(namespaceNames.map((pair) => [pair.wordpress, pair.neutral]))
const publicKeys = new Map(keyNames.map((pair) => [pair.wordpress, pair.neutral]))
const publicSegments = new Map(segmentNames.map((pair) => [pair.wordpress, pair.neutral]))

const publicPattern = (pattern: string): string => {
  const namespace = namespaceNames.find(
    (pair) => pattern === `/${pair.wordpress}` || pattern.startsWith(`/${pair.wordpress}/`),
  )
  const renamed =
    namespace === undefined
      ? pattern
      : `/${namespace.neutral}${pattern.slice(namespace.wordpress.length + 1)}`
  return renamed
    .split('/')
    .map((segment) => publicSegments.get(segment) ?? segment)
    .join('/')
}

/** Keys at any depth, and the texts that are a namespace as a whole. */
const publicNames = (value: unknown): unknown => {
  if (typeof value === 'string') return publicNamespaces.get(value) ?? value
  if (Array.isArray(value)) return value.map(publicNames)
  if (value === null || typeof value !== 'object') return value
  return Object.fromEntries(
    Object.entries(value).map(([key, part]) => [publicKeys.get(key) ?? key, publicNames(part)]),
  )
}

/** What WordPress 6.9 announces, under the public names. */
export const announcedRoutes = (): AnnouncedRoutes => {
  const file = new URL('fixtures/discovery-wordpress-6.9.json', import.meta.url)
  const document: { routes: Record<string, unknown> } = JSON.parse(readFileSync(file, 'utf8'))
  return Object.fromEntries(
    Object.entries(document.routes).map(([pattern, route]) => [
      publicPattern(pattern),
      publicNames(route) as AnnouncedRoute,
    ]),
  )
}

const announcedEndpoint = ({ methods, allowBatch, arguments: args }: Endpoint): AnnouncedEndpoint => ({
  methods,
  ...(allowBatch === undefined ? {} : { allow_batch: { v1: allowBatch } }),
  args,
})

/** The rows in the shape of a discovery document. */
export const routesOf = (rows: readonly Row[]): AnnouncedRoutes =>
  Object.fromEntries(
    rows.map(({ pattern, namespace, endpoints }) => [
      pattern,
      {
        namespace,
        methods: [...new Set(endpoints.flatMap((endpoint) => endpoint.methods))],
        endpoints: endpoints.map(announcedEndpoint),
      },
    ]),
  )
