import type { ArgumentSchema, Endpoint, Row } from '../../contracts/row.ts'
import { registeredStatuses } from '../../contracts/site/parameter-sets.ts'
import { ownMember } from '../../http/json-text.ts'

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

/**
 * Values that an update accepts beyond its enum: an item may keep its status, which only WordPress has. A client that reads a
 * medium (status `inherit`) and writes it back must not fail here.
 */
const alsoAccepted = (row: Row, endpoint: Endpoint, name: string): ReadonlySet<string> =>
  name === 'status' && row.kind === 'item' && isWrite(endpoint) ? new Set(registeredStatuses) : none

/** `template: false` means the default template, like ''. Which other names are valid depends on the upstream's theme. */
const emptyIsNone = (endpoint: Endpoint, name: string): boolean => name === 'template' && isWrite(endpoint)

/** WordPress treats list filters by status as slugs: `PUBLISH` is `publish`. */
const isStatusFilter = (endpoint: Endpoint, name: string, schema: ArgumentSchema): boolean =>
  name === 'status' &&
  schema.type === 'array' &&
  schema.items?.enum !== undefined &&
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
export type ListOrder =
  | { readonly kind: 'set' | 'sequence' }
  | { readonly kind: 'set-unless'; readonly orderby: string }

/** Only arguments of a known name are sets; all others keep their order. */
const listOrder = (endpoint: Endpoint, name: string): ListOrder => {
  if (filtersByMembership.has(name)) return { kind: 'set' }
  const orderby = ownMember(orderedBy, name)
  const switchable = orderby !== undefined && endpoint.arguments['orderby']?.enum?.includes(orderby) === true
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
export type TermFilter = { readonly list: ArgumentSchema; readonly query: ArgumentSchema }

/** The two schemas of a term filter; undefined for any other argument. */
const termFilterOf = (schema: ArgumentSchema): TermFilter | undefined => {
  const [list, query] = schema.oneOf ?? []
  if (schema.oneOf?.length !== 2 || list?.type !== 'array' || query?.type !== 'object') return undefined
  return query.properties?.['terms']?.type === 'array' && query.additionalProperties === false
    ? { list, query }
    : undefined
}

/** Everything about an argument that does not depend on the request. */
export const compileArgument = (
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
  alsoAccepts: alsoAccepted(row, endpoint, name),
  isStatusFilter: isStatusFilter(endpoint, name, schema),
  emptyIsNone: emptyIsNone(endpoint, name),
  isInstant: isInstant(name, schema),
  order: listOrder(endpoint, name),
  termFilter: termFilterOf(schema),
})
