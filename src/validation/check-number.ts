import type { ArgumentSchema } from '../contracts/row.ts'
import { isIntegral, numberOf } from './coerce-scalar.ts'
import { type Issue, issueOf, wrongType } from './issue.ts'

type Bounds = Pick<ArgumentSchema, 'minimum' | 'maximum' | 'exclusiveMinimum' | 'exclusiveMaximum'>

const belowMinimum = (value: number, schema: Bounds): boolean => {
  if (schema.minimum === undefined) return false
  return schema.exclusiveMinimum === true ? value <= schema.minimum : value < schema.minimum
}

const aboveMaximum = (value: number, schema: Bounds): boolean => {
  if (schema.maximum === undefined) return false
  return schema.exclusiveMaximum === true ? value >= schema.maximum : value > schema.maximum
}

const sides = (exclusive: boolean | undefined): string => (exclusive === true ? '(exclusive)' : '(inclusive)')

/** The text of a bound; WordPress prints bounds as integers. */
const boundsText = (schema: Bounds): string => {
  const low = schema.minimum === undefined ? undefined : Math.trunc(schema.minimum)
  const high = schema.maximum === undefined ? undefined : Math.trunc(schema.maximum)
  if (high === undefined)
    return `greater than ${schema.exclusiveMinimum === true ? '' : 'or equal to '}${low}`
  if (low === undefined) return `less than ${schema.exclusiveMaximum === true ? '' : 'or equal to '}${high}`
  return `between ${low} ${sides(schema.exclusiveMinimum)} and ${high} ${sides(schema.exclusiveMaximum)}`
}

/** Checks a number, or an integer: bounds come before wholeness, as WordPress reports them. */
export const checkNumber = (
  value: unknown,
  schema: ArgumentSchema,
  path: string,
  type: 'integer' | 'number',
): Issue | undefined => {
  const number = numberOf(value)
  if (number === undefined) return wrongType(path, type)
  if (belowMinimum(number, schema) || aboveMaximum(number, schema)) {
    return issueOf('rest_out_of_bounds', `${path} must be ${boundsText(schema)}`)
  }
  return type === 'integer' && !isIntegral(value) ? wrongType(path, 'integer') : undefined
}
