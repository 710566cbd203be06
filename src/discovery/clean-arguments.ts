import type { ArgumentSchema, Arguments, JsonTypeName } from '../contracts/row.ts'
import { isObject, member } from './json.ts'

/** Far beyond what WordPress and its large plugins announce. */
const limits = {
  arguments: 256,
  depth: 8,
  options: 64,
  members: 1000,
  text: 2000,
  default: 4096,
  pattern: 512,
} as const

const typeNames: ReadonlySet<unknown> = new Set<JsonTypeName>([
  'string',
  'integer',
  'number',
  'boolean',
  'array',
  'object',
  'null',
])

type Reader = (value: unknown, depth: number) => unknown

const text =
  (longest: number): Reader =>
  (value) =>
    typeof value === 'string' && value.length <= longest ? value : undefined

const list =
  (longest: number, reader: Reader): Reader =>
  (value, depth) => {
    if (!Array.isArray(value) || value.length > longest) return undefined
    const items = value.map((item: unknown) => reader(item, depth))
    return items.includes(undefined) ? undefined : items
  }

const truth: Reader = (value) => (typeof value === 'boolean' ? value : undefined)
const finite: Reader = (value) => (typeof value === 'number' && Number.isFinite(value) ? value : undefined)
const count: Reader = (value) => (Number.isSafeInteger(value) && (value as number) >= 0 ? value : undefined)
/** A PHP list with keys of its own is written as a map: `users?has_published_posts` announces its enum so. */
const listOrMap =
  (reader: Reader): Reader =>
  (value, depth) =>
    reader(isObject(value) ? Object.values(value) : value, depth)
const typeName: Reader = (value) => (typeNames.has(value) ? value : undefined)
const scalar: Reader = (value) =>
  value === null || typeof value === 'boolean' ? value : (finite(value, 0) ?? text(limits.text)(value, 0))
const small: Reader = (value) => (JSON.stringify(value).length <= limits.default ? value : undefined)
const schema: Reader = (value, depth) =>
  isObject(value) && depth < limits.depth ? cleanSchema(value, depth + 1) : undefined
const map: Reader = (value, depth) => (depth < limits.depth ? cleanMap(value, depth + 1) : undefined)
const schemas = list(limits.options, schema)

/** One reader a keyword: gives the value back when it is what the keyword takes, else undefined. */
const keywords: Readonly<Record<keyof ArgumentSchema, Reader>> = {
  title: text(limits.text),
  description: text(limits.text),
  type: (value, depth) => typeName(value, depth) ?? list(typeNames.size, typeName)(value, depth),
  format: text(64),
  enum: listOrMap(list(limits.members, scalar)),
  default: small,
  minimum: finite,
  maximum: finite,
  exclusiveMinimum: truth,
  exclusiveMaximum: truth,
  minLength: count,
  maxLength: count,
  pattern: text(limits.pattern),
  items: schema,
  minItems: count,
  maxItems: count,
  uniqueItems: truth,
  properties: map,
  minProperties: count,
  maxProperties: count,
  additionalProperties: (value, depth) => truth(value, depth) ?? schema(value, depth),
  oneOf: schemas,
  anyOf: schemas,
  required: truth,
  readonly: truth,
  context: list(limits.options, text(64)),
}

const cleanSchema = (value: object, depth: number): ArgumentSchema => {
  const clean: [string, unknown][] = []
  for (const [keyword, read] of Object.entries(keywords)) {
    const given = isObject(value) ? member(value, keyword) : undefined
    const kept = given === undefined ? undefined : read(given, depth)
    if (kept !== undefined) clean.push([keyword, kept])
  }
  return Object.fromEntries(clean)
}

/** WordPress writes a map without entries as `[]`. */
const cleanMap = (value: unknown, depth: number): Arguments | undefined => {
  if (Array.isArray(value)) return value.length === 0 ? {} : undefined
  const entries = isObject(value) ? Object.entries(value) : undefined
  if (entries === undefined || entries.length > limits.arguments) return undefined
  // A list in place of a schema is PHP's way to say that nothing is known of the argument.
  return Object.fromEntries(
    entries.map(([name, given]) => [name, isObject(given) ? cleanSchema(given, depth) : {}]),
  )
}

/**
 * Arguments as the rows of the contract have them. A keyword with a value it cannot take is left out: the argument is then
 * checked less here, and still by the upstream. Undefined when there are too many or it is no map.
 */
export const cleanArguments = (value: unknown): Arguments | undefined => cleanMap(value, 0)
