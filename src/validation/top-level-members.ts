/** One member of a JSON object: its name and the source text of its value. */
export type Member = { readonly name: string; readonly source: string }

const quote = 34
const backslash = 92

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
    const character = text[i]
    if (character === '"') {
      i = behindString(text, i)
      continue
    }
    if (depth === 0 && (character === ',' || character === '}')) return i
    if (character === '{' || character === '[') depth += 1
    if (character === '}' || character === ']') depth -= 1
    i += 1
  }
}

/**
 * The members of a JSON object in their order, with the text they were written in: a parser would have rounded integers beyond 2^53
 * and forgotten repeated names. The text must be an object that JSON.parse accepts.
 */
export const topLevelMembers = (text: string): Member[] => {
  const members: Member[] = []
  let i = text.indexOf('{') + 1
  for (;;) {
    i = text.slice(i).search(/["}]/) + i
    if (text[i] === '}') return members
    const endOfName = behindString(text, i)
    const colon = text.indexOf(':', endOfName)
    const end = behindValue(text, colon + 1)
    members.push({
      name: JSON.parse(text.slice(i, endOfName)) as string,
      source: text.slice(colon + 1, end).trim(),
    })
    i = end + 1
    if (text[end] === '}') return members
  }
}
