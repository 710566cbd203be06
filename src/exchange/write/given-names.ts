import type { Readable } from 'node:stream'
import { queryParameters } from '../../http/form-text.ts'
import { isJsonObject, parsedJson } from '../../http/json-text.ts'

/** Names that every route takes, which change no item, and the id that the path has already. */
const ofEveryRoute: ReadonlySet<string> = new Set([
  ...['_embed', '_envelope', '_fields', '_jsonp', '_locale', '_pretty', '_wpnonce', 'context', 'id'],
])

/** Longer contents are not read a second time. */
const longestRead = 262_144

const isJson = (contentType: string | undefined): boolean =>
  contentType !== undefined && /^application\/json\s*(?:;|$)/i.test(contentType)

const membersOf = (content: Buffer): readonly string[] | undefined => {
  const value = parsedJson(content.toString())
  return isJsonObject(value) ? Object.keys(value) : undefined
}

/** `a[b][]` gives a value to `a`. */
const parametersOf = (query: string): readonly string[] =>
  queryParameters(query).map(([name]) => name.split('[', 1)[0] ?? name)

/**
 * Names of all arguments to which a write gives a value, whether its route declares them or not: what they do not name the write does
 * not change. undefined when the content is no JSON object, was not read, or is long.
 */
export const givenNames = (
  query: string,
  contentType: string | undefined,
  content: Buffer | Readable | undefined,
): readonly string[] | undefined => {
  if (content !== undefined && (!Buffer.isBuffer(content) || content.length > longestRead)) return undefined
  const isEmpty = content === undefined || content.length === 0
  const members = isEmpty ? [] : isJson(contentType) ? membersOf(content) : undefined
  if (members === undefined) return undefined
  return [...parametersOf(query), ...members].filter((name) => !ofEveryRoute.has(name))
}
