import type { ArgumentSchema, JsonTypeName } from '../../contracts/row.ts'
import { asList, holds, isContainer, memberOf, namesOf, PhpArray } from '../canonical/php-array.ts'
import { booleanOf, numberOf, toInteger, typeFor } from './coerce-scalar.ts'

/** Resolves `oneOf` and `anyOf` of a value that was checked before. Handed in by whoever can check. */
export type Choose = (value: unknown, schema: ArgumentSchema) => ArgumentSchema | undefined

const chooseNone: Choose = () => undefined

/** A record without a prototype: names come from callers. */
const record = (): Record<string, unknown> => Object.create(null) as Record<string, unknown>

/** Brackets and JSON alike as plain arrays and records, for values that no schema describes. */
export const plainValue = (value: unknown): unknown => {
  if (!(value instanceof PhpArray)) return value
  const plain = record()
  for (const [key, member] of value) plain[key] = plainValue(member)
  return plain
}

const sanitiseArray = (value: unknown, schema: ArgumentSchema, choose: Choose): unknown[] => {
  const list = asList(value) ?? []
  const { items } = schema
  return items === undefined ? list.map(plainValue) : list.map((item) => sanitiseValue(item, items, choose))
}

const hasNoWord = (value: object, { additionalProperties, properties = {} }: ArgumentSchema): boolean =>
  typeof additionalProperties !== 'object' &&
  additionalProperties !== false &&
  !Object.keys(properties).some((name) => holds(value, name))

const sanitiseObject = (value: unknown, schema: ArgumentSchema, choose: Choose): unknown => {
  // A list that an alternative already made is an object too in PHP; it stays what it is.
  if (Array.isArray(value) && schema.properties === undefined) return value
  // As it came, where the schema has no word on any member: a copy of a hundred thousand takes long.
  if (!(value instanceof Map) && isContainer(value) && hasNoWord(value, schema)) return value
  const typed = record()
  if (!isContainer(value)) return typed
  for (const name of namesOf(value)) {
    const member = memberOf(value, name)
    const property =
      schema.properties !== undefined && Object.hasOwn(schema.properties, name)
        ? schema.properties[name]
        : schema.additionalProperties
    if (property === false) continue
    typed[name] = typeof property === 'object' ? sanitiseValue(member, property, choose) : plainValue(member)
  }
  return typed
}

/** The value as the given type; it must have been checked before. */
export const sanitiseTyped = (
  value: unknown,
  schema: ArgumentSchema,
  type: JsonTypeName,
  choose: Choose = chooseNone,
): unknown => {
  switch (type) {
    case 'integer':
      return toInteger(typeof value === 'number' ? value : String(value))
    case 'number':
      return numberOf(value) ?? 0
    case 'boolean':
      return booleanOf(value) === true
    case 'array':
      return sanitiseArray(value, schema, choose)
    case 'object':
      return sanitiseObject(value, schema, choose)
    case 'null':
      return null
    case 'string':
      return value
    default:
      // A discovery document may name a type that there is not.
      return plainValue(value)
  }
}

/** The typed value of a checked argument: integers, booleans, lists and records instead of text. Text itself is left as it is. */
export function sanitiseValue(value: unknown, schema: ArgumentSchema, choose: Choose): unknown {
  let current = value
  let declared = schema.type
  if (schema.oneOf !== undefined || schema.anyOf !== undefined) {
    const chosen = choose(value, schema)
    if (chosen !== undefined) {
      declared = declared ?? chosen.type
      current = sanitiseValue(value, chosen, choose)
    }
  }
  const type = typeFor(current, declared)
  return type === undefined ? plainValue(current) : sanitiseTyped(current, schema, type, choose)
}
