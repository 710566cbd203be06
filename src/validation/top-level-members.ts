/** One member of a JSON object: its name and the source text of its value. */
export type Member = { readonly name: string; readonly source: string }

const quote = 34
const backslash = 92
const comma = 44
const openingBrace = 123
const closingBrace = 125
const openingBracket = 91
const closingBracket = 93

/** Index behind the string that starts at `from`. */
const behindString = (text: string, from: number): number => {
  let i = from + 1
  while (text.charCodeAt(i) !== quote) i += text.charCodeAt(i) === backslash ? 2 : 1
  return i + 1
}

/** Index of the comma or bracket that ends the value starting at `from`. */
const behindValue = (text: string, from: number): number => {
  let depth = 0
  let i = from
  for (;;) {
    const code = text.charCodeAt(i)
    if (code === quote) {
      i = behindString(text, i)
      continue
    }
    if (depth === 0 && (code === comma || code === closingBrace)) return i
    if (code === openingBrace || code === openingBracket) depth += 1
    if (code === closingBrace || code === closingBracket) depth -= 1
    i += 1
  }
}

/** Most names are written as they are. */
const nameOf = (written: string): string =>
  written.includes('\\') ? (JSON.parse(written) as string) : written.slice(1, -1)

/**
 * The members of a JSON object in their order, with the text they were written in: a parser would have rounded integers beyond 2^53
 * and forgotten repeated names. The text must be an object that JSON.parse accepts.
 */
export const topLevelMembers = (text: string): Member[] => {
  const members: Member[] = []
  let i = text.indexOf('{') + 1
  for (;;) {
    while (text.charCodeAt(i) !== quote && text.charCodeAt(i) !== closingBrace) i += 1
    if (text.charCodeAt(i) === closingBrace) return members
    const endOfName = behindString(text, i)
    const colon = text.indexOf(':', endOfName)
    const end = behindValue(text, colon + 1)
    members.push({ name: nameOf(text.slice(i, endOfName)), source: text.slice(colon + 1, end).trim() })
    i = end + 1
    if (text.charCodeAt(end) === closingBrace) return members
  }
}
