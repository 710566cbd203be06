import { isJsonObject, type JsonObject } from '../src/http/json-text.ts'
import {
  type ApiBundle,
  below,
  type Located,
  listOf,
  membersOf,
  resolve,
} from '../src/openapi/document/bundle.ts'

/** Optional members below this depth, and the items of lists, are left out. */
const deepest = 6
/** No value nests deeper, whatever its schema requires: a schema may require itself. */
const deepestOfAll = 16
const maxValues = 5_000
const maxItems = 20
const longestText = 10_000

const texts: Readonly<Record<string, string>> = {
  date: '2026-01-31',
  time: '12:00:00Z',
  'date-time': '2026-01-31T12:00:00Z',
  duration: 'P1D',
  uuid: '3fa85f64-5717-4562-b3fc-2c963f66afa6',
  email: 'user@example.com',
  uri: 'https://example.com/',
  url: 'https://example.com/',
  'uri-reference': '/example',
  hostname: 'example.com',
  ipv4: '192.0.2.1',
  ipv6: '2001:db8::1',
  byte: 'VHJlbGxpcw==',
}

const numberOf = (schema: JsonObject, name: string): number | undefined => {
  const value = schema[name]
  return typeof value === 'number' && Number.isFinite(value) ? value : undefined
}

const textOf = (schema: JsonObject): string => {
  const made = texts[String(schema['format'])] ?? 'string'
  const min = Math.min(numberOf(schema, 'minLength') ?? 0, longestText)
  const max = numberOf(schema, 'maxLength') ?? longestText
  return made.padEnd(min, 'x').slice(0, Math.max(0, max))
}

/** The smallest number at or above 0 that the bounds allow, or the one nearest to it. */
const numberIn = (schema: JsonObject, isInteger: boolean): number => {
  const exclusiveMin =
    schema['exclusiveMinimum'] === true ? numberOf(schema, 'minimum') : numberOf(schema, 'exclusiveMinimum')
  const exclusiveMax =
    schema['exclusiveMaximum'] === true ? numberOf(schema, 'maximum') : numberOf(schema, 'exclusiveMaximum')
  const step = numberOf(schema, 'multipleOf') ?? (isInteger ? 1 : 0.5)
  const min = Math.max(
    numberOf(schema, 'minimum') ?? -Infinity,
    exclusiveMin === undefined ? -Infinity : exclusiveMin + step,
  )
  const max = Math.min(
    numberOf(schema, 'maximum') ?? Infinity,
    exclusiveMax === undefined ? Infinity : exclusiveMax - step,
  )
  const wanted = Math.min(Math.max(step, 1, min), max)
  const rounded = Math.ceil(wanted / step) * step
  const fitting = rounded > max ? Math.floor(wanted / step) * step : rounded
  return isInteger ? Math.trunc(fitting) : fitting
}

const typeOf = (schema: JsonObject): string | undefined => {
  const named = [schema['type']].flat().find((type) => typeof type === 'string' && type !== 'null')
  if (typeof named === 'string') return named
  if (isJsonObject(schema['properties']) || isJsonObject(schema['additionalProperties'])) return 'object'
  return schema['items'] === undefined ? undefined : 'array'
}

const isPlain = (value: unknown): value is JsonObject => isJsonObject(value)

/** A value of a schema of a document: its example or default where it has one, else one made from its keywords. */
export const sampleOf = (bundle: ApiBundle, schema: Located): unknown => {
  let values = 0

  const merged = (parts: readonly unknown[], own: unknown): unknown => {
    const objects = [...parts, own].filter(isPlain)
    if (objects.length > 0) return Object.assign({}, ...objects)
    return parts.find((part) => part !== undefined) ?? own
  }

  const objectOf = (located: Located, node: JsonObject, depth: number): JsonObject => {
    const required = new Set(listOf(node['required']))
    const isLeftOut = ([name, property]: readonly [string, unknown]): boolean =>
      name === '__proto__' ||
      (isJsonObject(property) && property['writeOnly'] === true) ||
      (depth >= deepest && !required.has(name))
    const made = membersOf(node['properties'])
      .filter((one) => !isLeftOut(one))
      .map(([name]) => [name, sample(below(located, 'properties', name), depth + 1)] as const)
      .filter(([, value]) => value !== undefined)
    const undescribed = [...required].filter(
      (name) => typeof name === 'string' && !isJsonObject(node['properties']),
    )
    return Object.fromEntries([...made, ...undescribed.map((name) => [name, 'string'])])
  }

  const listFor = (located: Located, node: JsonObject, depth: number): readonly unknown[] => {
    const fixed = listOf(node['prefixItems']).map((_, index) =>
      sample(below(located, 'prefixItems', String(index)), depth + 1),
    )
    const min = Math.min(numberOf(node, 'minItems') ?? 0, maxItems)
    const wanted = depth >= deepest ? min : Math.max(min, 1)
    const max = numberOf(node, 'maxItems') ?? maxItems
    const items = isJsonObject(node['items']) ? below(located, 'items') : undefined
    const made = [...fixed]
    while (items !== undefined && made.length < Math.min(wanted, max)) {
      const value = sample(items, depth + 1)
      if (value === undefined) break
      made.push(value)
    }
    return made
  }

  const ofType = (located: Located, node: JsonObject, depth: number): unknown => {
    switch (typeOf(node)) {
      case 'object':
        return objectOf(located, node, depth)
      case 'array':
        return listFor(located, node, depth)
      case 'integer':
        return numberIn(node, true)
      case 'number':
        return numberIn(node, false)
      case 'boolean':
        return true
      case 'string':
        return textOf(node)
      default:
        return node['type'] === 'null' ? null : undefined
    }
  }

  /** With the name of the chosen alternative where `discriminator` asks for it. */
  const alternativeOf = (located: Located, node: JsonObject, depth: number): unknown => {
    const keyword = ['oneOf', 'anyOf'].find((name) => listOf(node[name]).length > 0)
    if (keyword === undefined) return undefined
    const alternatives = listOf(node[keyword])
    const chosen = alternatives.findIndex((one) => !(isJsonObject(one) && one['type'] === 'null'))
    const value = sample(below(located, keyword, String(Math.max(0, chosen))), depth + 1)
    const discriminator = isJsonObject(node['discriminator']) ? node['discriminator'] : {}
    const name = discriminator['propertyName']
    const alternative = alternatives[Math.max(0, chosen)]
    const reference = isJsonObject(alternative) ? alternative['$ref'] : undefined
    if (!isJsonObject(value) || typeof name !== 'string' || typeof reference !== 'string') return value
    const mapped = membersOf(discriminator['mapping']).find(([, target]) => target === reference)?.[0]
    return { ...value, [name]: mapped ?? reference.split('/').at(-1) }
  }

  const given = (node: JsonObject): { readonly value: unknown } | undefined => {
    for (const name of ['example', 'const', 'default'])
      if (node[name] !== undefined) return { value: node[name] }
    for (const name of ['examples', 'enum']) {
      const [first] = listOf(node[name])
      if (first !== undefined) return { value: first }
    }
    return undefined
  }

  const ofNode = (located: Located, node: JsonObject, depth: number): unknown => {
    const known = given(node)
    if (known !== undefined) return known.value
    const parts = listOf(node['allOf']).map((_, index) =>
      sample(below(located, 'allOf', String(index)), depth),
    )
    return merged([...parts, alternativeOf(located, node, depth)], ofType(located, node, depth))
  }

  const sample = (located: Located, depth: number): unknown => {
    values += 1
    const { node } = located
    if (values > maxValues || depth > deepestOfAll) return undefined
    if (!isJsonObject(node)) return node === undefined || node === true ? {} : undefined
    const reference = node['$ref']
    if (typeof reference !== 'string') return ofNode(located, node, depth)
    const target = resolve(bundle, reference, located.file)
    return target === undefined ? undefined : sample(target, depth + 1)
  }

  return sample(schema, 0) ?? null
}
