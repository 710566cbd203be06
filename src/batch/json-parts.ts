/**
 * Cuts JSON text into the texts of its parts. A parsed value would have to be written anew, and an integer of more than
 * 53 bits, or a repeated name, would not come out as it went in.
 *
 * The text must have been parsed before, so that it is known to be JSON: this scanner only finds where values end.
 */
export type JsonText = string

const whitespace = /[\t\n\r ]*/y
const scalarToken = /[^\t\n\r ,\]}]+/y

const endOf = (pattern: RegExp, text: JsonText, from: number): number => {
  pattern.lastIndex = from
  return pattern.test(text) ? pattern.lastIndex : from
}

/** A quote ends a string unless an odd number of backslashes stands before it. */
const stringEnd = (text: JsonText, from: number): number => {
  let quote = text.indexOf('"', from + 1)
  while (quote !== -1) {
    let slashes = 0
    while (text[quote - 1 - slashes] === '\\') slashes += 1
    if (slashes % 2 === 0) return quote + 1
    quote = text.indexOf('"', quote + 1)
  }
  return text.length
}

const skipSpace = (text: JsonText, from: number): number => endOf(whitespace, text, from)

/** Where the value that begins at `from` ends. */
const valueEnd = (text: JsonText, from: number): number => {
  const first = text[from]
  if (first === '"') return stringEnd(text, from)
  if (first !== '{' && first !== '[') return endOf(scalarToken, text, from)
  let depth = 0
  let at = from
  while (at < text.length) {
    const character = text[at]
    if (character === '"') {
      at = stringEnd(text, at)
      continue
    }
    if (character === '{' || character === '[') depth += 1
    if (character === '}' || character === ']') depth -= 1
    at += 1
    if (depth === 0) return at
  }
  return at
}

/** The texts of the elements of an array, or of the members of an object with their names. */
function* parts(text: JsonText, isObject: boolean): Generator<{ name: string; value: JsonText }> {
  let at = skipSpace(text, 1)
  while (at < text.length && text[at] !== ']' && text[at] !== '}') {
    let name = ''
    if (isObject) {
      const nameEnd = stringEnd(text, at)
      name = JSON.parse(text.slice(at, nameEnd)) as string
      at = skipSpace(text, skipSpace(text, nameEnd) + 1)
    }
    const end = valueEnd(text, at)
    yield { name, value: text.slice(at, end) }
    const comma = skipSpace(text, end)
    at = text[comma] === ',' ? skipSpace(text, comma + 1) : comma
  }
}

/** The members of an object by name; none of anything else. Of a repeated name the last one counts, as in JSON.parse and in PHP. */
export const members = (text: JsonText): ReadonlyMap<string, JsonText> => {
  const found = new Map<string, JsonText>()
  if (text.startsWith('{')) for (const { name, value } of parts(text, true)) found.set(name, value)
  return found
}

/** The elements of an array; undefined for anything else. */
export const elements = (text: JsonText): readonly JsonText[] | undefined =>
  text.startsWith('[') ? Array.from(parts(text, false), ({ value }) => value) : undefined
