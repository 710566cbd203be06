import type { IntegerForm, RequestSchema } from '../../contracts/openapi/request-schema.ts'

/** The kind of values that a schema describes: texts are parsed by it. */
export type SchemaShape = {
  /** Empty: the schema names none. */
  readonly types: ReadonlySet<string>
  readonly items: RequestSchema
  readonly properties: ReadonlyMap<string, RequestSchema>
  /** The schema of members that are not declared; false: there are none. */
  readonly additional: RequestSchema
  /** How integers are written in parameters (`x-trellis-integer`). */
  readonly integers: IntegerForm
}

type Definitions = ReadonlyMap<string, RequestSchema>

const anything: SchemaShape = {
  types: new Set(),
  items: true,
  properties: new Map(),
  additional: true,
  integers: 'json',
}

/** A deeper nesting of references and combinations is ignored. */
const deepest = 12

const schemasOf = (value: unknown): readonly RequestSchema[] => (Array.isArray(value) ? value : [])

const joined = (shapes: readonly SchemaShape[]): SchemaShape => ({
  types: new Set(shapes.flatMap(({ types }) => [...types])),
  items: shapes.find(({ items }) => items !== true)?.items ?? true,
  properties: new Map(shapes.toReversed().flatMap(({ properties }) => [...properties])),
  additional: shapes.find(({ additional }) => additional !== true)?.additional ?? true,
  integers: shapes.find(({ integers }) => integers !== 'json')?.integers ?? 'json',
})

const shapeAt = (schema: RequestSchema, definitions: Definitions, depth: number): SchemaShape => {
  if (typeof schema === 'boolean' || depth > deepest) return anything
  const { type, items, properties, additionalProperties, integerText, $ref } = schema as {
    readonly type?: string | readonly string[]
    readonly items?: RequestSchema
    readonly properties?: Readonly<Record<string, RequestSchema>>
    readonly additionalProperties?: RequestSchema
    readonly integerText?: IntegerForm
    readonly $ref?: string
  }
  const own: SchemaShape = {
    types: new Set([type ?? []].flat()),
    items: items ?? true,
    properties: new Map(Object.entries(properties ?? {})),
    additional: additionalProperties ?? true,
    integers: integerText ?? 'json',
  }
  const target = $ref === undefined ? undefined : definitions.get($ref)
  const others = [
    ...(target === undefined ? [] : [target]),
    ...schemasOf(schema['allOf']),
    ...schemasOf(schema['anyOf']),
    ...schemasOf(schema['oneOf']),
  ]
  return others.length === 0
    ? own
    : joined([own, ...others.map((other) => shapeAt(other, definitions, depth + 1))])
}

/** Reads shapes of schemas, each once. */
export const createShapes = (definitions: Definitions): ((schema: RequestSchema) => SchemaShape) => {
  const known = new WeakMap<object, SchemaShape>()
  return (schema) => {
    if (typeof schema === 'boolean') return anything
    const shape = known.get(schema) ?? shapeAt(schema, definitions, 0)
    known.set(schema, shape)
    return shape
  }
}
