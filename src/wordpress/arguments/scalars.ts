import { isIPv6 } from 'node:net'
import { ownMember } from '../../http/json-text.ts'
import type { JsonTypeName } from '../../service/row.ts'
import { asList, isContainer, maxInt64, minInt64 } from './php-query.ts'

// PHP's numeric strings (is_numeric): white space around, a sign, a fraction, an exponent; no hexadecimal, no INF.
const numericText = /^[ \t\n\v\f\r]*[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?[ \t\n\v\f\r]*$/
const integerText = /^[ \t\n\v\f\r]*([+-]?)(\d+)[ \t\n\v\f\r]*$/
const shortDigits = /^[1-9]\d{0,14}$/

/** The number that PHP makes of the value; undefined when it is not numeric. */
export const numberOf = (value: unknown): number | undefined => {
  if (typeof value === 'number') return value
  if (typeof value !== 'string') return undefined
  return shortDigits.test(value) || numericText.test(value) ? Number(value) : undefined
}

/** Whether the value stands for an integer: `2.0`, ` 2` and `1e1` do, `2.5` and '' do not. */
export const isIntegral = (value: unknown): boolean => {
  const number = numberOf(value)
  return number !== undefined && (Number.isInteger(number) || Math.abs(number) === Number.POSITIVE_INFINITY)
}

const saturated = (value: bigint): number | string => {
  if (value > maxInt64) return String(maxInt64)
  if (value < minInt64) return String(minInt64)
  const number = Number(value)
  return Number.isSafeInteger(number) ? number : String(value)
}

/** Digits without leading zeros, at most twenty: that is beyond 64 bits, and a BigInt of a million digits takes long. */
const significant = (digits: string): string => {
  let start = 0
  while (start < digits.length - 1 && digits.charCodeAt(start) === 48) start += 1
  return digits.slice(start, start + 20)
}

/**
 * The integer that PHP's cast makes of an integral value: a number up to 2^53, its exact decimal text up to 64 bits, the bound
 * beyond, and 0 for infinity.
 */
export const toInteger = (value: string | number): number | string => {
  if (typeof value === 'string') {
    if (shortDigits.test(value)) return Number(value)
    const [, sign, digits] = integerText.exec(value) ?? []
    if (digits !== undefined) return saturated(BigInt((sign === '-' ? '-' : '') + significant(digits)))
  }
  const number = Number(value)
  // The usual case: a BigInt for each of half a million values would take long. -0 becomes 0.
  if (Number.isSafeInteger(number)) return number === 0 ? 0 : number
  if (!Number.isFinite(number)) return 0
  return saturated(BigInt(Math.trunc(number)))
}

const booleanWords: Readonly<Record<string, boolean>> = { true: true, false: false, 1: true, 0: false }

/** The boolean that a value stands for (`true`, `false` in any case, 0, 1); undefined for anything else. */
export const booleanOf = (value: unknown): boolean | undefined => {
  if (typeof value === 'boolean') return value
  if (typeof value === 'number') return value === 0 || value === 1 ? value === 1 : undefined
  if (typeof value !== 'string' || value.length > 5) return undefined
  return ownMember(booleanWords, value.toLowerCase())
}

const accepts: Readonly<Record<JsonTypeName, (value: unknown) => boolean>> = {
  array: (value) => asList(value) !== undefined,
  object: (value) => value === '' || isContainer(value),
  integer: isIntegral,
  number: (value) => numberOf(value) !== undefined,
  boolean: (value) => booleanOf(value) !== undefined,
  string: (value) => typeof value === 'string',
  null: (value) => value === null,
}

/** Of a union, the first type that accepts the value; '' is a string wherever a string is allowed. */
const bestType = (value: unknown, types: readonly JsonTypeName[]): JsonTypeName | undefined => {
  if (value === '' && types.includes('string')) return 'string'
  // A schema from a discovery document may name types that do not exist.
  return types.find((type) => Object.hasOwn(accepts, type) && accepts[type](value))
}

/** The type of the value under a schema; undefined when no type of a union accepts it or the schema names none. */
export const typeFor = (
  value: unknown,
  type: JsonTypeName | readonly JsonTypeName[] | undefined,
): JsonTypeName | undefined => (typeof type === 'string' || type === undefined ? type : bestType(value, type))

/** The value as the given type; it must have been checked before. Text, and what has no scalar type, stays as it is. */
export const scalarOf = (value: unknown, type: JsonTypeName): unknown => {
  switch (type) {
    case 'integer':
      return toInteger(typeof value === 'number' ? value : String(value))
    case 'number':
      return numberOf(value) ?? 0
    case 'boolean':
      return booleanOf(value) === true
    case 'null':
      return null
    default:
      return value
  }
}

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
  const dateTime = parseDateTime(text)
  if (dateTime === undefined) return text
  if (!dateTime.hasZone) return dateTime.wall
  const iso = new Date(dateTime.time).toISOString()
  // Years outside 0000–9999 have no four-digit spelling that WordPress reads.
  return iso.length === 24 ? `${iso.slice(0, 19)}Z` : dateTime.wall + dateTime.zone
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

/** Longer values are left to the upstream's own check. */
const maxTextLength = 4096

type Token = { readonly kind: 'atom' | 'start' | 'end'; readonly quantifier: string }

const tokenPattern =
  /(\^)|(\$)|(?:\\[dwsDWS]|\\[^A-Za-z0-9]|\[\^?(?:\\.|[^\]\\])+\]|[^\\[\](){}|*+?.^$]|\.)(\*|\+|\?|\{\d{1,3}\})?(?![*+?{])/y

/**
 * The pattern as a sequence of atoms; undefined when it has groups, alternatives, or anything else that can make a matcher
 * backtrack.
 */
const tokensOf = (pattern: string): Token[] | undefined => {
  const tokens: Token[] = []
  tokenPattern.lastIndex = 0
  while (tokenPattern.lastIndex < pattern.length) {
    const match = tokenPattern.exec(pattern)
    if (match === null) return undefined
    const kind = match[1] !== undefined ? 'start' : match[2] !== undefined ? 'end' : 'atom'
    tokens.push({ kind, quantifier: match[3] ?? '' })
  }
  return tokens
}

/**
 * Whether one pass over the text is enough: variable length only in the last atom, and a `$` behind it only when a `^` anchors
 * the start (an unanchored `a+$` is tried from every position, which is quadratic).
 */
const isLinear = (tokens: readonly Token[]): boolean => {
  const anchored = tokens[0]?.kind === 'start'
  const body = anchored ? tokens.slice(1) : tokens
  const ended = body.at(-1)?.kind === 'end'
  const atoms = ended ? body.slice(0, -1) : body
  if (atoms.some((token) => token.kind !== 'atom')) return false
  const variable = atoms.findIndex((token) => '*+?'.includes(token.quantifier || ' '))
  if (variable >= 0 && variable !== atoms.length - 1) return false
  return variable < 0 || anchored || !ended
}

/** Whether a text contains a match; undefined leaves the check to the upstream. */
type PatternCheck = (text: string) => boolean | undefined

const undecided: PatternCheck = () => undefined

/**
 * A check for the pattern of a schema, possibly from an upstream's discovery document. Only patterns that cannot backtrack run
 * here; all others are left to the upstream, which checks the same pattern. Not RE2: to search a text it builds an automaton
 * of up to 8 MiB for each pattern, without a setting for that bound.
 */
export const compilePattern = (pattern: string): PatternCheck => {
  const tokens = pattern.length > 512 ? undefined : tokensOf(pattern)
  if (tokens === undefined || !isLinear(tokens)) return undecided
  // Escaped punctuation (`\%`) is an error in JavaScript's u mode and meaningless without it.
  const expression = new RegExp(pattern)
  return (text) => (text.length > maxTextLength ? undefined : expression.test(text))
}
