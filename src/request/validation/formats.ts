import { isIPv6 } from 'node:net'

/** An instant or a wall-clock time as WordPress reads it. */
type DateTime = {
  /** Milliseconds since 1970, as if UTC when the text carries no zone. */
  readonly time: number
  readonly hasZone: boolean
  /** `YYYY-MM-DDThh:mm:ss` as written, without fraction and zone. */
  readonly wall: string
  readonly zone: string
}

const pattern = /^(\d{4})-(\d{2})-(\d{2})[Tt ](\d{2}):(\d{2}):(\d{2})(?:\.\d+)?(Z|[+-]\d{2}(?::\d{2})?)?\n?$/

const offsetMinutes = (zone: string): number | undefined => {
  if (zone === 'Z' || zone === '') return 0
  const minutes = zone.length > 3 ? Number(zone.slice(4)) : 0
  const hours = Number(zone.slice(1, 3))
  if (minutes > 59 || (zone.length > 3 && hours > 24)) return undefined
  return (zone[0] === '-' ? -1 : 1) * (hours * 60 + minutes)
}

/** PHP's bounds: it rolls the 31st of February and hour 24 over, and refuses month 13. */
const inRange = (month: number, day: number, hour: number, minute: number, second: number): boolean =>
  month <= 12 && day <= 31 && hour <= 24 && minute <= 59 && second <= 60

/** Date.UTC reads years below 100 as 19xx. */
const dayStart = (year: number, month: number, day: number): number =>
  year >= 100 ? Date.UTC(year, month - 1, day) : new Date(0).setUTCFullYear(year, month - 1, day)

/**
 * Reads a date-time; undefined where WordPress answers "Invalid date.", also for the epoch, whose timestamp 0 counts as false.
 */
export const parseDateTime = (text: string): DateTime | undefined => {
  const match = pattern.exec(text)
  if (match === null) return undefined
  const [, year, month, day, hour, minute, second, zone = ''] = match as unknown as readonly string[]
  if (!inRange(Number(month), Number(day), Number(hour), Number(minute), Number(second))) return undefined
  const offset = offsetMinutes(zone)
  if (offset === undefined) return undefined
  const minutes = Number(hour) * 60 + Number(minute) - offset
  const time = dayStart(Number(year), Number(month), Number(day)) + minutes * 60_000 + Number(second) * 1000
  if (time === 0) return undefined
  return { time, hasZone: zone !== '', wall: `${text.slice(0, 10)}T${text.slice(11, 19)}`, zone }
}

const canonicalForm =
  /^[1-9]\d{3}-(?:0[1-9]|1[0-2])-(?:0[1-9]|1\d|2[0-8])T(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\dZ$/

/**
 * The one spelling of a date-time: with a zone the instant in UTC, without one the wall-clock time, because the gateway does not
 * have the site's time zone. The fraction is dropped: WordPress compares whole seconds.
 */
export const canonicalDateTime = (text: string): string => {
  if (canonicalForm.test(text)) return text
  const parsed = parseDateTime(text)
  if (parsed === undefined) return text
  if (!parsed.hasZone) return parsed.wall
  const iso = new Date(parsed.time).toISOString()
  // Years outside 0000–9999 have no four-digit spelling that WordPress reads.
  return iso.length === 24 ? `${iso.slice(0, 19)}Z` : parsed.wall + parsed.zone
}

const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/
const hexColor = /^#(?:[A-Fa-f0-9]{3}|[A-Fa-f0-9]{6})$/
const byte = '(?:25[0-5]|2[0-4]\\d|[01]?\\d\\d?)'
const ipv4 = new RegExp(`^(?:${byte}\\.){3}${byte}$`)
const localPart = /^[a-zA-Z0-9!#$%&'*+/=?^_`{|}~.-]+$/
const domainLabel = /^[a-zA-Z0-9-]+$/

/** An e-mail address in WordPress: one @, a dotted domain, ASCII only; narrower than RFC 5322 and wider than DNS. */
const isEmail = (text: string): boolean => {
  const at = text.indexOf('@')
  if (text.length < 6 || at < 1 || !localPart.test(text.slice(0, at))) return false
  const labels = text.slice(at + 1).split('.')
  return (
    labels.length >= 2 &&
    labels.every((label) => domainLabel.test(label) && !label.startsWith('-') && !label.endsWith('-'))
  )
}

const isIp = (text: string): boolean => ipv4.test(text) || (isIPv6(text) && !text.includes('%'))

type FormatFacts = { readonly code: string; message(path: string): string; accepts(text: string): boolean }

/** Formats that WordPress checks. It only sanitises `uri`. */
export const formats: ReadonlyMap<string, FormatFacts> = new Map<string, FormatFacts>([
  [
    'hex-color',
    {
      code: 'rest_invalid_hex_color',
      message: () => 'Invalid hex color.',
      accepts: (text) => hexColor.test(text),
    },
  ],
  [
    'date-time',
    {
      code: 'rest_invalid_date',
      message: () => 'Invalid date.',
      accepts: (text) => parseDateTime(text) !== undefined,
    },
  ],
  ['email', { code: 'rest_invalid_email', message: () => 'Invalid email address.', accepts: isEmail }],
  ['ip', { code: 'rest_invalid_ip', message: (path) => `${path} is not a valid IP address.`, accepts: isIp }],
  [
    'uuid',
    {
      code: 'rest_invalid_uuid',
      message: (path) => `${path} is not a valid UUID.`,
      accepts: (text) => uuid.test(text),
    },
  ],
])
