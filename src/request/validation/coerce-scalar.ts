import type { JsonTypeName } from '../../contracts/row.ts'
import { ownMember } from '../../http/json-text.ts'
import { asList, isContainer, maxInt64, minInt64 } from '../canonical/php-query.ts'

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
