/** Where the next parameter of a query or form begins; its length where there is none. Empty ones are passed over. */
export const parameterStart = (text: string, from: number): number => {
  let at = from
  // One by one: a search for the end of each would be a million of them in a content of nothing else.
  while (text[at] === '&') at += 1
  return at
}

/** Where the parameter ends that begins there. */
export const parameterEnd = (text: string, start: number): number => {
  const ampersand = text.indexOf('&', start)
  return ampersand < 0 ? text.length : ampersand
}

/** A form with a longer name, as it is written, is refused: no argument's name is nearly as long, and reading it is work. */
export const longestParameterName = 1024

/** Whether the values of the parameter are names of fields or relations, which are mapped one by one. */
export const listsNames = (decodedName: string): boolean =>
  decodedName.startsWith('_fields') || decodedName.startsWith('_embed')

const folds = /[ .[]/

/**
 * PHP turns these into `_`, because a variable could not carry them. Not by a global pattern, which takes a fifth of a
 * second for a million of them.
 */
const foldName = (name: string): string =>
  folds.test(name) ? name.split('.').join('_').split(' ').join('_').split('[').join('_') : name

const spaceBytes = ' \t\n\v\f\r'

/** A parameter's name as PHP files it, and what stands in brackets behind it. */
type PhpName = {
  readonly name: string
  /** `null` is an empty index. */
  readonly indexes: readonly (string | null)[]
}

/**
 * Reads a decoded name as PHP does: leading spaces go, what stands behind a NUL is cut, a closed bracket ends the name.
 * undefined: there is no name, and PHP drops the parameter.
 */
export const splitPhpName = (decoded: string): PhpName | undefined => {
  const end = decoded.indexOf('\0')
  const text = (end < 0 ? decoded : decoded.slice(0, end)).replace(/^ +/, '')
  let bracket = text.indexOf('[')
  if (bracket === 0 || text === '') return undefined
  if (bracket < 0) return { name: foldName(text), indexes: [] }
  const name = foldName(text.slice(0, bracket))
  const indexes: (string | null)[] = []
  while (text[bracket] === '[') {
    const blank = spaceBytes.includes(text[bracket + 1] ?? '-') ? 1 : 0
    if (text[bracket + 1 + blank] === ']') {
      indexes.push(null)
      bracket += blank + 2
      continue
    }
    const close = text.indexOf(']', bracket + 1)
    // An unclosed bracket belongs to the name when it is the first one, and is ignored with all that follows otherwise.
    if (close < 0) return indexes.length === 0 ? { name: foldName(text), indexes } : { name, indexes }
    indexes.push(text.slice(bracket + 1, close))
    bracket = close + 1
  }
  return { name, indexes }
}

/** The name under which PHP files a query or form parameter; '' for what it drops. */
export const foldPhpName = (decoded: string): string => splitPhpName(decoded)?.name ?? ''
