import { isDeepStrictEqual } from 'node:util'
import type { Row } from '../../contracts/row.ts'
import { isJsonObject, type JsonObject, ownMember } from '../../http/json-text.ts'
import { type DiscoveryDocument, documentOf } from '../discovery-answer.ts'
import { compareWithUpstream, type Difference, type Unlisted } from '../drift.ts'
import type { DiscoveryEvent } from '../events.ts'
import type { IndexDocument } from './index-document.ts'
import { type LearnedRows, learnRows, unlistedPatterns } from './learn-rows.ts'
import { describeRow } from './route-entry.ts'

/** The parts of the documents. */
type SiteIndexParts = {
  readonly rows: readonly Row[]
  /** Entries of the upstream's routes that no row lists, in its order; empty where they are not to be reached. */
  readonly unlisted: ReadonlyMap<string, JsonObject>
  readonly index: IndexDocument
  readonly announcesUpstreamNamespaces: boolean
  readonly publicRoot: string
}

/** The documents that the gateway answers itself, before `_fields`. */
type SiteIndex = {
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

/** Merges the gateway's table with the index of the upstream. */
const buildSiteIndex = (given: SiteIndexParts): SiteIndex => {
  const parts = { ...given, rows: presentRows(given) }
  const { identity } = parts.index
  const namespaces = namespacesOf(parts)
  const routes = routesOf(parts)
  const authentication = ownMember(identity, 'authentication')
  const links = ownMember(identity, '_links')
  return {
    site: {
      ...pick(identity, before),
      namespaces,
      authentication: isJsonObject(authentication) ? authentication : [],
      routes: Object.fromEntries(routes),
      ...pick(identity, behind),
      // Members that plugins add.
      ...pick(
        identity,
        Object.keys(identity).filter((name) => !placed.has(name)),
      ),
      ...(isJsonObject(links) ? { _links: links } : {}),
    },
    namespace: (name) => {
      if (!namespaces.includes(name)) return undefined
      const own = [...routes].filter(([, entry]) => ownMember(entry, 'namespace') === name)
      return {
        namespace: name,
        routes: Object.fromEntries(own),
        _links: { up: [{ href: `${parts.publicRoot}/` }] },
      }
    },
  }
}

/** What decides how an index is understood. */
type Outlook = {
  readonly service: string
  readonly rows: readonly Row[]
  readonly announced: readonly Row[]
  readonly publicRoot: string
  readonly unlistedRoutes: Unlisted['routes']
  readonly undeclaredParameters: Unlisted['parameters']
}

/** All that follows from one index of the upstream; replaced as a whole. */
type SiteKnowledge = {
  readonly site: SiteIndex
  /** The routes that the upstream announces, by pattern. */
  readonly entries: IndexDocument['routes']
  /** The site index without a selection, ready to be sent. */
  readonly document: DiscoveryDocument
  readonly unlistedRoutes: number
  readonly learned: LearnedRows
  readonly drift: readonly Difference[]
}

/** An empty index, for the time before one is known. */
export const emptyIndex: IndexDocument = { identity: {}, namespaces: [], routes: new Map() }

/** Nothing learned yet, or not to be learned. */
const nothingLearned: LearnedRows = { rows: [], refused: [] }

/** Rows of plugins that the upstream has; all of them while it has announced nothing. */
const offered = (rows: readonly Row[], { routes, namespaces }: IndexDocument): readonly Row[] =>
  routes.size === 0
    ? rows
    : rows.filter(({ ofPlugin, namespace }) => ofPlugin !== true || namespaces.includes(namespace))

/** Reads an index whose names are already public. */
export const knowledgeOf = (index: IndexDocument, outlook: Outlook): SiteKnowledge => {
  const { rows, announced, publicRoot, unlistedRoutes, undeclaredParameters } = outlook
  const unlisted = unlistedPatterns(index, rows)
  const shown = unlistedRoutes === 'refuse' ? [] : unlisted
  const site = buildSiteIndex({
    rows: offered(rows, index),
    unlisted: new Map([...index.routes].filter(([pattern]) => shown.includes(pattern))),
    index,
    announcesUpstreamNamespaces: unlistedRoutes !== 'refuse',
    publicRoot,
  })
  return {
    site,
    entries: index.routes,
    document: documentOf(site.site, publicRoot, ['GET']),
    unlistedRoutes: unlisted.length,
    learned: unlistedRoutes === 'learn' ? learnRows(index, rows) : nothingLearned,
    drift: compareWithUpstream(offered(announced, index), index, {
      routes: unlistedRoutes,
      parameters: undeclaredParameters,
    }),
  }
}

const countBy = <Name extends string>(names: readonly Name[]): Partial<Record<Name, number>> => {
  const counts: Partial<Record<Name, number>> = {}
  for (const name of names) counts[name] = (counts[name] ?? 0) + 1
  return counts
}

/** The events of a new index. */
export const eventsOf = (
  service: string,
  durationSeconds: number,
  next: SiteKnowledge,
  last: SiteKnowledge | undefined,
): DiscoveryEvent[] => {
  const refreshed: DiscoveryEvent = {
    kind: 'index-refreshed',
    service,
    durationSeconds,
    unlistedRoutes: next.unlistedRoutes,
    learnedRows: next.learned.rows.length,
    refused: countBy(next.learned.refused.map(({ reason }) => reason)),
  }
  const drift = next.drift.filter(({ matters }) => matters)
  if (last !== undefined && isDeepStrictEqual(next.drift, last.drift)) return [refreshed]
  return [refreshed, { kind: 'drift-compared', service, differences: countBy(drift.map(({ kind }) => kind)) }]
}
