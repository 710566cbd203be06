import type { ArgumentSchema, JsonTypeName } from '../contracts/row.ts'
import { typeFor } from './best-type.ts'
import { checkArray, checkObject } from './check-container.ts'
import { checkNumber } from './check-number.ts'
import { checkString } from './check-string.ts'
import { booleanOf } from './coerce-scalar.ts'
import { type Match, matchAnyOf, matchOneOf } from './combining.ts'
import { formats } from './formats.ts'
import { type Issue, issueOf, listInWords, wrongType } from './issue.ts'
import { sanitiseTyped } from './sanitise-value.ts'

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
