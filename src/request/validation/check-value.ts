import type { ArgumentSchema, JsonTypeName } from '../../contracts/row.ts'
import { checkArray, checkObject } from './check-container.ts'
import { booleanOf, isIntegral, numberOf, typeFor } from './coerce-scalar.ts'
import { type Match, matchAnyOf, matchOneOf } from './combining.ts'
import { formats } from './formats.ts'
import { compilePattern, type PatternCheck } from './safe-pattern.ts'
import { sanitiseTyped } from './sanitise-value.ts'
import { countOf, type Issue, issueOf, listInWords, wrongType } from './site-errors.ts'

type Bounds = Pick<ArgumentSchema, 'minimum' | 'maximum' | 'exclusiveMinimum' | 'exclusiveMaximum'>

const belowMinimum = (value: number, schema: Bounds): boolean => {
  if (schema.minimum === undefined) return false
  return schema.exclusiveMinimum === true ? value <= schema.minimum : value < schema.minimum
}

const aboveMaximum = (value: number, schema: Bounds): boolean => {
  if (schema.maximum === undefined) return false
  return schema.exclusiveMaximum === true ? value >= schema.maximum : value > schema.maximum
}

const sides = (exclusive: boolean | undefined): string => (exclusive === true ? '(exclusive)' : '(inclusive)')

/** The text of a bound; WordPress prints bounds as integers. */
const boundsText = (schema: Bounds): string => {
  const low = schema.minimum === undefined ? undefined : Math.trunc(schema.minimum)
  const high = schema.maximum === undefined ? undefined : Math.trunc(schema.maximum)
  if (high === undefined)
    return `greater than ${schema.exclusiveMinimum === true ? '' : 'or equal to '}${low}`
  if (low === undefined) return `less than ${schema.exclusiveMaximum === true ? '' : 'or equal to '}${high}`
  return `between ${low} ${sides(schema.exclusiveMinimum)} and ${high} ${sides(schema.exclusiveMaximum)}`
}

/** Checks a number, or an integer: bounds come before wholeness, as WordPress reports them. */
const checkNumber = (
  value: unknown,
  schema: ArgumentSchema,
  path: string,
  type: 'integer' | 'number',
): Issue | undefined => {
  const number = numberOf(value)
  if (number === undefined) return wrongType(path, type)
  if (belowMinimum(number, schema) || aboveMaximum(number, schema)) {
    return issueOf('rest_out_of_bounds', `${path} must be ${boundsText(schema)}`)
  }
  return type === 'integer' && !isIntegral(value) ? wrongType(path, 'integer') : undefined
}

const compiled = new WeakMap<ArgumentSchema, PatternCheck>()

const patternCheck = (schema: ArgumentSchema, pattern: string): PatternCheck => {
  const known = compiled.get(schema)
  if (known !== undefined) return known
  const check = compilePattern(pattern)
  compiled.set(schema, check)
  return check
}

const surrogates = /[\ud800-\udbff]/

/** Length in characters, as mb_strlen counts. */
const characters = (text: string): number => (surrogates.test(text) ? [...text].length : text.length)

const checkLength = (text: string, schema: ArgumentSchema, path: string): Issue | undefined => {
  const { minLength, maxLength } = schema
  if (minLength !== undefined && characters(text) < minLength) {
    return issueOf('rest_too_short', `${path} must be at least ${countOf(minLength, 'character')} long.`)
  }
  if (maxLength !== undefined && characters(text) > maxLength) {
    return issueOf('rest_too_long', `${path} must be at most ${countOf(maxLength, 'character')} long.`)
  }
  return undefined
}

/** Checks type, length and pattern of a string. The pattern is not anchored: "a b" matches `[a-z]+`. */
const checkString = (value: unknown, schema: ArgumentSchema, path: string): Issue | undefined => {
  if (typeof value !== 'string') return wrongType(path, 'string')
  const tooLongOrShort = checkLength(value, schema, path)
  if (tooLongOrShort !== undefined) return tooLongOrShort
  if (schema.pattern !== undefined && patternCheck(schema, schema.pattern)(value) === false) {
    return issueOf('rest_invalid_pattern', `${path} does not match pattern ${schema.pattern}.`)
  }
  return undefined
}

const checkType = (
  value: unknown,
  schema: ArgumentSchema,
  path: string,
  type: JsonTypeName,
): Issue | undefined => {
  switch (type) {
    case 'string':
      return checkString(value, schema, path)
    case 'integer':
    case 'number':
      return checkNumber(value, schema, path, type)
    case 'boolean':
      return booleanOf(value) === undefined ? wrongType(path, 'boolean') : undefined
    case 'array':
      return checkArray(value, schema, path, checkValue)
    case 'object':
      return checkObject(value, schema, path, checkValue)
    case 'null':
      return value === null ? undefined : wrongType(path, 'null')
  }
}

/** The words an error lists; PHP prints true as 1 and false as nothing. */
const enumWord = (value: string | number | boolean | null): string => {
  if (value === null) return 'null'
  if (typeof value === 'boolean') return value ? '1' : ''
  return String(value)
}

/** The value is compared after its cast, and strictly: `1.0` is the integer 1, `Asc` is not `asc`. */
const checkEnum = (
  value: unknown,
  schema: ArgumentSchema,
  path: string,
  type: JsonTypeName,
): Issue | undefined => {
  const allowed = schema.enum
  if (allowed === undefined || allowed.length === 0) return undefined
  const typed = type === 'string' ? value : sanitiseTyped(value, schema, type)
  if (allowed.includes(typed as string)) return undefined
  const words = allowed.map(enumWord)
  return issueOf(
    'rest_not_in_enum',
    `${path} is not ${words.length === 1 ? '' : 'one of '}${listInWords(words)}.`,
  )
}

const checkFormat = (value: unknown, schema: ArgumentSchema, path: string): Issue | undefined => {
  const format = schema.format === undefined ? undefined : formats.get(schema.format)
  if (format === undefined || typeof value !== 'string' || format.accepts(value)) return undefined
  return issueOf(format.code, format.message(path))
}

const combine = (value: unknown, schema: ArgumentSchema, path: string): Match | undefined => {
  if (schema.anyOf !== undefined) {
    const match = matchAnyOf(value, schema, schema.anyOf, path, checkValue)
    if (match.kind === 'unmatched' || schema.oneOf === undefined) return match
  }
  return schema.oneOf === undefined ? undefined : matchOneOf(value, schema, schema.oneOf, path, checkValue)
}

/** The schema among `oneOf` or `anyOf` that a value belongs to; undefined when there is none to choose or the value fits none. */
export const chosenSchema = (value: unknown, schema: ArgumentSchema): ArgumentSchema | undefined => {
  const match = combine(value, schema, '')
  return match?.kind === 'matched' ? match.schema : undefined
}

/**
 * Checks a value against WordPress's dialect of JSON Schema; undefined means that it is valid. `path` names it in texts:
 * `requests[0][method]`.
 */
export function checkValue(value: unknown, schema: ArgumentSchema, path: string): Issue | undefined {
  const match = combine(value, schema, path)
  if (match?.kind === 'unmatched') return match.issue
  const declared = schema.type ?? match?.schema.type
  if (declared === undefined) return undefined
  const type = typeFor(value, declared)
  if (type === undefined) return wrongType(path, [declared].flat().join(','))
  const issue = checkType(value, schema, path, type) ?? checkEnum(value, schema, path, type)
  return issue ?? (type === 'string' ? checkFormat(value, schema, path) : undefined)
}
