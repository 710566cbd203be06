/**
 * The JSON text of each item's `body`, cut out of the text of the batch. A parsed body would have to be written anew, and
 * an integer of more than 53 bits, or a repeated name, would not come out as it went in.
 *
 * The text has been parsed already, so it is known to be JSON and not too deep: this scanner only finds where values end.
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

/** Of a repeated name the last one counts, as in JSON.parse and in PHP. */
const member = (text: JsonText, name: string): JsonText | undefined => {
  let found: JsonText | undefined
  if (text.startsWith('{')) for (const part of parts(text, true)) if (part.name === name) found = part.value
  return found
}

/** For each item the text of its `body`, undefined for one without. */
export const rawBodies = (batch: JsonText): readonly (JsonText | undefined)[] => {
  const requests = member(batch.trim(), 'requests')
  if (requests === undefined || !requests.startsWith('[')) return []
  return [...parts(requests, false)].map(({ value }) => member(value, 'body'))
}
