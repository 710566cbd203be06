import { templateIdentifier } from '../../contracts/site/row-builders.ts'
import { acceptsStart, anySet, type CharacterSet, isNumeric } from './character-set.ts'
import type { IdentifierForm } from './identifier.ts'
import { type PatternNode, parsePattern } from './pattern.ts'
import { compileProgram } from './program.ts'
import { runProgram } from './run-program.ts'

/** Why a row of a foreign discovery document is not matched. */
export type PatternRefusal = 'pattern-too-long' | 'pattern-not-understood' | 'pattern-too-complex'

/** A pattern is literals and named groups in turn; the canonical path is put together from the same parts. */
export type PatternPart =
  /** `isAny`: an unescaped dot, meant as a dot (`oembed/1.0`), though any character matches; the canonical path has the dot. */
  | { readonly kind: 'literal'; readonly text: string; readonly lower: string; readonly isAny: boolean }
  | {
      readonly kind: 'parameter'
      readonly name: string
      readonly form: IdentifierForm
      /** What the group repeats, when it is nothing but one set once or more. */
      readonly set: CharacterSet | undefined
    }

/** Texts of the named groups. */
export type Groups = ReadonlyMap<string, string>

export type RowPattern = {
  readonly kind: 'pattern'
  readonly parts: readonly PatternPart[]
  /** Literal beginning up to its last slash, in lower case; the whole pattern when nothing else is in it. */
  readonly prefix: string
  readonly isLiteral: boolean
  /** Whether each character of a path has one way only through the pattern. */
  readonly isDeterministic: boolean
  /** Groups of a cleaned path, handed in as it is and in lower case; undefined when it does not fit. */
  groupsOf(text: string, lower: string): Groups | undefined
}

const maxPatternLength = 500

const repeatedSet = (node: PatternNode): CharacterSet | undefined =>
  node.kind === 'repeat' && node.min === 1 && node.max === Infinity && node.node.kind === 'one'
    ? node.node.set
    : undefined

const parameterOf = (group: Extract<PatternNode, { kind: 'group' }>): PatternPart => {
  const set = repeatedSet(group.node)
  const isNumber = set !== undefined && isNumeric(set)
  const isTemplate = group.source === templateIdentifier
  return {
    kind: 'parameter',
    name: group.name,
    set,
    form: isNumber ? 'number' : isTemplate ? 'template' : 'text',
  }
}

const hasGroup = (node: PatternNode): boolean => {
  switch (node.kind) {
    case 'one':
      return false
    case 'group':
      return true
    case 'repeat':
      return hasGroup(node.node)
    case 'sequence':
      return node.nodes.some(hasGroup)
    case 'choice':
      return node.options.some(hasGroup)
  }
}

/** The parts, or undefined when something beside literals and named groups decides: its text would have no canonical spelling. */
const partsOf = (root: PatternNode): readonly PatternPart[] | undefined => {
  const parts: PatternPart[] = []
  let literal = ''
  const endLiteral = (): void => {
    if (literal !== '')
      parts.push({ kind: 'literal', text: literal, lower: literal.toLowerCase(), isAny: false })
    literal = ''
  }
  for (const node of root.kind === 'sequence' ? root.nodes : [root]) {
    if (node.kind === 'one' && node.literal !== undefined) {
      literal += node.literal
    } else if (node.kind === 'one' && node.set === anySet) {
      endLiteral()
      parts.push({ kind: 'literal', text: '.', lower: '.', isAny: true })
    } else if (node.kind === 'group' && !hasGroup(node.node)) {
      endLiteral()
      parts.push(parameterOf(node))
    } else return undefined
  }
  endLiteral()
  const names = parts.flatMap((part) => (part.kind === 'parameter' ? [part.name] : []))
  return new Set(names).size === names.length ? parts : undefined
}

const isDeterministic = (parts: readonly PatternPart[]): boolean =>
  parts.every((part, index) => {
    if (part.kind === 'literal') return true
    const following = parts[index + 1]
    if (part.set === undefined) return false
    return (
      following === undefined || (following.kind === 'literal' && !acceptsStart(part.set, following.text))
    )
  })

const endOfLiteral = (
  part: Extract<PatternPart, { kind: 'literal' }>,
  lower: string,
  start: number,
): number | undefined => {
  if (part.isAny) return start < lower.length ? start + 1 : undefined
  return lower.startsWith(part.lower, start) ? start + part.lower.length : undefined
}

const endOfSet = (set: CharacterSet | undefined, text: string, start: number): number | undefined => {
  let end = start
  while (end < text.length && set?.[text.charCodeAt(end)] === 1) end++
  return end === start ? undefined : end
}

/** Walks a deterministic pattern: each group ends where its set does. */
const walk = (parts: readonly PatternPart[], text: string, lower: string): Groups | undefined => {
  const groups = new Map<string, string>()
  let at = 0
  for (const part of parts) {
    const end = part.kind === 'literal' ? endOfLiteral(part, lower, at) : endOfSet(part.set, text, at)
    if (end === undefined) return undefined
    if (part.kind === 'parameter') groups.set(part.name, text.slice(at, end))
    at = end
  }
  return at === text.length ? groups : undefined
}

/** Whether all literals are in the path, in their order: what most paths fail, without running the program. */
const hasLiterals = (parts: readonly PatternPart[], lower: string): boolean => {
  let at = 0
  for (const part of parts) {
    if (part.kind === 'parameter' || part.isAny) continue
    const found = lower.indexOf(part.lower, at)
    if (found === -1) return false
    at = found + part.lower.length
  }
  const last = parts.at(-1)
  return last?.kind !== 'literal' || last.isAny || lower.endsWith(last.lower)
}

/** Compiles the pattern of a row, never to a regular expression: a foreign pattern must not be able to backtrack. */
export const compileRowPattern = (
  pattern: string,
): RowPattern | { readonly kind: 'skipped'; readonly reason: PatternRefusal } => {
  if (pattern.length > maxPatternLength) return { kind: 'skipped', reason: 'pattern-too-long' }
  const root = parsePattern(pattern)
  const parts = root && partsOf(root)
  const first = parts?.[0]
  if (root === undefined || parts === undefined || first?.kind !== 'literal' || !first.text.startsWith('/')) {
    return { kind: 'skipped', reason: 'pattern-not-understood' }
  }
  const isLiteral = parts.length === 1
  const prefix = isLiteral ? first.lower : first.lower.slice(0, first.lower.lastIndexOf('/') + 1)
  const facts = { kind: 'pattern', parts, prefix, isLiteral } as const
  if (isDeterministic(parts)) {
    return { ...facts, isDeterministic: true, groupsOf: (text, lower) => walk(parts, text, lower) }
  }
  const program = compileProgram(root)
  if (program === undefined) return { kind: 'skipped', reason: 'pattern-too-complex' }
  return {
    ...facts,
    isDeterministic: false,
    groupsOf: (text, lower) => (hasLiterals(parts, lower) ? runProgram(program, text) : undefined),
  }
}
