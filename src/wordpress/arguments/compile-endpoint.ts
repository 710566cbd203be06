import { encodeQueryText, isUnreadable } from '../../http/form-text.ts'
import { ownMember } from '../../http/json-text.ts'
import type { ArgumentSchema, Endpoint, Row, UpstreamDefault } from '../../service/row.ts'
import { registeredStatuses } from '../routes/parameter-sets.ts'
import { sanitiseValue } from './check-value.ts'
import { isContainer, PhpArray, type PhpValue } from './php-query.ts'
import { canonicalDateTime } from './scalars.ts'

/**
 * The phase in which WordPress checks an argument. It reports only the first phase that fails:
 * `early` = by a validation callback, `late` = while sanitising, `never` = not at all,
 * `container` = early, and only that it is an array or object.
 */
type CheckedWhen = 'early' | 'late' | 'never' | 'container'

const earlyWhenReading: ReadonlySet<string> = new Set(['context', 'page', 'per_page', 'search'])

/** absint sanitises them, and no value is refused. */
const neverRefused: ReadonlySet<string> = new Set(['maxwidth', 'maxheight'])

const madeFromSchema: ReadonlySet<string> = new Set(['collection', 'item', 'autosaves', 'autosave'])

const isWrite = (endpoint: Endpoint): boolean =>
  endpoint.methods.some((method) => method === 'POST' || method === 'PUT' || method === 'PATCH')

/**
 * `title`, `content`, `excerpt`, `caption` …: an object with a raw and a rendered text may also be given as plain text, so it is
 * not checked.
 */
const isRendered = (schema: ArgumentSchema): boolean =>
  schema.type === 'object' &&
  schema.properties?.['raw'] !== undefined &&
  Object.hasOwn(schema.properties, 'rendered')

/** Title and content of blocks have no rendered text. */
const isRaw = (schema: ArgumentSchema): boolean => {
  const names = Object.keys(schema.properties ?? {})
  return (
    schema.type === 'object' &&
    names.includes('raw') &&
    names.every((name) => name === 'raw' || schema.properties?.[name]?.readonly === true)
  )
}

const checkedWhen = (row: Row, endpoint: Endpoint, name: string, schema: ArgumentSchema): CheckedWhen => {
  if (schema.type === undefined && schema.oneOf === undefined && schema.anyOf === undefined) return 'never'
  if (!isWrite(endpoint)) {
    if (neverRefused.has(name)) return 'never'
    return earlyWhenReading.has(name) ? 'early' : 'late'
  }
  if (isRendered(schema) || isRaw(schema)) return 'never'
  if (name === 'meta') return 'container'
  if (name === 'id' || !madeFromSchema.has(row.kind)) return 'late'
  return name === 'parent' && row.kind !== 'item' && row.kind !== 'collection' ? 'late' : 'early'
}

const none: ReadonlySet<string> = new Set()
/** Empty in PHP. */
const noAddress: ReadonlySet<string> = new Set(['', '0'])

/**
 * Values that an update accepts beyond its enum: an item may keep its status, which only WordPress has. A client that reads a
 * medium (status `inherit`) and writes it back must not fail here. A comment without an address has an empty one, which its own callback
 * lets pass (`check_comment_author_email`).
 */
const alsoAccepted = (row: Row, endpoint: Endpoint, name: string): ReadonlySet<string> => {
  if (!isWrite(endpoint)) return none
  if (name === 'author_email' && row.collection === 'comments') return noAddress
  return name === 'status' && row.kind === 'item' ? new Set(registeredStatuses) : none
}

/** `template: false` means the default template, like ''. Which other names are valid depends on the upstream's theme. */
const emptyIsNone = (endpoint: Endpoint, name: string): boolean => name === 'template' && isWrite(endpoint)

/**
 * WordPress treats list filters by the status of posts as slugs: `PUBLISH` is `publish`. Themes, plugins and routes of plugins have
 * other statuses, which it compares as they are; only posts and media have `inherit`.
 */
const isStatusFilter = (endpoint: Endpoint, name: string, schema: ArgumentSchema): boolean =>
  name === 'status' &&
  schema.type === 'array' &&
  schema.items?.enum?.includes('inherit') === true &&
  endpoint.methods.includes('GET')

const filtersByMembership: ReadonlySet<string> = new Set([
  'author',
  'author_exclude',
  'exclude',
  'format',
  'media_type',
  'mime_type',
  'parent',
  'parent_exclude',
  'search_columns',
  'status',
])

/** Lists whose order matters only when `orderby` has the given value. */
const orderedBy: Readonly<Record<string, string>> = { include: 'include', slug: 'include_slugs' }

/**
 * Whether the order of a list matters: `set` = no, `sequence` = perhaps, `set-unless` = with this value of `orderby`.
 */
type ListOrder =
  | { readonly kind: 'set' | 'sequence' }
  | { readonly kind: 'set-unless'; readonly orderby: string }

/** Only arguments of a known name are sets; all others keep their order. */
const listOrder = (endpoint: Endpoint, name: string): ListOrder => {
  if (filtersByMembership.has(name)) return { kind: 'set' }
  const orderby = ownMember(orderedBy, name)
  // Of an `orderby` that is sent as it comes, nobody knows what it means.
  const isRead = ownMember(endpoint.asSent ?? {}, 'orderby') === undefined
  const switchable =
    isRead && orderby !== undefined && endpoint.arguments['orderby']?.enum?.includes(orderby) === true
  return switchable ? { kind: 'set-unless', orderby } : { kind: 'sequence' }
}

const dates: ReadonlySet<string> = new Set([
  'after',
  'before',
  'modified_after',
  'modified_before',
  'date',
  'date_gmt',
])

/** Date-times that WordPress compares as instants, so that their zone may be rewritten. Arguments of plugins keep their text. */
const isInstant = (name: string, schema: ArgumentSchema): boolean =>
  schema.format === 'date-time' && dates.has(name)

export type CompiledArgument = {
  readonly name: string
  /** Its index among the endpoint's arguments: errors of the early phase have this order. */
  readonly position: number
  readonly schema: ArgumentSchema
  readonly checked: CheckedWhen
  /** The default at the upstream, for an argument that is sent as it comes. */
  readonly asSent: UpstreamDefault | undefined
  readonly alsoAccepts: ReadonlySet<string>
  readonly isStatusFilter: boolean
  /** Anything empty means no value. */
  readonly emptyIsNone: boolean
  readonly isInstant: boolean
  readonly order: ListOrder
  readonly termFilter: TermFilter | undefined
}

const byValue = (a: unknown, b: unknown): number => {
  if (typeof a === 'number' && typeof b === 'number') return a - b
  const [left, right] = [String(a), String(b)]
  return left < right ? -1 : left > right ? 1 : 0
}

/** The list without repetitions; the first one stays. */
export const distinct = (list: readonly unknown[]): unknown[] =>
  list.length < 2 ? [...list] : [...new Set(list)]

/** The list sorted and without repetitions. Elements are scalars of one type. */
export const sortedSet = (list: readonly unknown[]): unknown[] =>
  list.length < 2 ? [...list] : distinct(list).sort(byValue)

/** The two forms of WordPress's taxonomy filters: a list of term ids, or an object with `terms` and how to combine them. */
type TermFilter = { readonly list: ArgumentSchema; readonly query: ArgumentSchema }

/** The two schemas of a term filter; undefined for any other argument. */
const termFilterOf = (schema: ArgumentSchema): TermFilter | undefined => {
  const [list, query] = schema.oneOf ?? []
  if (schema.oneOf?.length !== 2 || list?.type !== 'array' || query?.type !== 'object') return undefined
  return query.properties?.['terms']?.type === 'array' && query.additionalProperties === false
    ? { list, query }
    : undefined
}

/** Everything about an argument that does not depend on the request. */
const compileArgument = (
  row: Row,
  endpoint: Endpoint,
  name: string,
  schema: ArgumentSchema,
  position: number,
): CompiledArgument => ({
  name,
  position,
  schema,
  checked: checkedWhen(row, endpoint, name, schema),
  asSent: ownMember(endpoint.asSent ?? {}, name),
  alsoAccepts: alsoAccepted(row, endpoint, name),
  isStatusFilter: isStatusFilter(endpoint, name, schema),
  emptyIsNone: emptyIsNone(endpoint, name),
  isInstant: isInstant(name, schema),
  order: listOrder(endpoint, name),
  termFilter: termFilterOf(schema),
})

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
    const itemText = String(item)
    if (!inCsv.test(itemText)) return undefined
    text += text === '' ? itemText : `,${itemText}`
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
  /** Those that are sent as they come. */
  readonly asSent: readonly CompiledArgument[]
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
  const byName = new Map<string, CompiledArgument>()
  const defaults: Record<string, unknown> = {}
  const defaultSpellings = new Map<string, string>()
  for (const [name, schema] of Object.entries(endpoint.arguments)) {
    const argument = compileArgument(row, endpoint, name, schema, byName.size)
    byName.set(name, argument)
    // A default of null is none: WordPress tests it with isset().
    if (schema.default === undefined || schema.default === null || argument.asSent !== undefined) continue
    const typed = sanitiseValue(schema.default, schema)
    defaults[name] = typed
    defaultSpellings.set(name, canonicalSpelling(argument, typed, undefined))
  }
  const required = Object.entries(endpoint.arguments).flatMap(([name, schema]) =>
    schema.required === true && byName.get(name)?.asSent === undefined ? [name] : [],
  )
  return {
    arguments: byName,
    asSent: [...byName.values()].filter((argument) => argument.asSent !== undefined),
    required,
    defaults,
    defaultSpellings,
    isOpen: byName.size === 0,
  }
}
