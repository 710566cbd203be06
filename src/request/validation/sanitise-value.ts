import type { ArgumentSchema } from '../../contracts/row.ts'
import { asList, hasMember, isContainer, memberOf, namesOf, PhpArray } from '../canonical/php-array.ts'
import { chosenSchema } from './check-value.ts'
import { scalarOf, typeFor } from './coerce-scalar.ts'

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

/** Whether the schema says nothing about any member. */
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
  for (const name of namesOf(value)) {
    const member = memberOf(value, name)
    const property =
      schema.properties !== undefined && Object.hasOwn(schema.properties, name)
        ? schema.properties[name]
        : schema.additionalProperties
    if (property === false) continue
    typed[name] = typeof property === 'object' ? sanitiseValue(member, property) : plainValue(member)
  }
  return typed
}

/** The typed value of a checked argument: integers, booleans, lists and objects instead of text. Text itself stays as it is. */
export function sanitiseValue(value: unknown, schema: ArgumentSchema): unknown {
  let current = value
  let declared = schema.type
  const chosen = chosenSchema(value, schema)
  if (chosen !== undefined) {
    declared = declared ?? chosen.type
    current = sanitiseValue(value, chosen)
  }
  const type = typeFor(current, declared)
  if (type === 'array') return sanitiseArray(current, schema)
  if (type === 'object') return sanitiseObject(current, schema)
  const plain = plainValue(current)
  return type === undefined ? plain : scalarOf(plain, type)
}
