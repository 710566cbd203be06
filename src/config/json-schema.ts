import * as z from 'zod'
import { isJsonObject } from '../http/json-text.ts'
import { configShape } from './schema/shape.ts'

/** JSON Schema (2020-12) as plain data. */
export type JsonSchema = { readonly [keyword: string]: unknown }

/** A reference to the environment; the loader checks the value that it is replaced by. */
const reference = { type: 'string', pattern: String.raw`\$\{[A-Za-z_]` } as const

const isLeafWithRules = (schema: JsonSchema): boolean =>
  ['integer', 'number', 'boolean'].includes(String(schema['type'])) ||
  (schema['type'] === 'string' && (schema['enum'] !== undefined || schema['pattern'] !== undefined))

/** Allows a reference to the environment for every checked value, so that editors accept `'${PORT:-8080}'`. */
const withReferences = (schema: JsonSchema): JsonSchema => {
  if (isLeafWithRules(schema)) {
    const { default: fallback, description, ...rules } = schema
    return {
      ...(description === undefined ? {} : { description }),
      ...(fallback === undefined ? {} : { default: fallback }),
      anyOf: [rules, reference],
    }
  }
  const entries = Object.entries(schema).map(([keyword, value]) => {
    if (keyword === 'default' || keyword === 'propertyNames') return [keyword, value]
    if (Array.isArray(value))
      return [keyword, value.map((item) => (isJsonObject(item) ? withReferences(item) : item))]
    return [keyword, isJsonObject(value) ? withReferences(value) : value]
  })
  return Object.fromEntries(entries)
}

/** The JSON Schema of the configuration file. */
export const configJsonSchema = (): JsonSchema => {
  const { $schema, ...schema } = z.toJSONSchema(configShape, { io: 'input', unrepresentable: 'any' })
  return { $schema, title: 'Trellis configuration', ...withReferences(schema) }
}

const keywordSchema = (schema: JsonSchema, keyword: string): JsonSchema | undefined => {
  const value = schema[keyword]
  return isJsonObject(value) ? value : undefined
}

/** The alternative for the `contract` of the value. */
const alternativeFor = (schema: JsonSchema, value: unknown): JsonSchema => {
  const alternatives = schema['oneOf']
  if (!Array.isArray(alternatives) || !isJsonObject(value)) return schema
  const match = alternatives.filter(isJsonObject).find((alternative) => {
    const properties = keywordSchema(alternative, 'properties')
    return properties !== undefined && keywordSchema(properties, 'contract')?.['const'] === value['contract']
  })
  return match ?? schema
}

/** Keys that the schema allows at a path of a value; none where the path leaves the schema. */
export const knownKeys = (
  schema: JsonSchema,
  value: unknown,
  path: readonly (string | number)[],
): string[] => {
  const here = alternativeFor(schema, value)
  const [step, ...rest] = path
  const properties = keywordSchema(here, 'properties')
  if (step === undefined) return Object.keys(properties ?? {})
  const next =
    typeof step === 'number'
      ? keywordSchema(here, 'items')
      : (keywordSchema(properties ?? {}, step) ?? keywordSchema(here, 'additionalProperties'))
  if (next === undefined || typeof value !== 'object' || value === null) return []
  return knownKeys(next, (value as Record<string | number, unknown>)[step], rest)
}
