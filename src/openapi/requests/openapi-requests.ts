import type { Pieces } from '../../http/bodies/turns.ts'
import { conditionalHeaders } from '../../http/conditional/preconditions.ts'
import { decodeFormText, isUnreadable, trackingMatcher } from '../../http/form-text.ts'
import { areHarmless } from '../../http/headers/credential-headers.ts'
import { namedAway } from '../../http/headers/forwardable-headers.ts'
import { type RequestHeaders, requestHeader } from '../../http/headers/header-lines.ts'
import { canonicalJson } from '../../http/json-text.ts'
import { memoizeByObject } from '../../http/memo.ts'
import {
  type Invalid,
  type RequestFault,
  type Validation,
  type ValidationInput,
  type Validator,
  validatorOf,
} from '../../service/contract.ts'
import type { RouteMatch } from '../../service/row.ts'
import type { ApiContract } from '../document/load-document.ts'
import { type Operation, operationOf, type Parameter, type ParameterLocation } from '../document/operation.ts'
import { canonicalQuery, type QueryOrder, queryOrderOf } from './canonical-pairs.ts'
import { asFragment, checkBody, checkQueryString, faultOf, problemOf } from './check-body.ts'
import { contentFor } from './openapi-operation.ts'
import {
  cookiePairs,
  formPairsOf,
  ownsPair,
  type Pair,
  pairsOf,
  type TextSources,
  textsOf,
} from './parameter-text.ts'
import { createReadAlike } from './read-alike.ts'
import { safePattern } from './safe-pattern.ts'
import { createSchemaChecker } from './schema-checker.ts'
import { maxFaults } from './schema-faults.ts'
import { createShapes, type SchemaShape } from './schema-shape.ts'
import { createTemplateRouter } from './template-router.ts'
import { readValue, type ValueParts } from './values.ts'

export type OpenApiRequestsOptions = {
  readonly limits: { readonly queryParameters: number; readonly jsonDepth: number }
  readonly unknownParameters: 'strip' | 'forward'
  /** Names that are always dropped; a trailing `*` matches any ending. */
  readonly trackingParameters: readonly string[]
  /** Formats of texts are checked, or annotations (JSON Schema 2020-12, section 7); checked unless given. */
  readonly formats?: 'assert' | 'annotate'
  /** Errors in the shape of the service; RFC 9457 unless given. */
  readonly refusalOf?: (fault: RequestFault) => Invalid
  /** The router has decoded the parameters of the path. */
  readonly hasDecodedPaths?: boolean
}

export type OpenApiRequests = {
  find(method: string, path: string): RouteMatch
  readonly validator: Validator
}

/** Parts of a document that are not checked, or not in full, with the reason. */
export const uncheckedSchemas = (contract: ApiContract): readonly string[] => {
  const checker = createSchemaChecker(contract.definitions)
  const hints = new Set<string>()
  const patterns = (schema: unknown): void => {
    if (typeof schema !== 'object' || schema === null) return
    for (const [keyword, inner] of Object.entries(schema)) {
      if (keyword === 'pattern' && typeof inner === 'string' && safePattern(inner) === undefined)
        hints.add(
          `the pattern ${JSON.stringify(inner.slice(0, 80))} is not checked: it cannot be run in linear time with the same result`,
        )
      else if (keyword !== 'enum' && keyword !== 'const') patterns(inner)
    }
  }
  for (const definition of contract.definitions.values()) patterns(definition)
  for (const { method, template, parameters, body } of contract.operations) {
    const schemas = [...parameters, ...(body?.contents ?? [])].map(({ schema }) => schema)
    schemas.forEach(patterns)
    const reason = schemas.map(checker.uncheckable).find((text) => text !== undefined)
    if (reason !== undefined)
      hints.add(`${method} ${template}: a schema is not checked: ${reason.slice(0, 200)}`)
    for (const content of body?.contents ?? [])
      if (content.reading === 'size')
        hints.add(`${method} ${template}: bodies of ${content.mediaType} are checked by size only`)
  }
  return [...hints]
}

type ReadParameter = { readonly parameter: Parameter; readonly shape: SchemaShape }

/** What the requests of an operation need; read once. */
type Plan = {
  readonly parameters: readonly ReadParameter[]
  /** Without the fields of a request, as for a purge, the target alone is brought to its canonical form. */
  readonly ofTarget: readonly ReadParameter[]
  /** Declared headers; preconditions are evaluated by the cache. */
  readonly headers: readonly string[]
  readonly cookies: ReadonlySet<string>
  readonly order: QueryOrder
  /** Find the declared name that servers may read in place of an undeclared one. */
  readonly readAlike: Readonly<Record<'query' | 'cookie', (name: string) => string | undefined>>
}

const planOf = (operation: Operation, parts: ValueParts): Plan => {
  const { parameters: declaredParameters, isAmbiguous } = operation
  const namesIn = (wantedLocation: ParameterLocation) =>
    declaredParameters.flatMap(({ location, name }) => (location === wantedLocation ? [name] : []))
  const parameters = isAmbiguous
    ? []
    : declaredParameters.map((parameter) => ({ parameter, shape: parts.shapeOf(parameter.schema) }))
  const isOfTarget = ({ parameter: { location } }: ReadParameter) =>
    location === 'path' || location === 'query'
  const order = queryOrderOf(operation, parts)
  return {
    parameters,
    ofTarget: parameters.filter(isOfTarget),
    headers: namesIn('header').filter((name) => !conditionalHeaders.has(name)),
    cookies: new Set(namesIn('cookie')),
    order,
    readAlike: { query: createReadAlike(order.positions.keys()), cookie: createReadAlike(namesIn('cookie')) },
  }
}

const isReadAs = (location: 'query' | 'cookie', name: string): RequestFault =>
  faultOf('invalid_parameter', `${location}.${name}`, [
    {
      pointer: '#',
      parameter: name,
      in: location,
      detail: 'is sent by a name that servers may read as this one',
    },
  ])

const decodedCookieName = (name: string): string => {
  const text = decodeFormText(name.replaceAll('+', '%2B'))
  return isUnreadable(text) ? name : text
}

/** An undeclared cookie whose name servers may read as a declared one. */
const cookieFault = (
  { parameters, cookies: names, readAlike }: Plan,
  cookies: readonly Pair[],
): RequestFault | undefined => {
  for (const cookie of cookies) {
    const isOwned =
      names.has(cookie.name) ||
      parameters.some(
        ({ parameter, shape }) => parameter.location === 'cookie' && ownsPair(parameter, shape, cookie),
      )
    const name = isOwned ? undefined : readAlike.cookie(decodedCookieName(cookie.name))
    if (name !== undefined) return isReadAs('cookie', name)
  }
  return undefined
}

type Handling = 'sent' | 'stripped'

const aliasFault = (
  plan: Plan,
  cookies: readonly Pair[],
  undeclared: readonly string[],
  handling: Handling,
): RequestFault | undefined => {
  const sentNames = handling === 'sent' ? undeclared : []
  const name = sentNames.map(plan.readAlike.query).find((alike) => alike !== undefined)
  return name === undefined ? cookieFault(plan, cookies) : isReadAs('query', name)
}

const undeclaredOf = (names: readonly string[], handling: Handling) =>
  names.length === 0 ? {} : { undeclared: { handling, names } }

const noVariant = {}

/** Declared headers and cookies with their values; credentials are their own partitions. */
const variantOf = (plan: Plan, fields: RequestHeaders = {}, cookies: readonly Pair[] = []) => {
  if (plan.headers.length + plan.cookies.size === 0) return noVariant
  const declaredCookies = cookies.filter(({ name }) => plan.cookies.has(name))
  const cookie = declaredCookies.map(({ raw }) => raw).join('; ')
  const values = plan.headers.map((name) => [name, requestHeader(fields, name) ?? null])
  return { variant: JSON.stringify([values, cookie]), ...(declaredCookies.length === 0 ? {} : { cookie }) }
}

/** The fields that reach the upstream: a client can name fields away in Connection (RFC 9110 §7.6.1). */
const sentFields = (fields: RequestHeaders): RequestHeaders => {
  const away = namedAway(fields)
  return away.size === 0
    ? fields
    : Object.fromEntries(Object.entries(fields).filter(([name]) => !away.has(name)))
}

const cookiesIn = (plan: Plan, fields: RequestHeaders | undefined): readonly Pair[] =>
  fields === undefined || plan.cookies.size === 0 ? [] : cookiePairs(requestHeader(fields, 'cookie'))

const lacking = { pointer: '', detail: 'is required' }

const checkParameters = (
  { parameters, ofTarget }: Plan,
  sources: TextSources,
  parts: ValueParts,
): RequestFault | Readonly<Record<string, unknown>> => {
  const values: Record<string, unknown> = {}
  const errors: RequestFault['errors'][number][] = []
  for (const { parameter, shape } of sources.fields === undefined ? ofTarget : parameters) {
    const { name, location, required } = parameter
    const reading = readValue(textsOf(parameter, shape, sources), parameter, parts)
    const fault =
      reading.kind === 'fault' ? reading.fault : required && reading.kind === 'absent' ? lacking : undefined
    if (fault !== undefined) {
      const { pointer, detail } = fault
      errors.push({ pointer: asFragment(pointer), parameter: name, in: location, detail })
    }
    if (reading.kind === 'value') values[`${location}.${name}`] = reading.value
  }
  const [first] = errors
  return first === undefined
    ? values
    : faultOf('invalid_parameter', `${first.in}.${first.parameter}`, errors.slice(0, maxFaults))
}

const readQuery = (text: string, max: number, isForm: boolean): readonly Pair[] | RequestFault => {
  const query = isForm ? formPairsOf(text) : pairsOf(text)
  if (query === undefined) return faultOf('unreadable_query')
  return query.length > max ? faultOf('too_many_parameters') : query
}

const hasKey = (query: readonly Pair[], keyParameters: readonly string[]): boolean =>
  keyParameters.length > 0 && query.some(({ name }) => keyParameters.includes(name))

const isFault = (outcome: RequestFault | Readonly<Record<string, unknown>>): outcome is RequestFault =>
  outcome['kind'] === 'fault'

/** Longer contents are keyed and sent as they are: their canonical text would take too long. */
const longestCanonical = 64 * 1024

/** Names of signatures and digests, in a query or in a content. */
const seal =
  /sig(?:n(?:ed|ature)?)?(?![a-z])|(?:mac|crc(?:32c?)?)(?![a-z])|digest|checksum|hash|jws|md5|sha-?\d/i

/**
 * The content of a QUERY is part of the key of its response: JSON has one text there, and other content the one that it has. A signature
 * or digest of the content binds it to its octets, and any field that is not known may be one.
 */
const canonicalContent = (
  operation: Operation,
  query: string,
  { method, content, contentType, headers: fields }: ValidationInput,
): { readonly keyedContent?: Buffer } => {
  if (method !== 'QUERY' || content === undefined || content.length > longestCanonical) return {}
  if (contentFor(operation, contentType)?.reading !== 'json') return {}
  const text = content.toString()
  if (fields === undefined || !areHarmless(fields) || seal.test(query) || seal.test(text)) return {}
  return { keyedContent: Buffer.from(canonicalJson(text)) }
}

const encodedValues = (values: Readonly<Record<string, string>>): Readonly<Record<string, string>> =>
  Object.fromEntries(Object.entries(values).map(([name, value]) => [name, encodeURIComponent(value)]))

/** Validates requests against the operations of a document, and writes their query in the one spelling of its meaning. */
export function* createOpenApiRequests(
  {
    rows,
    definitions,
    keyParameters,
    hasStrictIntegers,
    hasFormQueries,
  }: Pick<ApiContract, 'rows' | 'definitions' | 'keyParameters' | 'hasStrictIntegers' | 'hasFormQueries'>,
  options: OpenApiRequestsOptions,
): Pieces<OpenApiRequests> {
  const { limits, refusalOf = problemOf, hasDecodedPaths = false } = options
  const parts: ValueParts = {
    checker: createSchemaChecker(definitions, options.formats),
    shapeOf: createShapes(definitions),
    jsonDepth: limits.jsonDepth,
    hasStrictIntegers,
  }
  const unknown = {
    handling: options.unknownParameters,
    isTracking: trackingMatcher(options.trackingParameters),
  }
  const handling = unknown.handling === 'forward' ? 'sent' : 'stripped'

  const planFor = memoizeByObject((operation: Operation) => planOf(operation, parts))

  const validator = validatorOf(function* (input: ValidationInput): Pieces<Validation> {
    const operation = operationOf(input.endpoint)
    if (operation === undefined) throw new TypeError('the endpoint is not one of an OpenAPI document')
    const fields = input.headers && sentFields(input.headers)
    const query = readQuery(input.query, limits.queryParameters, hasFormQueries)
    if ('kind' in query) return refusalOf(query)
    const plan = planFor(operation)
    const cookies = cookiesIn(plan, fields)
    const path = hasDecodedPaths ? encodedValues(input.pathParameters) : input.pathParameters
    const outcome = checkParameters(plan, { path, query, fields, cookies }, parts)
    if (isFault(outcome)) return refusalOf(outcome)
    const { query: canonical, undeclared } = canonicalQuery(
      plan.order,
      input.query,
      query,
      parts,
      unknown,
      hasFormQueries,
    )
    const fault =
      checkQueryString(operation, input.query, parts) ??
      (yield* checkBody(operation, input, parts)) ??
      aliasFault(plan, cookies, undeclared, handling)
    if (fault !== undefined) return refusalOf(fault)
    return {
      kind: 'valid',
      query: canonical,
      arguments: outcome,
      ...undeclaredOf(undeclared, handling),
      ...variantOf(plan, fields, cookies),
      ...canonicalContent(operation, canonical, input),
      ...(hasKey(query, keyParameters) ? { hasQueryCredential: true } : {}),
    }
  })

  return { find: (yield* createTemplateRouter(rows)).find, validator }
}
