import type { Operation, Parameter } from '../../contracts/openapi/operation.ts'
import { ownsPair, type Pair } from './parameter-text.ts'
import type { ValueParts } from './parameter-value.ts'

const escapes = /%[\da-fA-F]{2}/g
const unreserved = /[\w.~-]/

const brokenEscape = /%(?![\da-fA-F]{2})/

/**
 * The equivalences of RFC 3986 §6.2.2 alone: escapes in capitals, unreserved characters unescaped. A text with a `%` that begins no
 * escape stays as it is: with what comes after, unescaped, it would become one.
 */
const canonicalText = (raw: string): string =>
  raw.includes('%') && !brokenEscape.test(raw)
    ? raw.replace(escapes, (octet) => {
        const character = String.fromCharCode(Number.parseInt(octet.slice(1), 16))
        return unreserved.test(character) ? character : octet.toUpperCase()
      })
    : raw

/** Names of credentials that an operation takes in its query. */
const queryCredentials = ({ security }: Operation): readonly string[] =>
  security.flat().flatMap((one) => (one.kind === 'apiKey' && one.location === 'query' ? [one.name] : []))

/** Where a pair stands in the canonical query; members of an object are sorted by name. */
type Rank = { readonly position: number; readonly member: string; readonly isPadded: boolean }

/** Zeros in front of an integer that may have them. */
const padding = /=0+(?=\d)/

const rankOf = (
  pair: Pair,
  declared: readonly Parameter[],
  keys: readonly string[],
  { shapeOf }: Pick<ValueParts, 'shapeOf'>,
): Rank | undefined => {
  const position = declared.findIndex((parameter) => ownsPair(parameter, shapeOf(parameter.schema), pair))
  const parameter = declared[position]
  if (parameter !== undefined) {
    const { types, integers } = shapeOf(parameter.schema)
    return { position, member: types.has('object') ? pair.name : '', isPadded: integers === 'padded' }
  }
  const key = keys.indexOf(pair.name)
  return key < 0 ? undefined : { position: declared.length + key, member: '', isPadded: false }
}

const byRank = (a: Rank, b: Rank): number =>
  a.position - b.position || (a.member < b.member ? -1 : a.member > b.member ? 1 : 0)

export type CanonicalQuery = { readonly query: string; readonly undeclared: readonly string[] }

type Ranked = { readonly pair: Pair; readonly rank?: Rank }

const written = (pairs: readonly Ranked[]): string =>
  pairs
    .map(({ pair, rank }) => {
      const text = canonicalText(pair.raw)
      return rank?.isPadded === true ? text.replace(padding, '=') : text
    })
    .join('&')

const byName = ({ pair: a }: Ranked, { pair: b }: Ranked): number =>
  a.name < b.name ? -1 : a.name > b.name ? 1 : 0

/**
 * Declared names in the order of the document, then the others in the order of the request; in a form all by name. Equal names keep
 * their order.
 */
export const canonicalQuery = (
  operation: Operation,
  pairs: readonly Pair[],
  parts: Pick<ValueParts, 'shapeOf'>,
  unknown: { readonly handling: 'strip' | 'forward'; isTracking(name: string): boolean },
  isForm: boolean,
): CanonicalQuery => {
  if (operation.isAmbiguous) return { query: written(pairs.map((pair) => ({ pair }))), undeclared: [] }
  const declared = operation.parameters.filter(({ location }) => location === 'query')
  const keys = queryCredentials(operation)
  const ranked: Required<Ranked>[] = []
  const others: Ranked[] = []
  for (const pair of pairs) {
    const rank = rankOf(pair, declared, keys, parts)
    if (rank !== undefined) ranked.push({ pair, rank })
    else if (!unknown.isTracking(pair.name)) others.push({ pair })
  }
  ranked.sort((a, b) => byRank(a.rank, b.rank))
  const sent = unknown.handling === 'forward' ? others : []
  return {
    query: written(isForm ? [...ranked, ...sent].sort(byName) : [...ranked, ...sent]),
    undeclared: others.map(({ pair }) => pair.name),
  }
}
