import { decodeFormText, isUnreadable, type Unreadable } from '../../http/form-text.ts'

/** Where the next parameter of a query or form begins; its length where there is none. Empty ones are passed over. */
export const parameterStart = (text: string, from: number): number => {
  let at = from
  // One by one: a search for the end of each would be a million of them in a content of nothing else.
  while (text[at] === '&') at += 1
  return at
}

/** Where the parameter ends that begins there. */
export const parameterEnd = (text: string, start: number): number => {
  const ampersand = text.indexOf('&', start)
  return ampersand < 0 ? text.length : ampersand
}

/** A form with a longer name, as it is written, is refused: no argument's name is nearly as long, and reading it is work. */
export const longestParameterName = 1024

/** The parameter that WordPress takes for the route: in a form before that of the path, and never beside another one in the query. */
export const routeParameter = 'rest_route'

/** The parameter of the query that WordPress takes for the method; that of a form it does not read. */
export const methodParameter = '_method'

/** Whether the values of the parameter are names of fields or relations, which are mapped one by one. */
export const listsNames = (decodedName: string): boolean =>
  decodedName.startsWith('_fields') || decodedName.startsWith('_embed')

const folds = /[ .[]/

/**
 * PHP turns these into `_`, because a variable could not carry them. Not by a global pattern, which takes a fifth of a
 * second for a million of them.
 */
const foldName = (name: string): string =>
  folds.test(name) ? name.split('.').join('_').split(' ').join('_').split('[').join('_') : name

const spaceBytes = ' \t\n\v\f\r'

/** A parameter's name as PHP files it, and what stands in brackets behind it. */
type PhpName = {
  readonly name: string
  /** `null` is an empty index. */
  readonly indexes: readonly (string | null)[]
}

/**
 * Reads a decoded name as PHP does: leading spaces go, what stands behind a NUL is cut, a closed bracket ends the name.
 * undefined: there is no name, and PHP drops the parameter.
 */
export const splitPhpName = (decodedName: string): PhpName | undefined => {
  const end = decodedName.indexOf('\0')
  const text = (end < 0 ? decodedName : decodedName.slice(0, end)).replace(/^ +/, '')
  let bracket = text.indexOf('[')
  if (bracket === 0 || text === '') return undefined
  if (bracket < 0) return { name: foldName(text), indexes: [] }
  const name = foldName(text.slice(0, bracket))
  const indexes: (string | null)[] = []
  while (text[bracket] === '[') {
    const blank = spaceBytes.includes(text[bracket + 1] ?? '-') ? 1 : 0
    if (text[bracket + 1 + blank] === ']') {
      indexes.push(null)
      bracket += blank + 2
      continue
    }
    const close = text.indexOf(']', bracket + 1)
    // An unclosed bracket belongs to the name when it is the first one, and is ignored with all that follows otherwise.
    if (close < 0) return indexes.length === 0 ? { name: foldName(text), indexes } : { name, indexes }
    indexes.push(text.slice(bracket + 1, close))
    bracket = close + 1
  }
  return { name, indexes }
}

/** The name under which PHP files a query or form parameter; '' for what it drops. */
export const foldPhpName = (decodedName: string): string => splitPhpName(decodedName)?.name ?? ''

/** Octet by octet as PHP does it: text that is no UTF-8 must not hide a name. */
export const decodedOctets = (text: string): string =>
  text
    .replaceAll('+', ' ')
    .replaceAll(/%([0-9a-f]{2})/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)))

/** Decoded parameters in order of first appearance, with names as PHP normalises them. */
type PhpParameters = ReadonlyMap<string, PhpValue>

/** A decoded query or form, or why it is refused: PHP would silently drop what exceeds its limit. */
type PhpQuery =
  | { readonly kind: 'read'; readonly parameters: PhpParameters }
  | { readonly kind: PhpQueryFault }

/** A name's length counts its escapes. */
export type PhpQueryFault = 'too-many-parameters' | 'name-too-long' | 'list-too-long'

/** Deeper than any argument of WordPress; beyond 64 PHP drops the variable. */
const maxIndexDepth = 16
const simpleName = /^\w+$/

/** Stores a value at an index; false when PHP's next index cannot be computed exactly. */
const setIndex = (array: PhpArray, index: string | null, value: PhpValue): boolean => {
  if (index === null) {
    if (!Number.isSafeInteger(array.next)) return false
    array.set(String(array.next), value)
    array.next += 1
    return true
  }
  array.set(index, value)
  if (isIntegerKey(index) && Number(index) >= array.next) array.next = Number(index) + 1
  return true
}

const innerArray = (parent: PhpArray, index: string | null): PhpArray | undefined => {
  const child = index === null ? undefined : parent.get(index)
  if (child instanceof PhpArray) return child
  const fresh = new PhpArray()
  return setIndex(parent, index, fresh) ? fresh : undefined
}

const assign = (
  into: Map<string, PhpValue>,
  name: string,
  indexes: readonly (string | null)[],
  value: PhpValue,
) => {
  if (indexes.length > maxIndexDepth) {
    into.set(name, Symbol())
    return
  }
  const top = into.get(name)
  let array: PhpArray | undefined = top instanceof PhpArray ? top : new PhpArray()
  if (array !== top) into.set(name, array)
  for (const index of indexes.slice(0, -1)) array = array === undefined ? undefined : innerArray(array, index)
  if (array === undefined || !setIndex(array, indexes.at(-1) ?? null, value)) into.set(name, Symbol())
}

const readPair = (pair: string, equals: number, into: Map<string, PhpValue>) => {
  const rawName = equals < 0 ? pair : pair.slice(0, equals)
  const value = equals < 0 ? '' : decodeFormText(pair.slice(equals + 1))
  if (simpleName.test(rawName)) {
    into.set(rawName, value)
    return
  }
  const decodedName = decodeFormText(rawName)
  // A name that is not UTF-8 is no argument's name; WordPress ignores it.
  if (isUnreadable(decodedName)) return
  const target = splitPhpName(decodedName)
  if (target === undefined) return
  if (target.indexes.length === 0) into.set(target.name, value)
  else assign(into, target.name, target.indexes, value)
}

const isListOfNames = (rawName: string): boolean => {
  const name = decodeFormText(rawName)
  return !isUnreadable(name) && listsNames(name)
}

/** Decodes a query or a form as PHP does: names normalised, brackets nested, the last of equal names wins. */
export const parsePhpQuery = (text: string, maxParameters: number, longestName: number): PhpQuery => {
  const parameters = new Map<string, PhpValue>()
  const mayListTooMuch = text.length > longestList
  let count = 0
  let listLength = 0
  let start = parameterStart(text, 0)
  while (start < text.length) {
    const end = parameterEnd(text, start)
    count += 1
    if (count > maxParameters) return { kind: 'too-many-parameters' }
    const pair = text.slice(start, end)
    const equals = pair.indexOf('=')
    const nameLength = equals < 0 ? pair.length : equals
    if (nameLength > longestName) return { kind: 'name-too-long' }
    if (mayListTooMuch && isListOfNames(pair.slice(0, nameLength))) listLength += pair.length
    if (listLength > longestList) return { kind: 'list-too-long' }
    readPair(pair, equals, parameters)
    start = parameterStart(text, end)
  }
  return { kind: 'read', parameters }
}

/**
 * An array as PHP decodes it from a query or a form. WordPress checks these shapes, so the gateway uses the same ones: a PHP
 * array is list and dictionary at once, and `a[1]=x` and `["y","x"]` have the same type.
 */
export class PhpArray extends Map<string, PhpValue> {
  /** Index that the next `a[]=` gets. */
  next = 0
}

export type PhpValue = string | PhpArray | Unreadable

const integerKey = /^(?:0|-?[1-9]\d{0,18})$/
export const maxInt64 = 9223372036854775807n
export const minInt64 = -9223372036854775808n

/** Whether PHP stores this key as an integer: `01`, `-0` and numbers beyond 64 bits stay strings. */
const isIntegerKey = (key: string): boolean => {
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

/** A list in a longer text is refused: no query is as long, and each of its elements is work. JSON has arrays for long lists. */
const longestList = 64 * 1024

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
  if (text !== undefined) return text.length > longestList ? undefined : splitList(text)
  if (isUnreadable(value)) return [value]
  return isNumericArray(value) ? valuesOf(value) : undefined
}
