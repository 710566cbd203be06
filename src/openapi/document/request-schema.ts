import { isJsonObject, type JsonObject, jsonTypes } from '../../http/json-text.ts'
import {
  type ApiBundle,
  below,
  type Located,
  listOf,
  member,
  membersOf,
  pointerOf,
  SchemaResources,
} from './bundle.ts'

/** JSON Schema 2020-12 as plain data. */
export type RequestSchema = boolean | { readonly [keyword: string]: unknown }

/**
 * How integers may be written: as JSON allows; `strict`: in their shortest form only, without fraction, exponent or minus zero;
 * `padded`: in parameters also with leading zeros, which the canonical query does not have.
 */
export type IntegerForm = 'json' | 'strict' | 'padded'

export type Dialect = '3.0' | '3.1'

type Kind =
  | 'schema'
  | 'schemas'
  | 'schema-map'
  | 'number'
  | 'count'
  | 'texts'
  | 'text'
  | 'any'
  | 'flag'
  | 'text-lists'

/** The keywords that have a meaning for requests. Others are annotations, or are translated below. */
const keywords: Readonly<Record<string, Kind>> = {
  type: 'any',
  enum: 'any',
  const: 'any',
  multipleOf: 'number',
  maximum: 'number',
  minimum: 'number',
  exclusiveMaximum: 'number',
  exclusiveMinimum: 'number',
  maxLength: 'count',
  minLength: 'count',
  pattern: 'text',
  format: 'text',
  maxItems: 'count',
  minItems: 'count',
  uniqueItems: 'flag',
  maxContains: 'count',
  minContains: 'count',
  maxProperties: 'count',
  minProperties: 'count',
  required: 'texts',
  dependentRequired: 'text-lists',
  items: 'schema',
  contains: 'schema',
  additionalProperties: 'schema',
  propertyNames: 'schema',
  not: 'schema',
  if: 'schema',
  // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema
  then: 'schema',
  else: 'schema',
  unevaluatedItems: 'schema',
  unevaluatedProperties: 'schema',
  prefixItems: 'schemas',
  allOf: 'schemas',
  anyOf: 'schemas',
  oneOf: 'schemas',
  properties: 'schema-map',
  patternProperties: 'schema-map',
  dependentSchemas: 'schema-map',
}

/** Keywords that OpenAPI 3.0 does not have: there they are members without a meaning. */
const since31: ReadonlySet<string> = new Set([
  ...[
    'const',
    'contains',
    'maxContains',
    'minContains',
    'dependentRequired',
    'dependentSchemas',
    'propertyNames',
  ],
  ...['if', 'then', 'else', 'unevaluatedItems', 'unevaluatedProperties', 'prefixItems', 'patternProperties'],
])

/** Does the value fit the keyword? A faulty one has no meaning; documents have many. */
const fits = (kind: Kind, value: unknown): boolean => {
  switch (kind) {
    case 'number':
      return typeof value === 'number'
    case 'count':
      return Number.isInteger(value) && (value as number) >= 0
    case 'text':
      return typeof value === 'string'
    case 'flag':
      return typeof value === 'boolean'
    case 'texts':
      return Array.isArray(value) && value.every((item) => typeof item === 'string')
    case 'text-lists':
      return isJsonObject(value) && Object.values(value).every((item) => fits('texts', item))
    case 'schema':
      return isJsonObject(value) || typeof value === 'boolean'
    case 'schemas':
      return Array.isArray(value) && value.length > 0
    case 'schema-map':
      return isJsonObject(value)
    case 'any':
      return true
  }
}

const typeOf = (value: unknown, isNullable: boolean): unknown => {
  const types = (Array.isArray(value) ? value : [value]).filter((type) => jsonTypes.has(type))
  const allTypes = [...new Set(isNullable && types.length > 0 ? [...types, 'null'] : types)]
  if (allTypes.length === 0) return undefined
  return allTypes.length === 1 ? allTypes[0] : allTypes
}

/** Before draft 2020-12 an `enum` has a value: an empty one is a mistake, and has no meaning. */
const enumOf = (node: JsonObject, dialect: string, isNullable: boolean): readonly unknown[] | undefined => {
  const values = node['enum']
  if (!Array.isArray(values) || (values.length === 0 && dialect === '3.0')) return undefined
  return [...new Set(isNullable ? [...values, null] : values)]
}

/**
 * `if` alone decides nothing, but what it evaluates counts for `unevaluatedProperties`; the library ignores it. Of items the library
 * counts what a form that does not fit has evaluated, so there it stays ignored.
 */
const ofLoneIf = (keywords: JsonObject): readonly RequestSchema[] => {
  const hasClause = keywords['then'] !== undefined || keywords['else'] !== undefined
  if (keywords['if'] === undefined || hasClause || keywords['unevaluatedItems'] !== undefined) return []
  return [{ anyOf: [keywords['if'], true] }]
}

/** In OpenAPI 3.0 and draft 4 the exclusive bounds are flags beside the bounds. */
const boundsOf = (node: JsonObject): JsonObject => {
  const bounds: Record<string, unknown> = {}
  for (const [flag, bound] of [
    ['exclusiveMinimum', 'minimum'],
    ['exclusiveMaximum', 'maximum'],
  ] as const) {
    if (node[flag] !== true || typeof node[bound] !== 'number') continue
    bounds[flag] = node[bound]
    bounds[bound] = undefined
  }
  return bounds
}

/** A reference that leads nowhere, or a schema behind more others than can be followed. */
export type ReferenceFault = { readonly located: Located; readonly kind: 'nowhere' | 'too-deep' }

/** Schemas inside of one another, or behind references: each takes a part of the stack. */
const maxNested = 300

/** Which of both has the value: properties of the other one are not required. */
type Direction = 'request' | 'response'

/** The properties that a response has and a request need not have, or the reverse. */
const isOfOther = (resources: SchemaResources, located: Located, direction: Direction): boolean => {
  const keyword = direction === 'request' ? 'readOnly' : 'writeOnly'
  if (member(located.node, keyword) === true) return true
  const reference = member(located.node, '$ref')
  const target = typeof reference === 'string' ? resources.resolve(reference, located) : undefined
  return target !== undefined && member(target.node, keyword) === true
}

const stepsOf = ({ steps }: { readonly steps?: unknown }): number => (typeof steps === 'number' ? steps : 0)

/** How many schemas each value is compared with; undefined for none. */
const alternativesOf = ({ oneOf, anyOf }: JsonObject): number | undefined => {
  const count = listOf(oneOf).length + listOf(anyOf).length
  return count === 0 ? undefined : count
}

/**
 * `nullable` beside `allOf` or `oneOf`, which have the type: so .NET describes a member that may be null, and its clients send null.
 * Beside a type it is one of the types already; beside a reference it has no meaning.
 */
const orNull = ({ nullable, type, $ref }: JsonObject, schema: RequestSchema): RequestSchema =>
  nullable === true && type === undefined && $ref === undefined
    ? { anyOf: [schema, { type: 'null' }], steps: 2 }
    : schema

/** Of the definition at an index: in the order in which the operations lead to them. */
export const definitionName = (index: number): string => `definition:${index}`

/** The schema that each `$dynamicAnchor` stands for: that of the outermost resource on the way (JSON Schema 2020-12, §8.2.3.2). */
type DynamicScope = ReadonlyMap<string, Located>

type Scoped = Located & { readonly scope: DynamicScope }

const noScope: DynamicScope = new Map()

/**
 * Translates schemas of a document into JSON Schema 2020-12 for requests. Schemas that a `$ref` leads to become definitions,
 * once each, so that cycles end and nothing is copied.
 */
export class SchemaTranslator {
  readonly #bundle: ApiBundle
  readonly #dialect: Dialect
  readonly #direction: Direction
  readonly #names = new Map<string, string>()
  /** Definitions that translated schemas refer to with `$ref`, by that text; grows with each translation. */
  readonly definitions = new Map<string, RequestSchema>()
  readonly faults: ReferenceFault[] = []
  readonly #resources: SchemaResources
  #hasStrictIntegers = false
  #depth = 0

  constructor(bundle: ApiBundle, dialect: Dialect, direction: Direction) {
    this.#bundle = bundle
    this.#dialect = dialect
    this.#direction = direction
    this.#resources = new SchemaResources(this.#bundle, this.#dialect === '3.1')
  }

  translate(located: Located): RequestSchema {
    return this.#translate(this.#scoped(located, noScope))
  }

  hasStrictIntegers(): boolean {
    return this.#hasStrictIntegers
  }

  /** The schema with the scope that its resource adds to. */
  #scoped({ file, path, node }: Located, scope: DynamicScope): Scoped {
    const { dynamicAnchors } = this.#resources.at({ file, path }) ?? { dynamicAnchors: noScope }
    const isKnown = [...dynamicAnchors.keys()].every((name) => scope.has(name))
    return { file, path, node, scope: isKnown ? scope : new Map([...dynamicAnchors, ...scope]) }
  }

  #inner({ file, path, node, scope }: Scoped, ...steps: readonly string[]): Scoped {
    return this.#scoped(below({ file, path, node }, ...steps), scope)
  }

  #targetOf(keyword: '$ref' | '$dynamicRef', reference: string, from: Scoped): Located | undefined {
    const target = this.#resources.resolve(reference, from)
    const anchor = member(target?.node, '$dynamicAnchor')
    const isDynamic =
      keyword === '$dynamicRef' && typeof anchor === 'string' && reference.endsWith(`#${anchor}`)
    return isDynamic ? (from.scope.get(anchor) ?? target) : target
  }

  /** A schema means something else in each scope. */
  #positionOf(located: Scoped): string {
    return [
      pointerOf(located),
      ...[...located.scope].map(([name, at]) => `${name} ${pointerOf(at)}`).sort(),
    ].join(' ')
  }

  #referred(keyword: '$ref' | '$dynamicRef', from: Scoped): string | undefined {
    const reference = member(from.node, keyword)
    if (typeof reference !== 'string') return undefined
    const place = this.#targetOf(keyword, reference, from)
    if (place === undefined) {
      this.faults.push({ located: from, kind: 'nowhere' })
      return undefined
    }
    const target = this.#scoped(place, from.scope)
    const position = this.#positionOf(target)
    const knownName = this.#names.get(position)
    if (knownName !== undefined) return knownName
    const name = definitionName(this.#names.size)
    this.#names.set(position, name)
    const schema = this.#translate(target)
    // Every recursion passes a definition, so that counting these bounds the work for one value.
    this.definitions.set(
      name,
      typeof schema === 'boolean' ? schema : { ...schema, steps: stepsOf(schema) + 1 },
    )
    return name
  }

  #keywordOf(keyword: string, kind: Kind, located: Scoped): unknown {
    const value = member(located.node, keyword)
    switch (kind) {
      case 'schema':
        return this.#translate(this.#inner(located, keyword))
      case 'schemas':
        return listOf(value).map((_, index) => this.#translate(this.#inner(located, keyword, String(index))))
      case 'schema-map':
        return Object.fromEntries(
          membersOf(value).map(([name]) => [name, this.#translate(this.#inner(located, keyword, name))]),
        )
      default:
        return value
    }
  }

  #requiredOf(located: Scoped): readonly string[] {
    return listOf(member(located.node, 'required')).filter(
      (name): name is string =>
        typeof name === 'string' &&
        !isOfOther(this.#resources, this.#inner(located, 'properties', name), this.#direction),
    )
  }

  #ownKeywords(located: Scoped, node: JsonObject): Record<string, unknown> {
    const translated: Record<string, unknown> = {}
    for (const [keyword, kind] of Object.entries(keywords)) {
      if (!Object.hasOwn(node, keyword) || !fits(kind, node[keyword])) continue
      if (this.#dialect === '3.0' && since31.has(keyword)) continue
      translated[keyword] = this.#keywordOf(keyword, kind, located)
    }
    return translated
  }

  #integerFormOf(node: JsonObject): IntegerForm | undefined {
    const form = node['x-trellis-integer']
    this.#hasStrictIntegers ||= form === 'strict'
    return form === 'strict' || form === 'padded' ? form : undefined
  }

  /** ajv skips a property of this name, and not one of this pattern. */
  #protoProperty(located: Scoped, node: JsonObject): Record<string, unknown> {
    if (!Object.hasOwn(Object(node['properties']), '__proto__')) return {}
    const patterns = this.#keywordOf('patternProperties', 'schema-map', located) as JsonObject
    const schema = this.#translate(this.#inner(located, 'properties', '__proto__'))
    return { patternProperties: { ...patterns, '^__proto__$': schema } }
  }

  /** Keywords whose value differs from that of the document. */
  #changedKeywords(located: Scoped, node: JsonObject): Record<string, unknown> {
    const isNullable = this.#dialect === '3.0' && node['nullable'] === true
    const type = typeOf(node['type'], isNullable)
    const required = new Set(this.#requiredOf(located))
    return {
      ...boundsOf(node),
      type,
      // Marks the schemas whose integers are compared without a loss of digits.
      integerBounds: [type].flat().includes('integer') ? true : undefined,
      integerText: this.#integerFormOf(node),
      enum: enumOf(node, this.#dialect, isNullable),
      required: required.size === 0 ? undefined : [...required],
      ...(Array.isArray(node['items'])
        ? {
            prefixItems: node['items'].map((_, index) =>
              this.#translate(this.#inner(located, 'items', String(index))),
            ),
          }
        : {}),
      ...this.#protoProperty(located, node),
      ...(Number(node['multipleOf'] ?? 1) <= 0 ? { multipleOf: undefined } : {}),
    }
  }

  #translateObject(located: Scoped, node: JsonObject): RequestSchema {
    const name = this.#referred('$ref', located)
    // In 3.0 the members beside a reference have no meaning.
    if (typeof node['$ref'] === 'string' && this.#dialect === '3.0')
      return name === undefined ? true : { $ref: name }
    const dynamic = this.#dialect === '3.0' ? undefined : this.#referred('$dynamicRef', located)
    const keywords = this.#ownKeywords(located, node)
    const more = [...(dynamic === undefined ? [] : [{ $ref: dynamic }]), ...ofLoneIf(keywords)]
    const allOf = more.length === 0 ? keywords['allOf'] : [...listOf(keywords['allOf']), ...more]
    const translated: JsonObject = { ...keywords, ...this.#changedKeywords(located, node), allOf, $ref: name }
    const steps = alternativesOf(translated)
    return Object.fromEntries(
      Object.entries({ ...translated, steps }).filter(([, value]) => value !== undefined),
    )
  }

  #translate(located: Scoped): RequestSchema {
    const { node } = located
    if (typeof node === 'boolean') return node
    if (!isJsonObject(node)) return true
    if (this.#depth === maxNested) {
      this.faults.push({ located, kind: 'too-deep' })
      return true
    }
    this.#depth += 1
    const schema = this.#translateObject(located, node)
    this.#depth -= 1
    return this.#dialect === '3.0' ? orNull(node, schema) : schema
  }
}
