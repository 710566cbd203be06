import type { Validation, ValidationInput, Validator } from '../contracts/validation.ts'
import { int64Of } from './int64.ts'
import { readJson } from './json-content.ts'
import { mediaTypeOf } from './media-type.ts'
import { parsePhpQuery } from './php-query.ts'
import { topLevelMembers } from './top-level-members.ts'
import { trackingMatcher } from './tracking-parameters.ts'

/** Bounds, and the names that the contract of the plant store leaves open. */
export type PlantsValidatorOptions = {
  readonly limits: { readonly queryParameters: number; readonly jsonDepth: number }
  /** Query parameter that bounds a list. */
  readonly limitParameter: string
  readonly unknownParameters: 'strip' | 'forward'
  readonly trackingParameters: readonly string[]
}

type Refusal = Extract<Validation, { kind: 'invalid' }>

/** Why a plant request is refused: closed, because it labels metrics. */
const refusals = {
  invalid_json: [400, 'The content is not valid JSON.'],
  not_an_object: [400, 'The content must be a JSON object.'],
  repeated_member: [400, 'A member of the object is given more than once.'],
  invalid_name: [400, 'name is required and must be a string.'],
  invalid_id: [400, 'id is required and must be an integer of 64 bits in decimal digits.'],
  invalid_tag: [400, 'tag must be a string.'],
  invalid_path_id: [400, 'The id in the path must be an integer of 64 bits in decimal digits.'],
  invalid_limit: [400, 'The limit must be an integer of at least 1.'],
  too_many_parameters: [400, 'The query has more parameters than allowed.'],
  unsupported_content_type: [415, 'The content type must be application/json.'],
} as const satisfies Record<string, readonly [number, string]>

const refuse = (code: keyof typeof refusals): Refusal => {
  const [status, message] = refusals[code]
  return { kind: 'invalid', status, code, body: { error: status, message } }
}

const byName = (a: readonly [string, string], b: readonly [string, string]): number => (a[0] < b[0] ? -1 : 1)

const positiveDigits = /^\+?0*([1-9]\d{0,15})$/

/** The list bound in its shortest form, or undefined. */
const limitOf = (value: unknown): number | undefined => {
  const digits = typeof value === 'string' ? positiveDigits.exec(value.trim())?.[1] : undefined
  const limit = Number(digits ?? Number.NaN)
  return Number.isSafeInteger(limit) ? limit : undefined
}

const parsedObject = (content: Buffer, maxDepth: number): Record<string, unknown> | Refusal => {
  const reading = readJson(content, maxDepth)
  if (reading.kind === 'refused') return refuse('invalid_json')
  const { value } = reading
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return refuse('not_an_object')
  return value as Record<string, unknown>
}

const isRefusal = (value: object): value is Refusal => (value as { kind?: unknown }).kind === 'invalid' && 'body' in value

/** A new plant. The id is read from the source text: beyond 2^53 a parsed number is another plant. */
const readPlant = (content: Buffer, maxDepth: number): Refusal | Record<string, unknown> => {
  const object = parsedObject(content, maxDepth)
  if (isRefusal(object)) return object
  const members = topLevelMembers(content.toString('utf8'))
  // Readers differ on which of two equal names counts (RFC 8259 §4), so that one could check what another does not store.
  if (new Set(members.map((member) => member.name)).size < members.length) return refuse('repeated_member')
  const source = members.find((member) => member.name === 'id')?.source
  const id = source === undefined ? undefined : int64Of(source)
  const own = (name: string): unknown => (Object.hasOwn(object, name) ? object[name] : undefined)
  if (typeof own('name') !== 'string') return refuse('invalid_name')
  if (id === undefined) return refuse('invalid_id')
  const tag = own('tag')
  if (tag !== undefined && typeof tag !== 'string') return refuse('invalid_tag')
  return { name: own('name'), id: String(id), ...(tag === undefined ? {} : { tag }) }
}
