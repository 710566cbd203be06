import { type FieldLines, fieldValue } from '../http/fields.ts'
import type { ItemAnswer } from './item.ts'
import { itemError } from './item-error.ts'

/** Fields that WordPress shows with an item, in its order; Retry-After only comes with the gateway's own errors. */
const shownFields: readonly string[] = [
  'X-WP-Total',
  'X-WP-TotalPages',
  'Link',
  'Location',
  'Allow',
  'Retry-After',
]

/** Every answer of WordPress links to the API itself; the envelope of an item does not. */
const isApiLink = (link: string): boolean => link.includes('rel="https://api.w.org/"')

const headersJson = (fields: FieldLines): string => {
  const shown: Record<string, string> = {}
  for (const name of shownFields) {
    const value = fieldValue(fields, name)
    if (value !== undefined && !(name === 'Link' && isApiLink(value))) shown[name] = value
  }
  // PHP writes an empty map as an empty list, and clients have learned to expect that.
  return Object.keys(shown).length === 0 ? '[]' : JSON.stringify(shown)
}

const byteOrderMark = Buffer.from([0xef, 0xbb, 0xbf])

const isJson = (content: Buffer): boolean => {
  try {
    JSON.parse(content.toString())
    return true
  } catch {
    return false
  }
}

const part = (body: Buffer, status: number, headers: string): Buffer =>
  Buffer.concat([Buffer.from('{"body":'), body, Buffer.from(`,"status":${status},"headers":${headers}}`)])

/** `{"body":…,"status":…,"headers":…}` of an answer, its JSON copied byte for byte, so that no number changes. */
export const answeredPart = ({ status, fields, content }: ItemAnswer): Buffer => {
  const marked = content.subarray(0, 3).equals(byteOrderMark)
  const text = marked ? content.subarray(3) : content
  if (text.length === 0) return part(Buffer.from('null'), status, headersJson(fields))
  if (isJson(text)) return part(text, status, headersJson(fields))
  return madePart(itemError('not_json', status >= 400 ? status : undefined))
}

/** The same for an answer that the gateway made. */
export const madePart = (made: {
  readonly status: number
  readonly body: unknown
  readonly fields: FieldLines
}): Buffer => part(Buffer.from(JSON.stringify(made.body) ?? 'null'), made.status, headersJson(made.fields))

/** Place of an item that was valid in a batch that failed as a whole. */
export const nullPart: Buffer = Buffer.from('null')

/** The whole answer; `failed` has no other value than this one, and is absent otherwise. */
export const envelopeOf = (parts: readonly Buffer[], failed: 'validation' | undefined): Buffer => {
  const pieces: Buffer[] = [
    Buffer.from(failed === undefined ? '{"responses":[' : '{"failed":"validation","responses":['),
  ]
  for (const [index, piece] of parts.entries()) {
    if (index > 0) pieces.push(Buffer.from(','))
    pieces.push(piece)
  }
  pieces.push(Buffer.from(']}'))
  return Buffer.concat(pieces)
}
