import type { Values } from './call.ts'

/** A string argument, or undefined when it was not given. */
export const text = (args: Values, name: string): string | undefined => {
  const value = args[name]
  return typeof value === 'string' ? value : undefined
}

/** An argument that may be a string or an object with `raw`, as titles and contents are. */
export const rawText = (args: Values, name: string): string | undefined => {
  const value = args[name]
  if (typeof value === 'string') return value
  if (value === null || typeof value !== 'object') return undefined
  return text(value as Values, 'raw')
}

/** An integer argument; digits in a string count, since path parameters are strings. */
export const integer = (args: Values, name: string): number | undefined => {
  const value = args[name]
  if (typeof value === 'number') return value
  return typeof value === 'string' && /^\d{1,15}$/.test(value) ? Number(value) : undefined
}

/** A list of integers; empty when it was not given. */
export const integers = (args: Values, name: string): readonly number[] => {
  const value = args[name]
  return Array.isArray(value) ? value.map(Number).filter(Number.isFinite) : []
}

/** A list of strings; empty when it was not given. */
export const texts = (args: Values, name: string): readonly string[] => {
  const value = args[name]
  if (typeof value === 'string') return [value]
  return Array.isArray(value) ? value.map(String) : []
}

/** A boolean argument; false when it was not given. */
export const flag = (args: Values, name: string): boolean => args[name] === true

/** Milliseconds of a date argument; without a zone it is in the site's time zone, which is UTC here. */
export const instant = (args: Values, name: string): number | undefined => {
  const value = text(args, name)
  if (value === undefined) return undefined
  const zoned = /(?:z|[+-]\d\d(?::?\d\d)?)$/i.test(value) ? value : `${value}Z`
  const milliseconds = Date.parse(zoned.replace(' ', 'T'))
  return Number.isNaN(milliseconds) ? undefined : milliseconds
}

/** A date as WordPress writes it: site time, no zone, no fraction. */
export const siteDate = (milliseconds: number): string => new Date(milliseconds).toISOString().slice(0, 19)
