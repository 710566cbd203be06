import { parseHttpDate } from '../http/dates.ts'
import { type FieldLines, fieldValue, withoutFields } from '../http/fields.ts'
import { endToEndFields } from '../http/hop-by-hop.ts'

const contentLength: ReadonlySet<string> = new Set(['content-length'])

/** What goes on to the client: end-to-end fields, and no length where there must be none (RFC 9110 §8.6). */
export const answerFields = (status: number, fields: FieldLines): string[] => {
  const kept = endToEndFields(fields)
  return status === 204 ? withoutFields(kept, contentLength) : kept
}

/** Field lines as text; field values are octets, kept one to one (RFC 9110 §5.5). */
export const fieldTexts = (raw: readonly (Buffer | string)[]): string[] =>
  raw.map((part) => (typeof part === 'string' ? part : part.toString('latin1')))

/** Retry-After in milliseconds from `nowMs` (epoch): a number of seconds or a date (RFC 9110 §10.2.3); undefined when absent or neither. */
export const retryAfterMs = (lines: FieldLines, nowMs: number): number | undefined => {
  const value = fieldValue(lines, 'retry-after')?.trim()
  if (value === undefined || value.length > 40) return undefined
  if (/^\d{1,9}$/.test(value)) return Number(value) * 1000
  const date = parseHttpDate(value, nowMs)
  return date === undefined ? undefined : Math.max(0, date - nowMs)
}
