import { conditionalFields } from './conditional/preconditions.ts'
import { remembered } from './memo.ts'
import { type FieldLines, fieldValue, shortText } from './message.ts'

/** Directives of a Cache-Control field (RFC 9111 §5.2): lower-case name to argument, undefined without one. */
export type Directives = ReadonlyMap<string, string | undefined>

/** RFC 9111 §1.2.2: an overflowing delta-seconds counts as 2^31. */
const longestSeconds = 2_147_483_648

type Member = {
  readonly name: string
  readonly argument: string | undefined
  readonly end: number
  readonly isOpen?: true
}

/** A quoted-string from its opening quote on; without a closing quote `end` lies behind the value. */
const readQuoted = (value: string, start: number): { readonly text: string; readonly end: number } => {
  let text = ''
  let i = start + 1
  while (i < value.length && value[i] !== '"') {
    if (value[i] === '\\' && i + 1 < value.length) i += 1
    text += value[i]
    i += 1
  }
  return { text, end: i + 1 }
}

const endOfMember = (value: string, start: number): number => {
  const comma = value.indexOf(',', start)
  return comma === -1 ? value.length : comma
}

const readMember = (value: string, start: number): Member => {
  let i = start
  while (i < value.length && value[i] !== ',' && value[i] !== '=') i += 1
  const rawName = value.slice(start, i)
  const name = rawName.trim().toLowerCase()
  if (value[i] !== '=') return { name, argument: undefined, end: i }
  // Space around `=` is not in the grammar: it stays in the argument, which makes a number invalid.
  const gap = rawName.trimEnd() === rawName ? '' : ' '
  if (value[i + 1] === '"') {
    const quoted = readQuoted(value, i + 1)
    if (quoted.end > value.length)
      return { name, argument: gap + quoted.text, end: value.length, isOpen: true }
    const end = endOfMember(value, quoted.end)
    // Text behind the quotes is not in the grammar either: kept apart, it cannot complete a number.
    const rest = value.slice(quoted.end, end).trim()
    return { name, argument: gap + quoted.text + (rest === '' ? '' : ` ${rest}`), end }
  }
  const end = endOfMember(value, i + 1)
  return { name, argument: gap + value.slice(i + 1, end).trimEnd(), end }
}

/** For no-cache and private, which may name fields: without an argument they mean the whole response, and that wins. */
const mergeQualified = (known: string | undefined, added: string | undefined): string | undefined =>
  known === undefined || added === undefined ? undefined : `${known},${added}`

const readDirectives = remembered((value): Directives => {
  const directives = new Map<string, string | undefined>()
  let i = 0
  while (i < value.length) {
    const { name, argument, end, isOpen = false } = readMember(value, i)
    i = end + 1
    // Behind an open quote directives may have disappeared.
    if (isOpen) directives.set('no-store', undefined)
    if (name === '') continue
    if (!directives.has(name)) directives.set(name, argument)
    else if (name === 'no-cache' || name === 'private') {
      directives.set(name, mergeQualified(directives.get(name), argument))
    }
  }
  return directives
})

const noDirectives: Directives = new Map()

/** Reads any text without failing; a repeated directive keeps its first argument (RFC 9111 §4.2.1). */
export const parseCacheControl = (value: string | undefined): Directives =>
  value === undefined ? noDirectives : readDirectives(value)

/** Argument in seconds: undefined when the directive is absent, `invalid` when it is not a non-negative integer. */
export const deltaSeconds = (directives: Directives, name: string): number | 'invalid' | undefined => {
  if (!directives.has(name)) return undefined
  return nonNegativeInteger(directives.get(name)) ?? 'invalid'
}

/** A delta-seconds value (RFC 9111 §1.2.2), or undefined. */
export const nonNegativeInteger = (text: string | undefined): number | undefined =>
  text !== undefined && /^\d+$/.test(text) ? Math.min(Number(text), longestSeconds) : undefined

/**
 * Field names that qualify no-cache or private, lower case; undefined when the directive is absent or unqualified. One that names no
 * field means the whole response, as the stricter reading.
 */
export const qualifiedFields = (directives: Directives, name: string): readonly string[] | undefined => {
  const argument = directives.get(name)
  if (argument === undefined) return undefined
  const names = argument.split(',').map((part) => part.trim().toLowerCase())
  const named = names.filter((part) => part !== '')
  return named.length === 0 ? undefined : named
}

/** The fields that Vary names (RFC 9110 §12.5.5): lower-case field names in order, or `any`: nothing that a later request could match. */
type Vary = { readonly kind: 'fields'; readonly names: readonly string[] } | { readonly kind: 'any' }

/**
 * Fields whose value differs with each request or belongs to one request: its id, trace, deadline, framing, range and the validators
 * of the cache. A response selected by them is for one request only.
 */
const ofOneRequest: ReadonlySet<string> = new Set([
  'x-request-id',
  'x-request-deadline-ms',
  'traceparent',
  'tracestate',
  'content-length',
  'transfer-encoding',
  ...conditionalFields,
])

/** Not `*`, and no name that is never sent (forwardable-fields.ts): an upstream that writes `Accept_Language` reads another field. */
const readable = /^[a-z\d-]*$/

const nothing: Vary = { kind: 'fields', names: [] }

const readNames = remembered((value): Vary => {
  const names = value.split(',').map((name) => name.trim().toLowerCase())
  if (names.some((name) => !readable.test(name) || ofOneRequest.has(name))) return { kind: 'any' }
  return { kind: 'fields', names: [...new Set(names.filter((name) => name !== ''))].sort() }
})

/** Reads all Vary lines; a `*` among other members counts (RFC 9110 §12.5.5), names are sorted and unique. */
export const parseVary = (fields: FieldLines): Vary => {
  const value = fieldValue(fields, 'vary')
  return value === undefined ? nothing : readNames(value)
}

/** The fields by which the upstream can have selected a response: as the gateway sent them, not as the client did. */
export type SelectingFields = {
  /** The value with which a field is sent to the upstream (lower-case name); undefined when it is not sent. */
  sentField(name: string): string | undefined
}

/**
 * The secondary key of a request under the given field names. Values count as they are sent: upstreams do read their order,
 * case and spaces. Injective: lengths go before values, and a missing field differs from an empty one. A long key is kept as a
 * digest, because clients choose how long the values are.
 */
export const varyKey = (names: readonly string[], selecting: SelectingFields): string => {
  let key = ''
  for (const name of names) {
    const value = selecting.sentField(name)
    key += value === undefined ? '-;' : `${value.length}:${value};`
  }
  return shortText(key)
}
