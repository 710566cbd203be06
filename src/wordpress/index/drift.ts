import { isDeepStrictEqual } from 'node:util'
import { isJsonObject, type JsonObject, ownMember } from '../../http/json-text.ts'
import type { Difference } from '../../service/connection.ts'
import type { Endpoint, Row } from '../../service/row.ts'
import {
  describeEndpoint,
  endpointsIn,
  endpointWith,
  type IndexDocument,
  methodsIn,
  patternsByTemplate,
} from './index-document.ts'

const typesOf = (schema: JsonObject): readonly unknown[] | undefined => {
  const type = ownMember(schema, 'type')
  if (type === undefined) return undefined
  return Array.isArray(type) ? type : [type]
}

const takesTypes = (ours: JsonObject, theirs: JsonObject): boolean => {
  const [our, their] = [typesOf(ours), typesOf(theirs)]
  if (our === undefined) return true
  return their?.every((type) => our.includes(type) || (type === 'integer' && our.includes('number'))) ?? false
}

/** Keywords that bound from below and from above, and those of which each member allows more. */
const min: ReadonlySet<string> = new Set(['minimum', 'minLength', 'minItems', 'minProperties'])
const max: ReadonlySet<string> = new Set(['maximum', 'maxLength', 'maxItems', 'maxProperties'])
const alternatives: ReadonlySet<string> = new Set(['enum', 'oneOf', 'anyOf'])

/** Keywords that do not affect validation, or are compared elsewhere. */
const otherwise: ReadonlySet<string> = new Set(['type', 'default', 'required'])

const takesKeyword = (keyword: string, ours: unknown, theirs: unknown): boolean => {
  if (ours === undefined || isDeepStrictEqual(ours, theirs)) return true
  if (typeof ours === 'number' && typeof theirs === 'number') {
    return min.has(keyword) ? ours <= theirs : max.has(keyword) && ours >= theirs
  }
  if (alternatives.has(keyword) && Array.isArray(ours) && Array.isArray(theirs)) {
    return theirs.every((theirValue) => ours.some((ourValue) => isDeepStrictEqual(ourValue, theirValue)))
  }
  return keyword === 'items' && isJsonObject(ours) && isJsonObject(theirs) && takesAll(ours, theirs)
}

/** A list of one value is written as that value. */
const asList = (ours: JsonObject, theirs: JsonObject): JsonObject | undefined => {
  const items = ownMember(ours, 'items')
  const isList = ownMember(ours, 'type') === 'array' && ownMember(theirs, 'type') === 'string'
  return isList && isJsonObject(items) ? items : undefined
}

/** Does a schema take every value that the other one takes? Where that is not plain, it does not. */
const takesAll = (ours: JsonObject, theirs: JsonObject): boolean =>
  takesTypes(ours, theirs) &&
  Object.keys(ours)
    .filter((keyword) => !otherwise.has(keyword))
    .every((keyword) => takesKeyword(keyword, ownMember(ours, keyword), ownMember(theirs, keyword)))

/**
 * Is an argument that the upstream announces otherwise answered wrongly? That is so when the gateway leaves out a default which the
 * upstream does not fill in, or refuses what the upstream takes. What the gateway takes beyond that, the upstream refuses itself.
 */
const respondsOtherwise = (ours: JsonObject, theirs: JsonObject): boolean => {
  if (!isDeepStrictEqual(ownMember(ours, 'default'), ownMember(theirs, 'default'))) return true
  if (ownMember(ours, 'required') === true && ownMember(theirs, 'required') !== true) return true
  const items = asList(ours, theirs)
  return !takesAll(items ?? ours, theirs)
}

/** Does the upstream take an argument otherwise than the table says? Both as a discovery document has them. */
export const isArgumentTakenOtherwise = (ours: JsonObject, theirs: JsonObject): boolean =>
  !isDeepStrictEqual(ours, theirs) && respondsOtherwise(asMap(normalised(ours)), asMap(normalised(theirs)))

/** Longest list of differences. */
const maxDifferences = 2000

/** The handling of routes that the table does not list. */
export type Unlisted = {
  readonly routes: 'learn' | 'pass' | 'refuse'
  readonly parameters: 'strip' | 'forward'
}

/** A difference before the decision whether it matters. */
type UnratedDifference = Omit<Difference, 'matters'>

/** Words for people, not rules. */
const proseKeywords = new Set(['description', 'title'])

/** Two spellings of one schema become equal: `[]` and `{}`, absent and false, the order of an enum. */
const normalised = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.length === 0 ? {} : value.map(normalised)
  if (!isJsonObject(value)) return value
  const members = Object.entries(value).filter(
    ([keyword, inner]) =>
      !(proseKeywords.has(keyword) && typeof inner === 'string') &&
      !(keyword === 'required' && inner === false),
  )
  return Object.fromEntries(
    members.map(([keyword, inner]) => [
      keyword,
      keyword === 'enum' && typeof inner === 'object' ? Object.values(inner ?? {}).sort() : normalised(inner),
    ]),
  )
}

export const asMap = (value: unknown): JsonObject => (isJsonObject(value) ? value : {})

function* compareArgument(
  at: UnratedDifference,
  ours: JsonObject,
  theirs: JsonObject,
  isInPath: boolean,
): Iterable<Difference> {
  // As most arguments are.
  if (isDeepStrictEqual(ours, theirs)) return
  const our = asMap(normalised(ours))
  const their = asMap(normalised(theirs))
  const matters = !isInPath && respondsOtherwise(our, their)
  for (const keyword of new Set([...Object.keys(our), ...Object.keys(their)])) {
    const difference = { ours: ownMember(our, keyword), theirs: ownMember(their, keyword) }
    if (!isDeepStrictEqual(difference.ours, difference.theirs))
      yield { ...at, matters, keyword, ...difference }
  }
}

function* compareArguments(
  row: Row,
  at: UnratedDifference,
  ours: JsonObject,
  theirs: JsonObject,
  unlisted: Unlisted,
): Iterable<Difference> {
  for (const argument of new Set([...Object.keys(ours), ...Object.keys(theirs)])) {
    const our = ownMember(ours, argument)
    const their = ownMember(theirs, argument)
    if (their === undefined) {
      // The upstream does not look at it, wherever it comes from.
      const matters = ownMember(asMap(our), 'required') === true
      yield { ...at, kind: 'argument-missing', matters, argument }
    } else if (our === undefined) {
      yield { ...at, kind: 'argument-added', matters: unlisted.parameters === 'strip', argument }
    } else {
      // Path parameters are compared by the pattern: values that only the upstream's pattern takes are unlisted routes.
      const isInPath = row.pattern.includes(`(?P<${argument}>`)
      const difference = { ...at, kind: 'argument-changed', argument } as const
      yield* compareArgument(difference, asMap(our), asMap(their), isInPath)
    }
  }
}

function* compareEndpoint(
  row: Row,
  endpoint: Endpoint,
  theirs: JsonObject,
  unlisted: Unlisted,
): Iterable<Difference> {
  const ours = describeEndpoint(endpoint)
  for (const method of endpoint.methods) {
    const their = endpointWith(theirs, method)
    if (their === undefined) yield { kind: 'method-missing', matters: true, route: row.template, method }
    // The methods of an endpoint share their arguments: once is enough.
    else if (method === endpoint.methods[0]) {
      const at: UnratedDifference = { kind: 'batch-changed', route: row.template, method }
      const marks = { ours: ownMember(ours, 'allow_batch'), theirs: ownMember(their, 'allow_batch') }
      if (!isDeepStrictEqual(marks.ours, marks.theirs)) yield { ...at, matters: true, ...marks }
      const [our, registered] = [asMap(ownMember(ours, 'args')), asMap(ownMember(their, 'args'))]
      yield* compareArguments(row, at, our, registered, unlisted)
    }
  }
}

function* compareRoute(row: Row, theirs: JsonObject, unlisted: Unlisted): Iterable<Difference> {
  for (const endpoint of row.endpoints) yield* compareEndpoint(row, endpoint, theirs, unlisted)
  const knownMethods = new Set<unknown>(row.endpoints.flatMap((endpoint) => endpoint.methods))
  for (const method of new Set(endpointsIn(theirs)?.flatMap(methodsIn))) {
    if (typeof method === 'string' && method.length <= 16 && !knownMethods.has(method)) {
      yield { kind: 'method-added', matters: true, route: row.template, method }
    }
  }
}

function* compareRoutes(
  rows: readonly Row[],
  index: IndexDocument,
  unlisted: Unlisted,
): Iterable<Difference> {
  const byTemplate = patternsByTemplate(index)
  for (const row of rows) {
    const pattern = index.routes.has(row.pattern) ? row.pattern : byTemplate.get(row.template.toLowerCase())
    const theirs = pattern === undefined ? undefined : index.routes.get(pattern)
    if (theirs === undefined) {
      yield { kind: 'route-missing', matters: true, route: row.template }
      continue
    }
    if (pattern !== row.pattern) {
      const matters = unlisted.routes === 'refuse'
      yield { kind: 'pattern-changed', matters, route: row.template, ours: row.pattern, theirs: pattern }
    }
    yield* compareRoute(row, theirs, unlisted)
  }
}

/**
 * Compares the table with an index in the same names. What the table drops as a default or refuses must be what the upstream
 * defaults to and refuses, or canonical requests would mean something else there.
 */
export const compareWithUpstream = (
  rows: readonly Row[],
  index: IndexDocument,
  unlisted: Unlisted,
): readonly Difference[] => {
  const differences: Difference[] = []
  for (const difference of compareRoutes(rows, index, unlisted)) {
    if (differences.length === maxDifferences) break
    differences.push(difference)
  }
  return differences
}
