import { formText } from '../../http/bodies/form.ts'
import { readJson } from '../../http/bodies/read-json.ts'
import type { Pieces } from '../../http/bodies/turns.ts'
import { mediaTypeOf, ownMember } from '../../http/json-text.ts'
import type { Invalid, ValidationInput } from '../../service/contract.ts'
import { checkValue, plainValue, sanitiseValue } from './check-value.ts'
import type { CompiledArgument, CompiledEndpoint } from './compile-endpoint.ts'
import {
  asList,
  isContainer,
  longestParameterName,
  type PhpValue,
  parsePhpQuery,
  routeParameter,
  valuesOf,
} from './php-query.ts'
import {
  type InvalidArgument,
  type Issue,
  invalidJson,
  routeOverride,
  unreadQuery,
  unsupportedContentType,
} from './site-errors.ts'

/** The sources of parameters, strongest first (WordPress's order). */
export type Sources = {
  readonly content: ReadonlyMap<string, unknown>
  readonly query: ReadonlyMap<string, PhpValue>
  readonly path: Readonly<Record<string, string>>
}

const isGiven = (value: unknown): boolean => value !== undefined && value !== null

/** The effective value: content before query before path; a JSON null counts as absent. */
export const effectiveValue = (sources: Sources, name: string): unknown => {
  const inContent = sources.content.get(name)
  if (isGiven(inContent)) return inContent
  const inQuery = sources.query.get(name)
  if (inQuery !== undefined) return inQuery
  return ownMember(sources.path, name)
}

/** WordPress checks each status by itself, whatever the keys, and treats it as a slug. */
const statusList = (value: unknown): unknown[] | undefined => {
  const list = isContainer(value) ? valuesOf(value).filter((item) => !isContainer(item)) : asList(value)
  return list?.map((item) => (typeof item === 'string' ? item.toLowerCase() : item))
}

const checkStatuses = (argument: CompiledArgument, list: readonly unknown[]): Issue | undefined => {
  for (const status of list) {
    const issue = checkValue(status, argument.schema, argument.name)
    if (issue !== undefined) return issue
  }
  return undefined
}

/** PHP's empty(). */
const isEmpty = (value: unknown): boolean =>
  value === '' ||
  value === '0' ||
  value === 0 ||
  value === false ||
  (isContainer(value) && valuesOf(value).length === 0)

const check = (argument: CompiledArgument, value: unknown): Issue | 'plain' | undefined => {
  if (argument.checked === 'container') return isContainer(value) ? undefined : 'plain'
  if (typeof value === 'string' && argument.alsoAccepts.has(value)) return undefined
  if (argument.emptyIsNone && isEmpty(value)) return undefined
  const statuses = argument.isStatusFilter ? statusList(value) : undefined
  if (statuses !== undefined) return checkStatuses(argument, statuses)
  return checkValue(value, argument.schema, argument.name)
}

const typedValue = (argument: CompiledArgument, value: unknown): unknown => {
  if (argument.checked === 'never' || argument.checked === 'container') return plainValue(value)
  if (argument.emptyIsNone && isEmpty(value)) return ''
  const { schema, termFilter } = argument
  // Exactly one form of a term filter matches a valid value, and only lists read as lists.
  if (termFilter !== undefined) {
    return sanitiseValue(value, asList(value) === undefined ? termFilter.query : termFilter.list)
  }
  return (argument.isStatusFilter ? statusList(value) : undefined) ?? sanitiseValue(value, schema)
}

export const missingArguments = (endpoint: CompiledEndpoint, sources: Sources): string[] =>
  endpoint.required.filter(
    (name) => endpoint.defaults[name] === undefined && !isGiven(effectiveValue(sources, name)),
  )

const isEarly = (argument: CompiledArgument | undefined): argument is CompiledArgument =>
  argument?.asSent === undefined && (argument?.checked === 'early' || argument?.checked === 'container')

/** Faults that validation callbacks find, in the endpoint's order: they check the effective value. */
const earlyFaults = (endpoint: CompiledEndpoint, sources: Sources): InvalidArgument[] => {
  const faults: (InvalidArgument & { position: number })[] = []
  const look = (argument: CompiledArgument, value: unknown) => {
    const issue = isGiven(value) ? check(argument, value) : undefined
    if (issue !== undefined) faults.push({ name: argument.name, issue, position: argument.position })
  }
  for (const name of sources.content.keys()) {
    const argument = endpoint.arguments.get(name)
    if (isEarly(argument)) look(argument, effectiveValue(sources, name))
  }
  for (const [name, value] of sources.query) {
    const argument = endpoint.arguments.get(name)
    if (isEarly(argument) && !sources.content.has(name)) look(argument, value)
  }
  return faults.sort((a, b) => a.position - b.position)
}

/** Faults that sanitising finds, source by source in the order given: it checks every value, overridden ones included. */
const lateFaults = (endpoint: CompiledEndpoint, sources: Sources): InvalidArgument[] => {
  const faults: InvalidArgument[] = []
  const look = (name: string, value: unknown) => {
    const argument = endpoint.arguments.get(name)
    if (argument?.checked !== 'late' || argument.asSent !== undefined) return
    const issue = check(argument, value)
    if (issue !== undefined) faults.push({ name, issue })
  }
  for (const [name, value] of sources.content) look(name, value)
  for (const [name, value] of sources.query) look(name, value)
  for (const name of Object.keys(sources.path)) look(name, sources.path[name])
  return faults
}

/** Arguments with values that WordPress refuses. Like WordPress, only those of the first phase that fails. */
export const invalidArguments = (endpoint: CompiledEndpoint, sources: Sources): InvalidArgument[] => {
  const early = earlyFaults(endpoint, sources)
  return early.length > 0 ? early : lateFaults(endpoint, sources)
}

const sameAsPath = (inPath: unknown, argument: CompiledArgument | undefined, value: unknown): boolean => {
  if (value === null) return true
  if (typeof value === 'number' && !Number.isSafeInteger(value)) return false
  if (typeof value !== 'string' && typeof value !== 'number') return false
  if (argument?.schema.type === 'integer') return typedValue(argument, value) === inPath
  return String(value) === inPath
}

/** Parameters of the path with another value in the query or the content, which WordPress would use instead. */
export const contradictions = (endpoint: CompiledEndpoint, sources: Sources): string[] =>
  Object.keys(sources.path).filter((name) => {
    const argument = endpoint.arguments.get(name)
    const text = sources.path[name] as string
    const inPath = argument?.schema.type === 'integer' ? typedValue(argument, text) : text
    const values = [sources.content.get(name), sources.query.get(name)].filter((value) => value !== undefined)
    return !values.every((value) => sameAsPath(inPath, argument, value))
  })

/** Computed on first use: a write that is forwarded never uses it, and its lists can have half a million elements. */
const setLazily = (typed: Record<string, unknown>, name: string, compute: () => unknown): void => {
  const get = (): unknown => {
    const value = compute()
    Object.defineProperty(typed, name, { value })
    return value
  }
  Object.defineProperty(typed, name, { get, enumerable: true, configurable: true })
}

/** Typed values of all sources, over the defaults. */
export const typedArguments = (endpoint: CompiledEndpoint, sources: Sources): Record<string, unknown> => {
  // Not a spread: with a member added, each object has a separate hidden class in Node 20, and all that reads it is slower.
  const typed: Record<string, unknown> = Object.assign({}, endpoint.defaults)
  for (const name of Object.keys(sources.path)) {
    const argument = endpoint.arguments.get(name)
    typed[name] = argument === undefined ? sources.path[name] : typedValue(argument, sources.path[name])
  }
  // Weakest source first; a JSON null does not override.
  for (const [name, value] of sources.query) {
    const argument = endpoint.arguments.get(name)
    if (argument !== undefined && argument.asSent === undefined && effectiveValue(sources, name) === value)
      typed[name] = typedValue(argument, value)
  }
  for (const [name, value] of sources.content) {
    const argument = isGiven(value) ? endpoint.arguments.get(name) : undefined
    if (argument !== undefined && argument.asSent === undefined)
      setLazily(typed, name, () => typedValue(argument, value))
  }
  return typed
}

/** The value that an argument has at the upstream: the one of the request, or the upstream's default. */
const valueAtUpstream = (argument: CompiledArgument, sources: Sources): unknown => {
  const value = effectiveValue(sources, argument.name)
  if (value !== undefined) return value
  return argument.asSent?.kind === 'value' ? argument.asSent.value : undefined
}

const isDescribed = ({ type, oneOf, anyOf }: CompiledArgument['schema']): boolean =>
  type !== undefined || oneOf !== undefined || anyOf !== undefined

const isKnownToContract = (argument: CompiledArgument, value: unknown): boolean => {
  const kind = argument.asSent?.kind
  // Without a value the request means what the contract says where the upstream does not have the argument (an earlier version), or the
  // contract has no default either.
  if (!isGiven(value))
    return (
      kind === 'own' || kind === 'absent' || (kind !== 'unannounced' && !isGiven(argument.schema.default))
    )
  return kind !== 'absent' && isDescribed(argument.schema) && check(argument, value) === undefined
}

/**
 * Adds the typed values of the arguments that are sent as they come, as far as the contract knows them. False where it does not
 * know all of them: the response may then depend on anything.
 */
export const addKnownValues = (
  endpoint: CompiledEndpoint,
  sources: Sources,
  typed: Record<string, unknown>,
): boolean => {
  let areAllKnown = true
  for (const argument of endpoint.asSent) {
    if (Object.hasOwn(sources.path, argument.name)) continue
    const value = valueAtUpstream(argument, sources)
    if (!isKnownToContract(argument, value)) areAllKnown = false
    else if (isGiven(value)) typed[argument.name] = typedValue(argument, value)
  }
  return areAllKnown
}

/** Parameters of the content by name: PHP treats JSON and forms alike. */
type ContentParameters = ReadonlyMap<string, unknown>

type SiteContent = { readonly kind: 'parameters'; readonly parameters: ContentParameters } | Invalid

const empty: SiteContent = { kind: 'parameters', parameters: new Map() }

/** PHP's max_input_vars: it silently drops further parameters. */
const maxFormParameters = 1000

type IsDeclared = (name: string) => boolean

/** Only declared parameters: a megabyte can hold a hundred thousand other names. */
const declaredMembers = (object: object, isDeclared: IsDeclared): ContentParameters => {
  const parameters = new Map<string, unknown>()
  for (const name of Object.keys(object)) {
    if (isDeclared(name)) parameters.set(name, (object as Record<string, unknown>)[name])
  }
  return parameters
}

function* jsonParameters(content: Buffer, maxDepth: number, isDeclared: IsDeclared): Pieces<SiteContent> {
  const reading = yield* readJson(content, maxDepth)
  if (reading.kind === 'refused') return invalidJson(reading.fault)
  // An array has no named members, and a scalar none at all: no parameters, no error.
  if (!isContainer(reading.value) || Array.isArray(reading.value)) return empty
  return { kind: 'parameters', parameters: declaredMembers(reading.value, isDeclared) }
}

function* formParameters(content: Buffer): Pieces<SiteContent> {
  // One pair more than is allowed is enough.
  const text = formText(content, maxFormParameters + 1)
  yield
  const form = parsePhpQuery(text, maxFormParameters, longestParameterName)
  if (form.kind !== 'read') return unreadQuery(form.kind)
  const { parameters } = form
  return parameters.has(routeParameter) ? routeOverride() : { kind: 'parameters', parameters }
}

/** Reads the parameters in the content. Content of GET and HEAD means nothing (RFC 9110 §9.3.1) and is not read. */
export function* readSiteContent(
  input: ValidationInput,
  maxDepth: number,
  isDeclared: IsDeclared,
): Pieces<SiteContent> {
  const { content } = input
  if (content === undefined || content.length === 0 || input.method === 'GET' || input.method === 'HEAD')
    return empty
  switch (mediaTypeOf(input.contentType)) {
    case 'json':
      return yield* jsonParameters(content, maxDepth, isDeclared)
    case 'form':
      return yield* formParameters(content)
    case 'other':
      // WordPress ignores text/plain and guesses the type of content without one: neither result is what the client meant.
      return input.endpoint.acceptsUploads === true ? empty : unsupportedContentType()
  }
}
