// Integers and decimals by their digits, where doubles would lose some.

const int64 = { min: -(2n ** 63n), max: 2n ** 63n - 1n } as const
const int32 = { min: -(2n ** 31n), max: 2n ** 31n - 1n } as const

export type IntegerSchema = { readonly [keyword: string]: unknown }

type IntegerBounds = { readonly min: bigint; readonly max: bigint }

const exactBound = (value: unknown): bigint | undefined =>
  typeof value === 'number' && Number.isSafeInteger(value) ? BigInt(value) : undefined

export const formatBounds = (format: unknown): IntegerBounds | undefined =>
  format === 'int64' ? int64 : format === 'int32' ? int32 : undefined

/** Whether an integer is within the bounds of its schema, compared without a loss of digits. */
const fitsExactly = (value: bigint, schema: IntegerSchema): boolean => {
  const bounds = formatBounds(schema['format'])
  const [min, above] = [exactBound(schema['minimum']), exactBound(schema['exclusiveMinimum'])]
  const [max, below] = [exactBound(schema['maximum']), exactBound(schema['exclusiveMaximum'])]
  return (
    (bounds === undefined || (value >= bounds.min && value <= bounds.max)) &&
    (min === undefined || value >= min) &&
    (above === undefined || value > above) &&
    (max === undefined || value <= max) &&
    (below === undefined || value < below)
  )
}

/** Beyond this, a double cannot distinguish neighbouring integers. */
export const fitsAsDouble = (value: number, format: unknown): boolean => {
  const bounds = formatBounds(format)
  return bounds === undefined || (value >= Number(bounds.min) && value <= Number(bounds.max))
}

const integer = /^-?(?:0|[1-9]\d*)$/
const strictInteger = /^(?:0|-?[1-9]\d*)$/

/** Integers with more digits count as their double. */
const maxDigits = 400

const isExact = (text: string): boolean => text.length <= maxDigits && integer.test(text)

/** Whether the integer may be written so, and is within its bounds. */
export const fitsAsText = (text: string, value: number, schema: IntegerSchema): boolean => {
  if (schema['integerText'] === 'strict' && !strictInteger.test(text)) return false
  return isExact(text) ? fitsExactly(BigInt(text), schema) : fitsAsDouble(value, schema['format'])
}

const decimal = /^(-?\d+)(?:\.(\d+))?(?:e([+-]\d+))?$/

/** The digits of a finite number, and where its point is. */
type Decimal = { readonly digits: bigint; readonly places: number }

export const decimalOf = (text: string): Decimal => {
  const [, whole = '0', fraction = '', exponent = '0'] = decimal.exec(text) ?? []
  return { digits: BigInt(whole + fraction), places: fraction.length - Number(exponent) }
}

/** `isMultiple` for doubles of up to 51 bits after the shift; undefined where it needs more. */
export const createQuickMultiple = ({
  digits,
  places,
}: Decimal): ((value: number) => boolean | undefined) => {
  const factor = 10 ** Math.max(places, 0)
  const divisor = Number(digits) * 10 ** Math.max(-places, 0)
  if (factor > 1e15 || divisor > 2 ** 51) return () => undefined
  return (value) => {
    const shifted = Math.round(value * factor)
    // The quotient is the double of that decimal number: no other one has so few digits.
    return Math.abs(shifted) <= 2 ** 51 ? shifted / factor === value && shifted % divisor === 0 : undefined
  }
}

/** By the decimal digits: 19.99 is a multiple of 0.01, though the quotient of the two doubles is no integer. */
export const isMultiple = (value: number, exact: string | undefined, of: Decimal): boolean => {
  if (!Number.isFinite(value)) return false
  const { digits, places } = decimalOf(exact !== undefined && isExact(exact) ? exact : String(value))
  const shift = BigInt(Math.abs(places - of.places))
  if (shift === 0n) return digits % of.digits === 0n
  const factor = 10n ** shift
  return places > of.places ? digits % (of.digits * factor) === 0n : (digits * factor) % of.digits === 0n
}
