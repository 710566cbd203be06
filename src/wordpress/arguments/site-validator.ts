import type { Pieces } from '../../http/bodies/turns.ts'
import { encodeQueryText, isUnreadable, trackingMatcher } from '../../http/form-text.ts'
import { memoizeByObject } from '../../http/memo.ts'
import { isGetOrHead } from '../../http/methods.ts'
import { type Invalid, type Validation, type ValidationInput, validatorOf } from '../../service/contract.ts'
import type { Endpoint, Row } from '../../service/row.ts'
import {
  type CompiledArgument,
  type CompiledEndpoint,
  canonicalSpelling,
  compileEndpoint,
  distinct,
  sortedSet,
  spellVerbatim,
} from './compile-endpoint.ts'
import {
  isContainer,
  methodParameter,
  type PhpValue,
  parsePhpQuery,
  routeParameter,
  splitList,
  valuesOf,
} from './php-query.ts'
import {
  addKnownValues,
  contradictions,
  effectiveValue,
  invalidArguments,
  missingArguments,
  readSiteContent,
  type Sources,
  typedArguments,
} from './site-arguments.ts'
import {
  contradiction,
  invalidCallback,
  invalidParameters,
  missingParameters,
  unreadQuery,
} from './site-errors.ts'

/** Value and canonical spelling of a global parameter; `dropped` = it has no effect. */
type GlobalReading =
  | { readonly kind: 'read'; readonly value: unknown; readonly spelling: string }
  | { readonly kind: 'dropped' }
  | { readonly kind: 'refused' }

type Reader = (name: string, value: PhpValue) => GlobalReading

const dropped: GlobalReading = { kind: 'dropped' }
const refused: GlobalReading = { kind: 'refused' }

const texts = (value: PhpValue): string[] | undefined => {
  if (isUnreadable(value)) return undefined
  if (typeof value === 'string') return splitList(value)
  const members = valuesOf(value).filter((member) => !isContainer(member))
  return members.some(isUnreadable) ? undefined : (members as string[])
}

/** An element that `splitList` leaves whole. */
const inList = /^[^ \t\n\v\f\r,]+$/

/** Commas where they mean the same as brackets, brackets elsewhere: `_embed=1` is not the list of the relation "1". */
const spellList = (name: string, list: readonly string[], misread: ReadonlySet<string>): string => {
  const csv = list.join(',')
  const safe = !misread.has(csv) && list.every((item) => inList.test(item))
  if (safe) return `${name}=${encodeQueryText(csv)}`
  return list.map((item) => `${name}%5B%5D=${encodeQueryText(item)}`).join('&')
}

const nothingMisread: ReadonlySet<string> = new Set()

const isPartOf = (part: string, whole: string): boolean => part.startsWith(`${whole}.`)

/**
 * A field includes its parts (`title` and `title.rendered` is `title`), and the order means nothing, with one exception:
 * WordPress stops reading where a part follows its whole, and ignores the rest of the list. Such a list stays as it is.
 */
const fieldSet = (fields: readonly string[]): readonly string[] => {
  if (!fields.some((field) => field.includes('.'))) return sortedSet(fields) as string[]
  const cutShort = fields.some((part, at) => fields.slice(0, at).some((whole) => isPartOf(part, whole)))
  if (cutShort) return fields
  const outermost = fields.filter((part) => !fields.some((whole) => isPartOf(part, whole)))
  return sortedSet(outermost) as string[]
}

const readFields: Reader = (name, value) => {
  const list = texts(value)
  if (list === undefined) return refused
  const trimmed = list.map((field) => field.trim())
  if (trimmed.length === 0) return dropped
  // The comparison is pairwise; no response has this many fields.
  const fields = trimmed.length > 64 ? (distinct(trimmed) as string[]) : fieldSet(trimmed)
  return { kind: 'read', value: fields, spelling: spellList(name, fields, nothingMisread) }
}

const embedsAll: ReadonlySet<string> = new Set(['', '0', '1', 'true'])

/** Empty, 0, 1 and true all mean every relation; anything else is a list of relations. */
const readEmbed: Reader = (name, value) => {
  const list = texts(value)
  if (list === undefined) return refused
  const everything = typeof value === 'string' && (embedsAll.has(value) || list.length === 0)
  if (everything || list.length === 0) return { kind: 'read', value: true, spelling: `${name}=1` }
  const relations = sortedSet(list) as string[]
  return { kind: 'read', value: relations, spelling: spellList(name, relations, embedsAll) }
}

/** Any value switches it on: `_envelope=0` asks for an envelope too. */
const readSwitch: Reader = (name) => ({ kind: 'read', value: true, spelling: `${name}=1` })

/** Only `user` has an effect (texts in the language of the user). */
const readLocale: Reader = (name, value) =>
  value === 'user' ? { kind: 'read', value, spelling: `${name}=user` } : dropped

/** Part of the cache key: the response is JavaScript that calls this function. `hasInvalidCallback` checks the name. */
const readText: Reader = (name, value) => {
  if (typeof value !== 'string') return refused
  return { kind: 'read', value, spelling: `${name}=${encodeQueryText(value)}` }
}

const readCallback: Reader = (name, value) =>
  value === '' || value === '0' ? dropped : readText(name, value)

/** Parameters that WordPress reads on every route, except `_method`, and `rest_route`, which `requestMeaning` refuses. */
const globalParameters: ReadonlyMap<string, Reader> = new Map([
  ['_embed', readEmbed],
  ['_envelope', readSwitch],
  ['_fields', readFields],
  ['_jsonp', readCallback],
  ['_locale', readLocale],
  ['_pretty', readSwitch],
  ['_wpnonce', readText],
])

const identifier = /^[\w.]+$/

/** WordPress checks the name of a callback (letters, digits, `_` and `.`) before anything else. */
const hasInvalidCallback = (query: ReadonlyMap<string, PhpValue>): boolean => {
  const value = query.get('_jsonp')
  if (value === undefined || value === '' || value === '0') return false
  return typeof value !== 'string' || !identifier.test(value)
}

/** `requestMeaning` has read it. On a read it can only name the method of the request. */
const spellMethod = (value: PhpValue, { isRead }: Writing): Spelling =>
  isRead || typeof value !== 'string' ? undefined : `${methodParameter}=${encodeQueryText(value)}`

/** The handling of parameters that the contract does not name. Tracking parameters are always dropped. */
type UnknownParameters = {
  readonly handling: 'strip' | 'forward'
  isTracking(name: string): boolean
}

type Spelling = string | undefined | Invalid

const unspellable = (name: string): Invalid => invalidParameters([{ name, issue: 'plain' }])

const spellArgument = (
  argument: CompiledArgument,
  value: PhpValue,
  endpoint: CompiledEndpoint,
  typed: Readonly<Record<string, unknown>>,
): Spelling => {
  const name = encodeQueryText(argument.name)
  // Without a spelling are only brackets deeper, and indexes larger, than the gateway reads.
  if (argument.asSent !== undefined) return spellVerbatim(name, value, 'kept') ?? unspellable(argument.name)
  const unchecked = argument.checked === 'never' || argument.checked === 'container'
  const spelling = unchecked
    ? spellVerbatim(name, value, 'refused')
    : canonicalSpelling(argument, typed[argument.name], typed['orderby'])
  if (spelling === undefined) return unspellable(argument.name)
  return spelling === endpoint.defaultSpellings.get(argument.name) ? undefined : spelling
}

const spellGlobal = (name: string, value: PhpValue, typed: Record<string, unknown>): Spelling => {
  const reading = globalParameters.get(name)?.(name, value)
  if (reading === undefined || reading.kind === 'dropped') return undefined
  if (reading.kind === 'refused') return unspellable(name)
  typed[name] = reading.value
  return reading.spelling
}

const spellUnknown = (name: string, value: PhpValue, writing: Writing): Spelling => {
  if (name === methodParameter) return spellMethod(value, writing)
  if (name === routeParameter || writing.unknown.isTracking(name)) return undefined
  writing.undeclared.push(name)
  if (!isForwarding(writing)) return undefined
  return spellVerbatim(encodeQueryText(name), value, 'kept') ?? unspellable('query')
}

/**
 * An argument that the path or the content repeats or overrides has no effect in the query. This does not hold for global
 * parameters: WordPress reads most of those from the query alone.
 */
const isOverridden = (name: string, sources: Sources): boolean =>
  sources.content.size > 0 && effectiveValue(sources, name) !== sources.query.get(name)

type Writing = {
  readonly isRead: boolean
  readonly endpoint: CompiledEndpoint
  readonly sources: Sources
  /** Typed arguments; the values of global parameters are added. */
  readonly typed: Record<string, unknown>
  readonly unknown: UnknownParameters
  /** Names of the undeclared parameters so far. */
  readonly undeclared: string[]
}

/** Handlers of routes without declared arguments may read any parameter. */
const isForwarding = ({ endpoint, unknown }: Writing): boolean =>
  endpoint.isOpen || unknown.handling === 'forward'

const spellParameter = (name: string, value: PhpValue, writing: Writing): Spelling => {
  const { endpoint, sources, typed } = writing
  // `contradictions` has found it equal to the path.
  if (Object.hasOwn(sources.path, name)) return undefined
  const argument = endpoint.arguments.get(name)
  if (argument !== undefined) {
    return argument.asSent === undefined && isOverridden(name, sources)
      ? undefined
      : spellArgument(argument, value, endpoint, typed)
  }
  if (globalParameters.has(name)) return spellGlobal(name, value, typed)
  return spellUnknown(name, value, writing)
}

/**
 * Writes the query in the one spelling of its meaning: defaults dropped, sorted. A parameter without a spelling is refused.
 * Injective: the spelling can be read back to exactly the typed values it was written from.
 */
const withCanonicalQuery = (writing: Writing): Validation => {
  const parts: string[] = []
  for (const [name, value] of writing.sources.query) {
    const spelling = spellParameter(name, value, writing)
    if (typeof spelling === 'object') return spelling
    if (spelling !== undefined) parts.push(spelling)
  }
  const query = parts.length > 1 ? parts.sort().join('&') : (parts[0] ?? '')
  const { typed, undeclared: names } = writing
  const { endpoint, sources } = writing
  // Reads have no content; what a write's response shows is not stored.
  const isKnown =
    endpoint.asSent.length === 0 || sources.content.size > 0 || addKnownValues(endpoint, sources, typed)
  const plain = { kind: 'valid', query, arguments: typed } as const
  const valid = isKnown ? plain : { ...plain, mayShowAnything: true }
  if (names.length === 0) return valid
  return { ...valid, undeclared: { handling: isForwarding(writing) ? 'sent' : 'stripped', names } }
}

export type SiteValidatorOptions = {
  readonly limits: {
    /** More parameters in a query are refused: PHP silently drops what exceeds its own limit. */
    readonly queryParameters: number
    readonly jsonDepth: number
  }
  readonly unknownParameters: 'strip' | 'forward'
  /** Names that are always dropped; a trailing `*` matches any ending. */
  readonly trackingParameters: readonly string[]
}

const compiledEndpoint = memoizeByObject((row: Row) =>
  memoizeByObject((endpoint: Endpoint) => compileEndpoint(row, endpoint)),
)

const refuse = (endpoint: CompiledEndpoint, sources: Sources, isUnread: boolean): Invalid | undefined => {
  const missingNames = isUnread ? [] : missingArguments(endpoint, sources)
  if (missingNames.length > 0) return missingParameters(missingNames)
  const invalid = invalidArguments(endpoint, sources)
  if (invalid.length > 0) return invalidParameters(invalid)
  const contradicted = contradictions(endpoint, sources)
  return contradicted.length > 0 ? contradiction(contradicted) : undefined
}

/** Validates requests of the site contract as WordPress does, and writes their query in the one spelling of its meaning. */
export const createSiteValidator = (options: SiteValidatorOptions) => {
  const { limits } = options
  const unknown: UnknownParameters = {
    handling: options.unknownParameters,
    isTracking: trackingMatcher(options.trackingParameters),
  }

  return validatorOf(function* (input: ValidationInput): Pieces<Validation> {
    // The request target is short, so names in it need no separate bound.
    const query = parsePhpQuery(input.query, limits.queryParameters, input.query.length)
    if (query.kind !== 'read') return unreadQuery(query.kind)
    if (hasInvalidCallback(query.parameters)) return invalidCallback()
    const endpoint = compiledEndpoint(input.row)(input.endpoint)
    const isDeclared = (name: string): boolean =>
      endpoint.arguments.has(name) || Object.hasOwn(input.pathParameters, name)
    const content = yield* readSiteContent(input, limits.jsonDepth, isDeclared)
    if (content.kind === 'invalid') return content
    const sources: Sources = {
      content: content.parameters,
      query: query.parameters,
      path: input.pathParameters,
    }
    yield
    const refusal = refuse(endpoint, sources, input.isUnread === true)
    if (refusal !== undefined) return refusal
    yield
    const typed = typedArguments(endpoint, sources)
    return withCanonicalQuery({
      isRead: isGetOrHead(input.method),
      endpoint,
      sources,
      typed,
      unknown,
      undeclared: [],
    })
  })
}
