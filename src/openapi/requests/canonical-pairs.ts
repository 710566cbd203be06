import type { Operation, Parameter } from '../document/operation.ts'
import { kindOf, ownNames, type Pair, separatorOf } from './parameter-text.ts'
import type { SchemaShape } from './schema-shape.ts'
import type { ValueParts } from './values.ts'

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

/** Where a pair stands in the canonical query; members of an object are sorted by name, and items of a set by their text. */
type Rank = { readonly position: number; readonly member: string; readonly isPadded: boolean }

/** Zeros in front of an integer that may have them. */
const padding = /=0+(?=\d)/

/** What the canonical queries of an operation need; read once. */
export type QueryOrder = {
  readonly parameters: readonly Parameter[]
  /** Positions of the names that pairs of declared parameters and credentials have. */
  readonly positions: ReadonlyMap<string, number>
  /** Of parameters that own every name with a bracket: `filter[`. */
  readonly brackets: readonly (readonly [start: string, position: number])[]
  readonly dropsDefaults: boolean
  /** Several operations have this method and path, or one content describes the whole query: it is one text, with all that is in it. */
  readonly isOneText: boolean
}

/** Names of credentials that an operation takes in its query. */
const queryCredentials = ({ security }: Operation): readonly string[] =>
  security
    .flat()
    .flatMap((scheme) => (scheme.kind === 'apiKey' && scheme.location === 'query' ? [scheme.name] : []))

/** Where several parameters own a name, the first one counts; credentials come last. */
export const queryOrderOf = (operation: Operation, { shapeOf }: Pick<ValueParts, 'shapeOf'>): QueryOrder => {
  const parameters = operation.parameters.filter(({ location }) => location === 'query')
  const positions = new Map<string, number>()
  const brackets: [string, number][] = []
  const add = (name: string, position: number): void => {
    if (!positions.has(name)) positions.set(name, position)
  }
  for (const [position, parameter] of parameters.entries()) {
    for (const name of ownNames(parameter, shapeOf(parameter.schema))) add(name, position)
    if (parameter.style === 'deepObject') brackets.push([`${parameter.name}[`, position])
  }
  for (const [index, name] of queryCredentials(operation).entries()) add(name, parameters.length + index)
  const dropsDefaults = parameters.some(({ droppedDefault }) => droppedDefault !== undefined)
  const isOneText = operation.isAmbiguous || operation.queryString !== undefined
  return { parameters, positions, brackets, dropsDefaults, isOneText }
}

const positionOf = ({ name }: Pair, { positions, brackets }: QueryOrder): number | undefined => {
  const exactPosition = positions.get(name)
  for (const [start, position] of brackets)
    if (name.startsWith(start))
      return exactPosition === undefined ? position : Math.min(exactPosition, position)
  return exactPosition
}

const rankOf = (
  pair: Pair,
  order: QueryOrder,
  { shapeOf }: Pick<ValueParts, 'shapeOf'>,
): Rank | undefined => {
  const position = positionOf(pair, order)
  if (position === undefined) return undefined
  const parameter = order.parameters[position]
  if (parameter === undefined) return { position, member: '', isPadded: false }
  const { types, integers } = shapeOf(parameter.schema)
  const text = parameter.isSet === true && pair.name.startsWith(parameter.name) ? sortText(pair) : ''
  return { position, member: types.has('object') ? pair.name : text, isPadded: integers === 'padded' }
}

/** Equal values of different spellings have one order too. */
const sortText = ({ value = '', raw }: Pair): string => `${canonicalText(value)} ${canonicalText(raw)}`

/** A list that is one value, with its items sorted and the separators where they were. */
const withSortedItems = (pair: Pair, { name, style, explode, isSet }: Parameter): Pair => {
  if (isSet !== true || explode || pair.value === undefined || pair.name !== name) return pair
  const separators = pair.value.match(new RegExp(separatorOf(style), 'g')) ?? []
  const items = pair.value.split(separatorOf(style)).map(canonicalText).sort()
  const value = items.map((item, index) => `${index === 0 ? '' : separators[index - 1]}${item}`).join('')
  return { ...pair, value, raw: pair.raw.slice(0, pair.raw.length - pair.value.length) + value }
}

/** Do the pairs of a parameter mean the same as none? A plus is a space to some servers, so that a text with one is no default. */
const isDroppedDefault = (parameter: Parameter, pairs: readonly Pair[], shape: SchemaShape): boolean => {
  const { droppedDefault, style, explode, isSet } = parameter
  const values = pairs.flatMap(({ value }) => (value === undefined || value.includes('+') ? [] : [value]))
  const [first] = values
  if (droppedDefault === undefined || first === undefined || values.length < pairs.length) return false
  const isOneValue = kindOf(shape) === 'list' && !explode
  const raw = isOneValue ? (first === '' ? [] : first.split(separatorOf(style))) : values
  const texts = raw.map((text) =>
    decodeURIComponent(shape.integers === 'padded' ? text.replace(/^0+(?=\d)/, '') : text),
  )
  const order = (list: readonly string[]): readonly string[] => (isSet === true ? [...list].sort() : list)
  const defaults = order(droppedDefault)
  return texts.length === defaults.length && order(texts).every((text, index) => text === defaults[index])
}

const byRank = (a: Rank, b: Rank): number =>
  a.position - b.position || (a.member < b.member ? -1 : a.member > b.member ? 1 : 0)

export type CanonicalQuery = { readonly query: string; readonly undeclared: readonly string[] }

type Ranked = { readonly pair: Pair; readonly rank?: Rank }

const queryText = (pairs: readonly Ranked[]): string =>
  pairs
    .map(({ pair, rank }) => {
      const text = canonicalText(pair.raw)
      return rank?.isPadded === true ? text.replace(padding, '=') : text
    })
    .join('&')

const emptyQuery: CanonicalQuery = { query: '', undeclared: [] }

const byName = ({ pair: a }: Ranked, { pair: b }: Ranked): number =>
  a.name < b.name ? -1 : a.name > b.name ? 1 : 0

const withoutDefaults = (
  ranked: readonly Required<Ranked>[],
  parameters: readonly Parameter[],
  { shapeOf }: Pick<ValueParts, 'shapeOf'>,
): readonly Required<Ranked>[] => {
  const positions = new Set<number>()
  for (const [position, parameter] of parameters.entries()) {
    if (parameter.droppedDefault === undefined) continue
    const ownPairs = ranked.filter(({ rank }) => rank.position === position).map(({ pair }) => pair)
    if (isDroppedDefault(parameter, ownPairs, shapeOf(parameter.schema))) positions.add(position)
  }
  return positions.size === 0 ? ranked : ranked.filter(({ rank }) => !positions.has(rank.position))
}

/**
 * Declared names in the order of the document, then the others in the order of the request; in a form all by name. Equal names keep
 * their order.
 */
export const canonicalQuery = (
  order: QueryOrder,
  text: string,
  pairs: readonly Pair[],
  parts: Pick<ValueParts, 'shapeOf'>,
  unknown: { readonly handling: 'strip' | 'forward'; isTracking(name: string): boolean },
  isForm: boolean,
): CanonicalQuery => {
  if (order.isOneText) return { query: canonicalText(text), undeclared: [] }
  if (pairs.length === 0) return emptyQuery
  const { parameters } = order
  const ranked: Required<Ranked>[] = []
  const undeclaredPairs: Ranked[] = []
  for (const pair of pairs) {
    const rank = rankOf(pair, order, parts)
    const parameter = parameters[rank?.position ?? -1]
    if (rank !== undefined)
      ranked.push({ pair: parameter === undefined ? pair : withSortedItems(pair, parameter), rank })
    else if (!unknown.isTracking(pair.name)) undeclaredPairs.push({ pair })
  }
  ranked.sort((a, b) => byRank(a.rank, b.rank))
  const declaredPairs = order.dropsDefaults ? withoutDefaults(ranked, parameters, parts) : ranked
  const forwardedPairs = unknown.handling === 'forward' ? undeclaredPairs : []
  return {
    query: queryText(
      isForm ? [...declaredPairs, ...forwardedPairs].sort(byName) : [...declaredPairs, ...forwardedPairs],
    ),
    undeclared: undeclaredPairs.map(({ pair }) => pair.name),
  }
}
