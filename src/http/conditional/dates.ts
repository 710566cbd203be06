import { memoize } from '../memo.ts'

/**
 * HTTP dates in their three forms (RFC 9110 §5.6.7). Strict on purpose: a date that only looks like one must not
 * make a response fresh. Letters compare without regard to case, as RFC 9111 §4.2 asks of caches.
 */
const months = ['jan', 'feb', 'mar', 'apr', 'may', 'jun', 'jul', 'aug', 'sep', 'oct', 'nov', 'dec']
const shortDay = '(?:mon|tue|wed|thu|fri|sat|sun)'
const longDay = '(?:monday|tuesday|wednesday|thursday|friday|saturday|sunday)'
const month = `(${months.join('|')})`
const time = '(\\d{2}):(\\d{2}):(\\d{2})'

// No zone but GMT: RFC 9111 §4.2 has a cache treat any other abbreviation as invalid.
const fixdate = new RegExp(`^${shortDay}, (\\d{2}) ${month} (\\d{4}) ${time} gmt$`, 'i')
const rfc850 = new RegExp(`^${longDay}, (\\d{2})-${month}-(\\d{2}) ${time} gmt$`, 'i')
const asctime = new RegExp(`^${shortDay} ${month} ([ \\d]\\d) ${time} (\\d{4})$`, 'i')

type Parts = {
  readonly year: number
  readonly month: string
  readonly day: number
  readonly clock: readonly (string | undefined)[]
}

const toMilliseconds = ({ year, month: name, day, clock }: Parts): number | undefined => {
  const [hour = NaN, minute = NaN, second = NaN] = clock.map(Number)
  // 60 is a leap second.
  if (hour > 23 || minute > 59 || second > 60) return undefined
  const monthIndex = months.indexOf(name.toLowerCase())
  const at = Date.UTC(year, monthIndex, day, hour, minute, second)
  // Years below 100 are twentieth-century years to Date.UTC; 31 February rolls over: neither is a date.
  return year < 100 || new Date(Date.UTC(year, monthIndex, day)).getUTCDate() !== day ? undefined : at
}

/** A two-digit year more than fifty years ahead is the most recent past year with those digits (RFC 9110 §5.6.7). */
const fullYear = (digits: number, now: number): number => {
  const thisYear = new Date(now).getUTCFullYear()
  const inThisCentury = thisYear - (thisYear % 100) + digits
  return inThisCentury > thisYear + 50 ? inThisCentury - 100 : inThisCentury
}

/** Upstreams answer many times in one second, and the Date of those responses is one text. */
const parseFixdate = memoize((value): number | undefined => {
  const [found, day, name = '', year, ...clock] = fixdate.exec(value) ?? []
  if (found === undefined) return undefined
  return toMilliseconds({ year: Number(year), month: name, day: Number(day), clock })
})

/** Milliseconds since 1970, or undefined when the value is not an HTTP date. `now` resolves two-digit years. */
export const parseHttpDate = (value: string, now: number): number | undefined => {
  const fixed = parseFixdate(value)
  if (fixed !== undefined) return fixed
  const old = rfc850.exec(value)
  if (old) {
    const [, day, name = '', digits, ...clock] = old
    return toMilliseconds({ year: fullYear(Number(digits), now), month: name, day: Number(day), clock })
  }
  const c = asctime.exec(value)
  if (c) {
    const [, name = '', day, hour, minute, second, year] = c
    return toMilliseconds({
      year: Number(year),
      month: name,
      day: Number(day),
      clock: [hour, minute, second],
    })
  }
  return undefined
}

/** A moment as IMF-fixdate. */
export const formatHttpDate = (milliseconds: number): string => new Date(milliseconds).toUTCString()
