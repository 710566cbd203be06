/** An object as JSON.parse gives it. */
export type JsonObject = Readonly<Record<string, unknown>>

/** Whether a parsed value is an object and not a list. */
export const isObject = (value: unknown): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** An own member: a key that a caller or an upstream chose must never find `constructor` or `__proto__`. */
export const member = (object: JsonObject, key: string): unknown =>
  Object.hasOwn(object, key) ? object[key] : undefined

/** PHP has one kind of array, so WordPress writes `[]` for a map without entries. */
export const orEmptyList = (map: JsonObject): JsonObject | readonly [] =>
  Object.keys(map).length === 0 ? [] : map

const quote = 0x22
const backslash = 0x5c

const stringEnd = (content: Buffer, from: number): number => {
  let at = from
  while (at < content.length && content[at] !== quote) at += content[at] === backslash ? 2 : 1
  return at
}

/** Whether containers are nested deeper than `limit`; asked before anything recursive sees the document. */
export const isDeeperThan = (content: Buffer, limit: number): boolean => {
  let depth = 0
  for (let at = 0; at < content.length; at++) {
    const octet = content[at]
    if (octet === quote) at = stringEnd(content, at + 1)
    else if (octet === 0x7b || octet === 0x5b) depth++
    else if (octet === 0x7d || octet === 0x5d) depth--
    if (depth > limit) return true
  }
  return false
}
