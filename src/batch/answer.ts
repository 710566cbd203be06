import { parsedJson } from '../http/json-text.ts'
import { type FieldLines, wordpressJson } from '../http/message.ts'
import { type Dialect, type ItemAnswer, itemError, shapedError } from './item.ts'

/** Fields that WordPress shows with an item, in its order; Retry-After is only in the gateway's own errors. */
const shownFields = ['X-WP-Total', 'X-WP-TotalPages', 'Link', 'Location', 'Allow', 'Retry-After'] as const

type ShownField = (typeof shownFields)[number]

const shownAs: ReadonlyMap<string, ShownField> = new Map(
  shownFields.flatMap((name) => [[name, name] as const, [name.toLowerCase(), name] as const]),
)

const shownLengths: ReadonlySet<number> = new Set(shownFields.map(({ length }) => length))

/** Most names differ in length already. */
const shownField = (name: string): ShownField | undefined =>
  shownLengths.has(name.length) ? (shownAs.get(name) ?? shownAs.get(name.toLowerCase())) : undefined

/** Every answer of WordPress links to the API itself; the envelope of an item does not. */
const isApiLink = (link: string): boolean => link.includes('rel="https://api.w.org/"')

const headersJson = (fields: FieldLines): string => {
  const found = new Map<ShownField, string>()
  for (let i = 0; i < fields.length; i += 2) {
    const name = shownField(fields[i] as string)
    if (name === undefined) continue
    const before = found.get(name)
    const value = fields[i + 1] as string
    found.set(name, before === undefined ? value : `${before}, ${value}`)
  }
  if (isApiLink(found.get('Link') ?? '')) found.delete('Link')
  // PHP writes an empty map as an empty list, and clients have learned to expect that.
  if (found.size === 0) return '[]'
  const members = shownFields.flatMap((name) => {
    const value = found.get(name)
    return value === undefined ? [] : `"${name}":${wordpressJson(value)}`
  })
  return `{${members.join(',')}}`
}

const byteOrderMark = Buffer.from([0xef, 0xbb, 0xbf])

/** One element of `responses`, in pieces that are joined once. */
export type Part = readonly Buffer[]

const bodyKey = Buffer.from('{"body":')

const part = (body: Buffer, status: number, headers: string): Part => [
  bodyKey,
  body,
  Buffer.from(`,"status":${status},"headers":${headers}}`),
]

/** `{"body":…,"status":…,"headers":…}` of an answer, its JSON copied byte for byte, so that no number changes. */
export const answeredPart = (
  { status, fields, content, isJson: isKnown }: ItemAnswer,
  dialect: Dialect,
): Part => {
  const marked = content.subarray(0, 3).equals(byteOrderMark)
  const text = marked ? content.subarray(3) : content
  if (text.length === 0) return part(Buffer.from('null'), status, headersJson(fields))
  if (isKnown === true || parsedJson(text.toString()) !== undefined)
    return part(text, status, headersJson(fields))
  return madePart(shapedError(dialect, itemError('not_json', status >= 400 ? status : undefined)))
}

/** The same for an answer that the gateway made. */
export const madePart = (made: {
  readonly status: number
  readonly body: unknown
  readonly fields: FieldLines
}): Part => part(Buffer.from(wordpressJson(made.body), 'latin1'), made.status, headersJson(made.fields))

/** Stands for a valid item in a batch that failed as a whole. */
export const nullPart: Part = [Buffer.from('null')]

/** The whole answer; `failed` has no other value than this one, and is absent otherwise. */
export const envelopeOf = (parts: readonly Part[], failed: 'validation' | undefined): Buffer => {
  const pieces: Buffer[] = [failed === undefined ? opening : failedOpening]
  for (const [index, part] of parts.entries()) {
    if (index > 0) pieces.push(comma)
    pieces.push(...part)
  }
  pieces.push(closing)
  return Buffer.concat(pieces)
}

const opening = Buffer.from('{"responses":[')
const failedOpening = Buffer.from('{"failed":"validation","responses":[')
const comma = Buffer.from(',')
const closing = Buffer.from(']}')
