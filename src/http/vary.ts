import { type FieldLines, fieldValue, type RequestFields, requestField } from './fields.ts'
import { remembered } from './remembered.ts'
import { shortText } from './short-text.ts'

/** What a response says its selection depends on (RFC 9110 §12.5.5): lower-case field names in order, or anything at all. */
export type Vary = { readonly kind: 'fields'; readonly names: readonly string[] } | { readonly kind: 'any' }

const nothing: Vary = { kind: 'fields', names: [] }

const readNames = remembered((value): Vary => {
  const names = value.split(',').map((name) => name.trim().toLowerCase())
  if (names.includes('*')) return { kind: 'any' }
  return { kind: 'fields', names: [...new Set(names.filter((name) => name !== ''))].sort() }
})

/** Reads all Vary lines; a `*` among other members counts (RFC 9110 §12.5.5), names are sorted and unique. */
export const parseVary = (fields: FieldLines): Vary => {
  const value = fieldValue(fields, 'vary')
  return value === undefined ? nothing : readNames(value)
}

/** Fields whose members may be reordered and respaced without a change of meaning (RFC 9111 §4.1). */
const reorderable: ReadonlySet<string> = new Set(['accept-encoding', 'accept-language'])

/** Fields in which a comma is text: compared as they are. */
const singular: ReadonlySet<string> = new Set(['authorization', 'cookie', 'origin', 'referer', 'user-agent'])

const normalMember = (member: string): string =>
  member
    .split(';')
    .map((part) => part.trim().toLowerCase())
    .join(';')

const withoutSpaceAroundCommas = (value: string): string =>
  value.includes(',')
    ? value
        .split(',')
        .map((member) => member.trim())
        .join(',')
    : value.trim()

const normalValue = (name: string, value: string): string => {
  if (singular.has(name)) return value
  if (!reorderable.has(name)) return withoutSpaceAroundCommas(value)
  const members = value.split(',').map(normalMember)
  return members
    .filter((member) => member !== '')
    .sort()
    .join(',')
}

/** What a response can have been selected by: the client's fields, unless the gateway sends another value, or none. */
export type SelectingFields = {
  readonly fields: RequestFields
  /** What the gateway sends in place of the client's field; undefined for one that it withholds. */
  readonly settled?: RequestFields
}

const nothingSettled: RequestFields = {}

/** Names come from upstreams: `Vary: constructor` must not find what every object has. */
const ownField = (fields: RequestFields, name: string): string | undefined =>
  Object.hasOwn(fields, name) ? requestField(fields, name) : undefined

/**
 * The secondary key of a request under the given field names. Injective: lengths go before values,
 * and a missing field differs from an empty one. A long one is a digest: clients choose how long the values are.
 */
export const varyKey = (names: readonly string[], selecting: SelectingFields): string => {
  const settled = selecting.settled ?? nothingSettled
  let key = ''
  for (const name of names) {
    const value = ownField(Object.hasOwn(settled, name) ? settled : selecting.fields, name)
    if (value === undefined) key += '-;'
    else {
      const normal = normalValue(name, value)
      key += `${normal.length}:${normal};`
    }
  }
  return shortText(key)
}
