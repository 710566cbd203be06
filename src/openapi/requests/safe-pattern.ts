import { RE2JS, RE2JSException } from 're2js'

/** A pattern of a document that runs in linear time. A text that is too long for it counts as matching: the upstream checks it. */
export type SafePattern = {
  test(text: string): boolean
  /** The work of a test, of some 0.1 µs each. */
  stepsOf(text: string): number
  toString(): string
}

const maxCharacters = 2_000
const maxInstructions = 5_000
/** Each character of a text costs at most one visit to each instruction, so a match takes a few milliseconds at most. */
const maxSteps = 100_000

/** White space and the end of a line as ECMAScript has them; RE2 has fewer. */
const space =
  '\\t\\n\\v\\f\\r \\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}\\x{202f}\\x{205f}\\x{3000}\\x{feff}'
const notLineEnd = '[^\\n\\r\\x{2028}\\x{2029}]'

const single: Readonly<Record<string, string>> = { '/': '/', '-': '\\-', v: '\\v', '0': '\\x00' }

/** Long names of general categories (Unicode Standard Annex 44, table 12). RE2 has the short ones, and those of scripts. */
const categories: ReadonlyMap<string, string> = new Map(
  [
    'L Letter|Lu Uppercase_Letter|Ll Lowercase_Letter|Lt Titlecase_Letter|Lm Modifier_Letter|Lo Other_Letter',
    'M Mark|M Combining_Mark|Mn Nonspacing_Mark|Mc Spacing_Mark|Me Enclosing_Mark',
    'N Number|Nd Decimal_Number|Nd digit|Nl Letter_Number|No Other_Number',
    'P Punctuation|P punct|Pc Connector_Punctuation|Pd Dash_Punctuation|Ps Open_Punctuation|Pe Close_Punctuation',
    'Pi Initial_Punctuation|Pf Final_Punctuation|Po Other_Punctuation',
    'S Symbol|Sm Math_Symbol|Sc Currency_Symbol|Sk Modifier_Symbol|So Other_Symbol',
    'Z Separator|Zs Space_Separator|Zl Line_Separator|Zp Paragraph_Separator|Cc Control|Cc cntrl|Cf Format',
  ].flatMap((row) => row.split('|').map((pair) => pair.split(' ').reverse() as [string, string])),
)

/** `inClass` undefined: the translation holds inside and outside of brackets. */
type EscapeRow = {
  readonly pattern: RegExp
  readonly inClass?: boolean
  /** Undefined: RE2 has nothing that means the same. */
  readonly text: ((match: RegExpExecArray) => string | undefined) | undefined
}

/** The first row that fits counts. */
const escapeRows: readonly EscapeRow[] = [
  { pattern: /^\\u[dD][89A-Fa-f][\dA-Fa-f]{2}/, text: undefined },
  {
    pattern: /^\\u(?:([\dA-Fa-f]{4})|\{([\dA-Fa-f]{1,6})\})/,
    text: ([, four, more]) => `\\x{${four ?? more}}`,
  },
  { pattern: /^\\s/, inClass: true, text: () => space },
  { pattern: /^\\s/, inClass: false, text: () => `[${space}]` },
  { pattern: /^\\S/, inClass: false, text: () => `[^${space}]` },
  { pattern: /^\\b/, inClass: true, text: () => '\\x08' },
  { pattern: /^\\[bB]/, inClass: false, text: ([text]) => text },
  { pattern: /^\\([/v0-])/, text: ([, sign = '']) => single[sign] },
  {
    pattern: /^\\([pP])\{(?:(?:General_Category|gc)=)?(\w{1,24})\}/,
    text: ([, sign, name = '']) => {
      const short = name.length <= 2 ? name : categories.get(name)
      return short && `\\${sign}{${short}}`
    },
  },
  { pattern: /^\\([pP])\{(?:Script|sc)=(\w{3,24})\}/, text: ([, sign, name]) => `\\${sign}{${name}}` },
  { pattern: /^\\x[\dA-Fa-f]{2}/, text: ([text]) => text },
  { pattern: /^\\[dDwWnrtf]/, text: ([text]) => text },
  // A letter or digit without a meaning, or a back reference.
  { pattern: /^\\[A-Za-z0-9]/, text: undefined },
  { pattern: /^\\./s, text: ([text]) => text },
]

/** A piece of a pattern in the syntax of RE2, and the number of characters that it stands for. */
type PatternPiece = { readonly text: string; readonly length: number }

const translatedEscape = (rest: string, inClass: boolean): PatternPiece | undefined => {
  for (const row of escapeRows) {
    const match = row.inClass === undefined || row.inClass === inClass ? row.pattern.exec(rest) : null
    if (match === null) continue
    const text = row.text?.(match)
    return text === undefined ? undefined : { text, length: match[0].length }
  }
  return undefined
}

const asItIs = (text: string): PatternPiece => ({ text, length: text.length })

/** What is neither an escape nor inside of brackets. */
const translatedPlain = (rest: string): PatternPiece | undefined => {
  switch (rest[0]) {
    case '.':
      return { text: notLineEnd, length: 1 }
    case '$':
      return { text: '\\z', length: 1 }
    case '(':
      // Look-around, and flags.
      return rest[1] === '?' && !/^\(\?(?::|<[A-Za-z])/.test(rest) ? undefined : asItIs('(')
    case '{':
      return /^\{\d+(?:,\d*)?\}/.test(rest) ? asItIs('{') : { text: '\\{', length: 1 }
    case '[': {
      const opening = rest[1] === '^' ? '[^' : '['
      // ECMAScript has empty classes; RE2 takes the bracket for a member.
      return rest[opening.length] === ']' ? undefined : asItIs(opening)
    }
    default:
      return asItIs(rest[0] ?? '')
  }
}

/** No row of the table looks further. */
const lookAhead = 48

/** The pattern of ECMAScript in the syntax of RE2. Undefined where both could differ, e.g. look-around. */
const translated = (pattern: string): string | undefined => {
  let text = ''
  let inClass = false
  for (let at = 0; at < pattern.length; ) {
    const rest = pattern.slice(at, at + lookAhead)
    const character = rest[0]
    let piece: PatternPiece | undefined
    if (character === '\\') piece = translatedEscape(rest, inClass)
    else if (inClass) piece = { text: character === '[' ? '\\[' : (character ?? ''), length: 1 }
    else piece = translatedPlain(rest)
    if (piece === undefined) return undefined
    if (character === '[') inClass = true
    else if (character === ']') inClass = false
    text += piece.text
    at += piece.length
  }
  return inClass ? undefined : text
}

/** One character or class, with how often it may occur. */
const plainAtom =
  /(?:\\[dDwWsS./\\^$*+?()[\]{}|-]|\[(?!\^\])\^?(?:[^\\[\]]|\\[dDwWsS./\\^$*+?()[\]{}|-])+\]|[^\\^$*+?()[\]{}|])(\{\d{1,2}(?:,\d{0,2})?\}|[*+?])?/y

/** Characters behind the one part of a variable length: the engine tries each of them again for each length. */
const maxTail = 16
const charactersOfNativeStep = 16

/** The quantifier of each part of a pattern, '' for none; undefined where it has groups, alternatives or other signs. */
const quantifiersOf = (parts: string): readonly string[] | undefined => {
  const quantifiers: string[] = []
  for (let at = 0; at < parts.length; at = plainAtom.lastIndex) {
    plainAtom.lastIndex = at
    const match = plainAtom.exec(parts)
    if (match === null) return undefined
    quantifiers.push(match[1] ?? '')
  }
  return quantifiers
}

const isFixed = (quantifier: string): boolean => quantifier === '' || /^\{\d+\}$/.test(quantifier)

/**
 * The characters that the engine's own matcher visits for each one of a text; undefined for a pattern that may take it more: one that
 * has groups or alternatives, several parts of a variable length, or one without an anchor before it.
 */
const nativeVisits = (source: string): number | undefined => {
  const isAnchored = source.startsWith('^')
  const quantifiers = quantifiersOf(source.slice(isAnchored ? 1 : 0).replace(/(?<!\\)\$$/, ''))
  if (quantifiers === undefined) return undefined
  const variable = quantifiers.findIndex((quantifier) => !isFixed(quantifier))
  const fixed = quantifiers.slice(variable + 1)
  if ((variable !== -1 && !isAnchored) || !fixed.every(isFixed)) return undefined
  const tail = fixed.reduce((sum, quantifier) => sum + Number(quantifier.slice(1, -1) || 1), 0)
  return tail <= maxTail ? 1 + tail : undefined
}

/** Most patterns in use are simple, and the engine's own matcher takes a fiftieth of the time for them. */
const compiledNatively = (source: string): SafePattern | undefined => {
  const visits = source.length > maxCharacters ? undefined : nativeVisits(source)
  if (visits === undefined) return undefined
  try {
    const expression = new RegExp(source, 'u')
    return {
      test: (text) => expression.test(text),
      stepsOf: ({ length }) => (length * visits) / charactersOfNativeStep,
      toString: () => source,
    }
  } catch {
    // Not one of ECMAScript with Unicode.
    return undefined
  }
}

const compile = (source: string): SafePattern | undefined => {
  const native = compiledNatively(source)
  if (native !== undefined) return native
  const text = source.length > maxCharacters ? undefined : translated(source)
  if (text === undefined) return undefined
  try {
    const compiled = RE2JS.compile(text)
    const size = compiled.programSize()
    if (size > maxInstructions) return undefined
    const longest = Math.floor(maxSteps / size)
    return {
      test: (value) => value.length > longest || compiled.matcher(value).find(),
      stepsOf: ({ length }) => Math.min(length, longest),
      // ajv distinguishes the patterns of a schema by this text.
      toString: () => text,
    }
  } catch (error) {
    if (error instanceof RE2JSException) return undefined
    throw error
  }
}

const patterns = new Map<string, SafePattern | undefined>()
/** Documents hold the patterns; a reload may change them. */
const maxPatterns = 20_000

/** The pattern of a schema, or undefined when it cannot be run safely with the same result: then it is not checked. */
export const safePattern = (source: string): SafePattern | undefined => {
  if (patterns.has(source)) return patterns.get(source)
  const pattern = compile(source)
  if (patterns.size >= maxPatterns) patterns.clear()
  patterns.set(source, pattern)
  return pattern
}
