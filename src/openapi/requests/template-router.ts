import type { Pieces } from '../../http/bodies/turns.ts'
import { cleanSpelling, spelled } from '../../service/route-paths.ts'
import { endpointOf } from '../../service/router.ts'
import type { RouteMatch, Row } from '../../service/row.ts'
import { decoded } from '../document/bundle.ts'
import { operationOf } from '../document/operation.ts'

/** A segment of a template: its literal texts, with a parameter between each two of them. */
type SegmentPattern = { readonly literals: readonly string[] }

type Node = {
  readonly literal: Map<string, Node>
  /** Segments with text beside the parameters, the longest text first. */
  readonly mixed: { readonly pattern: SegmentPattern; readonly node: Node }[]
  parameter: Node | undefined
  row: Row | undefined
}

const newNode = (): Node => ({ literal: new Map(), mixed: [], parameter: undefined, row: undefined })

const decodedSegment = (raw: string): string => (raw.includes('%') ? decodeURIComponent(raw) : raw)

const names = /\{[^{}]*\}/g

/** Template literals are compared decoded; a document may spell them either way. */
const patternOf = (segment: string): SegmentPattern => ({ literals: segment.split(names).map(decoded) })

const samePattern = (a: SegmentPattern, b: SegmentPattern): boolean =>
  a.literals.length === b.literals.length && a.literals.every((text, index) => text === b.literals[index])

const weight = ({ literals }: SegmentPattern): number => literals.reduce((sum, { length }) => sum + length, 0)

/**
 * The texts of the parameters of a segment, none of them empty; undefined when the segment does not fit. Each parameter but the last
 * one ends at the first occurrence of the text behind it, so that the cost is linear.
 */
const segmentValues = ({ literals }: SegmentPattern, segment: string): readonly string[] | undefined => {
  const [first = '', ...others] = literals
  if (!segment.startsWith(first)) return undefined
  const values: string[] = []
  let at = first.length
  for (const [index, literal] of others.entries()) {
    const isLast = index === others.length - 1
    const end = isLast
      ? segment.length - literal.length
      : literal === ''
        ? at + 1
        : segment.indexOf(literal, at + 1)
    if (end <= at || (isLast && !segment.endsWith(literal))) return undefined
    values.push(segment.slice(at, end))
    at = end + literal.length
  }
  return at === segment.length ? values : undefined
}

const segmentsOf = (path: string): readonly string[] => path.slice(1).split('/')

const nextNode = (node: Node, segment: string): Node => {
  const pattern = patternOf(segment)
  if (pattern.literals.length === 1) {
    const [text = ''] = pattern.literals
    const next = node.literal.get(text) ?? newNode()
    node.literal.set(text, next)
    return next
  }
  if (weight(pattern) === 0 && pattern.literals.length === 2) {
    node.parameter ??= newNode()
    return node.parameter
  }
  const branch = node.mixed.find((candidate) => samePattern(candidate.pattern, pattern))
  if (branch !== undefined) return branch.node
  const newBranch = { pattern, node: newNode() }
  node.mixed.push(newBranch)
  node.mixed.sort((a, b) => weight(b.pattern) - weight(a.pattern))
  return newBranch.node
}

/** Rows that are added in one piece: about a millisecond. */
const rowsOfPiece = 256

function* treeOf(rows: readonly Row[]): Pieces<Node> {
  const root = newNode()
  for (const [at, row] of rows.entries()) {
    const end = segmentsOf(row.template).reduce(nextNode, root)
    end.row ??= row
    if (at % rowsOfPiece === rowsOfPiece - 1) yield
  }
  return root
}

/** Segment by segment: literal text, then text with parameters, then a parameter alone. Visits each node of the tree once at most. */
const rowAt = (node: Node, segments: readonly string[], at: number): Row | undefined => {
  const segment = segments[at]
  if (segment === undefined) return node.row
  const literal = node.literal.get(segment)
  const row = literal === undefined ? undefined : rowAt(literal, segments, at + 1)
  if (row !== undefined) return row
  for (const { pattern, node: next } of node.mixed) {
    const below = segmentValues(pattern, segment) === undefined ? undefined : rowAt(next, segments, at + 1)
    if (below !== undefined) return below
  }
  return node.parameter === undefined || segment === '' ? undefined : rowAt(node.parameter, segments, at + 1)
}

/** A segment of a template with parameters. */
type Parameters = {
  readonly index: number
  readonly names: readonly string[]
  /** For the raw spelling of a segment, whose values are decoded later, by their style. */
  readonly raw: SegmentPattern
  readonly decoded: SegmentPattern
}

const parametersOf = (template: string): readonly Parameters[] =>
  segmentsOf(template).flatMap((segment, index): Parameters[] => {
    const parameterNames = [...segment.matchAll(names)].map(([text]) => text.slice(1, -1))
    const decoded = patternOf(segment)
    const raw = { literals: decoded.literals.map(spelled) }
    return parameterNames.length === 0 ? [] : [{ index, names: parameterNames, raw, decoded }]
  })

/** The raw texts of an operation's path parameters, by name. */
const valuesIn = (
  parameters: readonly Parameters[],
  segments: readonly string[],
): Readonly<Record<string, string>> => {
  const values: [string, string][] = []
  for (const { index, names, raw, decoded } of parameters) {
    const segment = segments[index] ?? ''
    const texts =
      segmentValues(raw, segment) ??
      // Literal text that the client has escaped, such as %2C.
      segmentValues(decoded, decodedSegment(segment))?.map(encodeURIComponent)
    names.forEach((name, position) => {
      values.push([name, texts?.[position] ?? ''])
    })
  }
  return Object.fromEntries(values)
}

/**
 * Routes of an OpenAPI document. A path is split before it is decoded, so that `%2F` stays in its segment; case, doubled and trailing
 * slashes make other paths. `pathParameters` of a finding are raw.
 */
export function* createTemplateRouter(
  rows: readonly Row[],
): Pieces<{ find(method: string, path: string): RouteMatch }> {
  const root = yield* treeOf(rows)
  const byTemplate = new Map<string, readonly Parameters[]>()
  const parametersIn = (template: string): readonly Parameters[] => {
    const parameters = byTemplate.get(template) ?? parametersOf(template)
    byTemplate.set(template, parameters)
    return parameters
  }
  return {
    find: (method, path) => {
      const cleaned = cleanSpelling(path === '' ? '/' : path, 'unreserved')
      if (cleaned.kind === 'refused') return cleaned
      // Resolved against a base, a path that begins with two slashes names a host (RFC 3986 §4.2).
      if (cleaned.text.startsWith('//')) return { kind: 'unlisted', path: cleaned.text }
      const canonical = spelled(cleaned.text)
      const raw = segmentsOf(canonical)
      const row = rowAt(root, raw.map(decodedSegment), 0)
      if (row === undefined) return { kind: 'unlisted', path: canonical }
      const endpoint = endpointOf(row, method)
      if (endpoint !== undefined) {
        const template = operationOf(endpoint)?.template ?? row.template
        return {
          kind: 'found',
          row,
          endpoint,
          pathParameters: valuesIn(parametersIn(template), raw),
          path: canonical,
        }
      }
      return method === 'OPTIONS'
        ? { kind: 'options', row, path: canonical }
        : { kind: 'wrong-method', row, path: canonical }
    },
  }
}
