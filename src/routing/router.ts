import type { PathRefusal, RouteFinding } from '../contracts/finding.ts'
import type { Endpoint, Row } from '../contracts/row.ts'
import { encodedSlash } from './character-set.ts'
import { canonicalIdentifier } from './identifier.ts'
import { findAny } from './open-path.ts'
import { cleanSpelling, decodedValue, spelled, withForeignBytes, withSingleSlashes } from './path-form.ts'
import { type IndexedRow, indexRows, type RowIndex, type SkippedRow } from './row-index.ts'
import type { Groups, PatternPart } from './row-pattern.ts'

export type Router = {
  readonly rows: readonly Row[]
  /** Rows that are not matched, because what their patterns cost or mean is not certain. */
  readonly skipped: readonly SkippedRow[]
  /** What the table says of a method and a path without its query. The cost is linear in the length of the path. */
  find(method: string, path: string): RouteFinding
}

/** Longer than any route with the longest identifier in it; the patterns of templates are run on every path that begins like one. */
const maxPathLength = 2048

const refused = (reason: PathRefusal): RouteFinding => ({ kind: 'refused', reason })

/** HEAD is answered by what answers GET (RFC 9110 §9.3.2). */
const endpointOf = (row: Row, method: string): Endpoint | undefined => {
  const wanted = method === 'HEAD' ? 'GET' : method
  return row.endpoints.find((endpoint) => (endpoint.methods as readonly string[]).includes(wanted))
}

type Match = {
  readonly candidate: IndexedRow
  readonly groups: Groups
  readonly endpoint: Endpoint | undefined
}

/** The first row that has the method; else the first that has the path. OPTIONS asks about the first that has the path. */
const firstMatch = (index: RowIndex, method: string, text: string): Match | undefined => {
  const lower = text.toLowerCase()
  let first: Match | undefined
  for (const candidate of index.candidates(lower)) {
    const groups = candidate.pattern.groupsOf(text, lower)
    if (groups === undefined) continue
    const endpoint = endpointOf(candidate.row, method)
    const match = { candidate, groups, endpoint }
    if (endpoint !== undefined || method === 'OPTIONS') return match
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

/** The path put together again: literals as the row spells them, identifiers in their one form. */
const canonicalPath = (parts: readonly PatternPart[], groups: Groups): CanonicalPath => {
  const identifiers: [string, string][] = []
  let text = ''
  for (const part of parts) {
    if (part.kind === 'literal') {
      text += part.text
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

const findingOf = (
  match: Match,
  method: string,
  canonical: CanonicalPath & { kind: 'path' },
): RouteFinding => {
  const { row } = match.candidate
  const path = spelled(canonical.text)
  if (method === 'OPTIONS') return { kind: 'options', row, path }
  if (match.endpoint === undefined) return { kind: 'wrong-method', row, path }
  const pathParameters = Object.fromEntries(
    canonical.identifiers.map(([name, text]) => [name, decodedValue(text)]),
  )
  return { kind: 'found', row, endpoint: match.endpoint, pathParameters, path }
}

/**
 * The upstream may read what we send in several ways: what stands in front of WordPress merges slashes or keeps them, and
 * WordPress matches the path decoded (`/index.php/…`) or as it came (rewritten addresses). No reading may lead to another
 * row than the one decided on; to none it may only lead because an escape was not undone, and then the answer is a 404.
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
  const sent = [canonical, escaped, withForeignBytes(canonical)]
  const readings = new Set(sent.flatMap((reading) => [reading, withSingleSlashes(reading)]))
  readings.delete(text)
  for (const reading of readings) {
    const read = firstMatch(index, method, reading)?.candidate
    if (read !== row && (read !== undefined || reading === canonical)) return false
  }
  return true
}

const findIn = (index: RowIndex, method: string, path: string): RouteFinding => {
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
  return match === undefined ? { kind: 'unlisted', path: spelled(text) } : findingOf(match, method, canonical)
}

/** Routes of one service, matched as WordPress matches them, in time linear in the path whatever the patterns are. */
export const createRouter = (rows: readonly Row[]): Router => {
  const any = rows.find((row) => row.template === '/**')
  if (any !== undefined) return { rows, skipped: [], find: (method, path) => findAny(any, method, path) }
  const index = indexRows(rows)
  return { rows, skipped: index.skipped, find: (method, path) => findIn(index, method, path) }
}
