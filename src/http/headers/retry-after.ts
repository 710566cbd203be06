import { parseHttpDate } from '../conditional/dates.ts'

/** Retry-After in milliseconds from `nowMs` (epoch): a number of seconds or a date (RFC 9110 §10.2.3); undefined when absent or neither. */
export const retryAfterMs = (header: string | undefined, nowMs: number): number | undefined => {
  const value = header?.trim()
  if (value === undefined || value.length > 40) return undefined
  if (/^\d{1,9}$/.test(value)) return Number(value) * 1000
  const date = parseHttpDate(value, nowMs)
  return date === undefined ? undefined : Math.max(0, date - nowMs)
}
