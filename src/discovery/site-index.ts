import type { Row } from '../contracts/row.ts'
import type { IndexDocument } from './index-document.ts'
import { isObject, type JsonObject, member } from './json.ts'
import { describeRow } from './route-entry.ts'

/** What the documents are built of. */
export type SiteIndexParts = {
  readonly rows: readonly Row[]
  /** Entries of the upstream's routes that no row lists, in its order; empty where they are not to be reached. */
  readonly unlisted: ReadonlyMap<string, JsonObject>
  readonly index: IndexDocument
  readonly announcesUpstreamNamespaces: boolean
  readonly publicRoot: string
}

/** The documents that the gateway answers itself, before `_fields`. */
export type SiteIndex = {
  readonly site: JsonObject
  /** The namespace's own document; undefined when it is not announced. */
  namespace(name: string): JsonObject | undefined
}

/** The members before and behind `routes`, in WordPress's order. */
const before = [
  'name',
  'description',
  'url',
  'home',
  'gmt_offset',
  'timezone_string',
  'page_for_posts',
  'page_on_front',
  'show_on_front',
]
const behind = ['site_logo', 'site_icon', 'site_icon_url']
const placed = new Set([...before, ...behind, 'namespaces', 'authentication', 'routes', '_links'])

const pick = (identity: JsonObject, names: readonly string[]): JsonObject =>
  Object.fromEntries(
    names.filter((name) => Object.hasOwn(identity, name)).map((name) => [name, identity[name]]),
  )

/**
 * Rows of the table that the upstream has: those of a plugin go with it. Before its index is known, all of them are announced; so
 * is the interface itself, without which there is no site.
 */
const presentRows = ({ rows, index }: SiteIndexParts): readonly Row[] => {
  const announced = new Set(index.namespaces)
  if (announced.size === 0) return rows
  return rows.filter(({ namespace }) => namespace === '' || announced.has(namespace))
}

const namespacesOf = ({ rows, index, announcesUpstreamNamespaces }: SiteIndexParts): string[] => {
  const listed = rows.map((row) => row.namespace).filter((namespace) => namespace !== '')
  return [...new Set([...(announcesUpstreamNamespaces ? index.namespaces : []), ...listed])]
}

const routesOf = ({ rows, unlisted, index, publicRoot }: SiteIndexParts): Map<string, JsonObject> => {
  const routes = new Map(
    rows.map((row) => [row.pattern, describeRow(row, publicRoot, index.routes.get(row.pattern))]),
  )
  for (const [pattern, entry] of unlisted) if (!routes.has(pattern)) routes.set(pattern, entry)
  return routes
}

/** Merges the gateway's table with what the upstream says of itself. */
export const buildSiteIndex = (given: SiteIndexParts): SiteIndex => {
  const parts = { ...given, rows: presentRows(given) }
  const { identity } = parts.index
  const namespaces = namespacesOf(parts)
  const routes = routesOf(parts)
  const authentication = member(identity, 'authentication')
  const links = member(identity, '_links')
  return {
    site: {
      ...pick(identity, before),
      namespaces,
      authentication: isObject(authentication) ? authentication : [],
      routes: Object.fromEntries(routes),
      ...pick(identity, behind),
      // What plugins add of their own.
      ...pick(
        identity,
        Object.keys(identity).filter((name) => !placed.has(name)),
      ),
      ...(isObject(links) ? { _links: links } : {}),
    },
    namespace: (name) => {
      if (!namespaces.includes(name)) return undefined
      const own = [...routes].filter(([, entry]) => member(entry, 'namespace') === name)
      return {
        namespace: name,
        routes: Object.fromEntries(own),
        _links: { up: [{ href: `${parts.publicRoot}/` }] },
      }
    },
  }
}
