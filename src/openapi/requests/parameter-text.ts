import { decodeFormText, encodeQueryText, isUnreadable } from '../../http/form-text.ts'
import { type RequestHeaders, requestHeader } from '../../http/headers/header-lines.ts'
import type { Parameter } from '../document/operation.ts'
import type { SchemaShape } from './schema-shape.ts'

/** One part of a query or form, `value` undefined where it has no `=`. Names are decoded, values are raw. */
export type Pair = { readonly name: string; readonly value: string | undefined; readonly raw: string }

/** Texts of a parameter, cut by its style and decoded; their types follow from the schema. */
export type Texts =
  | { readonly kind: 'absent' }
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'list'; readonly items: readonly string[] }
  | {
      readonly kind: 'members'
      readonly members: readonly (readonly [string, string])[]
      /** Names of members that are lists or objects, which have no style in an object. */
      readonly nestedNames?: ReadonlySet<string>
    }
  /** A nesting that no style describes: it is forwarded without a check. */
  | { readonly kind: 'unread' }
  | { readonly kind: 'fault'; readonly detail: string }

const absent: Texts = { kind: 'absent' }
const fault = (detail: string): Texts => ({ kind: 'fault', detail })
const malformed = fault('is not written in the style of the parameter')
export const brokenEncoding = 'has a percent-encoding that is not valid'
const undecodable = fault(brokenEncoding)

/** Decodes strictly; `+` is a space in queries and forms. Undefined for broken escapes and for bytes that are not UTF-8. */
export const decodedText = (raw: string, plusIsSpace: boolean): string | undefined => {
  const spaced = plusIsSpace && raw.includes('+') ? raw.replaceAll('+', ' ') : raw
  if (!spaced.includes('%')) return spaced
  try {
    return decodeURIComponent(spaced)
  } catch {
    return undefined
  }
}

/** Parts of a query or form; undefined when a name cannot be decoded. */
export const pairsOf = (query: string): readonly Pair[] | undefined => {
  const pairs: Pair[] = []
  for (const raw of query.split('&')) {
    if (raw === '') continue
    const equals = raw.indexOf('=')
    const name = decodedText(equals < 0 ? raw : raw.slice(0, equals), true)
    if (name === undefined) return undefined
    pairs.push({ name, value: equals < 0 ? undefined : raw.slice(equals + 1), raw })
  }
  return pairs
}

/** The parts of a query that has the encoding of a form, each in its one spelling; undefined when one is not UTF-8. */
export const formPairsOf = (query: string): readonly Pair[] | undefined => {
  const pairs: Pair[] = []
  for (const part of query.split('&')) {
    if (part === '') continue
    const equals = part.indexOf('=')
    const name = decodeFormText(equals < 0 ? part : part.slice(0, equals))
    const text = decodeFormText(equals < 0 ? '' : part.slice(equals + 1))
    if (isUnreadable(name) || isUnreadable(text)) return undefined
    const value = encodeQueryText(text)
    pairs.push({ name, value, raw: `${encodeQueryText(name)}=${value}` })
  }
  return pairs
}

const listText = (items: readonly (string | undefined)[]): Texts =>
  items.includes(undefined) ? undecodable : { kind: 'list', items: items as readonly string[] }

const singleText = (text: string | undefined): Texts =>
  text === undefined ? undecodable : { kind: 'text', text }

/** `R,100,G,200`, or with `explode` pieces such as `R=100`. */
const rawMembers = (
  pieces: readonly string[],
  explode: boolean,
): readonly (readonly [string, string])[] | undefined => {
  if (explode) {
    const parts = pieces.map((piece) => [piece, piece.indexOf('=')] as const)
    return parts.some(([, equals]) => equals < 0)
      ? undefined
      : parts.map(([piece, equals]) => [piece.slice(0, equals), piece.slice(equals + 1)])
  }
  if (pieces.length % 2 === 1) return undefined
  return pieces.flatMap((name, at) => (at % 2 === 0 ? [[name, pieces[at + 1] ?? ''] as const] : []))
}

const membersOfPieces = (
  pieces: readonly string[],
  explode: boolean,
  decode: (raw: string) => string | undefined,
): Texts => {
  const raw = rawMembers(pieces, explode)
  if (raw === undefined) return malformed
  const members: [string, string][] = []
  const names = new Set<string>()
  for (const [rawName, rawValue] of raw) {
    const [name, value] = [decode(rawName), decode(rawValue)]
    if (name === undefined || value === undefined) return undecodable
    if (names.has(name)) return fault('repeats a member')
    names.add(name)
    members.push([name, value])
  }
  return { kind: 'members', members }
}

type ShapeKind = 'text' | 'list' | 'members'

export const kindOf = ({ types, properties }: SchemaShape): ShapeKind => {
  const takesText = ['string', 'integer', 'number', 'boolean'].some((type) => types.has(type))
  if (types.has('array') && !takesText) return 'list'
  if ((types.has('object') || (types.size === 0 && properties.size > 0)) && !takesText && !types.has('array'))
    return 'members'
  return 'text'
}

const byKind = (
  kind: ShapeKind,
  text: string,
  separator: string,
  explode: boolean,
  decode: (raw: string) => string | undefined,
): Texts => {
  if (kind === 'text') return singleText(decode(text))
  const pieces = text === '' ? [] : text.split(separator)
  return kind === 'list' ? listText(pieces.map(decode)) : membersOfPieces(pieces, explode, decode)
}

const decodePath = (raw: string): string | undefined => decodedText(raw, false)

/** `;color=blue,black`, exploded `;color=blue;color=black` or `;R=100;G=200`. */
const matrixTexts = ({ name, explode }: Parameter, kind: ShapeKind, raw: string): Texts => {
  if (!raw.startsWith(';')) return malformed
  const pieces = raw.slice(1).split(';')
  if (kind === 'members' && explode) return membersOfPieces(pieces, true, decodePath)
  const values: string[] = []
  for (const piece of pieces) {
    const equals = piece.indexOf('=')
    if (decodePath(equals < 0 ? piece : piece.slice(0, equals)) !== name) return malformed
    values.push(equals < 0 ? '' : piece.slice(equals + 1))
  }
  if (kind === 'list' && explode) return listText(values.map(decodePath))
  return values.length === 1 ? byKind(kind, values[0] as string, ',', false, decodePath) : malformed
}

const pathTexts = (parameter: Parameter, shape: SchemaShape, raw: string): Texts => {
  const kind = kindOf(shape)
  const { style, explode } = parameter
  if (style === 'matrix') return matrixTexts(parameter, kind, raw)
  if (style !== 'label') return byKind(kind, raw, ',', explode, decodePath)
  if (!raw.startsWith('.')) return malformed
  return byKind(kind, raw.slice(1), explode ? '.' : ',', explode, decodePath)
}

const asIs = (text: string): string => text.trim()

/** Header fields are not percent-decoded (OpenAPI 3.1 §4.8.12.2.3, RFC 6570 does not apply to them). */
const headerTexts = ({ explode }: Parameter, shape: SchemaShape, value: string): Texts =>
  byKind(kindOf(shape), value, ',', explode, asIs)

const decodeQuery = (raw: string): string | undefined => decodedText(raw, true)

/** `+` is itself in a cookie, as in the path; most servers take one with another `%` as it is. */
const decodeCookie = (raw: string): string => decodedText(raw, false) ?? raw

const decoderOf = ({ location }: Parameter): ((raw: string) => string | undefined) =>
  location === 'cookie' ? decodeCookie : decodeQuery

const commas = /,/
/** The `+` of a form was decoded before. */
const spaces = /%20|[+ ]/
const pipes = /\||%7[Cc]/

const once = (pairs: readonly Pair[]): Pair | undefined => (pairs.length === 1 ? pairs[0] : undefined)
const repeated = fault('is given more than once')

const memberInBrackets = /^\[([^[\]]+)\](\[.*)?$/s

const membersIn = (
  name: string,
  pairs: readonly Pair[],
): { readonly members: Map<string, string>; readonly nestedNames: Set<string> } | Texts => {
  const members = new Map<string, string>()
  const nestedNames = new Set<string>()
  for (const pair of pairs) {
    const [, inner, deeper] = memberInBrackets.exec(pair.name.slice(name.length)) ?? []
    const text = decodeQuery(pair.value ?? '')
    // Servers read `filter[a]x` as `filter[a]`.
    if (inner === undefined) return malformed
    if (deeper !== undefined) nestedNames.add(inner)
    else if (members.has(inner)) return fault('repeats a member')
    else if (text === undefined) return undecodable
    else members.set(inner, text)
  }
  return { members, nestedNames }
}

/** The members of an object in brackets: `filter[name]=value`. */
const bracketTexts = ({ name }: Parameter, shape: SchemaShape, pairs: readonly Pair[]): Texts => {
  const ownPairs = pairs.filter((pair) => pair.name.startsWith(`${name}[`))
  const isObject = kindOf(shape) === 'members'
  // Servers read `filter=x` beside the members, or in place of them.
  if (isObject && pairs.some((pair) => pair.name === name && (pair.value ?? '') !== '')) return malformed
  if (ownPairs.length === 0) return absent
  if (!isObject) return { kind: 'unread' }
  const reading = membersIn(name, ownPairs)
  return 'kind' in reading
    ? reading
    : { kind: 'members', members: [...reading.members], nestedNames: reading.nestedNames }
}

/** The members of an exploded object are their own parameters. */
const explodedTexts = (shape: SchemaShape, pairs: readonly Pair[]): Texts => {
  const ownPairs = pairs.filter(({ name }) => shape.properties.has(name))
  if (ownPairs.length === 0) return absent
  const members = new Map<string, string>()
  const nestedNames = new Set<string>()
  for (const { name, value } of ownPairs) {
    const text = decodeQuery(value ?? '')
    if (text === undefined) return undecodable
    if (members.has(name)) nestedNames.add(name)
    members.set(name, text)
  }
  return { kind: 'members', members: [...members].filter(([name]) => !nestedNames.has(name)), nestedNames }
}

/** Between the items of a list that is one value of a query. */
export const separatorOf = (style: Parameter['style']): RegExp =>
  style === 'spaceDelimited' ? spaces : style === 'pipeDelimited' ? pipes : commas

const queryListTexts = (parameter: Parameter, pairs: readonly Pair[]): Texts => {
  const { style, explode } = parameter
  const decode = decoderOf(parameter)
  // Of `ids` and `ids[]` servers read one.
  if (pairs.some(({ name }) => name !== pairs[0]?.name)) return malformed
  if (explode) return listText(pairs.map(({ value }) => decode(value ?? '')))
  const pair = once(pairs)
  if (pair === undefined) return repeated
  const value = pair.value ?? ''
  if (value === '') return { kind: 'list', items: [] }
  return listText(value.split(separatorOf(style)).map(decode))
}

/** Are the members of the parameter pairs of their own? */
const isExploded = ({ style, explode, encoding }: Parameter, shape: SchemaShape): boolean =>
  style !== 'deepObject' && explode && encoding === 'style' && kindOf(shape) === 'members'

/** Is each item of the parameter a pair of its own? Rack and others read `ids[]=1` as the items of `ids`. */
const isRepeated = ({ style, explode, encoding }: Parameter, shape: SchemaShape): boolean =>
  style !== 'deepObject' && explode && encoding === 'style' && kindOf(shape) === 'list'

/** The names of the pairs that belong to a parameter; with deepObject also those that begin with its name and a bracket. */
export const ownNames = (parameter: Parameter, shape: SchemaShape): readonly string[] => {
  const { name } = parameter
  if (isRepeated(parameter, shape) && !name.endsWith(']')) return [name, `${name}[]`]
  return isExploded(parameter, shape) ? [name, ...shape.properties.keys()] : [name]
}

export const ownsPair = (parameter: Parameter, shape: SchemaShape, { name }: Pair): boolean =>
  name === parameter.name ||
  (parameter.style === 'deepObject' && name.startsWith(`${parameter.name}[`)) ||
  (shape.properties.has(name) && isExploded(parameter, shape)) ||
  (name === `${parameter.name}[]` && isRepeated(parameter, shape))

export const queryTexts = (parameter: Parameter, shape: SchemaShape, pairs: readonly Pair[]): Texts => {
  const kind = parameter.encoding === 'style' ? kindOf(shape) : 'text'
  if (parameter.style === 'deepObject') return bracketTexts(parameter, shape, pairs)
  if (kind === 'members' && parameter.explode) return explodedTexts(shape, pairs)
  if (kind === 'list') {
    const ownPairs = pairs.filter((pair) => ownsPair(parameter, shape, pair))
    return ownPairs.length === 0 ? absent : queryListTexts(parameter, ownPairs)
  }
  let match: Pair | undefined
  for (const pair of pairs) {
    if (pair.name !== parameter.name) continue
    if (match !== undefined) return repeated
    match = pair
  }
  return match === undefined ? absent : byKind(kind, match.value ?? '', ',', false, decoderOf(parameter))
}

/** Where the texts of one request come from. */
export type TextSources = {
  readonly path: Readonly<Record<string, string>>
  readonly query: readonly Pair[]
  /** Undefined: the target alone is read. */
  readonly fields: RequestHeaders | undefined
  readonly cookies: readonly Pair[]
}

export const textsOf = (parameter: Parameter, shape: SchemaShape, sources: TextSources): Texts => {
  const { location, name, encoding } = parameter
  switch (location) {
    case 'path': {
      const raw = sources.path[name]
      if (raw === undefined) return absent
      return encoding === 'style' ? pathTexts(parameter, shape, raw) : singleText(decodePath(raw))
    }
    case 'query':
      return queryTexts(parameter, shape, sources.query)
    case 'cookie':
      return queryTexts(parameter, shape, sources.cookies)
    case 'header': {
      const value = requestHeader(sources.fields ?? {}, name)
      if (value === undefined) return absent
      return encoding === 'style' ? headerTexts(parameter, shape, value) : { kind: 'text', text: value }
    }
  }
}

/** The parts of a Cookie field (RFC 6265 §4.2.1). */
export const cookiePairs = (cookie: string | undefined): readonly Pair[] =>
  cookie === undefined
    ? []
    : cookie.split(';').flatMap((part): Pair[] => {
        const raw = part.trim()
        const equals = raw.indexOf('=')
        return equals <= 0 ? [] : [{ name: raw.slice(0, equals), value: raw.slice(equals + 1), raw }]
      })
