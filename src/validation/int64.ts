const decimal = /^(?:0|-?[1-9]\d{0,18})$/
const max = 9223372036854775807n
const min = -9223372036854775808n

/**
 * The 64-bit integer that a text spells, or undefined. Only the shortest decimal form is one: a store that takes `007` or `1e3`
 * for a number would have several names for one plant.
 */
export const int64Of = (text: string): bigint | undefined => {
  if (!decimal.test(text)) return undefined
  const value = BigInt(text)
  return value >= min && value <= max ? value : undefined
}
