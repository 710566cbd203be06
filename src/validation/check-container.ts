import type { ArgumentSchema } from '../contracts/row.ts'
import { countOf, type Issue, issueOf, wrongType } from './issue.ts'
import { asList, entriesOf, isContainer } from './php-array.ts'

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

const checkItems = (
  list: readonly unknown[],
  items: ArgumentSchema,
  path: string,
  check: Check,
): Issue | undefined => {
  const leaf = isLeaf(items)
  for (let i = 0; i < list.length; i++) {
    // The path of an element is only written when it is wrong: lists can be long.
    if (leaf && check(list[i], items, '') === undefined) continue
    const issue = check(list[i], items, `${path}[${i}]`)
    if (issue !== undefined) return issue
  }
  return undefined
}

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
  const issue = items === undefined ? undefined : checkItems(list, items, path, check)
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
const requiredNames = (schema: ArgumentSchema): readonly string[] => {
  const required: unknown = schema.required
  if (Array.isArray(required)) return required.map(String)
  return Object.entries(schema.properties ?? {}).flatMap(([name, property]) =>
    property.required === true ? [name] : [],
  )
}

const checkProperty = (
  [name, value]: readonly [string, unknown],
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

/** Checks an object: required properties first, then each property in the order given. */
export const checkObject = (
  value: unknown,
  schema: ArgumentSchema,
  path: string,
  check: Check,
): Issue | undefined => {
  if (value !== '' && !isContainer(value)) return wrongType(path, 'object')
  const entries = value === '' ? [] : entriesOf(value as object)
  for (const name of requiredNames(schema)) {
    if (!entries.some(([key]) => key === name)) {
      return issueOf('rest_property_required', `${name} is a required property of ${path}.`)
    }
  }
  for (const entry of entries) {
    const issue = checkProperty(entry, schema, path, check)
    if (issue !== undefined) return issue
  }
  return undefined
}
