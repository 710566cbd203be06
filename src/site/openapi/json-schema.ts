import type { ArgumentSchema, Arguments } from '../../contracts/row.ts'
import type { JsonObject } from '../../http/json-text.ts'

const mapValues = (
  map: Arguments,
  translate: (schema: ArgumentSchema) => JsonObject,
): Record<string, JsonObject> =>
  Object.fromEntries(Object.entries(map).map(([name, schema]) => [name, translate(schema)]))

/** Required names: members marked so (draft 3) and names that the object lists (draft 4). */
const requiredNames = (properties: Arguments, required: ArgumentSchema['required']): readonly string[] => {
  const own = Object.entries(properties).filter(([, schema]) => schema.required === true)
  return [...new Set([...own.map(([name]) => name), ...(Array.isArray(required) ? required : [])])]
}

/** In draft 4 a boolean beside the bound makes it exclusive; in 2020-12 the exclusive bound stands alone. */
const bounds = ({ minimum, maximum, exclusiveMinimum, exclusiveMaximum }: ArgumentSchema): JsonObject => ({
  ...(minimum !== undefined && { [exclusiveMinimum === true ? 'exclusiveMinimum' : 'minimum']: minimum }),
  ...(maximum !== undefined && { [exclusiveMaximum === true ? 'exclusiveMaximum' : 'maximum']: maximum }),
})

/** Patterns are PHP's; what JavaScript cannot read would make the whole schema useless to validators. */
const patternOf = (pattern: string): JsonObject => {
  try {
    new RegExp(pattern, 'u')
    return { pattern }
  } catch {
    return { 'x-php-pattern': pattern }
  }
}

const parts = ({ properties, items, additionalProperties, oneOf, anyOf }: ArgumentSchema): JsonObject => ({
  ...(properties && { properties: mapValues(properties, jsonSchema) }),
  ...(items && { items: jsonSchema(items) }),
  ...(additionalProperties !== undefined && {
    additionalProperties:
      typeof additionalProperties === 'boolean' ? additionalProperties : jsonSchema(additionalProperties),
  }),
  ...(oneOf && { oneOf: oneOf.map(jsonSchema) }),
  ...(anyOf && { anyOf: anyOf.map(jsonSchema) }),
})

/** A schema in WordPress's dialect as JSON Schema 2020-12, which OpenAPI 3.1 uses. */
export const jsonSchema = (schema: ArgumentSchema): JsonObject => {
  const { type, title, description, format, pattern, readonly, context, properties, required } = schema
  const { enum: values, default: preset, minLength, maxLength, minItems, maxItems, uniqueItems } = schema
  const { minProperties, maxProperties } = schema
  const given = { type, title, description, format, enum: values, default: preset }
  const sizes = { minLength, maxLength, minItems, maxItems, uniqueItems, minProperties, maxProperties }
  const names = requiredNames(properties ?? {}, required)
  return {
    ...Object.fromEntries(Object.entries({ ...given, ...sizes }).filter(([, value]) => value !== undefined)),
    ...bounds(schema),
    ...(pattern !== undefined && patternOf(pattern)),
    ...parts(schema),
    ...(names.length > 0 && { required: names }),
    ...(readonly === true && { readOnly: true }),
    ...(context && { 'x-context': context }),
  }
}

/** The content of a request whose members are these arguments. */
export const objectSchema = (members: Arguments): JsonObject =>
  jsonSchema({ type: 'object', properties: members })
