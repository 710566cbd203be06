/** A route's pattern is literal text and named groups in turn. */
export type RoutePart =
  | { readonly kind: 'literal'; readonly text: string }
  /** An unescaped dot between digits (`oembed/1.0`): it matches any character, and a dot is meant. */
  | { readonly kind: 'dot' }
  | { readonly kind: 'parameter'; readonly name: string; readonly source: string }

/** Unescaped text, and punctuation that patterns write escaped. */
const literal = /(?:[\w~%/-]|\\[./\-_])+/y
const versionDot = /(?<=\d)\.(?=\d)/y
const groupOpening = /\(\?P<([A-Za-z_]\w{0,63})>/y

const matchAt = (expression: RegExp, pattern: string, at: number): RegExpExecArray | null => {
  expression.lastIndex = at
  return expression.exec(pattern)
}

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

/**
 * Reads a pattern as WordPress announces it. Undefined for anything else, e.g. unnamed groups or quantifiers outside a group:
 * no template describes their paths, and they have no canonical spelling.
 */
export const routeParts = (pattern: string): readonly RoutePart[] | undefined => {
  const parts: RoutePart[] = []
  const names = new Set<string>()
  for (let at = 0; at < pattern.length; ) {
    const text = matchAt(literal, pattern, at)?.[0]
    const [opening = '', name] = matchAt(groupOpening, pattern, at) ?? []
    if (text !== undefined) {
      parts.push({ kind: 'literal', text: text.replaceAll('\\', '') })
      at += text.length
    } else if (matchAt(versionDot, pattern, at) !== null) {
      parts.push({ kind: 'dot' })
      at += 1
    } else if (name !== undefined && !names.has(name)) {
      const end = groupEnd(pattern, at)
      if (end === pattern.length) return undefined
      names.add(name)
      parts.push({ kind: 'parameter', name, source: pattern.slice(at + opening.length, end) })
      at = end + 1
    } else return undefined
  }
  return parts
}

const templateText = (part: RoutePart): string => {
  if (part.kind === 'parameter') return `{${part.name}}`
  return part.kind === 'dot' ? '.' : part.text
}

/** The template of a pattern, e.g. `/site/v2/posts/{id}`. */
export const routeTemplate = (pattern: string): string | undefined =>
  routeParts(pattern)?.map(templateText).join('')
