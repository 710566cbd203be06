import { countText } from '../../http/count-text.ts'
import { ownMember } from '../../http/json-text.ts'
import { memoizeByObject } from '../../http/memo.ts'
import type { ArgumentSchema, JsonTypeName } from '../../service/row.ts'
import { matchAnyOf, matchOneOf, type SchemaMatch } from './combining.ts'
import { asList, entriesOf, hasMember, isContainer, memberOf, namesOf, PhpArray } from './php-query.ts'
import { booleanOf, compilePattern, formats, isIntegral, numberOf, scalarOf, typeFor } from './scalars.ts'
import { type Issue, issueOf, listInWords, wrongType } from './site-errors.ts'

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

/** WordPress prints bounds as integers. */
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

const patternCheck = memoizeByObject((schema: ArgumentSchema) => compilePattern(schema.pattern ?? ''))

const surrogates = /[\ud800-\udbff]/

/** The length that mb_strlen counts. */
const characters = (text: string): number => (surrogates.test(text) ? [...text].length : text.length)

const checkLength = (text: string, schema: ArgumentSchema, path: string): Issue | undefined => {
  const { minLength, maxLength } = schema
  if (minLength !== undefined && characters(text) < minLength) {
    return issueOf('rest_too_short', `${path} must be at least ${countText(minLength, 'character')} long.`)
  }
  if (maxLength !== undefined && characters(text) > maxLength) {
    return issueOf('rest_too_long', `${path} must be at most ${countText(maxLength, 'character')} long.`)
  }
  return undefined
}

/** Checks type, length and pattern of a string. The pattern is not anchored: "a b" matches `[a-z]+`. */
const checkString = (value: unknown, schema: ArgumentSchema, path: string): Issue | undefined => {
  if (typeof value !== 'string') return wrongType(path, 'string')
  const tooLongOrShort = checkLength(value, schema, path)
  if (tooLongOrShort !== undefined) return tooLongOrShort
  if (schema.pattern !== undefined && patternCheck(schema)(value) === false) {
    return issueOf('rest_invalid_pattern', `${path} does not match pattern ${schema.pattern}.`)
  }
  return undefined
}

/** The same for equal values whatever the order of their keys, and different for `1` and `"1"`. */
const fingerprint = (value: unknown): string => {
  if (!isContainer(value)) return typeof value === 'string' ? JSON.stringify(value) : String(value)
  const parts = entriesOf(value).map(([key, member]) => `${JSON.stringify(key)}:${fingerprint(member)}`)
  return `{${parts.sort().join(',')}}`
}

const allDistinct = (list: readonly unknown[]): boolean => new Set(list.map(fingerprint)).size === list.length

const isLeaf = (schema: ArgumentSchema): boolean =>
  schema.items === undefined &&
  schema.properties === undefined &&
  schema.additionalProperties === undefined &&
  schema.oneOf === undefined &&
  schema.anyOf === undefined

/** The check for a schema with a type and no other keyword; undefined for any other schema. */
const plainlyValid = (schema: ArgumentSchema): ((value: unknown) => boolean) | undefined => {
  const { enum: values, format, minimum, maximum, minLength, maxLength, pattern } = schema
  const constraints = [values, format, minimum, maximum, minLength, maxLength, pattern]
  if (!isLeaf(schema) || constraints.some((constraint) => constraint !== undefined)) return undefined
  switch (schema.type) {
    case 'integer':
      return isIntegral
    case 'number':
      return (value) => numberOf(value) !== undefined
    case 'string':
      return (value) => typeof value === 'string'
    default:
      return undefined
  }
}

const checkItems = (list: readonly unknown[], items: ArgumentSchema, path: string): Issue | undefined => {
  const leaf = isLeaf(items)
  const isPlainlyValid = plainlyValid(items)
  for (let i = 0; i < list.length; i++) {
    if (isPlainlyValid?.(list[i]) === true) continue
    // Only the path of a wrong element is written: lists can be long.
    if (leaf && checkValue(list[i], items, '') === undefined) continue
    const issue = checkValue(list[i], items, `${path}[${i}]`)
    if (issue !== undefined) return issue
  }
  return undefined
}

/** WordPress checks all elements before it counts them. Far too many are refused in any case, perhaps for another reason. */
const bounded = <One>(items: readonly One[], max: number | undefined): readonly One[] =>
  max === undefined || items.length <= max * 4 ? items : items.slice(0, max * 4)

/** Checks a list: its elements, then their number, then whether they are unique. */
const checkArray = (value: unknown, schema: ArgumentSchema, path: string): Issue | undefined => {
  const list = asList(value)
  if (list === undefined) return wrongType(path, 'array')
  const { items, minItems, maxItems } = schema
  const issue = items === undefined ? undefined : checkItems(bounded(list, maxItems), items, path)
  if (issue !== undefined) return issue
  if (minItems !== undefined && list.length < minItems) {
    return issueOf('rest_too_few_items', `${path} must contain at least ${countText(minItems, 'item')}.`)
  }
  if (maxItems !== undefined && list.length > maxItems) {
    return issueOf('rest_too_many_items', `${path} must contain at most ${countText(maxItems, 'item')}.`)
  }
  if (schema.uniqueItems === true && !allDistinct(list)) {
    return issueOf('rest_duplicate_items', `${path} has duplicate items.`)
  }
  return undefined
}

/** Draft 4 lists required names on the object, draft 3 marks each property; WordPress reads both, the list first. */
const requiredNames = memoizeByObject((schema: ArgumentSchema): readonly string[] => {
  const required: unknown = schema.required
  if (Array.isArray(required)) return required.map(String)
  return Object.entries(schema.properties ?? {}).flatMap(([name, property]) =>
    property.required === true ? [name] : [],
  )
})

/** The members that the schema describes, in the order given: there may be a hundred thousand others. */
const namesToCheck = (container: object, schema: ArgumentSchema): readonly string[] => {
  const { additionalProperties, maxProperties, properties = {} } = schema
  const names = () => bounded(namesOf(container), maxProperties)
  if (additionalProperties === false || typeof additionalProperties === 'object') return names()
  const declaredNames = Object.keys(properties).filter((name) => hasMember(container, name))
  if (declaredNames.length < 2) return declaredNames
  return names().filter((name) => Object.hasOwn(properties, name))
}

const checkProperty = (
  name: string,
  value: unknown,
  schema: ArgumentSchema,
  path: string,
): Issue | undefined => {
  const { properties = {}, additionalProperties: additional } = schema
  const property = ownMember(properties, name)
  if (property !== undefined) return checkValue(value, property, `${path}[${name}]`)
  if (additional === false) {
    return issueOf('rest_additional_properties_forbidden', `${name} is not a valid property of Object.`)
  }
  return typeof additional === 'object' ? checkValue(value, additional, `${path}[${name}]`) : undefined
}

const properties = (count: number): string => countText(count, 'property', 'properties')

const checkPropertyCount = (container: object, schema: ArgumentSchema, path: string): Issue | undefined => {
  const { minProperties, maxProperties } = schema
  if (minProperties === undefined && maxProperties === undefined) return undefined
  const count = namesOf(container).length
  if (minProperties !== undefined && count < minProperties) {
    return issueOf('rest_too_few_properties', `${path} must contain at least ${properties(minProperties)}.`)
  }
  if (maxProperties !== undefined && count > maxProperties) {
    return issueOf('rest_too_many_properties', `${path} must contain at most ${properties(maxProperties)}.`)
  }
  return undefined
}

const nothingGiven = {}

/** Checks an object: required properties, then each property in the order given, then their number. */
const checkObject = (value: unknown, schema: ArgumentSchema, path: string): Issue | undefined => {
  if (value !== '' && !isContainer(value)) return wrongType(path, 'object')
  const container = value === '' ? nothingGiven : (value as object)
  for (const name of requiredNames(schema)) {
    if (!hasMember(container, name)) {
      return issueOf('rest_property_required', `${name} is a required property of ${path}.`)
    }
  }
  for (const name of namesToCheck(container, schema)) {
    const issue = checkProperty(name, memberOf(container, name), schema, path)
    if (issue !== undefined) return issue
  }
  return checkPropertyCount(container, schema, path)
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
      return checkArray(value, schema, path)
    case 'object':
      return checkObject(value, schema, path)
    case 'null':
      return value === null ? undefined : wrongType(path, 'null')
  }
}

/** A value in an error text; PHP prints true as 1 and false as nothing. */
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
  const values = schema.enum
  if (values === undefined || values.length === 0) return undefined
  // Lists and objects are never among the values of an enum.
  const isContainerType = type === 'array' || type === 'object'
  if (!isContainerType && values.includes(scalarOf(value, type) as string)) return undefined
  const words = values.map(enumWord)
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

const combine = (value: unknown, schema: ArgumentSchema, path: string): SchemaMatch | undefined => {
  if (schema.anyOf !== undefined) {
    const match = matchAnyOf(value, schema, schema.anyOf, path, checkValue)
    if (match.kind === 'unmatched' || schema.oneOf === undefined) return match
  }
  return schema.oneOf === undefined ? undefined : matchOneOf(value, schema, schema.oneOf, path, checkValue)
}

/** The schema of `oneOf` or `anyOf` that a value matches; undefined when there is no such keyword or no match. */
const chosenSchema = (value: unknown, schema: ArgumentSchema): ArgumentSchema | undefined => {
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
  const declaredType = schema.type ?? match?.schema.type
  if (declaredType === undefined) return undefined
  const type = typeFor(value, declaredType)
  if (type === undefined) return wrongType(path, [declaredType].flat().join(','))
  const issue = checkType(value, schema, path, type) ?? checkEnum(value, schema, path, type)
  return issue ?? (type === 'string' ? checkFormat(value, schema, path) : undefined)
}

/** An object without a prototype: clients choose the names. */
const emptyObject = (): Record<string, unknown> => Object.create(null) as Record<string, unknown>

/** Decoded brackets as plain objects, for values that no schema describes; other values as they are. */
export const plainValue = (value: unknown): unknown => {
  if (!(value instanceof PhpArray)) return value
  const plain = emptyObject()
  for (const [key, member] of value) plain[key] = plainValue(member)
  return plain
}

const sanitiseArray = (value: unknown, { items }: ArgumentSchema): unknown[] =>
  (asList(value) ?? []).map((item) => (items === undefined ? plainValue(item) : sanitiseValue(item, items)))

const leavesMembers = (value: object, { additionalProperties, properties = {} }: ArgumentSchema): boolean =>
  typeof additionalProperties !== 'object' &&
  additionalProperties !== false &&
  !Object.keys(properties).some((name) => hasMember(value, name))

const sanitiseObject = (value: unknown, schema: ArgumentSchema): unknown => {
  // A list that an alternative already made is an object too in PHP; it stays a list.
  if (Array.isArray(value) && schema.properties === undefined) return value
  // To copy an object of a hundred thousand members takes long.
  if (!(value instanceof Map) && isContainer(value) && leavesMembers(value, schema)) return value
  const typed = emptyObject()
  if (!isContainer(value)) return typed
  const { properties = {} } = schema
  for (const name of namesOf(value)) {
    const member = memberOf(value, name)
    const property = ownMember(properties, name) ?? schema.additionalProperties
    if (property === false) continue
    typed[name] = typeof property === 'object' ? sanitiseValue(member, property) : plainValue(member)
  }
  return typed
}

/** The typed value of a checked argument: integers, booleans, lists and objects instead of text. Text itself stays as it is. */
export function sanitiseValue(value: unknown, schema: ArgumentSchema): unknown {
  let current = value
  let declaredType = schema.type
  const alternative = chosenSchema(value, schema)
  if (alternative !== undefined) {
    declaredType = declaredType ?? alternative.type
    current = sanitiseValue(value, alternative)
  }
  const type = typeFor(current, declaredType)
  if (type === 'array') return sanitiseArray(current, schema)
  if (type === 'object') return sanitiseObject(current, schema)
  const plain = plainValue(current)
  return type === undefined ? plain : scalarOf(plain, type)
}
