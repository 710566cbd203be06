import { asList, isContainer, type PhpValue, valuesOf } from '../canonical/php-array.ts'
import type { CompiledArgument } from './argument-rules.ts'
import { checkValue } from './check-value.ts'
import type { CompiledEndpoint } from './compile-endpoint.ts'
import { plainValue, sanitiseValue } from './sanitise-value.ts'
import type { InvalidArgument, Issue } from './site-errors.ts'

/** The places that parameters come from, strongest first (WordPress's order). */
export type Sources = {
  readonly content: ReadonlyMap<string, unknown>
  readonly query: ReadonlyMap<string, PhpValue>
  readonly path: Readonly<Record<string, string>>
}

const given = (value: unknown): boolean => value !== undefined && value !== null

/** The value that counts: content before query before path; a JSON null lets the next one through. */
export const effectiveValue = (sources: Sources, name: string): unknown => {
  const inContent = sources.content.get(name)
  if (given(inContent)) return inContent
  const inQuery = sources.query.get(name)
  if (inQuery !== undefined) return inQuery
  return Object.hasOwn(sources.path, name) ? sources.path[name] : undefined
}

/** WordPress looks at each status by itself, whatever the keys, and takes each for a slug. */
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

/** What PHP's empty() holds for nothing. */
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

/** The typed value of an argument that was found valid. */
const typedValue = (argument: CompiledArgument, value: unknown): unknown => {
  if (argument.checked === 'never' || argument.checked === 'container') return plainValue(value)
  if (argument.emptyIsNone && isEmpty(value)) return ''
  const { schema, termFilter } = argument
  // Exactly one side of a term filter takes a valid value, and only lists read as lists.
  if (termFilter !== undefined) {
    return sanitiseValue(value, asList(value) === undefined ? termFilter.query : termFilter.list)
  }
  return (argument.isStatusFilter ? statusList(value) : undefined) ?? sanitiseValue(value, schema)
}

/** Names of required arguments that no source has. */
export const missingArguments = (endpoint: CompiledEndpoint, sources: Sources): string[] =>
  endpoint.required.filter(
    (name) => endpoint.defaults[name] === undefined && !given(effectiveValue(sources, name)),
  )

const isEarly = (argument: CompiledArgument | undefined): argument is CompiledArgument =>
  argument?.checked === 'early' || argument?.checked === 'container'

/** What callbacks refuse, in the endpoint's order: the value that counts is the one they see. */
const earlyFaults = (endpoint: CompiledEndpoint, sources: Sources): InvalidArgument[] => {
  const faults: (InvalidArgument & { position: number })[] = []
  const look = (argument: CompiledArgument, value: unknown) => {
    const issue = given(value) ? check(argument, value) : undefined
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

/** What cleaning refuses, source by source and in the order given: it looks at every value, also at one that another overrides. */
const lateFaults = (endpoint: CompiledEndpoint, sources: Sources): InvalidArgument[] => {
  const faults: InvalidArgument[] = []
  const look = (name: string, value: unknown) => {
    const argument = endpoint.arguments.get(name)
    if (argument?.checked !== 'late') return
    const issue = check(argument, value)
    if (issue !== undefined) faults.push({ name, issue })
  }
  for (const [name, value] of sources.content) look(name, value)
  for (const [name, value] of sources.query) look(name, value)
  for (const name of Object.keys(sources.path)) look(name, sources.path[name])
  return faults
}

/** Arguments with values that WordPress refuses. Only the first failing phase is told, as it does. */
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

/** Parameters of the path that the query or the content contradicts: WordPress would act on those. */
export const contradictions = (endpoint: CompiledEndpoint, sources: Sources): string[] =>
  Object.keys(sources.path).filter((name) => {
    const argument = endpoint.arguments.get(name)
    const text = sources.path[name] as string
    const inPath = argument?.schema.type === 'integer' ? typedValue(argument, text) : text
    const others = [sources.content.get(name), sources.query.get(name)].filter((value) => value !== undefined)
    return !others.every((value) => sameAsPath(inPath, argument, value))
  })

/** Known once somebody asks: nobody does of a write that goes on to the upstream, and its lists can be half a million long. */
const setLazily = (typed: Record<string, unknown>, name: string, typedOf: () => unknown): void => {
  const get = (): unknown => {
    const value = typedOf()
    Object.defineProperty(typed, name, { value })
    return value
  }
  Object.defineProperty(typed, name, { get, enumerable: true, configurable: true })
}

/** Typed values of everything given, over the defaults. */
export const typedArguments = (endpoint: CompiledEndpoint, sources: Sources): Record<string, unknown> => {
  const typed: Record<string, unknown> = { ...endpoint.defaults }
  for (const name of Object.keys(sources.path)) {
    const argument = endpoint.arguments.get(name)
    typed[name] = argument === undefined ? sources.path[name] : typedValue(argument, sources.path[name])
  }
  // Weakest source first; a JSON null overrides nothing.
  for (const [name, value] of sources.query) {
    const argument = endpoint.arguments.get(name)
    if (argument !== undefined && effectiveValue(sources, name) === value)
      typed[name] = typedValue(argument, value)
  }
  for (const [name, value] of sources.content) {
    const argument = given(value) ? endpoint.arguments.get(name) : undefined
    if (argument !== undefined) setLazily(typed, name, () => typedValue(argument, value))
  }
  return typed
}
