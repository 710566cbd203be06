import { type FieldLines, fieldValue, hasField } from '../../http/fields.ts'

const conditions: ReadonlySet<string> = new Set(['if-none-match', 'if-modified-since'])

/**
 * Why a response head is no answer to the request, in words; undefined when it is one. Forwarded it would mislead the client, or be
 * stored for others as something that it is not.
 */
export const invalidResponse = (
  requestFields: FieldLines,
  status: number,
  fields: FieldLines,
): string | undefined => {
  // RFC 9110 §15: three digits, of which the first is 1 to 5.
  if (status < 200 || status > 599) return 'a status that is none'
  // The HTTP client decodes chunks; any other coding would be lost with its name (RFC 9112 §6.1).
  const coding = fieldValue(fields, 'transfer-encoding')
  if (coding !== undefined && coding.trim().toLowerCase() !== 'chunked') return 'an unknown transfer coding'
  if (status === 304 && !hasField(requestFields, conditions)) return 'a 304 without a condition'
  // RFC 9110 §15.3.7: a client that does not implement ranges takes a part for the whole.
  if (status === 206 && fieldValue(requestFields, 'range') === undefined)
    return 'a part that was not asked for'
  return undefined
}
