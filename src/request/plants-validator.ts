import type { Validation, ValidationInput, Validator } from '../contracts/validation.ts'
import { visitMembers } from '../http/json-text.ts'
import {
  decodeFormText,
  encodeQueryText,
  hasMember,
  isUnreadable,
  memberOf,
  trackingMatcher,
} from './canonical/php-query.ts'
import { mediaTypeOf, readJson } from './validation/json-content.ts'

const decimal = /^(?:0|-?[1-9]\d{0,18})$/
const max = 9223372036854775807n
const min = -9223372036854775808n

/**
 * The 64-bit integer that a text spells. Only the shortest decimal form counts: with `007` or `1e3` one plant would have several
 * names.
 */
const int64Of = (text: string): bigint | undefined => {
  if (!decimal.test(text)) return undefined
  const value = BigInt(text)
  return value >= min && value <= max ? value : undefined
}

/** A closed list, because the codes are metric labels. */
const refusals = {
  invalid_json: [400, 'The body is not valid JSON.'],
  not_an_object: [400, 'The body must be a JSON object.'],
  repeated_member: [400, 'A member of the object occurs more than once.'],
  invalid_name: [400, 'name is required and must be a string.'],
  invalid_id: [400, 'id is required and must be a 64-bit integer in decimal digits.'],
  invalid_tag: [400, 'tag must be a string.'],
  invalid_path_id: [400, 'The id in the path must be a 64-bit integer in decimal digits.'],
  // The name of the parameter is a setting.
  invalid_limit: [400, 'The query parameter LIMIT must be one integer of at least 1.'],
  unreadable_query: [400, 'The query is not UTF-8.'],
  too_many_parameters: [400, 'The query has more parameters than allowed.'],
  unsupported_content_type: [415, 'The content type must be application/json.'],
} as const satisfies Record<string, readonly [number, string]>

type PlantFault = keyof typeof refusals

/** A refusal in the plant store's shape; `error` repeats the status, because the contract has no codes. */
const refusePlant = (fault: PlantFault, limitParameter = ''): Extract<Validation, { kind: 'invalid' }> => {
  const [status, text] = refusals[fault]
  const message = text.replace('LIMIT', () => limitParameter)
  return { kind: 'invalid', status, code: fault, body: { error: status, message } }
}

/** A plant to be created. `id` is decimal text, exact over all 64 bits. */
type PlantReading =
  | { readonly kind: 'plant'; readonly name: string; readonly id: string; readonly tag: string | undefined }
  | { readonly kind: 'refused'; readonly fault: PlantFault }

const refused = (fault: PlantFault): PlantReading => ({ kind: 'refused', fault })

const readMembers = (object: object, text: string): PlantReading => {
  const names = new Set<string>()
  let members = 0
  let idSource = ''
  visitMembers(text, (member, from, end) => {
    members += 1
    names.add(member)
    // From the source text: a parsed number beyond 2^53 would be another plant.
    if (member === 'id') idSource = text.slice(from, end)
  })
  // Readers differ on which of two equal names counts (RFC 8259 §4): one could check what another does not store.
  if (names.size < members) return refused('repeated_member')
  const given = (member: string): unknown =>
    hasMember(object, member) ? memberOf(object, member) : undefined
  const name = given('name')
  if (typeof name !== 'string') return refused('invalid_name')
  const id = int64Of(idSource)
  if (id === undefined) return refused('invalid_id')
  const tag = given('tag')
  if (tag !== undefined && typeof tag !== 'string') return refused('invalid_tag')
  return { kind: 'plant', name, id: String(id), tag }
}

/** Reads the content of a creation. The upstream checks further members. */
export const readPlant = (content: Buffer, maxDepth: number): PlantReading => {
  const reading = readJson(content, maxDepth)
  if (reading.kind !== 'read') return refused('invalid_json')
  const { value } = reading
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return refused('not_an_object')
  return readMembers(value, content.toString('utf8'))
}

type PlantsValidatorOptions = {
  readonly limits: { readonly queryParameters: number; readonly jsonDepth: number }
  /** Query parameter that bounds a list. */
  readonly limitParameter: string
  readonly unknownParameters: 'strip' | 'forward'
  /** Names that are always dropped; a trailing `*` matches any ending. */
  readonly trackingParameters: readonly string[]
}

type Pair = readonly [name: string, value: string]

const positive = /^0*([1-9]\d{0,15})$/

/** The number of a bound, at most 2^53. */
const limitOf = (value: string): number | undefined => {
  const limit = Number(positive.exec(value)?.[1])
  return Number.isSafeInteger(limit) ? limit : undefined
}

const pairsOf = (query: string, maxParameters: number): readonly Pair[] | PlantFault => {
  const raw = query.split('&').filter((part) => part !== '')
  if (raw.length > maxParameters) return 'too_many_parameters'
  const pairs: Pair[] = []
  for (const part of raw) {
    const equals = part.indexOf('=')
    const name = decodeFormText(equals < 0 ? part : part.slice(0, equals))
    const value = decodeFormText(equals < 0 ? '' : part.slice(equals + 1))
    if (isUnreadable(name) || isUnreadable(value)) return 'unreadable_query'
    pairs.push([name, value])
  }
  return pairs
}

const byName = (a: Pair, b: Pair): number => (a[0] < b[0] ? -1 : a[0] > b[0] ? 1 : 0)

const spell = (pairs: readonly Pair[]): string =>
  [...pairs]
    .sort(byName)
    .map(([name, value]) => `${encodeQueryText(name)}=${encodeQueryText(value)}`)
    .join('&')

const readContent = (input: ValidationInput, maxDepth: number): Record<string, unknown> | PlantFault => {
  if (input.method !== 'POST') return {}
  if (mediaTypeOf(input.contentType) !== 'json') return 'unsupported_content_type'
  const plant = readPlant(input.content ?? Buffer.alloc(0), maxDepth)
  if (plant.kind === 'refused') return plant.fault
  return { name: plant.name, id: plant.id, ...(plant.tag === undefined ? {} : { tag: plant.tag }) }
}

/** The bound of a list, which may be given once at most. */
const readLimit = (pairs: readonly Pair[], name: string): number | undefined | PlantFault => {
  const [bound, second] = pairs.filter((pair) => pair[0] === name)
  if (bound === undefined) return undefined
  return (second === undefined ? limitOf(bound[1]) : undefined) ?? 'invalid_limit'
}

const readPathId = (pathParameters: ValidationInput['pathParameters']): string | undefined => {
  const text = pathParameters['id']
  if (text === undefined || int64Of(text) !== undefined) return text
  return 'invalid_path_id'
}

/**
 * Validates requests of the plant store. Arguments: `id` as decimal text (it has 64 bits), `name`, `tag`, and the list bound as
 * a number.
 */
export const createPlantsValidator = (options: PlantsValidatorOptions): Validator => {
  const { limits, limitParameter } = options
  const isTracking = trackingMatcher(options.trackingParameters)

  const isUndeclared = ([name]: Pair): boolean => name !== limitParameter && !isTracking(name)
  const handling = options.unknownParameters === 'forward' ? 'sent' : 'stripped'

  const valid = (
    pairs: readonly Pair[],
    limit: number | undefined,
    typed: Record<string, unknown>,
  ): Validation => {
    const unknown = pairs.filter(isUndeclared)
    const kept = handling === 'sent' ? unknown : []
    const query = spell(limit === undefined ? kept : [...kept, [limitParameter, String(limit)]])
    if (unknown.length === 0) return { kind: 'valid', query, arguments: typed }
    const undeclared = { handling, names: unknown.map(([name]) => name) } as const
    return { kind: 'valid', query, arguments: typed, undeclared }
  }

  const validate = (input: ValidationInput): Validation => {
    const pairs = pairsOf(input.query, limits.queryParameters)
    if (typeof pairs === 'string') return refusePlant(pairs)
    const typed = readContent(input, limits.jsonDepth)
    if (typeof typed === 'string') return refusePlant(typed)
    const id = readPathId(input.pathParameters)
    if (id === 'invalid_path_id') return refusePlant(id)
    // Only lists have a bound.
    const isList = Object.hasOwn(input.endpoint.arguments, limitParameter)
    const limit = isList ? readLimit(pairs, limitParameter) : undefined
    if (typeof limit === 'string') return refusePlant(limit, limitParameter)
    if (id !== undefined) typed['id'] = id
    if (limit !== undefined) typed[limitParameter] = limit
    return valid(pairs, limit, typed)
  }

  return { validate }
}
