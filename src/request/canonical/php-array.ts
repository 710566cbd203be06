/**
 * An array as PHP decodes it from a query or a form. WordPress checks these shapes, so the gateway uses the same ones: a PHP
 * array is list and dictionary at once, and `a[1]=x` and `["y","x"]` have the same type.
 */
export class PhpArray extends Map<string, PhpValue> {
  /** Index that the next `a[]=` gets. */
  next = 0
}

/**
 * Text that is not UTF-8, with its escaped bytes as the description; or, without a description, brackets nested too deep or an
 * index too large to decode exactly. No type accepts it, so a declared parameter with it is refused.
 */
export type Unreadable = symbol

export const isUnreadable = (value: unknown): value is Unreadable => typeof value === 'symbol'

/** A value of a decoded query or form. */
export type PhpValue = string | PhpArray | Unreadable

const integerKey = /^(?:0|-?[1-9]\d{0,18})$/
const maxInt64 = 9223372036854775807n
const minInt64 = -9223372036854775808n

/** Whether PHP stores this key as an integer: `01`, `-0` and numbers beyond 64 bits stay strings. */
export const isIntegerKey = (key: string): boolean => {
  if (!integerKey.test(key)) return false
  if (key.length < 19) return true
  const value = BigInt(key)
  return value <= maxInt64 && value >= minInt64
}

/** Arrays, objects from JSON and decoded brackets: everything PHP calls an array. */
export const isContainer = (value: unknown): value is object => typeof value === 'object' && value !== null

/** Names of the members in PHP's order. */
export const namesOf = (container: object): string[] =>
  container instanceof Map ? [...container.keys()] : Object.keys(container)

export const hasMember = (container: object, name: string): boolean =>
  // A list has a length, but no member of that name.
  container instanceof Map ? container.has(name) : Object.prototype.propertyIsEnumerable.call(container, name)

/** A member that exists. */
export const memberOf = (container: object, name: string): unknown =>
  container instanceof Map ? container.get(name) : (container as Record<string, unknown>)[name]

/** Keys and values in PHP's order. */
export const entriesOf = (container: object): [string, unknown][] => {
  if (container instanceof Map) return [...container]
  return Object.entries(container)
}

/** Values in PHP's order. */
export const valuesOf = (container: object): unknown[] => {
  if (Array.isArray(container)) return container
  return container instanceof Map ? [...container.values()] : Object.values(container)
}

/** Whether WordPress accepts the value as a list: no key is a string. The empty array is a list. */
const isNumericArray = (value: unknown): value is object => {
  if (Array.isArray(value)) return true
  if (!isContainer(value)) return false
  const keys = value instanceof Map ? value.keys() : Object.keys(value)
  for (const key of keys) if (typeof key !== 'string' || !isIntegerKey(key)) return false
  return true
}

const comma = 0x2c
const space = 0x20
const tab = 0x09
const carriageReturn = 0x0d

/** Comma, space, and the five from tab to carriage return. */
const separates = (code: number): boolean =>
  code === comma || code === space || (code >= tab && code <= carriageReturn)

/**
 * A scalar as a list: split at commas and white space, empty parts dropped. Character by character: splitting a megabyte by a
 * pattern takes several times as long.
 */
export const splitList = (text: string): string[] => {
  const parts: string[] = []
  let start = 0
  for (let i = 0; i < text.length; i++) {
    if (!separates(text.charCodeAt(i))) continue
    if (i > start) parts.push(text.slice(start, i))
    start = i + 1
  }
  if (start < text.length) parts.push(start === 0 ? text : text.slice(start))
  return parts
}

/** PHP's text of a scalar; undefined for anything else, null included. */
const scalarText = (value: unknown): string | undefined => {
  if (typeof value === 'string') return value
  if (typeof value === 'number') return String(value)
  if (typeof value === 'boolean') return value ? '1' : ''
  return undefined
}

/** The value as a list; undefined when WordPress does not accept it as one. */
export const asList = (value: unknown): unknown[] | undefined => {
  const text = scalarText(value)
  if (text !== undefined) return splitList(text)
  if (isUnreadable(value)) return [value]
  return isNumericArray(value) ? valuesOf(value) : undefined
}
