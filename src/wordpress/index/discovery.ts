import { createHash } from 'node:crypto'
import { inTurns, type Pieces } from '../../http/bodies/turns.ts'
import { queryParameters } from '../../http/form-text.ts'
import { isJsonObject, type JsonObject } from '../../http/json-text.ts'
import { memoizeByObject } from '../../http/memo.ts'
import type { Difference, DiscoveryEvent, IndexRefusal } from '../../service/connection.ts'
import type { Row } from '../../service/row.ts'
import { describeRow, type IndexDocument, readIndexInPieces, rootOf } from './index-document.ts'
import { createIndexSource, type IndexSourceOptions } from './index-source.ts'
import type { LearnedRows } from './learn-rows.ts'
import {
  type DiscoveryDocument,
  documentOf,
  emptyIndex,
  eventsOf,
  type IndexSettings,
  knowledgeInPieces,
  knowledgeOf,
} from './site-index.ts'

type FieldTree = Map<string, FieldTree | 'all'>

/** `_fields=a,b.c` and `_fields[]=a&_fields[]=b.c`; undefined when nothing is selected, so that all is shown. */
const selectedFields = (query: string): readonly string[] | undefined => {
  if (!query.includes('_fields')) return undefined
  const names: string[] = []
  for (const [name, value] of queryParameters(query)) {
    if (name === '_fields' || name.startsWith('_fields[')) names.push(...value.split(/[\s,]+/))
  }
  const fields = names.filter((field) => field !== '')
  return fields.length === 0 ? undefined : fields
}

/** A whole member swallows selections inside it. */
const add = (tree: FieldTree, path: readonly string[]): void => {
  const [name = '', ...rest] = path
  const selection = tree.get(name)
  if (selection === 'all') return
  if (rest.length === 0) {
    tree.set(name, 'all')
    return
  }
  const branch = selection ?? new Map()
  tree.set(name, branch)
  add(branch, rest)
}

const treeOf = (fields: readonly string[]): FieldTree => {
  const tree: FieldTree = new Map()
  // Deeper than any document; the rest of a longer path would select nothing.
  for (const field of fields) add(tree, field.split('.').slice(0, 64))
  return tree
}

/** WordPress selects by key, and the keys of a list are numbers: a name selects nothing in it. An empty result is PHP's `[]`. */
const prune = (object: JsonObject, tree: FieldTree): JsonObject | readonly [] => {
  const members: [string, unknown][] = []
  for (const [name, value] of Object.entries(object)) {
    const branch = tree.get(name)
    if (branch === 'all') members.push([name, value])
    else if (branch !== undefined && typeof value === 'object' && value !== null) {
      members.push([name, isJsonObject(value) ? prune(value, branch) : []])
    }
  }
  return members.length === 0 ? [] : Object.fromEntries(members)
}

/** All names are public ones; `toPublic` translates the upstream's index. */
export type DiscoveryOptions = IndexSettings &
  Pick<IndexSourceOptions, 'clock' | 'fetchIndex'> & {
    readonly service: string
    /** Path of the upstream's REST root, for an index that does not contain it. */
    readonly upstreamBasePath: string
    readonly source:
      | ({ readonly kind: 'upstream' } & Pick<IndexSourceOptions, 'refreshMs' | 'timeoutMs' | 'retryAfterMs'>)
      | { readonly kind: 'static'; readonly identity: JsonObject }
    /** Names and URLs of the upstream's index → public ones; called after the root is up to date. */
    toPublic(content: Buffer): Pieces<Buffer>
    /**
     * Called when the rows are others than before, so that the router is built anew: `listedRows` are those of the contract as the
     * upstream takes them.
     */
    rowsLearned(listedRows: readonly Row[], learnedRows: readonly Row[]): void
    /** Called after that when rows of an earlier index were replaced: stored responses may lack tags. */
    tableChanged(): void
    report(event: DiscoveryEvent): void
  }

/** Unchanged rows are the same objects. */
const sameRows = (rows: readonly Row[], otherRows: readonly Row[]): boolean =>
  rows.length === otherRows.length && rows.every((row, at) => row === otherRows[at])

/** With the fields that `_fields` of the query names. */
const selectedDocument = (document: JsonObject, query: string, publicRoot: string): DiscoveryDocument => {
  const fields = selectedFields(query)
  return documentOf(fields === undefined ? document : prune(document, treeOf(fields)), publicRoot, ['GET'])
}

/** Only the upstream has the schema of its items, which no index contains; without it the fallback lists the arguments. */
const optionsDocument = (row: Row, publicRoot: string, entry: Parameters<typeof describeRow>[2]) => {
  const methods = row.endpoints.flatMap((endpoint) => endpoint.methods)
  const document = documentOf(describeRow(row, publicRoot, entry), publicRoot, methods)
  return row.handledBy === 'upstream' ? ({ kind: 'ask-upstream', fallback: document } as const) : document
}

/** The documents of a site service, and what its upstream announces. Sends requests after `start`, or for a document. */
export const createDiscovery = (options: DiscoveryOptions) => {
  const { publicRoot, service, source } = options
  const learned: { root: string | undefined } = { root: undefined }
  const identity = source.kind === 'static' ? source.identity : emptyIndex.identity
  const knowledgeOfTable = memoizeByObject((identity: JsonObject) =>
    knowledgeOf({ ...emptyIndex, identity }, options),
  )
  /** What the upstream has announced last. */
  let knowledge: ReturnType<typeof knowledgeOf> | undefined
  /** Until the upstream has answered once, the namespaces of the table are known, and the site's identity is not. Made when it is asked for. */
  const known = () => knowledge ?? knowledgeOfTable(identity)
  const isIdentityKnown = (): boolean => source.kind === 'static' || knowledge !== undefined

  function* take(index: IndexDocument): Pieces<void> {
    const last = knowledge
    const next = yield* knowledgeInPieces(index, options, last)
    if (
      last === undefined ||
      !sameRows(next.listed, last.listed) ||
      !sameRows(next.learned.rows, last.learned.rows)
    ) {
      options.rowsLearned(next.listed, next.learned.rows)
      // What was stored before the first index has the tag that every write reaches.
      if (last !== undefined) options.tableChanged()
    }
    knowledge = next
    for (const event of eventsOf(service, next, last)) options.report(event)
  }

  /** Digest of the content that `knowledge` was made of: understanding it again costs tens of milliseconds in which nothing else is served. */
  let understood: string | undefined

  function* accept(content: Buffer): Pieces<'accepted' | IndexRefusal> {
    const digest = createHash('sha256').update(content).digest('base64')
    if (knowledge !== undefined && digest === understood) {
      for (const event of eventsOf(service, knowledge, knowledge)) options.report(event)
      return 'accepted'
    }
    const registered = yield* readIndexInPieces(content)
    if (registered.kind === 'refused') return registered.reason
    // First the root, then the names: links are found by it.
    learned.root = rootOf(registered.index, options.upstreamBasePath) ?? learned.root
    const mapped = yield* readIndexInPieces(yield* options.toPublic(content))
    if (mapped.kind === 'refused') return mapped.reason
    yield* take(mapped.index)
    understood = digest
    return 'accepted'
  }

  const upstream =
    source.kind === 'static'
      ? undefined
      : createIndexSource({
          ...source,
          clock: options.clock,
          fetchIndex: options.fetchIndex,
          accept: (content) => inTurns(accept(content), service),
          failed: (reason, cause) => {
            const keptLast = knowledge !== undefined
            options.report({ kind: 'index-failed', service, reason, keptLast, cause })
          },
        })

  const indexNow = (query: string) => {
    if (!isIdentityKnown()) return { kind: 'identity-unknown' } as const
    const { site, document } = known()
    return query.includes('_fields') ? selectedDocument(site.site, query, publicRoot) : document
  }

  const namespaceNow = (namespace: string, query: string) => {
    const { site, namespaceDocument } = known()
    const document = site.namespace(namespace)
    if (document === undefined) return { kind: 'unknown-namespace' } as const
    return query.includes('_fields')
      ? selectedDocument(document, query, publicRoot)
      : namespaceDocument(namespace, document)
  }

  const whenReady = <IndexResponse>(response: () => IndexResponse): IndexResponse | Promise<IndexResponse> =>
    upstream === undefined || upstream.isReady() ? response() : upstream.ready().then(response)

  return {
    start: (): void => upstream?.start(),
    /** The site index; waits only while nothing is known yet or after `invalidate`. `query` has no `?`. */
    index: (query: string) => whenReady(() => indexNow(query)),
    namespaceIndex: (namespace: string, query: string) => whenReady(() => namespaceNow(namespace, query)),
    options: (row: Row) => optionsDocument(row, publicRoot, known().entries.get(row.pattern)),
    /** The REST root that the upstream writes its links with; undefined until learned. */
    upstream: learned,
    /** The contract's rows as the upstream takes them. */
    listed: (): readonly Row[] => known().listed,
    learned: (): LearnedRows => known().learned,
    drift: (): readonly Difference[] => (isIdentityKnown() ? known().drift : []),
    /** Reads the index now; resolves also when that fails. */
    refresh: (): Promise<void> => upstream?.refresh() ?? Promise.resolve(),
    /** After a write that changes the site itself (settings, plugins): the next index is a new one. */
    invalidate: (): void => upstream?.invalidate(),
    close: (): Promise<void> => upstream?.close() ?? Promise.resolve(),
  }
}

export type Discovery = ReturnType<typeof createDiscovery>

export { rowsBeforeIndex } from './index-source.ts'
export { namedList, refusedText } from './learn-rows.ts'
