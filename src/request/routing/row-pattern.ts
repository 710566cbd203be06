import { RE2JS, RE2JSException } from 're2js'
import { templateIdentifier } from '../../contracts/site/row-builders.ts'
import { type RoutePart, routeParts } from '../route-pattern.ts'
import { encodedSlash, type IdentifierForm } from './path-form.ts'

/** Why a row of a foreign discovery document is not matched. */
export type PatternRefusal = 'pattern-too-long' | 'pattern-not-understood' | 'pattern-too-complex'

/** The canonical path is put together from these. */
export type PatternPart =
  | Exclude<RoutePart, { kind: 'parameter' }>
  | { readonly kind: 'parameter'; readonly name: string; readonly form: IdentifierForm }

/** Texts of the named groups. */
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

/** Bounds the time to compile: RE2 writes a counted repetition out. */
const maxExpansion = 2000

/** What PCRE and RE2 may read differently: letters behind a backslash, other than these, and a count without a minimum. */
const uncertain = /[^ -~]|\\(?![dDwWsS]|[^A-Za-z0-9])|\{,/

const counts = /(.)\{(\d+)(?:,(\d*))?\}/g

/** At least the number of instructions that the pattern compiles to. */
const expansionOf = (pattern: string): number => {
  let single = pattern.length
  let nested = 1
  for (const [, before, least, most] of pattern.matchAll(counts)) {
    const times = Math.max(1, Number(least), Number(most ?? 0))
    if (before === ')') nested *= times
    else single += times
  }
  return single * nested
}

/** WordPress matches without regard to case. Undefined for syntax that RE2 has not, e.g. look-around and back references. */
const compiled = (pattern: string): RE2JS | undefined => {
  try {
    return RE2JS.compile(pattern, RE2JS.CASE_INSENSITIVE)
  } catch (error) {
    if (error instanceof RE2JSException) return undefined
    throw error
  }
}

/** Nothing but digits, and the slash and the plus sign that WordPress accepts beside them. */
const numberSource = /^(?:\\d|\[(?:\\d|0-9|\\?[/+])+\])\+$/

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
    const found = lower.indexOf(literal, at)
    if (found === -1) return false
    at = found + literal.length
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
