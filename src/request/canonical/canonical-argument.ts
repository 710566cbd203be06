import type { ArgumentSchema, Endpoint, Row } from '../../contracts/row.ts'
import { ownMember } from '../../http/json-text.ts'
import {
  type CompiledArgument,
  compileArgument,
  distinct,
  type ListOrder,
  sortedSet,
  type TermFilter,
} from '../validation/argument-rules.ts'
import { sanitiseValue } from '../validation/check-value.ts'
import { canonicalDateTime } from '../validation/formats.ts'
import { encodeQueryText, isContainer, isUnreadable, PhpArray, type PhpValue } from './php-query.ts'

const inCsv = /^[^ \t\n\v\f\r,]+$/
const openBracket = '%5B'
const closeBracket = '%5D'

const scalarSpelling = (value: unknown): string => encodeQueryText(String(value))

const key = (parent: string, index: string): string =>
  parent + openBracket + encodeQueryText(index) + closeBracket

/** Whether the list may be written with commas: only where a scalar always means a list. */
const takesCsv = (schema: ArgumentSchema | undefined): boolean => schema?.type === 'array'

const csvText = (list: readonly unknown[]): string | undefined => {
  let text = ''
  for (const item of list) {
    if (isContainer(item)) return undefined
    const spelled = String(item)
    if (!inCsv.test(spelled)) return undefined
    text += text === '' ? spelled : `,${spelled}`
  }
  return text
}

const listSpelling = (name: string, list: readonly unknown[], schema: ArgumentSchema | undefined): string => {
  const csv = takesCsv(schema) ? csvText(list) : undefined
  if (csv !== undefined) return `${name}=${encodeQueryText(csv)}`
  if (!list.some(isContainer)) {
    return list.map((item) => `${name}${openBracket}${closeBracket}=${scalarSpelling(item)}`).join('&')
  }
  return list.map((item, index) => spell(key(name, String(index)), item, schema?.items)).join('&')
}

const asRecord = (value: unknown): Record<string, unknown> => value as Record<string, unknown>

const recordSpelling = (name: string, value: object, schema: ArgumentSchema | undefined): string => {
  const names = Object.keys(value).sort()
  if (names.length === 0) return `${name}=`
  const properties = schema?.properties ?? {}
  return names
    .map((property) => spell(key(name, property), asRecord(value)[property], ownMember(properties, property)))
    .join('&')
}

/** `name=value` for a typed value, or several of them joined by `&`. `name` is already escaped. */
function spell(name: string, value: unknown, schema: ArgumentSchema | undefined): string {
  if (Array.isArray(value)) return listSpelling(name, value, schema)
  return isContainer(value) ? recordSpelling(name, value, schema) : `${name}=${scalarSpelling(value)}`
}

/**
 * Spells a value of unknown meaning: every key and the order stay. Undefined when it cannot be spelled. `bytes`: those that are not
 * UTF-8 are written as they are, or have no spelling.
 */
export function spellVerbatim(name: string, value: PhpValue, bytes: 'kept' | 'refused'): string | undefined {
  if (isUnreadable(value)) {
    const { description } = value
    return bytes === 'refused' || description === undefined ? undefined : `${name}=${description}`
  }
  if (!(value instanceof PhpArray)) return `${name}=${encodeQueryText(value)}`
  const parts: string[] = []
  for (const [index, member] of value) {
    const part = spellVerbatim(key(name, index), member, bytes)
    if (part === undefined) return undefined
    parts.push(part)
  }
  return parts.join('&')
}

/**
 * The shorter of two forms with one meaning: properties at their default are dropped, and an object with nothing but terms
 * becomes the list of terms.
 */
const shortestTermFilter = (value: unknown, filter: TermFilter): unknown => {
  if (Array.isArray(value)) return sortedSet(value)
  const shortened: Record<string, unknown> = {}
  for (const [name, member] of Object.entries(asRecord(value))) {
    const property = filter.query.properties?.[name]
    if (name === 'terms') shortened['terms'] = sortedSet(member as unknown[])
    else if (property?.default !== member) shortened[name] = member
  }
  const { terms, ...rest } = shortened as { terms?: unknown[] }
  // An empty list is refused as a term filter, so an object without terms has no shorter form.
  if (terms === undefined || terms.length === 0 || Object.keys(rest).length > 0) {
    return Object.keys(shortened).length === 0 ? value : shortened
  }
  return terms
}

const orderedList = (list: readonly unknown[], order: ListOrder, orderby: unknown): readonly unknown[] => {
  if (list.some(isContainer)) return list
  switch (order.kind) {
    case 'set':
      return sortedSet(list)
    case 'set-unless':
      // FIELD(id, 5, 5) finds the first 5: repetitions mean nothing even where the order counts.
      return order.orderby === orderby ? distinct(list) : sortedSet(list)
    case 'sequence':
      return list
  }
}

/** One value for all values of the same meaning. */
const canonicalValue = (argument: CompiledArgument, value: unknown, orderby: unknown): unknown => {
  if (argument.termFilter !== undefined) return shortestTermFilter(value, argument.termFilter)
  if (Array.isArray(value)) return orderedList(value, argument.order, orderby)
  return argument.isInstant && typeof value === 'string' ? canonicalDateTime(value) : value
}

/** `name=value` in the one spelling of its meaning. `orderby` is the value of that argument in the same request. */
export const canonicalSpelling = (argument: CompiledArgument, value: unknown, orderby: unknown): string => {
  const name = encodeQueryText(argument.name)
  const canonical = canonicalValue(argument, value, orderby)
  if (argument.termFilter === undefined) return spell(name, canonical, argument.schema)
  if (!Array.isArray(canonical)) return spell(name, canonical, argument.termFilter.query)
  // The empty text would fit both sides of a term filter and be refused; a lone comma is an empty list only.
  return canonical.length === 0 ? `${name}=,` : spell(name, canonical, argument.termFilter.list)
}

export type CompiledEndpoint = {
  readonly arguments: ReadonlyMap<string, CompiledArgument>
  readonly required: readonly string[]
  /** Typed values of all arguments that have a default. */
  readonly defaults: Readonly<Record<string, unknown>>
  /** Canonical spelling of each default, e.g. `page=1`: what is dropped from a query. */
  readonly defaultSpellings: ReadonlyMap<string, string>
  /** No argument is declared: handlers of such routes may read any parameter. */
  readonly isOpen: boolean
}

/** Does the work that all requests of an endpoint share. */
export const compileEndpoint = (row: Row, endpoint: Endpoint): CompiledEndpoint => {
  const compiled = new Map<string, CompiledArgument>()
  const defaults: Record<string, unknown> = {}
  const defaultSpellings = new Map<string, string>()
  for (const [name, schema] of Object.entries(endpoint.arguments)) {
    const argument = compileArgument(row, endpoint, name, schema, compiled.size)
    compiled.set(name, argument)
    // A default of null is none: WordPress tests it with isset().
    if (schema.default === undefined || schema.default === null) continue
    const typed = sanitiseValue(schema.default, schema)
    defaults[name] = typed
    defaultSpellings.set(name, canonicalSpelling(argument, typed, undefined))
  }
  const required = Object.entries(endpoint.arguments).flatMap(([name, schema]) =>
    schema.required === true ? [name] : [],
  )
  return { arguments: compiled, required, defaults, defaultSpellings, isOpen: compiled.size === 0 }
}
