/** Longer values are left to the upstream's own check. */
const maxTextLength = 4096

type Token = { readonly kind: 'atom' | 'start' | 'end'; readonly quantifier: string }

const tokenPattern =
  /(\^)|(\$)|(?:\\[dwsDWS]|\\[^A-Za-z0-9]|\[\^?(?:\\.|[^\]\\])+\]|[^\\[\](){}|*+?.^$]|\.)(\*|\+|\?|\{\d{1,3}\})?(?![*+?{])/y

/**
 * The pattern as a sequence of atoms; undefined when it has groups, alternatives, or anything else that can make a matcher
 * backtrack.
 */
const tokensOf = (pattern: string): Token[] | undefined => {
  const tokens: Token[] = []
  tokenPattern.lastIndex = 0
  while (tokenPattern.lastIndex < pattern.length) {
    const match = tokenPattern.exec(pattern)
    if (match === null) return undefined
    const kind = match[1] !== undefined ? 'start' : match[2] !== undefined ? 'end' : 'atom'
    tokens.push({ kind, quantifier: match[3] ?? '' })
  }
  return tokens
}

/**
 * Whether one pass over the text is enough: variable length only in the last atom, and a `$` behind it only when a `^` anchors
 * the start (an unanchored `a+$` is tried from every position, which is quadratic).
 */
const isLinear = (tokens: readonly Token[]): boolean => {
  const anchored = tokens[0]?.kind === 'start'
  const body = anchored ? tokens.slice(1) : tokens
  const ended = body.at(-1)?.kind === 'end'
  const atoms = ended ? body.slice(0, -1) : body
  if (atoms.some((token) => token.kind !== 'atom')) return false
  const variable = atoms.findIndex((token) => '*+?'.includes(token.quantifier || ' '))
  if (variable >= 0 && variable !== atoms.length - 1) return false
  return variable < 0 || anchored || !ended
}

/** Whether a text contains a match; undefined leaves the check to the upstream. */
type PatternCheck = (text: string) => boolean | undefined

const undecided: PatternCheck = () => undefined

/**
 * A check for the pattern of a schema, possibly from an upstream's discovery document. Only patterns that cannot backtrack run
 * here; all others are left to the upstream, which checks the same pattern. Not RE2: to search a text it builds an automaton
 * of up to 8 MiB for each pattern, without a setting for that bound.
 */
export const compilePattern = (pattern: string): PatternCheck => {
  const tokens = pattern.length > 512 ? undefined : tokensOf(pattern)
  if (tokens === undefined || !isLinear(tokens)) return undecided
  // Escaped punctuation (`\%`) is an error in JavaScript's u mode and meaningless without it.
  const expression = new RegExp(pattern)
  return (text) => (text.length > maxTextLength ? undefined : expression.test(text))
}
