import type { Validation, ValidationInput, Validator } from '../contracts/validation.ts'
import { int64Of } from './int64.ts'
import { mediaTypeOf } from './media-type.ts'
import { decodeFormText, encodeQueryText } from './percent.ts'
import { isUnreadable } from './php-array.ts'
import { readPlant } from './plant-content.ts'
import { type PlantFault, refusePlant } from './plant-errors.ts'
import { trackingMatcher } from './tracking-parameters.ts'

/** Bounds, and the name that the contract of the plant store leaves open. */
export type PlantsValidatorOptions = {
  readonly limits: { readonly queryParameters: number; readonly jsonDepth: number }
  /** Query parameter that bounds a list. */
  readonly limitParameter: string
  readonly unknownParameters: 'strip' | 'forward'
  /** Names that are dropped in any case; a trailing `*` stands for any ending. */
  readonly trackingParameters: readonly string[]
}

type Pair = readonly [name: string, value: string]

const positive = /^0*([1-9]\d{0,15})$/

/** The number that a bound spells; beyond 2^53 there is no such list. */
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

/** The list bound among the parameters; it may be given once at most. */
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
    // Only a list is bounded; elsewhere the parameter means nothing.
    const isList = Object.hasOwn(input.endpoint.arguments, limitParameter)
    const limit = isList ? readLimit(pairs, limitParameter) : undefined
    if (typeof limit === 'string') return refusePlant(limit)
    if (id !== undefined) typed['id'] = id
    if (limit !== undefined) typed[limitParameter] = limit
    return valid(pairs, limit, typed)
  }

  return { validate }
}
