import { memoizeByObject } from '../../http/memo.ts'
import type { IntegerForm, RequestSchema } from '../document/request-schema.ts'

/** A type whose values are one text. */
export type ScalarType = 'integer' | 'number' | 'boolean' | 'null' | 'string'

/** The kind of values that a schema describes, which decides how texts are parsed. */
export type SchemaShape = {
  /** Empty: the schema names none. */
  readonly types: ReadonlySet<string>
  /** The types by which a text is read, in this order. */
  readonly scalars: readonly ScalarType[]
  readonly items: RequestSchema
  readonly properties: ReadonlyMap<string, RequestSchema>
  /** The schema of members that are not declared; false: there are none. */
  readonly additional: RequestSchema
  /** The schema has no alternatives: its members are all that it describes. */
  readonly isWhole: boolean
  /** How integers are written in parameters (`x-trellis-integer`). */
  readonly integers: IntegerForm
}

type Definitions = ReadonlyMap<string, RequestSchema>

/** The narrowest first. */
const scalarOrder: readonly ScalarType[] = ['integer', 'number', 'boolean', 'null', 'string']
/** Where the schema names no type. */
const anyScalar: readonly ScalarType[] = ['string', 'number', 'boolean']

const scalarsOf = (types: ReadonlySet<string>): readonly ScalarType[] =>
  types.size === 0 ? anyScalar : scalarOrder.filter((type) => types.has(type))

const anything: SchemaShape = {
  types: new Set(),
  scalars: anyScalar,
  items: true,
  properties: new Map(),
  additional: true,
  isWhole: true,
  integers: 'json',
}

/** A deeper nesting of references and combinations is ignored. */
const deepest = 12

const schemasOf = (value: unknown): readonly RequestSchema[] => (Array.isArray(value) ? value : [])

const joinedTypes = (shapes: readonly SchemaShape[]): Pick<SchemaShape, 'types' | 'scalars'> => {
  const types = new Set(shapes.flatMap((shape) => [...shape.types]))
  return { types, scalars: scalarsOf(types) }
}

const joined = (shapes: readonly SchemaShape[]): Omit<SchemaShape, 'isWhole'> => ({
  ...joinedTypes(shapes),
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
  const types = new Set([type ?? []].flat())
  const ownShape: SchemaShape = {
    types,
    scalars: scalarsOf(types),
    items: items ?? true,
    properties: new Map(Object.entries(properties ?? {})),
    additional: additionalProperties ?? true,
    isWhole: true,
    integers: integerText ?? 'json',
  }
  const target = $ref === undefined ? undefined : definitions.get($ref)
  const schemas = [
    ...(target === undefined ? [] : [target]),
    ...schemasOf(schema['allOf']),
    ...schemasOf(schema['anyOf']),
    ...schemasOf(schema['oneOf']),
  ]
  if (schemas.length === 0) return ownShape
  const shapes = schemas.map((inner) => shapeAt(inner, definitions, depth + 1))
  const isWhole = target !== undefined && schemas.length === 1 && shapes[0]?.isWhole === true
  return { ...joined([ownShape, ...shapes]), isWhole }
}

/** Reads shapes of schemas, each once. */
export const createShapes = (definitions: Definitions): ((schema: RequestSchema) => SchemaShape) => {
  const ofObject = memoizeByObject((schema: object) => shapeAt(schema as RequestSchema, definitions, 0))
  return (schema) => (typeof schema === 'boolean' ? anything : ofObject(schema))
}
