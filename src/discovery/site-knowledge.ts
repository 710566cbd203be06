import { isDeepStrictEqual } from 'node:util'
import type { Row } from '../contracts/row.ts'
import { type DiscoveryDocument, documentOf } from './discovery-answer.ts'
import { compareWithUpstream, type Difference, type Unlisted } from './drift.ts'
import type { DiscoveryEvent } from './events.ts'
import type { IndexDocument } from './index-document.ts'
import { type LearnedRows, learnRows, unlistedPatterns } from './learn-rows.ts'
import { buildSiteIndex, type SiteIndex } from './site-index.ts'

/** What decides how an index is understood. */
export type Outlook = {
  readonly service: string
  readonly rows: readonly Row[]
  readonly announced: readonly Row[]
  readonly publicRoot: string
  readonly unlistedRoutes: Unlisted['routes']
  readonly undeclaredParameters: Unlisted['parameters']
}

/** All that follows from one index of the upstream; replaced as a whole. */
export type SiteKnowledge = {
  readonly site: SiteIndex
  /** What the upstream announces of its routes, by pattern. */
  readonly entries: IndexDocument['routes']
  /** The site index without a selection, ready to be sent. */
  readonly document: DiscoveryDocument
  readonly unlistedRoutes: number
  readonly learned: LearnedRows
  readonly drift: readonly Difference[]
}

/** An index that says nothing, for the time before one is known. */
export const emptyIndex: IndexDocument = { identity: {}, namespaces: [], routes: new Map() }

/** Nothing learned yet, or not to be learned. */
const nothingLearned: LearnedRows = { rows: [], refused: [] }

/** Rows of plugins that the upstream has; all of them while it has announced nothing. */
const offered = (rows: readonly Row[], { routes, namespaces }: IndexDocument): readonly Row[] =>
  routes.size === 0
    ? rows
    : rows.filter(({ ofPlugin, namespace }) => ofPlugin !== true || namespaces.includes(namespace))

/** Understands an index whose names are already public. */
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

/** What is worth telling of new knowledge. */
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
