import type { ArgumentSchema, Endpoint, Row } from '../contracts/row.ts'
import { type JsonObject, jsonSchema } from './json-schema.ts'

/** Names in braces, in order. */
const pathNames = (template: string): readonly string[] =>
  [...template.matchAll(/\{([^{}/]+)\}/g)].map(([, name]) => name as string)

const groupEnd = (pattern: string, from: number): number => {
  let depth = 1
  let inClass = false
  for (let at = from; at < pattern.length; at++) {
    const character = pattern[at]
    if (character === '\\') at++
    else if (inClass) inClass = character !== ']'
    else if (character === '[') inClass = true
    else if (character === '(') depth++
    else if (character === ')' && --depth === 0) return at
  }
  return pattern.length
}

/** Short enough that no pattern can take long on them. */
const slashed = ['a/b', '1/2', 'a//b'] as const

/** Whether the identifier of that name may contain slashes, as those of templates and themes do. */
const takesSlashes = (pattern: string, name: string): boolean => {
  const opening = `(?P<${name}>`
  const start = pattern.indexOf(opening)
  if (start === -1) return false
  const from = start + opening.length
  try {
    const group = new RegExp(`^(?:${pattern.slice(from, groupEnd(pattern, from))})$`)
    return slashed.some((text) => group.test(text))
  } catch {
    return false
  }
}

const slashNote = 'May contain slashes, which are sent as they are and not as %2F.'

/** OpenAPI 3.1 has no way to say that a path parameter spans segments; the note and the mark do. */
const pathParameter = (row: Row, endpoint: Endpoint, name: string): JsonObject => {
  const { description, ...schema } = endpoint.arguments[name] ?? { type: 'string' as const }
  const slashes = takesSlashes(row.pattern, name)
  const words = [...(description === undefined ? [] : [description]), ...(slashes ? [slashNote] : [])]
  return {
    name,
    in: 'path',
    required: true,
    ...(words.length > 0 && { description: words.join(' ') }),
    schema: jsonSchema(schema),
    ...(slashes && { 'x-takes-slashes': true }),
  }
}

const typesOf = ({ type }: ArgumentSchema): readonly string[] =>
  type === undefined ? [] : typeof type === 'string' ? [type] : type

/** Lists are read separated by commas, objects as `name[key]=value`. */
const styleOf = (schema: ArgumentSchema): JsonObject => {
  const types = typesOf(schema)
  if (types.includes('array')) return { style: 'form', explode: false }
  return types.includes('object') ? { style: 'deepObject', explode: true } : {}
}

const queryParameter = (name: string, { description, ...schema }: ArgumentSchema): JsonObject => ({
  name,
  in: 'query',
  ...(schema.required === true && { required: true }),
  ...(description !== undefined && { description }),
  ...styleOf(schema),
  schema: jsonSchema(schema),
})

/** Arguments of an endpoint that its path does not carry. */
export const ownArguments = (row: Row, endpoint: Endpoint): Endpoint['arguments'] => {
  const inPath = new Set(pathNames(row.template))
  return Object.fromEntries(Object.entries(endpoint.arguments).filter(([name]) => !inPath.has(name)))
}

/** The parameters of an operation: those of the path, and for reads and deletions those of the query. */
export const parametersOf = (row: Row, endpoint: Endpoint, inQuery: boolean): readonly JsonObject[] => [
  ...pathNames(row.template).map((name) => pathParameter(row, endpoint, name)),
  ...(inQuery
    ? Object.entries(ownArguments(row, endpoint)).map(([name, schema]) => queryParameter(name, schema))
    : []),
]
