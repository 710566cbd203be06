import { RE2JS, RE2JSException } from 're2js'
import type { PathRefusal } from './row.ts'

/** Stands in a cleaned path for `%2F`: text inside an identifier, but never a separator. No cleaned path has it otherwise. */
export const encodedSlash = '\u0080'

/** Stands for a byte that is not ASCII, where an upstream reads a path with its escapes undone. */
const foreignByte = '\u0081'

/**
 * A path in the one form that patterns are matched against: ASCII only, percent-decoded except for `%25` and for what is
 * not ASCII, `%2F` as its own character. Spelling it again (`spelled`) and cleaning the result gives the same text.
 */
type CleanedPath =
  | { readonly kind: 'cleaned'; readonly text: string }
  | { readonly kind: 'refused'; readonly reason: PathRefusal }

/** How much to decode: everything, as sites do, or only what RFC 3986 §6.2.2.2 calls equivalent. */
type Decoding = 'all' | 'unreserved'

const refused = (reason: PathRefusal): CleanedPath => ({ kind: 'refused', reason })

/** Nothing to decode and nothing to refuse but dot segments. */
const plain = /^\/[\w\-.~!$&'()*+,;=:@/]*$/
const notPrintable = /[^!-~]/
const badEscape = /%(?![0-9A-Fa-f]{2})/
const controlEscape = /%(?:[01][0-9A-Fa-f]|7[Ff])/
const backslash = /\\|%5[Cc]/
const escapes = /(?:%[0-9A-Fa-f]{2})+/g
const unreserved = /[\w\-.~]/
/**
 * A separator in an escape counts too: decoded once more, the dots are a segment. Java servers cut `;params` before they resolve
 * segments, and Windows cuts spaces at the end.
 */
const dotSegment = /(?:^|[/\u0080]|%2F)\.\.?(?: |%20)*(?:[/\u0080;]|%2F|%3B|$)/

/** Why the raw spelling is refused. `#` and `?` never belong to a path (RFC 9112 §3.2.1). */
const refusalOfSpelling = (raw: string): PathRefusal | undefined => {
  const odd = notPrintable.exec(raw)?.[0]
  if (odd !== undefined) return odd < ' ' || odd === '\u007f' ? 'control-character' : 'bad-encoding'
  if (!raw.startsWith('/')) return 'not-absolute'
  if (/[#?]/.test(raw) || badEscape.test(raw)) return 'bad-encoding'
  if (controlEscape.test(raw)) return 'control-character'
  if (backslash.test(raw)) return 'backslash'
  return undefined
}

/** Upper-case escapes of the UTF-8 bytes; `encodeURIComponent` leaves some ASCII alone. */
const escaped = (character: string): string =>
  character < '\u0080'
    ? `%${character.charCodeAt(0).toString(16).toUpperCase().padStart(2, '0')}`
    : encodeURIComponent(character)

const decodedCharacter = (character: string, decoding: Decoding): string => {
  if (decoding === 'unreserved') return unreserved.test(character) ? character : escaped(character)
  if (character === '/') return encodedSlash
  return character === '%' || character > '~' ? escaped(character) : character
}

/** Decodes each run of escapes, or undefined when one is not UTF-8: `decodeURIComponent` refuses overlong forms and surrogates. */
const decoded = (raw: string, decoding: Decoding): string | undefined => {
  try {
    return raw.replace(escapes, (run) =>
      Array.from(decodeURIComponent(run), (character) => decodedCharacter(character, decoding)).join(''),
    )
  } catch (error) {
    if (error instanceof URIError) return undefined
    throw error
  }
}

/** Cleans the spelling of a path; slashes are left as they are. */
export const cleanSpelling = (raw: string, decoding: Decoding): CleanedPath => {
  let text: string | undefined = raw
  if (!plain.test(raw)) {
    const reason = refusalOfSpelling(raw)
    if (reason !== undefined) return refused(reason)
    text = decoded(raw, decoding)
    if (text === undefined) return refused('bad-encoding')
  }
  return dotSegment.test(text) ? refused('dot-segment') : { kind: 'cleaned', text }
}

/** Merges slashes and drops the last one: the same route to a site. */
export const withSingleSlashes = (text: string): string => {
  const single = text.includes('//') ? text.replace(/\/{2,}/g, '/') : text
  return single.length > 1 && single.endsWith('/') ? single.slice(0, -1) : single
}

/** A cleaned path as it is sent: what RFC 3986 §3.3 does not allow in a path is escaped again. */
export const spelled = (text: string): string =>
  plain.test(text) ? text : text.replace(/[^\w\-.~!$&'()*+,;=:@/%]/g, escaped)

/** A cleaned path as a matcher of bytes reads it once all escapes are decoded. */
export const withForeignBytes = (text: string): string =>
  text.includes('%') ? text.replace(/%[89A-F][0-9A-F]/g, foreignByte) : text

/** The value of a part of a cleaned path, decoded. */
export const decodedValue = (text: string): string => (text.includes('%') ? decodeURIComponent(text) : text)

/** How the identifiers of a parameter are spelled: `number` without leading zeros, `template` with its slash doubled. */
type IdentifierForm = 'number' | 'template' | 'text'

/** Far above a theme's directory with a slug. */
const maxLength = 512

/** Digits of the largest 64-bit integer. To sites all longer numbers are the same one, which must not get many cache keys. */
const maxDigits = 19

const everySlash = new RegExp(`[/${encodedSlash}]+`, 'g')

/** Merges slashes between names and drops those around them. */
const withPlainSlashes = (value: string): string => {
  if (!value.includes('/') && !value.includes(encodedSlash)) return value
  const single = value.replace(everySlash, '/')
  return single.slice(single.startsWith('/') ? 1 : 0, single.endsWith('/') ? -1 : undefined)
}

/**
 * `theme/slug`, `theme//slug` and more slashes name one template: servers in front of a site merge doubled slashes, so it
 * doubles the last one itself. Its responses show the doubled form.
 */
const withDoubledSlash = (value: string): string => {
  const last = value.lastIndexOf('/')
  return last === -1 ? value : `${value.slice(0, last)}/${value.slice(last)}`
}

/** The one spelling of an identifier in a cleaned path; undefined when it is empty, `too-long` when no resource can have it. */
export const canonicalIdentifier = (raw: string, form: IdentifierForm): string | undefined | 'too-long' => {
  if (raw.length > maxLength) return 'too-long'
  const value = withPlainSlashes(raw)
  if (value === '') return undefined
  if (form === 'template') return withDoubledSlash(value)
  if (form === 'text' || !/^\+?\d+$/.test(value)) return value
  const digits = value.replace(/^\+?0*(?=\d)/, '')
  return digits.length > maxDigits ? 'too-long' : digits
}

export type PatternRefusal = 'pattern-too-long' | 'pattern-not-understood' | 'pattern-too-complex'

/** The canonical path is put together from these. */
export type PatternPart =
  | Exclude<RoutePart, { kind: 'parameter' }>
  | { readonly kind: 'parameter'; readonly name: string; readonly form: IdentifierForm }

export type Groups = ReadonlyMap<string, string>

const noGroups: Groups = new Map()

export type RowPattern = {
  readonly kind: 'pattern'
  readonly parts: readonly PatternPart[]
  /** Literal beginning up to its last slash, in lower case; the whole pattern when nothing else is in it. */
  readonly prefix: string
  readonly isLiteral: boolean
  /** Whether a path can be divided among the parts in one way at most. */
  readonly isDeterministic: boolean
  /** Groups of a cleaned path, given as it is and in lower case; undefined when the path does not match. */
  groupsOf(text: string, lower: string): Groups | undefined
}

type SkippedPattern = { readonly kind: 'skipped'; readonly reason: PatternRefusal }

const maxPatternLength = 500

/** Each character of a path costs at most one visit to each instruction; this bounds that product. */
const maxInstructions = 200

/** Bounds the time to compile: RE2 writes a counted repetition out. A few times `maxInstructions`, because it is an estimate. */
const maxExpansion = 800

/** Syntax that PCRE and RE2 may read differently: letters behind a backslash, other than these, and a count without a minimum. */
const uncertain = /[^ -~]|\\(?![dDwWsS]|[^A-Za-z0-9])|\{,/

const counts = /(.)\{(\d+)(?:,(\d*))?\}/g

/** At least the number of instructions that the pattern compiles to. */
const expansionOf = (pattern: string): number => {
  let single = pattern.length
  let nested = 1
  for (const [, before, min, max] of pattern.matchAll(counts)) {
    const times = Math.max(1, Number(min), Number(max ?? 0))
    if (before === ')') nested *= times
    else single += times
  }
  return single * nested
}

/** Sites match without regard to case. Undefined for syntax that RE2 has not, e.g. look-around and back references. */
const compiled = (pattern: string): RE2JS | undefined => {
  try {
    return RE2JS.compile(pattern, RE2JS.CASE_INSENSITIVE)
  } catch (error) {
    if (error instanceof RE2JSException) return undefined
    throw error
  }
}

/** Nothing but digits, and the slash and the plus sign that sites accept beside them. */
const numberSource = /^(?:\\d|\[(?:\\d|0-9|\\?[/+])+\])\+$/

/** `theme//slug` or `theme/subtheme//slug`: at most one slash inside the theme's name, any number behind it. */
export const templateIdentifier = '([^\\/:<>\\*\\?"\\|]+(?:\\/[^\\/:<>\\*\\?"\\|]+)?)[\\/\\w%-]+'

const identifierForm = (source: string): IdentifierForm => {
  if (numberSource.test(source)) return 'number'
  return source === templateIdentifier ? 'template' : 'text'
}

const repeatedSet = /^(\\[dDwWsS]|\[(?:\\.|[^\]\\])+\])\+$/

/** Whether each group repeats one set of characters, and the literal behind it begins with none of these. */
const isDeterministic = (parts: readonly RoutePart[]): boolean =>
  parts.every((part, index) => {
    if (part.kind !== 'parameter') return true
    const set = repeatedSet.exec(part.source)?.[1]
    const following = parts[index + 1]
    if (set === undefined) return false
    if (following === undefined) return true
    return following.kind === 'literal' && compiled(set)?.matches(following.text.charAt(0)) === false
  })

/** Whether all literals are in the path, in their order: most paths that do not match fail here. */
const hasLiterals = (literals: readonly string[], endsLiterally: boolean, lower: string): boolean => {
  let at = 0
  for (const literal of literals) {
    const position = lower.indexOf(literal, at)
    if (position === -1) return false
    at = position + literal.length
  }
  return !endsLiterally || lower.endsWith(literals.at(-1) ?? '')
}

/** Groups of a path that matches. An encoded slash is text inside an identifier, but never a separator. */
const groupsIn = (names: readonly string[], expression: RE2JS, text: string): Groups | undefined => {
  const matcher = expression.matcher(text.replaceAll(encodedSlash, '/'))
  if (!matcher.matches()) return undefined
  const groups = new Map<string, string>()
  let between = ''
  let at = 0
  for (const name of names) {
    const start = matcher.start(name)
    between += text.slice(at, start)
    at = matcher.end(name)
    groups.set(name, text.slice(start, at))
  }
  between += text.slice(at)
  return between.includes(encodedSlash) ? undefined : groups
}

/** Compiles the pattern of a row. RE2 matches in linear time: a foreign pattern must not be able to backtrack. */
export const compileRowPattern = (pattern: string): RowPattern | SkippedPattern => {
  const skipped = (reason: PatternRefusal): SkippedPattern => ({ kind: 'skipped', reason })
  if (pattern.length > maxPatternLength) return skipped('pattern-too-long')
  const parts = uncertain.test(pattern) ? undefined : routeParts(pattern)
  const first = parts?.[0]
  if (parts === undefined || first?.kind !== 'literal' || !first.text.startsWith('/')) {
    return skipped('pattern-not-understood')
  }
  const prefix = first.text.toLowerCase()
  if (parts.length === 1) {
    const groupsOf = (_text: string, lower: string) => (lower === prefix ? noGroups : undefined)
    return { kind: 'pattern', parts: [first], prefix, isLiteral: true, isDeterministic: true, groupsOf }
  }
  if (expansionOf(pattern) > maxExpansion) return skipped('pattern-too-complex')
  const expression = compiled(pattern)
  const names = parts.flatMap((part) => (part.kind === 'parameter' ? [part.name] : []))
  if (expression === undefined || Object.keys(expression.namedGroups()).length !== names.length) {
    return skipped('pattern-not-understood')
  }
  if (expression.programSize() > maxInstructions) return skipped('pattern-too-complex')
  const literals = parts.flatMap((part) => (part.kind === 'literal' ? [part.text.toLowerCase()] : []))
  const endsLiterally = parts.at(-1)?.kind === 'literal'
  return {
    kind: 'pattern',
    parts: parts.map((part) =>
      part.kind === 'parameter'
        ? { kind: 'parameter', name: part.name, form: identifierForm(part.source) }
        : part,
    ),
    prefix: prefix.slice(0, prefix.lastIndexOf('/') + 1),
    isLiteral: false,
    isDeterministic: isDeterministic(parts),
    groupsOf: (text, lower) =>
      hasLiterals(literals, endsLiterally, lower) ? groupsIn(names, expression, text) : undefined,
  }
}

/** A route's pattern is literal text and named groups in turn. */
type RoutePart =
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
 * Reads a pattern as an index announces it. Undefined for anything else, e.g. unnamed groups or quantifiers outside a group:
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
