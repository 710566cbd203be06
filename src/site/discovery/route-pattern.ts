/** A route's pattern in two readings. */
export type RouteShape = {
  /** `/site/v2/posts/{id}`. */
  readonly template: string
  readonly parameters: readonly string[]
}

const groupOpening = /^\(\?P<([A-Za-z_]\w{0,63})>/
const literal = /^[\w~%/-]$/
/** Punctuation that patterns write escaped. */
const escapedLiteral = /^[./\-_]$/

const classEnd = (pattern: string, open: number): number => {
  // A bracket right behind the opening one is a member of the class.
  let at = pattern[open + 1] === '^' ? open + 2 : open + 1
  if (pattern[at] === ']') at++
  for (; at < pattern.length && pattern[at] !== ']'; at++) if (pattern[at] === '\\') at++
  return at
}

/** Position of the parenthesis that closes the group opened at `open`; the pattern's length when there is none. */
const groupEnd = (pattern: string, open: number): number => {
  let depth = 0
  for (let at = open; at < pattern.length; at++) {
    const character = pattern[at]
    if (character === '\\') at++
    else if (character === '[') at = classEnd(pattern, at)
    else if (character === '(') depth++
    else if (character === ')' && --depth === 0) return at
  }
  return pattern.length
}

/** `/oembed/1.0`: a dot that means any character, written where only a dot was meant. */
const isVersionDot = (pattern: string, at: number): boolean =>
  pattern[at] === '.' && /^\d\.\d$/.test(pattern.slice(at - 1, at + 2))

type Token = { readonly text: string; readonly parameter: string | undefined; readonly end: number }

const tokenAt = (pattern: string, at: number): Token | undefined => {
  const character = pattern[at] as string
  const parameter = character === '(' ? groupOpening.exec(pattern.slice(at, at + 72))?.[1] : undefined
  if (parameter !== undefined) {
    const end = groupEnd(pattern, at)
    return end === pattern.length ? undefined : { text: `{${parameter}}`, parameter, end: end + 1 }
  }
  const next = pattern[at + 1] ?? ''
  if (character === '\\' && escapedLiteral.test(next)) return { text: next, parameter, end: at + 2 }
  return literal.test(character) || isVersionDot(pattern, at)
    ? { text: character, parameter, end: at + 1 }
    : undefined
}

/**
 * Reads a pattern as WordPress announces it: literal text and named groups. Undefined for anything else, e.g. unnamed
 * groups or quantifiers outside a group, whose paths no template describes.
 */
export const shapeOf = (pattern: string): RouteShape | undefined => {
  let template = ''
  const parameters: string[] = []
  for (let at = 0; at < pattern.length; ) {
    const token = tokenAt(pattern, at)
    if (token === undefined) return undefined
    if (token.parameter !== undefined && parameters.includes(token.parameter)) return undefined
    if (token.parameter !== undefined) parameters.push(token.parameter)
    template += token.text
    at = token.end
  }
  return { template, parameters }
}
