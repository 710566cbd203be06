import { type FieldLines, fieldValue, shortText } from './fields.ts'
import { remembered } from './memo.ts'

/** What a response says its selection depends on (RFC 9110 §12.5.5): lower-case field names in order, or `any`: nothing that a later request could match. */
export type Vary = { readonly kind: 'fields'; readonly names: readonly string[] } | { readonly kind: 'any' }

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
  'if-match',
  'if-none-match',
  'if-modified-since',
  'if-unmodified-since',
  'if-range',
  'range',
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

/** What a response can have been selected by: the fields of its request as the upstream got them, not as the client sent them. */
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
