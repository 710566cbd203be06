import { isDeepStrictEqual } from 'node:util'
import type { Clock } from '../clock.ts'
import type { Row } from '../contracts/row.ts'
import {
  type DiscoveryDocument,
  documentOf,
  type IndexAnswerVariant,
  type NamespaceAnswer,
  type OptionsAnswer,
} from './discovery-answer.ts'
import { compareWithUpstream, type Difference } from './drift.ts'
import type { DiscoveryEvent, IndexRefusal } from './events.ts'
import { selectedFields, selectFields } from './field-selection.ts'
import { type IndexDocument, readIndex, rootOf } from './index-document.ts'
import { createIndexSource, type IndexAnswer } from './index-source.ts'
import type { JsonObject } from './json.ts'
import { type LearnedRows, learnRows, unlistedPatterns } from './learn-rows.ts'
import { describeRow } from './route-entry.ts'
import { buildSiteIndex, type SiteIndex } from './site-index.ts'

/** Everything is given in the names that clients use; `toPublic` brings the upstream's index there. */
export type DiscoveryOptions = {
  /** Name of the service in the configuration. */
  readonly service: string
  readonly clock: Clock
  /** The contract's rows. */
  readonly rows: readonly Row[]
  /** Absolute URL of the REST root as clients see it, without a trailing slash. */
  readonly publicRoot: string
  /** Path of the upstream's REST root, for an index that does not tell it. */
  readonly upstreamBasePath: string
  readonly source:
    | {
        readonly kind: 'upstream'
        readonly refreshMs: number
        readonly timeoutMs: number
        readonly retryAfterMs: number
      }
    | { readonly kind: 'static'; readonly identity: JsonObject }
  readonly unlistedRoutes: 'learn' | 'pass' | 'refuse'
  fetchIndex(signal: AbortSignal): Promise<IndexAnswer>
  /** Names and URLs of the upstream's index → public ones; called after `upstreamRoot` knows the new root. */
  toPublic(content: Buffer): Buffer
  /** Called when the learned rows are others than before, so that the router is built anew. */
  rowsLearned(rows: readonly Row[]): void
  report(event: DiscoveryEvent): void
}

/** The documents that describe a site service, and what its upstream was learned to be. */
export type Discovery = {
  start(): void
  /** The site index; waits only while nothing is known yet or after `invalidate`. `query` has no `?`. */
  index(query: string): IndexAnswerVariant | Promise<IndexAnswerVariant>
  namespaceIndex(namespace: string, query: string): NamespaceAnswer | Promise<NamespaceAnswer>
  options(row: Row): OptionsAnswer
  /** REST root that the upstream writes its links with; undefined until learned. */
  upstreamRoot(): string | undefined
  learned(): LearnedRows
  drift(): readonly Difference[]
  /** Asks the upstream now; resolves also when it fails. */
  refresh(): Promise<void>
  /** After a write that changes the site itself (settings, plugins): the next index is a new one. */
  invalidate(): void
  close(): Promise<void>
}

type Known = {
  readonly site: SiteIndex
  readonly document: DiscoveryDocument
  readonly learned: LearnedRows
  readonly drift: readonly Difference[]
}

const nothingLearned: LearnedRows = { rows: [], refused: [] }

const countBy = <Name extends string>(names: readonly Name[]): Partial<Record<Name, number>> => {
  const counts: Partial<Record<Name, number>> = {}
  for (const name of names) counts[name] = (counts[name] ?? 0) + 1
  return counts
}

/** Builds discovery for one site service; it asks the upstream only after `start` or when a document is wanted. */
export const createDiscovery = (options: DiscoveryOptions): Discovery => {
  const { publicRoot, rows, service, source } = options
  let root: string | undefined
  let known: Known | undefined

  const siteOf = (index: IndexDocument, unlisted: readonly string[]): SiteIndex => {
    const shown = options.unlistedRoutes === 'refuse' ? [] : unlisted
    return buildSiteIndex({
      rows,
      unlisted: new Map(shown.map((pattern) => [pattern, index.routes.get(pattern) as JsonObject])),
      index,
      announcesUpstreamNamespaces: options.unlistedRoutes !== 'refuse',
      publicRoot,
    })
  }

  const whole = (site: SiteIndex): DiscoveryDocument => documentOf(site.site, publicRoot, ['GET'])

  const take = (index: IndexDocument, durationSeconds: number): void => {
    const unlisted = unlistedPatterns(index, rows)
    const site = siteOf(index, unlisted)
    const learned = options.unlistedRoutes === 'learn' ? learnRows(index, rows) : nothingLearned
    const drift = compareWithUpstream(rows, index)
    const last = known
    known = { site, document: whole(site), learned, drift }
    if (!isDeepStrictEqual(learned.rows, last?.learned.rows ?? [])) options.rowsLearned(learned.rows)
    options.report({
      kind: 'index-refreshed',
      service,
      durationSeconds,
      unlistedRoutes: unlisted.length,
      learnedRows: learned.rows.length,
      refused: countBy(learned.refused.map(({ reason }) => reason)),
    })
    if (last === undefined || !isDeepStrictEqual(drift, last.drift)) {
      options.report({ kind: 'drift-compared', service, differences: countBy(drift.map(({ kind }) => kind)) })
    }
  }

  const accept = (content: Buffer, durationSeconds: number): 'accepted' | IndexRefusal => {
    const announced = readIndex(content)
    if (announced.kind === 'refused') return announced.reason
    // First the root, then the names: links are found by it.
    root = rootOf(announced.index, options.upstreamBasePath) ?? root
    const mapped = readIndex(options.toPublic(content))
    if (mapped.kind === 'refused') return mapped.reason
    take(mapped.index, durationSeconds)
    return 'accepted'
  }

  const upstream =
    source.kind === 'static'
      ? undefined
      : createIndexSource({
          clock: options.clock,
          refreshMs: source.refreshMs,
          timeoutMs: source.timeoutMs,
          retryAfterMs: source.retryAfterMs,
          fetchIndex: options.fetchIndex,
          accept,
          failed: (reason, durationSeconds) =>
            options.report({
              kind: 'index-failed',
              service,
              durationSeconds,
              reason,
              keptLast: known !== undefined,
            }),
        })

  if (source.kind === 'static') {
    const site = siteOf({ identity: source.identity, namespaces: [], routes: new Map() }, [])
    known = { site, document: whole(site), learned: nothingLearned, drift: [] }
  }

  /** Until the upstream has answered once, namespaces of the table are known and the site's identity is not. */
  const tableOnly = siteOf({ identity: {}, namespaces: [], routes: new Map() }, [])

  const indexNow = (query: string): IndexAnswerVariant => {
    if (known === undefined) return { kind: 'identity-unknown' }
    const fields = selectedFields(query)
    return fields === undefined
      ? known.document
      : documentOf(selectFields(known.site.site, fields), publicRoot, ['GET'])
  }

  const namespaceNow = (namespace: string, query: string): NamespaceAnswer => {
    const document = (known?.site ?? tableOnly).namespace(namespace)
    if (document === undefined) return { kind: 'unknown-namespace' }
    const fields = selectedFields(query)
    return documentOf(fields === undefined ? document : selectFields(document, fields), publicRoot, ['GET'])
  }

  const whenReady = <T>(answer: () => T): T | Promise<T> =>
    upstream === undefined || upstream.isReady() ? answer() : upstream.ready().then(answer)

  return {
    start: () => upstream?.start(),
    index: (query) => whenReady(() => indexNow(query)),
    namespaceIndex: (namespace, query) => whenReady(() => namespaceNow(namespace, query)),
    options: (row) => {
      const entry = describeRow(row, publicRoot)
      const methods = row.endpoints.flatMap((endpoint) => endpoint.methods)
      const document = documentOf(entry, publicRoot, methods)
      return row.handledBy === 'upstream' ? { kind: 'ask-upstream', fallback: document } : document
    },
    upstreamRoot: () => root,
    learned: () => known?.learned ?? nothingLearned,
    drift: () => known?.drift ?? [],
    refresh: () => upstream?.refresh() ?? Promise.resolve(),
    invalidate: () => upstream?.invalidate(),
    close: () => upstream?.close() ?? Promise.resolve(),
  }
}
