/**
 * Characters that one position of a pattern accepts: one byte per ASCII code, one for the encoded slash and one that
 * stands for all that is not ASCII. Paths are brought into these characters first (see path-form.ts).
 */
export type CharacterSet = Uint8Array

/** Stands in a cleaned path for `%2F`: text inside an identifier, but never a separator. No cleaned path has it otherwise. */
export const encodedSlash = '\u0080'

/** Stands for a byte that is not ASCII, where an upstream reads a path with its escapes undone. */
export const foreignByte = '\u0081'

const encodedSlashCode = encodedSlash.charCodeAt(0)
const size = foreignByte.charCodeAt(0) + 1
const slash = '/'.charCodeAt(0)

const codesOf = (text: string): number[] => Array.from(text, (character) => character.charCodeAt(0))

/** A set that accepts what the predicate accepts, and the encoded slash where it accepts a slash. */
const setWhere = (accepts: (code: number) => boolean): CharacterSet => {
  const set = new Uint8Array(size)
  for (let code = 0; code < size; code++) set[code] = accepts(code) ? 1 : 0
  set[encodedSlashCode] = set[slash] ?? 0
  return set
}

/** A literal of the pattern; letters in both cases (WordPress matches with the flag `i`). The encoded slash is no literal. */
export const literalSet = (character: string): CharacterSet => {
  const set = new Uint8Array(size)
  for (const code of codesOf(character.toLowerCase() + character.toUpperCase())) set[code] = 1
  return set
}

const between =
  (first: string, last: string) =>
  (code: number): boolean =>
    code >= first.charCodeAt(0) && code <= last.charCodeAt(0)

const isDigit = between('0', '9')
const isLower = between('a', 'z')
const isUpper = between('A', 'Z')
const isWord = (code: number): boolean =>
  isDigit(code) || isLower(code) || isUpper(code) || code === '_'.charCodeAt(0)
const isSpace = (code: number): boolean => code === 32 || (code >= 9 && code <= 13)

/** The sets that a backslash and a letter name. */
export const namedSets: ReadonlyMap<string, CharacterSet> = new Map([
  ['d', setWhere(isDigit)],
  ['D', setWhere((code) => !isDigit(code))],
  ['w', setWhere(isWord)],
  ['W', setWhere((code) => !isWord(code))],
  ['s', setWhere(isSpace)],
  ['S', setWhere((code) => !isSpace(code))],
])

/** What a dot accepts: anything but a line feed, which no cleaned path has. */
export const anySet: CharacterSet = setWhere(() => true)

/** The characters from `first` to `last`. */
export const rangeSet = (first: string, last: string): CharacterSet => setWhere(between(first, last))

const otherCase = (code: number): number => (isLower(code) ? code - 32 : isUpper(code) ? code + 32 : code)

/** A class in square brackets: the union of its members in both cases, or all the rest. */
export const classSet = (members: readonly CharacterSet[], negated: boolean): CharacterSet => {
  const has = (code: number): boolean => members.some((member) => member[code] === 1)
  return setWhere((code) => (has(code) || has(otherCase(code))) !== negated)
}

/** Whether identifiers made of this set can only be numbers: digits, and the slash and plus that WordPress lets in beside them. */
export const isNumeric = (set: CharacterSet): boolean =>
  set.every(
    (accepted, code) => accepted === 0 || isDigit(code) || '/+\u0080'.includes(String.fromCharCode(code)),
  )

/** Whether the set accepts the first character of a text. */
export const acceptsStart = (set: CharacterSet, text: string): boolean => set[text.charCodeAt(0)] === 1
