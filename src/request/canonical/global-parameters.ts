import { distinct, sortedSet } from '../validation/argument-rules.ts'
import { encodeQueryText } from './percent.ts'
import { isContainer, isUnreadable, type PhpValue, splitList, valuesOf } from './php-array.ts'

/** What a parameter that every route knows means, and its canonical spelling; `dropped` = it means nothing. */
type GlobalReading =
  | { readonly kind: 'read'; readonly value: unknown; readonly spelling: string }
  | { readonly kind: 'dropped' }
  | { readonly kind: 'refused' }

type Reader = (name: string, value: PhpValue) => GlobalReading

const dropped: GlobalReading = { kind: 'dropped' }
const refused: GlobalReading = { kind: 'refused' }

const texts = (value: PhpValue): string[] | undefined => {
  if (isUnreadable(value)) return undefined
  if (typeof value === 'string') return splitList(value)
  const members = valuesOf(value).filter((member) => !isContainer(member))
  return members.some(isUnreadable) ? undefined : (members as string[])
}

/** One element of a list with commas or spaces: what `splitList` gives back as it is. */
const inList = /^[^ \t\n\v\f\r,]+$/

/** Commas where they say the same as brackets, brackets elsewhere: `_embed=1` is not the list of the relation "1". */
const spellList = (name: string, list: readonly string[], misread: ReadonlySet<string>): string => {
  const csv = list.join(',')
  const safe = !misread.has(csv) && list.every((item) => inList.test(item))
  if (safe) return `${name}=${encodeQueryText(csv)}`
  return list.map((item) => `${name}%5B%5D=${encodeQueryText(item)}`).join('&')
}

const nothingMisread: ReadonlySet<string> = new Set()

const isPartOf = (part: string, whole: string): boolean => part.startsWith(`${whole}.`)

/**
 * A field swallows its parts (`title` and `title.rendered` is `title`), and their order means nothing, with one exception:
 * WordPress stops reading where a part follows its whole, so that such a list means only what stands before. It is left as it is.
 */
const fieldSet = (fields: readonly string[]): readonly string[] => {
  if (!fields.some((field) => field.includes('.'))) return sortedSet(fields) as string[]
  const cutShort = fields.some((part, at) => fields.slice(0, at).some((whole) => isPartOf(part, whole)))
  if (cutShort) return fields
  const kept = fields.filter((part) => !fields.some((whole) => isPartOf(part, whole)))
  return sortedSet(kept) as string[]
}

const readFields: Reader = (name, value) => {
  const list = texts(value)
  if (list === undefined) return refused
  const trimmed = list.map((field) => field.trim())
  if (trimmed.length === 0) return dropped
  // Long lists are compared pairwise; no response has this many fields.
  const fields = trimmed.length > 64 ? (distinct(trimmed) as string[]) : fieldSet(trimmed)
  return { kind: 'read', value: fields, spelling: spellList(name, fields, nothingMisread) }
}

const embedsAll: ReadonlySet<string> = new Set(['', '0', '1', 'true'])

/** Empty, 0, 1 and true all ask for every relation; anything else is a list of relations. */
const readEmbed: Reader = (name, value) => {
  const list = texts(value)
  if (list === undefined) return refused
  const everything = typeof value === 'string' && (embedsAll.has(value) || list.length === 0)
  if (everything || list.length === 0) return { kind: 'read', value: true, spelling: `${name}=1` }
  const relations = sortedSet(list) as string[]
  return { kind: 'read', value: relations, spelling: spellList(name, relations, embedsAll) }
}

/** Being there is all that counts: `_envelope=0` asks for an envelope too. */
const readSwitch: Reader = (name) => ({ kind: 'read', value: true, spelling: `${name}=1` })

/** Only `user` has an effect (texts in the language of the caller). */
const readLocale: Reader = (name, value) =>
  value === 'user' ? { kind: 'read', value, spelling: `${name}=user` } : dropped

/** Kept and keyed: the answer is JavaScript that calls this function. The caller checks the name. */
const readText: Reader = (name, value) => {
  if (typeof value !== 'string') return refused
  return { kind: 'read', value, spelling: `${name}=${encodeQueryText(value)}` }
}

const readCallback: Reader = (name, value) =>
  value === '' || value === '0' ? dropped : readText(name, value)

/** Parameters that WordPress understands on every route. `_method` and `rest_route` are not among them: they never pass. */
export const globalParameters: ReadonlyMap<string, Reader> = new Map([
  ['_embed', readEmbed],
  ['_envelope', readSwitch],
  ['_fields', readFields],
  ['_jsonp', readCallback],
  ['_locale', readLocale],
  ['_pretty', readSwitch],
  ['_wpnonce', readText],
])

const identifier = /^[\w.]+$/

/** WordPress takes letters, digits, `_` and `.` as a callback's name, and looks at it before anything else. */
export const hasInvalidCallback = (query: ReadonlyMap<string, PhpValue>): boolean => {
  const value = query.get('_jsonp')
  if (value === undefined || value === '' || value === '0') return false
  return typeof value !== 'string' || !identifier.test(value)
}

/** They change what a request means altogether; the caller of the validator has understood or refused them, and none goes on. */
export const neverForwarded: ReadonlySet<string> = new Set(['_method', 'rest_route'])
