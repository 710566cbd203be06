import { parameterEnd, parameterStart, splitPhpName } from '../../http/php-names.ts'
import { decodeFormText } from './percent.ts'
import { isIntegerKey, isUnreadable, PhpArray, type PhpValue } from './php-array.ts'

/** Matches names against a list of names and `prefix*` patterns. */
export const trackingMatcher = (names: readonly string[]): ((name: string) => boolean) => {
  const exact = new Set(names.filter((name) => !name.endsWith('*')))
  const prefixes = names.filter((name) => name.endsWith('*')).map((name) => name.slice(0, -1))
  return (name) => exact.has(name) || prefixes.some((prefix) => name.startsWith(prefix))
}

/** Decoded parameters in order of first appearance, with names as PHP normalises them. */
type PhpParameters = ReadonlyMap<string, PhpValue>

/** A decoded query or form, or why it is refused: PHP would silently drop what exceeds its limit. */
type PhpQuery =
  | { readonly kind: 'read'; readonly parameters: PhpParameters }
  | { readonly kind: PhpQueryFault }

/** A name's length counts its escapes. */
export type PhpQueryFault = 'too-many-parameters' | 'name-too-long'

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

const nested = (parent: PhpArray, index: string | null): PhpArray | undefined => {
  const found = index === null ? undefined : parent.get(index)
  if (found instanceof PhpArray) return found
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
  for (const index of indexes.slice(0, -1)) array = array === undefined ? undefined : nested(array, index)
  if (array === undefined || !setIndex(array, indexes.at(-1) ?? null, value)) into.set(name, Symbol())
}

const readPair = (pair: string, equals: number, into: Map<string, PhpValue>) => {
  const rawName = equals < 0 ? pair : pair.slice(0, equals)
  const value = equals < 0 ? '' : decodeFormText(pair.slice(equals + 1))
  if (simpleName.test(rawName)) {
    into.set(rawName, value)
    return
  }
  const decoded = decodeFormText(rawName)
  // A name that is not UTF-8 is no argument's name; WordPress ignores it.
  if (isUnreadable(decoded)) return
  const target = splitPhpName(decoded)
  if (target === undefined) return
  if (target.indexes.length === 0) into.set(target.name, value)
  else assign(into, target.name, target.indexes, value)
}

/** Decodes a query or a form as PHP does: names normalised, brackets nested, the last of equal names wins. */
export const parsePhpQuery = (text: string, maxParameters: number, longestName: number): PhpQuery => {
  const parameters = new Map<string, PhpValue>()
  let count = 0
  let start = parameterStart(text, 0)
  while (start < text.length) {
    const end = parameterEnd(text, start)
    count += 1
    if (count > maxParameters) return { kind: 'too-many-parameters' }
    const pair = text.slice(start, end)
    const equals = pair.indexOf('=')
    if ((equals < 0 ? pair.length : equals) > longestName) return { kind: 'name-too-long' }
    readPair(pair, equals, parameters)
    start = parameterStart(text, end)
  }
  return { kind: 'read', parameters }
}
