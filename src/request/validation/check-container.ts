import type { ArgumentSchema } from '../../contracts/row.ts'
import { asList, entriesOf, holds, isContainer, memberOf, namesOf } from '../canonical/php-array.ts'
import { isIntegral, numberOf } from './coerce-scalar.ts'
import { countOf, type Issue, issueOf, wrongType } from './site-errors.ts'

/** Handed in, so that this file and the one that knows all types do not import each other. */
type Check = (value: unknown, schema: ArgumentSchema, path: string) => Issue | undefined

/** The same for equal values whatever the order of their keys, and different for `1` and `"1"`. */
const fingerprint = (value: unknown): string => {
  if (!isContainer(value)) return typeof value === 'string' ? JSON.stringify(value) : String(value)
  const parts = entriesOf(value).map(([key, member]) => `${JSON.stringify(key)}:${fingerprint(member)}`)
  return `{${parts.sort().join(',')}}`
}

/** True when no two elements are equal. */
const allDistinct = (list: readonly unknown[]): boolean => new Set(list.map(fingerprint)).size === list.length

/** Has no elements or properties of its own. */
const isLeaf = (schema: ArgumentSchema): boolean =>
  schema.items === undefined &&
  schema.properties === undefined &&
  schema.additionalProperties === undefined &&
  schema.oneOf === undefined &&
  schema.anyOf === undefined

/** What the type alone says is valid under a schema that says no more; undefined where it does say more. */
const plainlyValid = (schema: ArgumentSchema): ((value: unknown) => boolean) | undefined => {
  const { enum: allowed, format, minimum, maximum, minLength, maxLength, pattern } = schema
  const more = [allowed, format, minimum, maximum, minLength, maxLength, pattern]
  if (!isLeaf(schema) || more.some((one) => one !== undefined)) return undefined
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

const checkItems = (
  list: readonly unknown[],
  items: ArgumentSchema,
  path: string,
  check: Check,
): Issue | undefined => {
  const leaf = isLeaf(items)
  const isPlainlyValid = plainlyValid(items)
  for (let i = 0; i < list.length; i++) {
    if (isPlainlyValid?.(list[i]) === true) continue
    // The path of an element is only written when it is wrong: lists can be long.
    if (leaf && check(list[i], items, '') === undefined) continue
    const issue = check(list[i], items, `${path}[${i}]`)
    if (issue !== undefined) return issue
  }
  return undefined
}

/** WordPress looks at all before it counts. Far too many are refused in any case: only the reason may be another. */
const lookedAt = <One>(all: readonly One[], most: number | undefined): readonly One[] =>
  most === undefined || all.length <= most * 4 ? all : all.slice(0, most * 4)

/** Checks a list: its elements first, then how many there are, then whether they differ. */
export const checkArray = (
  value: unknown,
  schema: ArgumentSchema,
  path: string,
  check: Check,
): Issue | undefined => {
  const list = asList(value)
  if (list === undefined) return wrongType(path, 'array')
  const { items, minItems, maxItems } = schema
  const issue = items === undefined ? undefined : checkItems(lookedAt(list, maxItems), items, path, check)
  if (issue !== undefined) return issue
  if (minItems !== undefined && list.length < minItems) {
    return issueOf('rest_too_few_items', `${path} must contain at least ${countOf(minItems, 'item')}.`)
  }
  if (maxItems !== undefined && list.length > maxItems) {
    return issueOf('rest_too_many_items', `${path} must contain at most ${countOf(maxItems, 'item')}.`)
  }
  if (schema.uniqueItems === true && !allDistinct(list)) {
    return issueOf('rest_duplicate_items', `${path} has duplicate items.`)
  }
  return undefined
}

/** Draft 4 lists required names on the object, draft 3 marks each property; WordPress reads both, the list first. */
const readRequired = (schema: ArgumentSchema): readonly string[] => {
  const required: unknown = schema.required
  if (Array.isArray(required)) return required.map(String)
  return Object.entries(schema.properties ?? {}).flatMap(([name, property]) =>
    property.required === true ? [name] : [],
  )
}

const requiredOf = new WeakMap<ArgumentSchema, readonly string[]>()

/** Read once for each schema: a list can hold thousands of objects. */
const requiredNames = (schema: ArgumentSchema): readonly string[] => {
  const known = requiredOf.get(schema) ?? readRequired(schema)
  requiredOf.set(schema, known)
  return known
}

/** The members that the schema has a word on, in the order given: of others there may be a hundred thousand. */
const namesToCheck = (container: object, schema: ArgumentSchema): readonly string[] => {
  const { additionalProperties, maxProperties, properties = {} } = schema
  const names = () => lookedAt(namesOf(container), maxProperties)
  if (additionalProperties === false || typeof additionalProperties === 'object') return names()
  const known = Object.keys(properties).filter((name) => holds(container, name))
  if (known.length < 2) return known
  return names().filter((name) => Object.hasOwn(properties, name))
}

const checkProperty = (
  name: string,
  value: unknown,
  schema: ArgumentSchema,
  path: string,
  check: Check,
): Issue | undefined => {
  const known = schema.properties !== undefined && Object.hasOwn(schema.properties, name)
  if (known) return check(value, schema.properties?.[name] ?? {}, `${path}[${name}]`)
  const additional = schema.additionalProperties
  if (additional === false) {
    return issueOf('rest_additional_properties_forbidden', `${name} is not a valid property of Object.`)
  }
  return typeof additional === 'object' ? check(value, additional, `${path}[${name}]`) : undefined
}

const properties = (count: number): string => countOf(count, 'property', 'properties')

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

/** Checks an object: required properties first, then each property in the order given, then how many there are. */
export const checkObject = (
  value: unknown,
  schema: ArgumentSchema,
  path: string,
  check: Check,
): Issue | undefined => {
  if (value !== '' && !isContainer(value)) return wrongType(path, 'object')
  const container = value === '' ? nothingGiven : (value as object)
  for (const name of requiredNames(schema)) {
    if (!holds(container, name)) {
      return issueOf('rest_property_required', `${name} is a required property of ${path}.`)
    }
  }
  for (const name of namesToCheck(container, schema)) {
    const issue = checkProperty(name, memberOf(container, name), schema, path, check)
    if (issue !== undefined) return issue
  }
  return checkPropertyCount(container, schema, path)
}
