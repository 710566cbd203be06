import { isUtf8 } from 'node:buffer'
import { backslash, closes, comma, opens, quote } from './json-text.ts'
import { essence } from './message.ts'

type MediaType = 'json' | 'form' | 'other'

const json = /^application\/(?:[a-z0-9!#$&^_.+-]+\+)?json$/

/**
 * Type and subtype decide; parameters such as charset do not (RFC 9110 §8.3.1). `application/problem+json` is JSON too (RFC
 * 6839 §3.1).
 */
export const mediaTypeOf = (contentType: string | undefined): MediaType => {
  if (contentType === undefined || contentType.length > 256) return 'other'
  const value = essence(contentType)
  if (value === 'application/x-www-form-urlencoded') return 'form'
  return json.test(value) ? 'json' : 'other'
}

/** Content read as JSON, or why it cannot be. */
type JsonReading =
  | { readonly kind: 'read'; readonly value: unknown }
  | { readonly kind: 'refused'; readonly code: number; readonly message: string }
  | { readonly kind: 'too-many-values' }

/**
 * The number of the shortest values in a megabyte. Parsing a value takes as long as reading many characters of a text and blocks
 * the event loop: a longer content may have longer texts, but not more values.
 */
export const maxJsonValues = 1 << 19

/** Each name that occurs once is kept in a table of the engine: ten times the work of another value. */
const maxJsonMembers = 1 << 16

const refusals = {
  depth: { kind: 'refused', code: 1, message: 'Maximum stack depth exceeded' },
  control: { kind: 'refused', code: 3, message: 'Control character error, possibly incorrectly encoded' },
  syntax: { kind: 'refused', code: 4, message: 'Syntax error' },
  utf8: { kind: 'refused', code: 5, message: 'Malformed UTF-8 characters, possibly incorrectly encoded' },
  surrogate: { kind: 'refused', code: 10, message: 'Single unpaired UTF-16 surrogate in unicode escape' },
} as const satisfies Record<string, JsonReading>

/** End of the string that starts at `from`, or -1 when it is not closed or holds a control character. */
const endOfString = (text: string, from: number): number => {
  for (let i = from + 1; i < text.length; i++) {
    const code = text.charCodeAt(i)
    if (code === quote) return i
    if (code < 32) return -1
    if (code === backslash) i += 1
  }
  return -1
}

const colon = 0x3a

const depthStep = (code: number): number => (opens(code) ? 1 : closes(code) ? -1 : 0)
/** A value follows each of these. */
const valueStep = (code: number): number => (code === comma || opens(code) ? 1 : 0)
const memberStep = (code: number): number => (code === colon ? 1 : 0)
const isControl = (code: number): boolean => code < 32 && code !== 9 && code !== 10 && code !== 13

/** Checks depth and number of values of a text; gives the number of members, with those whose name is repeated. */
export const readStructure = (text: string, maxDepth: number): 'depth' | 'control' | 'values' | number => {
  let depth = 0
  let values = 0
  let members = 0
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i)
    if (code === quote) {
      i = endOfString(text, i)
      if (i < 0) return 'control'
      continue
    }
    if (isControl(code)) return 'control'
    depth += depthStep(code)
    values += valueStep(code)
    members += memberStep(code)
    if (depth > maxDepth) return 'depth'
    if (values > maxJsonValues) return 'values'
  }
  return members
}

const escapedSurrogate = /\\u[dD][89a-fA-F]/
const loneSurrogate = /\p{Surrogate}/u

const holdsLoneSurrogate = (value: unknown): boolean => {
  if (typeof value === 'string') return loneSurrogate.test(value)
  if (typeof value !== 'object' || value === null) return false
  if (Array.isArray(value)) return value.some(holdsLoneSurrogate)
  return Object.keys(value).some(
    (key) => loneSurrogate.test(key) || holdsLoneSurrogate((value as Record<string, unknown>)[key]),
  )
}

/** The value of a text of which depth and number of values are known to be bounded; a byte order mark is a syntax error. */
export const parseJson = (text: string): Exclude<JsonReading, { readonly kind: 'too-many-values' }> => {
  try {
    const value: unknown = JSON.parse(text)
    const isLone = text.includes('\\') && escapedSurrogate.test(text) && holdsLoneSurrogate(value)
    return isLone ? refusals.surrogate : { kind: 'read', value }
  } catch {
    return refusals.syntax
  }
}

/** Reads JSON, with a bound on nesting. */
export const readJson = (content: Buffer, maxDepth: number): JsonReading => {
  if (!isUtf8(content)) return refusals.utf8
  const text = content.toString('utf8')
  const members = readStructure(text, maxDepth)
  if (members === 'values') return { kind: 'too-many-values' }
  if (typeof members === 'string') return refusals[members]
  return members > maxJsonMembers ? { kind: 'too-many-values' } : parseJson(text)
}

/** The types of JSON Schema. */
export const jsonTypes: ReadonlySet<unknown> = new Set(
  'string integer number boolean array object null'.split(' '),
)
