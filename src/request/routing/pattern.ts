import { anySet, type CharacterSet, classSet, literalSet, namedSets, rangeSet } from './character-set.ts'

/** A pattern as a tree. Only what route patterns use: no anchors, no look-around, no back references, nothing possessive. */
export type PatternNode =
  | { readonly kind: 'one'; readonly set: CharacterSet; readonly literal: string | undefined }
  | { readonly kind: 'sequence'; readonly nodes: readonly PatternNode[] }
  | { readonly kind: 'choice'; readonly options: readonly PatternNode[] }
  | {
      readonly kind: 'repeat'
      readonly node: PatternNode
      readonly min: number
      readonly max: number
      readonly lazy: boolean
    }
  | { readonly kind: 'group'; readonly name: string; readonly node: PatternNode; readonly source: string }

/** Thrown inside the parser only; `parsePattern` turns it into undefined. */
class NotUnderstood extends Error {}

type Cursor = { readonly source: string; at: number }

const named = /\(\?P?<([A-Za-z_]\w{0,31})>/y
const bounds = /\{(\d{1,3})(?:(,)(\d{1,3})?)?\}/y

const taken = (cursor: Cursor, text: string): boolean => {
  if (!cursor.source.startsWith(text, cursor.at)) return false
  cursor.at += text.length
  return true
}

const takenMatch = (cursor: Cursor, expression: RegExp): RegExpExecArray | null => {
  expression.lastIndex = cursor.at
  const found = expression.exec(cursor.source)
  if (found !== null) cursor.at += found[0].length
  return found
}

const next = (cursor: Cursor): string => {
  const character = cursor.source[cursor.at]
  if (character === undefined || !/[ -~]/.test(character)) throw new NotUnderstood()
  cursor.at++
  return character
}

/** What stands behind a backslash: a named set, or a literal unless it is a letter or digit, whose meaning we do not know. */
const escaped = (cursor: Cursor): { set: CharacterSet; literal: string | undefined } => {
  const character = next(cursor)
  const set = namedSets.get(character)
  if (set !== undefined) return { set, literal: undefined }
  if (/[A-Za-z0-9]/.test(character)) throw new NotUnderstood()
  return { set: literalSet(character), literal: character }
}

const classMember = (cursor: Cursor): { set: CharacterSet; literal: string | undefined } => {
  const character = next(cursor)
  if (character === '\\') return escaped(cursor)
  if (character === '[') throw new NotUnderstood() // a POSIX class, or a typing error
  return { set: rangeSet(character, character), literal: character }
}

const parseClass = (cursor: Cursor): PatternNode => {
  const negated = taken(cursor, '^')
  if (cursor.source[cursor.at] === ']') throw new NotUnderstood()
  const members: CharacterSet[] = []
  while (!taken(cursor, ']')) {
    const member = classMember(cursor)
    const isRange = cursor.source[cursor.at] === '-' && cursor.source[cursor.at + 1] !== ']'
    if (!isRange || member.literal === undefined) {
      members.push(member.set)
      continue
    }
    cursor.at++
    const last = classMember(cursor).literal
    if (last === undefined || last < member.literal) throw new NotUnderstood()
    members.push(rangeSet(member.literal, last))
  }
  return { kind: 'one', set: classSet(members, negated), literal: undefined }
}

const parseGroup = (cursor: Cursor): PatternNode => {
  const name = takenMatch(cursor, named)?.[1]
  if (name === undefined && !taken(cursor, '(?:')) {
    cursor.at++
    if (cursor.source[cursor.at] === '?' || cursor.source[cursor.at] === '*') throw new NotUnderstood()
  }
  const start = cursor.at
  const node = parseChoice(cursor)
  const source = cursor.source.slice(start, cursor.at)
  if (!taken(cursor, ')')) throw new NotUnderstood()
  return name === undefined ? node : { kind: 'group', name, node, source }
}

const parseAtom = (cursor: Cursor): PatternNode => {
  if (cursor.source[cursor.at] === '(') return parseGroup(cursor)
  const character = next(cursor)
  if (character === '[') return parseClass(cursor)
  if (character === '\\') return { kind: 'one', ...escaped(cursor) }
  if (character === '.') return { kind: 'one', set: anySet, literal: undefined }
  if ('^$*+?{}'.includes(character)) throw new NotUnderstood()
  return { kind: 'one', set: literalSet(character), literal: character }
}

const quantity = (cursor: Cursor): { min: number; max: number } | undefined => {
  if (taken(cursor, '*')) return { min: 0, max: Infinity }
  if (taken(cursor, '+')) return { min: 1, max: Infinity }
  if (taken(cursor, '?')) return { min: 0, max: 1 }
  const found = takenMatch(cursor, bounds)
  if (found === null) return undefined
  const min = Number(found[1])
  const openEnd = found[2] === undefined ? min : Infinity
  const max = found[3] === undefined ? openEnd : Number(found[3])
  if (max < min) throw new NotUnderstood()
  return { min, max }
}

const parseQuantified = (cursor: Cursor): PatternNode => {
  const node = parseAtom(cursor)
  const times = quantity(cursor)
  if (times === undefined) return node
  const lazy = taken(cursor, '?')
  if ('*+?{'.includes(cursor.source[cursor.at] ?? ' ')) throw new NotUnderstood()
  return { kind: 'repeat', node, ...times, lazy }
}

const parseSequence = (cursor: Cursor): PatternNode => {
  const nodes: PatternNode[] = []
  while (cursor.at < cursor.source.length && !'|)'.includes(cursor.source[cursor.at] ?? '')) {
    nodes.push(parseQuantified(cursor))
  }
  return nodes.length === 1 && nodes[0] !== undefined ? nodes[0] : { kind: 'sequence', nodes }
}

const parseChoice = (cursor: Cursor): PatternNode => {
  const options = [parseSequence(cursor)]
  while (taken(cursor, '|')) options.push(parseSequence(cursor))
  return options.length === 1 && options[0] !== undefined ? options[0] : { kind: 'choice', options }
}

/** The tree of a route pattern, or undefined when it holds anything whose meaning is not certain. */
export const parsePattern = (source: string): PatternNode | undefined => {
  const cursor: Cursor = { source, at: 0 }
  try {
    const node = parseChoice(cursor)
    return cursor.at === source.length ? node : undefined
  } catch (error) {
    if (error instanceof NotUnderstood) return undefined
    throw error
  }
}
