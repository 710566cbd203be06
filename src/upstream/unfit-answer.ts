import { type FieldLines, fieldValue, hasField } from '../http/fields.ts'

type Asked = { readonly headers: FieldLines }

const conditions: ReadonlySet<string> = new Set(['if-none-match', 'if-modified-since'])

/**
 * Why a head that is HTTP is no answer to what was asked; undefined when it is one. Passed on it would mislead the client,
 * or be kept for others as something that it is not.
 */
export const unfitAnswer = (asked: Asked, status: number, fields: FieldLines): string | undefined => {
  // RFC 9110 §15: three digits, of which the first is 1 to 5.
  if (status < 200 || status > 599) return 'an invalid status'
  // Chunks are undone by the HTTP client; any other coding would be lost with its name (RFC 9112 §6.1).
  const coding = fieldValue(fields, 'transfer-encoding')
  if (coding !== undefined && coding.trim().toLowerCase() !== 'chunked') return 'an unknown transfer coding'
  if (status === 304 && !hasField(asked.headers, conditions)) return 'a 304 without a condition'
  // RFC 9110 §15.3.7: who does not know of ranges takes a part for the whole.
  if (status === 206 && fieldValue(asked.headers, 'range') === undefined)
    return 'a partial response to a request without Range'
  return undefined
}
