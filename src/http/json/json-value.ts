/** An object as JSON.parse gives it. */
export type JsonObject = Readonly<Record<string, unknown>>

/** Whether a parsed value is an object and not a list. */
export const isJsonObject = (value: unknown): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** An own member: a key that a client or an upstream chose must never find `constructor` or `__proto__`. */
export const ownMember = (object: JsonObject, key: string): unknown =>
  Object.hasOwn(object, key) ? object[key] : undefined
