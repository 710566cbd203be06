import { parsedJson } from '../../http/json-text.ts'

const decoded = (text: string): string => {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

const uuid = /^\{?[\da-f]{8}(?:-?[\da-f]{4}){3}-?[\da-f]{12}\}?$/

/**
 * One spelling for all that an upstream may take for the same id: `5`, `05` and `+5.0`, capitals, escapes, UUIDs with and without
 * hyphens. Two items that share it are invalidated together.
 */
export const oneSpelling = (raw: string): string => {
  const text = decoded(raw).normalize('NFKC').trim().toLowerCase()
  if (uuid.test(text)) return text.replaceAll(/[{}-]/g, '')
  const value = text === '' ? Number.NaN : Number(text)
  return encodeURIComponent(
    Number.isFinite(value) ? String(value) : text.replaceAll(/\p{Surrogate}/gu, '\ufffd'),
  )
}

/** Ids of one kind differ for different items; an alias stands for some item of the collection. */
export type KindOfId = 'number' | 'code' | 'name' | 'alias'

export const kindsOfIds: readonly KindOfId[] = ['number', 'code', 'name', 'alias']

const aliases =
  /^(?:%40|%7e)?(?:me|self|my|mine|current|default|latest|newest|last|first|oldest|active|head|today|now|~)?$/

/** Of an id in its one spelling. */
export const kindOf = (id: string): KindOfId => {
  if (/^-?[\d.]+(?:e[+-]?\d+)?$/.test(id)) return 'number'
  if (/^(?:[\da-f]{16,}|[\da-z]{26})$/.test(id)) return 'code'
  return aliases.test(id) ? 'alias' : 'name'
}

type Member = string | number

const isMember = (value: unknown): value is Member => typeof value === 'string' || typeof value === 'number'

/** An own member of an object or list. */
export const memberOf = (value: unknown, name: string): unknown =>
  typeof value === 'object' && value !== null && Object.hasOwn(value, name)
    ? (value as Readonly<Record<string, unknown>>)[name]
    : undefined

/** The values that a JSON Pointer (RFC 6901) leads to; `*` stands for each element of a list. */
const valuesAt = (value: unknown, steps: readonly string[]): readonly unknown[] => {
  const [step, ...others] = steps
  if (step === undefined) return [value]
  if (step !== '*') return valuesAt(memberOf(value, step.replaceAll('~1', '/').replaceAll('~0', '~')), others)
  return Array.isArray(value) ? value.flatMap((one) => valuesAt(one, others)) : [undefined]
}

/** Names that the id of an item has in responses: that of the parameter, its last word, `id`, `name`. */
const idNames = (parameter: string): readonly string[] => {
  const words = parameter.split(/[_-]|(?<=[a-z\d])(?=[A-Z])/)
  const last = words.at(-1) ?? ''
  return [...new Set([parameter, last, last.toLowerCase(), 'id', 'name'])]
}

const mostMembers = 128

/**
 * The ids of the items in a response; undefined when they are not all known. `parameter`: the name that paths give the id.
 */
export const memberIds = (
  content: Buffer,
  pointer: string,
  parameter: string,
): readonly string[] | undefined => {
  const response = parsedJson(content.toString())
  if (response === undefined) return undefined
  const values = valuesAt(response, pointer.split('/').slice(1))
  const names = idNames(parameter)
  const ids = values
    .filter((value) => value !== null)
    .map((value) => (isMember(value) ? value : names.map((name) => memberOf(value, name)).find(isMember)))
  return ids.length > mostMembers || ids.includes(undefined) ? undefined : ids.map(String)
}
