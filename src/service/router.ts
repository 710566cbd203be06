import { hash } from 'node:crypto'
import { atOnce, type Pieces } from '../http/bodies/turns.ts'
import { createRecentValues } from '../http/memo.ts'
import { isHead, isOptions } from '../http/methods.ts'
import type { Contract } from './contract.ts'
import {
  canonicalIdentifier,
  cleanSpelling,
  compileRowPattern,
  decodedValue,
  encodedSlash,
  type Groups,
  type PatternPart,
  type PatternRefusal,
  type RowPattern,
  spelled,
  withForeignBytes,
  withSingleSlashes,
} from './route-paths.ts'
import type { Endpoint, PathRefusal, RouteMatch, Row } from './row.ts'

/** HEAD of a GET is served unless the document has its own HEAD (RFC 9110 §9.3.2). */
export const endpointOf = ({ endpoints }: Row, method: string): Endpoint | undefined => {
  const named = (wanted: string) =>
    endpoints.find((endpoint) => (endpoint.methods as readonly string[]).includes(wanted))
  return named(method) ?? (isHead(method) ? named('GET') : undefined)
}

type IndexedRow = { readonly row: Row; readonly order: number; readonly pattern: RowPattern }

/** Rows whose literal beginning the path has, in the order of the table. `lower` is a cleaned path in lower case. */
type RowIndex = (lower: string) => readonly IndexedRow[]

/** Rows of one prefix whose patterns can divide a path in several ways. The contract has five; a foreign document must not add hundreds. */
const maxAmbiguousPerPrefix = 16

const add = (lists: Map<string, IndexedRow[]>, key: string, row: IndexedRow): void => {
  const list = lists.get(key)
  if (list === undefined) lists.set(key, [row])
  else list.push(row)
}

/** By their text: a table is indexed anew whenever rows are learned, and most of its patterns are the same then. */
const compiledPatterns = createRecentValues<ReturnType<typeof compileRowPattern>>(32 * 1024)

const compiledPattern = ({ pattern }: Row): ReturnType<typeof compileRowPattern> => {
  const known = compiledPatterns.get(pattern)
  if (known !== undefined) return known
  const compiled = compileRowPattern(pattern)
  compiledPatterns.set(pattern, compiled)
  return compiled
}

/** Rows that are indexed in one piece; to compile a pattern takes some 50 µs. */
const rowsOfPiece = 32

const slashes = (text: string): number => text.split('/').length - 1

export type RoutingRefusal = PatternRefusal | 'too-many-alike'

/**
 * Indexes rows by their literal beginning, so that a path is compared with a handful of rows and not with the whole table. Rows
 * whose patterns have no certain cost or meaning never match.
 */
function* indexRows(rows: readonly Row[]): Pieces<{
  readonly find: RowIndex
  readonly skipped: ReadonlyMap<Row, RoutingRefusal>
}> {
  const literal = new Map<string, IndexedRow[]>()
  const byPrefix = new Map<string, IndexedRow[]>()
  const skipped = new Map<Row, RoutingRefusal>()
  const ambiguous = new Map<string, number>()
  let deepest = 0

  const addRow = (row: Row, order: number): void => {
    const pattern = compiledPattern(row)
    if (pattern.kind === 'skipped') {
      skipped.set(row, pattern.reason)
      return
    }
    const indexed: IndexedRow = { row, order, pattern }
    if (pattern.isLiteral) {
      add(literal, pattern.prefix, indexed)
      return
    }
    const alike = ambiguous.get(pattern.prefix) ?? 0
    if (!pattern.isDeterministic && alike >= maxAmbiguousPerPrefix) {
      skipped.set(row, 'too-many-alike')
      return
    }
    if (!pattern.isDeterministic) ambiguous.set(pattern.prefix, alike + 1)
    deepest = Math.max(deepest, slashes(pattern.prefix))
    add(byPrefix, pattern.prefix, indexed)
  }

  for (const [order, row] of rows.entries()) {
    addRow(row, order)
    if (order % rowsOfPiece === rowsOfPiece - 1) yield
  }

  const find: RowIndex = (lower) => {
    const candidates = [...(literal.get(lower) ?? [])]
    let end = 0
    for (let depth = 0; depth < deepest; depth++) {
      end = lower.indexOf('/', end) + 1
      if (end === 0) break
      candidates.push(...(byPrefix.get(lower.slice(0, end)) ?? []))
    }
    return candidates.sort((a, b) => a.order - b.order)
  }
  return { find, skipped }
}

/** The rows that no path matches, with the reason. */
export function* skippedRows(rows: readonly Row[]): Pieces<ReadonlyMap<Row, RoutingRefusal>> {
  return (yield* indexRows(rows)).skipped
}

/**
 * Finds the one row of the open contract. Only the upstream defines what its paths mean: case, doubled, trailing and encoded
 * slashes stay, and only spellings that RFC 3986 §6.2.2 calls equivalent are merged.
 */
const findAny = (row: Row, method: string, path: string): RouteMatch => {
  const cleaned = cleanSpelling(path === '' ? '/' : path, 'unreserved')
  if (cleaned.kind === 'refused') return cleaned
  // Resolved against a base, a path that begins with two slashes names a host (RFC 3986 §4.2).
  const canonical = spelled(cleaned.text.replace(/^\/+/, '/'))
  const endpoint = endpointOf(row, method)
  if (endpoint === undefined) return { kind: 'unlisted', path: canonical }
  return { kind: 'found', row, endpoint, pathParameters: {}, path: canonical }
}

export type Router = {
  /** Looks up a method and a path without its query. The cost is linear in the length of the path. */
  find(method: string, path: string): RouteMatch
}

/** Longer than any route with the longest identifier in it: the patterns of templates run on every path with their prefix. */
const maxPathLength = 2048

const refused = (reason: PathRefusal): RouteMatch => ({ kind: 'refused', reason })

type Match = {
  readonly candidate: IndexedRow
  readonly groups: Groups
  readonly endpoint: Endpoint | undefined
}

/** The first row that has path and method, else the first that has the path. OPTIONS is about the first that has the path. */
const firstMatch = (index: RowIndex, method: string, text: string): Match | undefined => {
  const lower = text.toLowerCase()
  let first: Match | undefined
  for (const candidate of index(lower)) {
    const groups = candidate.pattern.groupsOf(text, lower)
    if (groups === undefined) continue
    const endpoint = endpointOf(candidate.row, method)
    const match = { candidate, groups, endpoint }
    if (endpoint !== undefined || isOptions(method)) return match
    first ??= match
  }
  return first
}

type CanonicalPath =
  | {
      readonly kind: 'path'
      readonly text: string
      readonly identifiers: readonly (readonly [string, string])[]
    }
  | { readonly kind: 'refused'; readonly reason: PathRefusal }

/** The path in its canonical form: literals as the row spells them, identifiers in their one form. */
const canonicalPath = (parts: readonly PatternPart[], groups: Groups): CanonicalPath => {
  const identifiers: [string, string][] = []
  let text = ''
  for (const part of parts) {
    if (part.kind !== 'parameter') {
      text += part.kind === 'dot' ? '.' : part.text
      continue
    }
    const identifier = canonicalIdentifier(groups.get(part.name) ?? '', part.form)
    if (identifier === undefined) return { kind: 'refused', reason: 'encoded-slash' }
    if (identifier === 'too-long') return { kind: 'refused', reason: 'too-long' }
    identifiers.push([part.name, identifier])
    text += identifier
  }
  return { kind: 'path', text, identifiers }
}

const routeMatchOf = (
  match: Match,
  method: string,
  canonical: CanonicalPath & { kind: 'path' },
): RouteMatch => {
  const { row } = match.candidate
  const path = spelled(canonical.text)
  if (isOptions(method)) return { kind: 'options', row, path }
  if (match.endpoint === undefined) return { kind: 'wrong-method', row, path }
  const pathParameters = Object.fromEntries(
    canonical.identifiers.map(([name, text]) => [name, decodedValue(text)]),
  )
  return { kind: 'found', row, endpoint: match.endpoint, pathParameters, path }
}

/**
 * Upstreams read a path in several ways: servers in front of a site merge slashes or keep them, and the site matches the path
 * decoded (`/index.php/…`) or unchanged (rewritten URLs). Each reading must lead to the same row. Only a reading with an escape left
 * in it may lead to no row: the upstream then answers 404.
 */
const isReadAlike = (
  index: RowIndex,
  method: string,
  text: string,
  canonical: string,
  row: IndexedRow | undefined,
): boolean => {
  const escaped = spelled(canonical)
  if (canonical === text && escaped === text && !text.includes('%')) return true
  const spellings = [canonical, escaped, withForeignBytes(canonical)]
  const readings = new Set(spellings.flatMap((reading) => [reading, withSingleSlashes(reading)]))
  readings.delete(text)
  for (const reading of readings) {
    const read = firstMatch(index, method, reading)?.candidate
    if (read !== row && (read !== undefined || reading === canonical)) return false
  }
  return true
}

const findIn = (index: RowIndex, method: string, path: string): RouteMatch => {
  if (path.length > maxPathLength) return refused('too-long')
  const cleaned = cleanSpelling(path === '' ? '/' : path, 'all')
  if (cleaned.kind === 'refused') return cleaned
  const text = withSingleSlashes(cleaned.text)
  const match = firstMatch(index, method, text)
  const canonical: CanonicalPath =
    match === undefined
      ? { kind: 'path', text, identifiers: [] }
      : canonicalPath(match.candidate.pattern.parts, match.groups)
  if (canonical.kind === 'refused') return canonical
  if (canonical.text.includes(encodedSlash)) return refused('encoded-slash')
  if (!isReadAlike(index, method, text, canonical.text, match?.candidate)) {
    return refused(text.includes(encodedSlash) ? 'encoded-slash' : 'ambiguous-identifier')
  }
  return match === undefined
    ? { kind: 'unlisted', path: spelled(text) }
    : routeMatchOf(match, method, canonical)
}

/** Routes of one service, matched as sites match them, in time linear in the path whatever the patterns are. */
export const createRouter = (rows: readonly Row[]): Router => {
  const any = rows.find((row) => row.template === '/**')
  if (any !== undefined) return { find: (method, path) => findAny(any, method, path) }
  const index = atOnce(indexRows(rows)).find
  return { find: (method, path) => findIn(index, method, path) }
}

/** What of a table tags depend on, beside the request. */
const tableIdOf = (rows: readonly Row[]): string =>
  hash(
    'sha256',
    JSON.stringify(
      rows.map(({ template, collection, kind, endpoints }) => [
        template,
        collection,
        kind,
        endpoints.map(({ methods, asSent }) => [methods, asSent]),
      ]),
    ),
    'base64url',
  )

/** The rows of a contract, until others are learned in their place. */
export const createRowsInUse = (
  find: Contract['find'],
): Pick<Contract, 'find' | 'learn' | 'hasRow' | 'tableId'> => {
  let router = find
  /** Undefined: the rows of the contract, which never change. */
  let current: ReadonlySet<Row> | undefined
  /** Of the table before the first index: every write reaches what is stored by them. */
  let first: ReadonlySet<Row> | undefined
  /** Computed when it is asked for first: a site may have ten thousand rows. */
  let tableId: string | undefined = ''
  return {
    find: (method, path) => router(method, path),
    learn: (listed, learned) => {
      const all = [...listed, ...learned]
      router = createRouter(all).find
      current = new Set(all)
      first ??= current
      tableId = undefined
    },
    hasRow: (row) => current === undefined || current.has(row) || first?.has(row) === true,
    tableId: () => {
      tableId ??= tableIdOf([...(current ?? [])])
      return tableId
    },
  }
}
