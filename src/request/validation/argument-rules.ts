import type { ArgumentSchema, Endpoint, Row } from '../../contracts/row.ts'

/**
 * When WordPress looks at an argument. It reports only the first phase that fails:
 * `early` = arguments with a validation callback, `late` = those checked while cleaning, `never` = those it does not check at all,
 * `container` = only that it is an array or object is checked, early.
 */
type CheckedWhen = 'early' | 'late' | 'never' | 'container'

const earlyWhenReading: ReadonlySet<string> = new Set(['context', 'page', 'per_page', 'search'])

/** Cleaned by absint, wp_oembed_ensure_format or a template-id cleaner and never refused. */
const neverRefused: ReadonlySet<string> = new Set(['maxwidth', 'maxheight'])

const madeFromSchema: ReadonlySet<string> = new Set(['collection', 'item', 'autosaves', 'autosave'])

const isWrite = (endpoint: Endpoint): boolean =>
  endpoint.methods.some((method) => method === 'POST' || method === 'PUT' || method === 'PATCH')

/**
 * `title`, `content`, `excerpt`, `caption` …: an object with a raw and a rendered side also comes as plain text, so it goes
 * unchecked.
 */
const isRendered = (schema: ArgumentSchema): boolean =>
  schema.type === 'object' &&
  schema.properties?.['raw'] !== undefined &&
  Object.hasOwn(schema.properties, 'rendered')

/** Blocks show their title and content raw everywhere and have no rendered side. */
const isRaw = (schema: ArgumentSchema): boolean => {
  const names = Object.keys(schema.properties ?? {})
  return (
    schema.type === 'object' &&
    names.includes('raw') &&
    names.every((name) => name === 'raw' || schema.properties?.[name]?.readonly === true)
  )
}

/** Which phase looks at an argument of an endpoint. */
export const checkedWhen = (
  row: Row,
  endpoint: Endpoint,
  name: string,
  schema: ArgumentSchema,
): CheckedWhen => {
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

/** Statuses that WordPress registers beyond those a client may set. */
const registeredStatuses = [
  'trash',
  'auto-draft',
  'inherit',
  'request-pending',
  'request-confirmed',
  'request-failed',
  'request-completed',
] as const

const none: ReadonlySet<string> = new Set()

/**
 * Values that an update takes beyond its enum: WordPress lets an item keep the status it has, and only it knows which one that is.
 * A client that reads a medium (status `inherit`) and writes it back must not fail here.
 */
export const alsoAccepted = (row: Row, endpoint: Endpoint, name: string): ReadonlySet<string> =>
  name === 'status' && row.kind === 'item' && isWrite(endpoint) ? new Set(registeredStatuses) : none

/** `template: false` asks for the default template, like ''; which names there are only the upstream's theme knows. */
export const emptyIsNone = (endpoint: Endpoint, name: string): boolean =>
  name === 'template' && isWrite(endpoint)

/** List filters by status are slugs to WordPress: `PUBLISH` is `publish`. */
export const isStatusFilter = (endpoint: Endpoint, name: string, schema: ArgumentSchema): boolean =>
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

/** Lists whose order counts only when `orderby` has the given value. */
const orderedBy: Readonly<Record<string, string>> = { include: 'include', slug: 'include_slugs' }

/**
 * What the order of a list means: `set` = nothing, `sequence` = perhaps something; otherwise the `orderby` value that makes it
 * count.
 */
export type ListOrder =
  | { readonly kind: 'set' | 'sequence' }
  | { readonly kind: 'set-unless'; readonly orderby: string }

/** Arguments whose meaning is known by name; everything else keeps its order. */
export const listOrder = (endpoint: Endpoint, name: string): ListOrder => {
  if (filtersByMembership.has(name)) return { kind: 'set' }
  const orderby = Object.hasOwn(orderedBy, name) ? orderedBy[name] : undefined
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

/** Date-times that WordPress compares as instants, so that their zone may be rewritten. A plugin's own argument keeps its text. */
export const isInstant = (name: string, schema: ArgumentSchema): boolean =>
  schema.format === 'date-time' && dates.has(name)

/** One argument with everything about it that does not depend on the request. */
export type CompiledArgument = {
  readonly name: string
  /** Its place in the endpoint's own order: errors of the early phase are listed by it. */
  readonly position: number
  readonly schema: ArgumentSchema
  readonly checked: CheckedWhen
  readonly alsoAccepts: ReadonlySet<string>
  readonly isStatusFilter: boolean
  /** Anything empty stands for no value at all. */
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

/** The list without repetitions, first ones kept. */
export const distinct = (list: readonly unknown[]): unknown[] =>
  list.length < 2 ? [...list] : [...new Set(list)]

/** The list as a set: sorted, without repetitions. Elements are scalars of one type. */
export const sortedSet = (list: readonly unknown[]): unknown[] =>
  list.length < 2 ? [...list] : distinct(list).sort(byValue)

/** The two sides of WordPress's taxonomy filters: a list of term ids, or an object with `terms` and how to combine them. */
export type TermFilter = { readonly list: ArgumentSchema; readonly query: ArgumentSchema }

/** The two schemas of a term filter, or undefined for any other argument. */
export const termFilterOf = (schema: ArgumentSchema): TermFilter | undefined => {
  const [list, query] = schema.oneOf ?? []
  if (schema.oneOf?.length !== 2 || list?.type !== 'array' || query?.type !== 'object') return undefined
  return query.properties?.['terms']?.type === 'array' && query.additionalProperties === false
    ? { list, query }
    : undefined
}
