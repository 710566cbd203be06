import { randomUUID } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import { atOnce, type Pieces } from '../../http/bodies/turns.ts'
import { contentEntityTag } from '../../http/conditional/preconditions.ts'
import type { HeaderLines } from '../../http/headers/header-lines.ts'
import { asciiJson, isJsonObject, type JsonObject, ownMember } from '../../http/json-text.ts'
import type { DiscoveryEvent } from '../../service/connection.ts'
import { skippedRows } from '../../service/router.ts'
import type { Row } from '../../service/row.ts'
import { compareWithUpstream, type Unlisted } from './drift.ts'
import { describeRow, type IndexDocument } from './index-document.ts'
import { followIndex, isRegisteredIn, withKeptRows } from './index-source.ts'
import { type LearnedRows, learnInPieces, unlistedPatterns } from './learn-rows.ts'

/** Entries that are written in one piece: about a millisecond. */
const entriesOfPiece = 128

/** Each route's entry with its name, as it stands in a document. */
function* routeTexts(routes: ReadonlyMap<string, JsonObject>): Pieces<ReadonlyMap<string, string>> {
  const texts = new Map<string, string>()
  for (const [pattern, entry] of routes) {
    texts.set(pattern, `${asciiJson(pattern)}:${asciiJson(entry)}`)
    if (texts.size % entriesOfPiece === 0) yield
  }
  return texts
}

/** A document ready to be sent with status 200. */
export type DiscoveryDocument = {
  readonly kind: 'document'
  readonly fields: HeaderLines
  readonly content: Buffer
}

/** Fields as WordPress sends them with its index, and a strong validator, which it does not. */
export const documentOf = (
  value: unknown,
  publicRoot: string,
  methods: readonly string[],
): DiscoveryDocument => documentOfText(asciiJson(value), publicRoot, methods)

const documentOfText = (text: string, publicRoot: string, methods: readonly string[]): DiscoveryDocument => {
  const content = Buffer.from(text, 'latin1')
  const fields = [
    ['Content-Type', 'application/json; charset=UTF-8'],
    ['X-Robots-Tag', 'noindex'],
    ['Link', `<${publicRoot}/>; rel="https://api.w.org/"`],
    ['X-Content-Type-Options', 'nosniff'],
    ['Allow', methods.join(', ')],
    ['ETag', contentEntityTag(content)],
  ]
  return { kind: 'document', fields: fields.flat(), content }
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

/** The settings that an index is read with. All names are public ones. */
export type IndexSettings = {
  /** The contract's rows. */
  readonly rows: readonly Row[]
  /** The same as the upstream should announce them. */
  readonly registered: readonly Row[]
  /** Absolute URL of the REST root as clients see it, without a trailing slash. */
  readonly publicRoot: string
  readonly unlistedRoutes: Unlisted['routes']
  readonly undeclaredParameters: Unlisted['parameters']
}

/** An empty index, for the time before one is known. */
export const emptyIndex: IndexDocument = { identity: {}, namespaces: [], routes: new Map() }

/** Rows of plugins that the upstream has, all of them while it has announced nothing; and of the core routes those that it announces. */
const offered = (rows: readonly Row[], index: IndexDocument): readonly Row[] => {
  const { routes, namespaces } = index
  const isRegistered = isRegisteredIn(index)
  return rows.filter((row) => {
    if (row.whereRegistered === true && !isRegistered(row)) return false
    return routes.size === 0 || row.ofPlugin !== true || namespaces.includes(row.namespace)
  })
}

/** The rows of requests: before the first index all, then without the core routes of other versions. */
const requestRows = (rows: readonly Row[], index: IndexDocument): readonly Row[] => {
  const isRegistered = isRegisteredIn(index)
  return index.routes.size === 0
    ? rows
    : rows.filter((row) => row.whereRegistered !== true || isRegistered(row))
}

/**
 * Merges the gateway's table with the index of the upstream. Rows whose namespace it does not announce are left out; before its
 * index is known, all of them are announced. So is the interface itself, without which there is no site.
 */
const buildSiteIndex = (
  index: IndexDocument,
  { publicRoot, unlistedRoutes }: IndexSettings,
  rows: readonly Row[],
  unlisted: readonly string[],
) => {
  const { identity } = index
  const registered = new Set(['', ...index.namespaces])
  const present = offered(rows, index).filter(
    ({ namespace }) => index.namespaces.length === 0 || registered.has(namespace),
  )
  const namespaces = new Set([
    ...(unlistedRoutes === 'refuse' ? [] : index.namespaces),
    ...present.map(({ namespace }) => namespace),
  ])
  namespaces.delete('')
  const routes = new Map(
    present.map((row) => [row.pattern, describeRow(row, publicRoot, index.routes.get(row.pattern))]),
  )
  for (const pattern of unlistedRoutes === 'refuse' ? [] : unlisted) {
    if (!routes.has(pattern)) routes.set(pattern, index.routes.get(pattern) ?? {})
  }
  const authentication = ownMember(identity, 'authentication')
  const links = ownMember(identity, '_links')
  const patternsOf = (name: string): readonly string[] =>
    [...routes].filter(([, entry]) => ownMember(entry, 'namespace') === name).map(([pattern]) => pattern)
  return {
    routes,
    patternsOf,
    site: {
      ...pick(identity, before),
      namespaces: [...namespaces],
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
    /** The namespace's own document; undefined when it is not announced. */
    namespace: (name: string): JsonObject | undefined => {
      if (!namespaces.has(name)) return undefined
      return {
        namespace: name,
        routes: Object.fromEntries(patternsOf(name).map((pattern) => [pattern, routes.get(pattern)])),
        _links: { up: [{ href: `${publicRoot}/` }] },
      }
    },
  }
}

/** Learned rows without those that no path would match: these are refused as well. */
function* routedRows(
  { rows, refusals }: LearnedRows,
  listed: readonly Row[],
  last: readonly Row[] = [],
): Pieces<LearnedRows> {
  const learnedRows = yield* withKeptRows(rows, last)
  const skipped = yield* skippedRows([...listed, ...learnedRows])
  return {
    rows: learnedRows.filter((row) => !skipped.has(row)),
    refusals: [...refusals, ...[...skipped].map(([{ pattern }, reason]) => ({ pattern, reason }))],
  }
}

/** A document with routes, of which only the other members are written: a large site has megabytes of routes. */
const withRouteTexts = (document: JsonObject, texts: Iterable<string>): string => {
  const marker = randomUUID()
  return asciiJson({ ...document, routes: marker }).replace(`"${marker}"`, () => `{${[...texts].join(',')}}`)
}

/** All that follows from an index whose names are already public; replaced as a whole. */
export function* knowledgeInPieces(
  index: IndexDocument,
  settings: IndexSettings,
  last?: { readonly listed: readonly Row[]; readonly learned: LearnedRows },
) {
  const { rows, registered, publicRoot, unlistedRoutes, undeclaredParameters } = settings
  const unlisted = yield* unlistedPatterns(index, rows)
  const followed = followIndex(requestRows(rows, index), index)
  yield
  const listed =
    index.routes === emptyIndex.routes ? rows : yield* withKeptRows(followed, last?.listed ?? rows)
  yield
  const site = buildSiteIndex(index, settings, listed, unlisted)
  yield
  const learned: LearnedRows =
    unlistedRoutes === 'learn'
      ? yield* routedRows(yield* learnInPieces(index, rows, unlisted), listed, last?.learned.rows)
      : { rows: [], refusals: [] }
  const texts = yield* routeTexts(site.routes)
  const document = documentOfText(withRouteTexts(site.site, texts.values()), publicRoot, ['GET'])
  yield
  const drift = compareWithUpstream(offered(registered, index), index, {
    routes: unlistedRoutes,
    parameters: undeclaredParameters,
  })
  yield
  const namespaces = new Map<string, DiscoveryDocument>()
  /** That of a namespace, without a selection; written on its first request. */
  const namespaceDocument = (name: string, value: JsonObject): DiscoveryDocument => {
    const known = namespaces.get(name)
    if (known !== undefined) return known
    const own = site.patternsOf(name).map((pattern) => texts.get(pattern) ?? '')
    const made = documentOfText(withRouteTexts(value, own), publicRoot, ['GET'])
    namespaces.set(name, made)
    return made
  }
  return {
    site,
    /** The contract's rows as the upstream takes them. */
    listed,
    /** The routes that the upstream announces, by pattern. */
    entries: index.routes,
    /** The site index without a selection, ready to be sent. */
    document,
    namespaceDocument,
    unlistedRoutes: unlisted.length,
    learned,
    drift,
  }
}

/** The same at once. */
export const knowledgeOf = (...index: Parameters<typeof knowledgeInPieces>): SiteKnowledge =>
  atOnce(knowledgeInPieces(...index))

type SiteKnowledge = ReturnType<typeof knowledgeInPieces> extends Pieces<infer Knowledge> ? Knowledge : never

const countBy = <Name extends string>(names: readonly Name[]): Partial<Record<Name, number>> => {
  const counts: Partial<Record<Name, number>> = {}
  for (const name of names) counts[name] = (counts[name] ?? 0) + 1
  return counts
}

/** The events of a new index. */
export const eventsOf = (
  service: string,
  next: SiteKnowledge,
  last: SiteKnowledge | undefined,
): DiscoveryEvent[] => {
  const refreshed = {
    kind: 'index-refreshed' as const,
    service,
    unlistedRoutes: next.unlistedRoutes,
    learnedRows: next.learned.rows.length,
    refused: countBy(next.learned.refusals.map(({ reason }) => reason)),
  }
  const isRefusedAnew =
    next.learned.refusals.length > 0 && !isDeepStrictEqual(next.learned.refusals, last?.learned.refusals)
  const events: DiscoveryEvent[] = isRefusedAnew
    ? [refreshed, { kind: 'routes-refused', service, refused: refreshed.refused }]
    : [refreshed]
  const drift = next.drift.filter(({ matters }) => matters)
  if (last !== undefined && isDeepStrictEqual(next.drift, last.drift)) return events
  return [...events, { kind: 'drift-compared', service, differences: countBy(drift.map(({ kind }) => kind)) }]
}
