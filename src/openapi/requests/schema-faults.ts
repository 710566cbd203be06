import type { ErrorObject } from 'ajv/dist/2020.js'
import { countText } from '../../http/count-text.ts'

export type SchemaFault = {
  /** JSON Pointer into the value. */
  readonly pointer: string
  /** Of a member that is missing: `pointer` is the one of its object. */
  readonly at?: string
  readonly detail: string
}

/** Most faults that one refusal names. */
export const maxFaults = 20

const limitOf = ({ params }: ErrorObject): string => String((params as { limit?: unknown }).limit)
const sizeOf = (error: ErrorObject, noun: string): string => countText(Number(limitOf(error)), noun)

/** Texts for the keywords. They repeat the document, never the request. */
const details: Readonly<Record<string, (error: ErrorObject) => string>> = {
  type: ({ params }) => `must be ${[(params as { type: unknown }).type].flat().join(' or ')}`,
  required: ({ params }) => `lacks ${(params as { missingProperty: string }).missingProperty}`,
  dependentRequired: ({ params }) => `lacks ${(params as { missingProperty: string }).missingProperty}`,
  additionalProperties: () => 'has a member that is not declared',
  unevaluatedProperties: () => 'has a member that is not declared',
  enum: () => 'must be one of the listed values',
  const: () => 'must be the one allowed value',
  minimum: (error) => `must be at least ${limitOf(error)}`,
  maximum: (error) => `must be at most ${limitOf(error)}`,
  exclusiveMinimum: (error) => `must be more than ${limitOf(error)}`,
  exclusiveMaximum: (error) => `must be less than ${limitOf(error)}`,
  minLength: (error) => `must have at least ${sizeOf(error, 'character')}`,
  maxLength: (error) => `must have at most ${sizeOf(error, 'character')}`,
  minItems: (error) => `must have at least ${sizeOf(error, 'item')}`,
  maxItems: (error) => `must have at most ${sizeOf(error, 'item')}`,
  minProperties: (error) => `must have at least ${sizeOf(error, 'member')}`,
  maxProperties: (error) => `must have at most ${sizeOf(error, 'member')}`,
  multipleOf: ({ params }) => `must be a multiple of ${(params as { multipleOf: number }).multipleOf}`,
  uniqueItems: () => 'must not repeat an item',
  pattern: () => 'does not match the pattern',
  format: ({ params }) => `is not a valid ${(params as { format: string }).format}`,
  integerBounds: () => 'is outside the bounds of the integer',
  items: (error) => `must have at most ${sizeOf(error, 'item')}`,
  unevaluatedItems: () => 'has an item that is not declared',
  contains: () => 'has too few or too many items of a required form',
  propertyNames: () => 'has a member whose name does not fit',
  oneOf: ({ params }) =>
    (params as { passingSchemas: unknown }).passingSchemas === null
      ? 'matches none of the allowed forms'
      : 'matches several forms of which one is allowed',
  anyOf: () => 'matches none of the allowed forms',
  not: () => 'has a form that is not allowed',
  'false schema': () => 'is not allowed',
}

const longestPointer = 256

const faultOf = (error: ErrorObject): SchemaFault => {
  const detail = details[error.keyword]?.(error) ?? 'is not valid'
  const pointer = error.instancePath.slice(0, longestPointer)
  const { missingProperty } = error.params as { readonly missingProperty?: string }
  const missing = missingProperty === undefined ? {} : { at: `${pointer}/${missingProperty}` }
  return { pointer, detail: detail.slice(0, 200), ...missing }
}

/** Whether members and items are declared is not known while the schemas that may declare them do not fit. */
const isUncertain = ({ keyword }: ErrorObject): boolean => keyword.startsWith('unevaluated')

const keywordsOfForms = new Set(['anyOf', 'oneOf', 'contains'])

/**
 * Without those that say nothing of their own. `if` repeats the errors of `then` and `else`, `propertyNames` those of a name. Why a value
 * has none of several forms is not said: these are the faults of forms that were not meant, and come before the error of their keyword.
 */
const ownErrors = (errors: readonly ErrorObject[]): readonly ErrorObject[] => {
  const relevant: ErrorObject[] = []
  for (const error of errors) {
    if (error.keyword === 'if' || error.propertyName !== undefined) continue
    if (keywordsOfForms.has(error.keyword))
      while (relevant.at(-1)?.instancePath.startsWith(error.instancePath) === true) relevant.pop()
    relevant.push(error)
  }
  return relevant
}

/** What is wrong with a value, without what only follows from it. */
export const faultsOf = (errors: readonly ErrorObject[]): readonly SchemaFault[] => {
  const relevant = ownErrors(errors)
  const certain = relevant.filter((error) => !isUncertain(error))
  const ofOtherType = new Set(
    certain.filter(({ keyword }) => keyword === 'type').map((error) => error.instancePath),
  )
  const faults = new Map<string, SchemaFault>()
  for (const error of certain.length === 0 ? relevant : certain) {
    // What else a value of another type lacks says nothing.
    if (error.keyword !== 'type' && ofOtherType.has(error.instancePath)) continue
    const fault = faultOf(error)
    faults.set(`${fault.pointer} ${fault.detail}`, fault)
  }
  return [...faults.values()].slice(0, maxFaults)
}
