import { essence } from './headers/media-type.ts'

/** An object as JSON.parse gives it. */
export type JsonObject = Readonly<Record<string, unknown>>

/** Whether a parsed value is an object and not a list. */
export const isJsonObject = (value: unknown): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** The value of a JSON text; undefined for any other text. */
export const parsedJson = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** An own member: a key that a client or an upstream chose must never find `constructor` or `__proto__`. */
export const ownMember = <Value>(object: Readonly<Record<string, Value>>, key: string): Value | undefined =>
  Object.hasOwn(object, key) ? object[key] : undefined

/**
 * JSON as text, cut into the texts of its parts. A parsed value would have to be written anew, and an integer of more than
 * 53 bits, or a repeated name, would change.
 *
 * Only for text that JSON.parse has accepted, except where a function states otherwise.
 */
export type JsonText = string

const isSpace = (code: number): boolean => code === 0x20 || code === 0x0a || code === 0x0d || code === 0x09

export const skipSpace = (text: JsonText, from: number): number => {
  let at = from
  while (isSpace(text.charCodeAt(at))) at++
  return at
}

export const quote = 0x22
export const backslash = 0x5c
export const comma = 0x2c
export const openBrace = 0x7b

export const opens = (code: number): boolean => code === openBrace || code === 0x5b
export const closes = (code: number): boolean => code === 0x7d || code === 0x5d

/** Position behind the string that begins at `from`. A quote ends it unless an odd number of backslashes stands before. */
export const stringEnd = (text: JsonText, from: number): number => {
  let end = text.indexOf('"', from + 1)
  while (end !== -1) {
    let slashes = 0
    while (text.charCodeAt(end - 1 - slashes) === backslash) slashes += 1
    if (slashes % 2 === 0) return end + 1
    end = text.indexOf('"', end + 1)
  }
  return text.length
}

const scalarEnd = (text: JsonText, from: number): number => {
  let at = from
  for (; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code === comma || closes(code) || isSpace(code)) break
  }
  return at
}

/** Position behind the value that begins at `from`. */
export const valueEnd = (text: JsonText, from: number): number => {
  const first = text.charCodeAt(from)
  if (first === quote) return stringEnd(text, from)
  if (!opens(first)) return scalarEnd(text, from)
  let depth = 0
  let at = from
  while (at < text.length) {
    const code = text.charCodeAt(at)
    if (code === quote) {
      at = stringEnd(text, at)
      continue
    }
    if (opens(code)) depth += 1
    if (closes(code)) depth -= 1
    at += 1
    if (depth === 0) return at
  }
  return at
}

/** Gets the position where a value begins, and returns the position behind it. */
type VisitValue = (from: number, name: string) => number

/** The string that the text from `from` to `end` spells. */
export const stringAt = (text: JsonText, from: number, end: number): string => {
  const inner = text.slice(from + 1, end - 1)
  return inner.includes('\\') ? (JSON.parse(text.slice(from, end)) as string) : inner
}

/** Visits the elements of the list, or the members of the object, that begins at `from`; returns the position behind it. */
export const visitValues = (text: JsonText, from: number, visit: VisitValue): number => {
  const isObject = text[from] === '{'
  let at = skipSpace(text, from + 1)
  while (at < text.length && !closes(text.charCodeAt(at))) {
    let name = ''
    if (isObject) {
      const end = stringEnd(text, at)
      name = stringAt(text, at, end)
      at = skipSpace(text, skipSpace(text, end) + 1)
    }
    const end = skipSpace(text, visit(at, name))
    at = text.charCodeAt(end) === comma ? skipSpace(text, end + 1) : end
  }
  return at + 1
}

/** Visits the members of an object, repeated names too; nothing else has members. */
export const visitMembers = (
  text: JsonText,
  visit: (name: string, from: number, end: number) => void,
): void => {
  const start = skipSpace(text, 0)
  if (text.charCodeAt(start) !== openBrace) return
  visitValues(text, start, (from, name) => {
    const end = valueEnd(text, from)
    visit(name, from, end)
    return end
  })
}

/** The text of a member: the last one where the name is repeated, as in JSON.parse. */
export const memberText = (text: JsonText, wanted: string): JsonText | undefined => {
  let member: JsonText | undefined
  visitMembers(text, (name, from, end) => {
    if (name === wanted) member = text.slice(from, end)
  })
  return member
}

/** The texts of a list's elements; undefined for anything else. */
export const elementTexts = (text: JsonText): readonly JsonText[] | undefined => {
  if (!text.startsWith('[')) return undefined
  const elements: JsonText[] = []
  visitValues(text, 0, (from) => {
    const end = valueEnd(text, from)
    elements.push(text.slice(from, end))
    return end
  })
  return elements
}

const byName = ([one]: readonly [string, string], [other]: readonly [string, string]): number =>
  one < other ? -1 : one > other ? 1 : 0

/**
 * The one text of a value, whatever its spaces and the order of its members. Numbers and strings stay as they are spelled, and so do
 * repeated members.
 */
export const canonicalJson = (text: JsonText): JsonText => {
  const written = (from: number): readonly [text: string, end: number] => {
    const first = text.charCodeAt(from)
    if (!opens(first)) {
      const end = valueEnd(text, from)
      return [text.slice(from, end), end]
    }
    const parts: (readonly [name: string, text: string])[] = []
    const end = visitValues(text, from, (at, name) => {
      const [value, behind] = written(at)
      parts.push([name, value])
      return behind
    })
    return first === openBrace
      ? [`{${parts.sort(byName).map(([name, value]) => `${JSON.stringify(name)}:${value}`)}}`, end]
      : [`[${parts.map(([, value]) => value)}]`, end]
  }
  return written(skipSpace(text, 0))[0]
}

/** How deep objects and lists are nested; 0 for anything else. Also for text that was not parsed yet. */
export const nestingDepth = (text: string): number => {
  let depth = 0
  let deepest = 0
  for (let at = 0; at < text.length; ) {
    const code = text.charCodeAt(at)
    if (opens(code)) depth += 1
    else if (closes(code)) depth -= 1
    deepest = Math.max(deepest, depth)
    at = code === quote ? stringEnd(text, at) : at + 1
  }
  return deepest
}

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

/** The types of JSON Schema. */
export const jsonTypes: ReadonlySet<unknown> = new Set(
  'string integer number boolean array object null'.split(' '),
)

const unicodeEscape = (character: string): string =>
  `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`

/** JSON as the site contract has it: slashes escaped and nothing outside ASCII, so that text comparisons find no difference. */
export const asciiJson = (value: unknown): string =>
  (JSON.stringify(value) ?? 'null').replaceAll('/', '\\/').replace(/[\u0080-\uffff]/g, unicodeEscape)
