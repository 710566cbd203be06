import type { JsonTypeName } from '../contracts/row.ts'
import { booleanOf, isIntegral, numberOf } from './coerce-scalar.ts'
import { asList, isContainer } from './php-array.ts'

const accepts: Readonly<Record<JsonTypeName, (value: unknown) => boolean>> = {
  array: (value) => asList(value) !== undefined,
  object: (value) => value === '' || isContainer(value),
  integer: isIntegral,
  number: (value) => numberOf(value) !== undefined,
  boolean: (value) => booleanOf(value) !== undefined,
  string: (value) => typeof value === 'string',
  null: (value) => value === null,
}

/** Of a union, the first type in its own order that takes the value; '' is a string wherever a string is allowed. */
const bestType = (value: unknown, types: readonly JsonTypeName[]): JsonTypeName | undefined => {
  if (value === '' && types.includes('string')) return 'string'
  // A schema from a discovery document may name types that there are not.
  return types.find((type) => Object.hasOwn(accepts, type) && accepts[type](value))
}

/** The one type to treat the value as, or undefined when a union has none for it or the schema names none. */
export const typeFor = (
  value: unknown,
  type: JsonTypeName | readonly JsonTypeName[] | undefined,
): JsonTypeName | undefined => (typeof type === 'string' || type === undefined ? type : bestType(value, type))
