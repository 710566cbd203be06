import { isUtf8 } from 'node:buffer'
import { randomInt } from 'node:crypto'
import { backslash, closes, comma, opens, quote } from '../json-text.ts'
import type { Pieces } from './turns.ts'

/** Why content cannot be read as JSON. */
export type JsonFault = 'utf8' | 'depth' | 'control' | 'syntax' | 'surrogate' | 'too-many-values'

/** Content read as JSON. */
export type JsonReading =
  | {
      readonly kind: 'read'
      readonly value: unknown
      readonly text: string
      /** Members of all objects, with those whose name is repeated. */
      readonly members: number
    }
  | { readonly kind: 'refused'; readonly fault: JsonFault }

/**
 * The number of the shortest values in a megabyte. Parsing a value takes as long as reading many characters of a text and blocks
 * the event loop: a longer content may have longer texts, but not more values.
 */
export const maxJsonValues = 1 << 19

/** Each different name is kept in a table of the engine: ten times the work of another value. */
export const maxJsonNames = 1 << 14

/** A shorter text has neither too many values nor too many names: `"a":1` and a comma are six characters. */
const boundedJsonLength = 6 * maxJsonNames

/** Scanned in one piece: about a millisecond. */
const charactersOfPiece = 128 * 1024

/** End of the string that starts at `from`, or -1 when it is not closed or holds a control character. */
const endOfString = (text: string, from: number): number => {
  for (let i = from + 1; i < text.length; i++) {
    const code = text.charCodeAt(i)
    if (code === quote) return i
    if (code < 32) return -1
    if (code === backslash) i += 1
  }
  return -1
}

const colon = 0x3a

const depthStep = (code: number): number => (opens(code) ? 1 : closes(code) ? -1 : 0)
/** A value follows each of these; a list or an object costs as much as five other values. */
const valueStep = (code: number): number => (code === comma ? 1 : opens(code) ? 5 : 0)
const isControl = (code: number): boolean => code < 32 && code !== 9 && code !== 10 && code !== 13

const hashSeed = randomInt(2 ** 31)
/** Of FNV-1a. */
const hashFactor = 0x01000193
/** Bits for each name, so that few have the same. */
const bitsOfName = 8

/** Counts names, those of a long text also by their hashes, which nobody outside can choose; a few names have the same one. */
class NameCount {
  readonly #words: Uint32Array | undefined
  members = 0
  different = 0

  constructor(length: number) {
    if (length >= boundedJsonLength) this.#words = new Uint32Array((maxJsonNames * bitsOfName) / 32)
  }

  add(text: string, from: number, to: number): void {
    this.members += 1
    if (this.#words === undefined) return
    let hash = hashSeed
    for (let at = from; at < to; at += 1) hash = Math.imul(hash ^ text.charCodeAt(at), hashFactor)
    const bit = (hash ^ (hash >>> 15)) & (this.#words.length * 32 - 1)
    const word = this.#words[bit >>> 5] ?? 0
    const mask = 1 << (bit & 31)
    if ((word & mask) === 0) this.different += 1
    this.#words[bit >>> 5] = word | mask
  }
}

/** Checks depth, number of values and of names of a text before it is parsed. */
class Structure {
  readonly #text: string
  readonly #maxDepth: number
  readonly #names: NameCount
  #depth = 0
  #values = 0
  #lastString = 0
  #lastEnd = 0
  at = 0

  constructor(text: string, maxDepth: number) {
    this.#text = text
    this.#maxDepth = maxDepth
    this.#names = new NameCount(text.length)
  }

  get members(): number {
    return this.#names.members
  }

  /** Reads on, to the end of the string or other sign that is at this position. */
  readTo(end: number): JsonFault | undefined {
    const text = this.#text
    let i = this.at
    let depth = this.#depth
    let values = this.#values
    for (; i < end; i++) {
      const code = text.charCodeAt(i)
      // A digit changes nothing, and a number may have a million of them.
      if (code >= 0x30 && code <= 0x39) continue
      if (code === quote) {
        this.#lastString = i
        i = endOfString(text, i)
        if (i < 0) return 'control'
        this.#lastEnd = i
        continue
      }
      if (isControl(code)) return 'control'
      depth += depthStep(code)
      values += valueStep(code)
      if (code === colon) this.#names.add(text, this.#lastString, this.#lastEnd)
      const excess = this.#excess(depth, values)
      if (excess !== undefined) return excess
    }
    this.at = i
    this.#depth = depth
    this.#values = values
    return undefined
  }

  #excess(depth: number, values: number): JsonFault | undefined {
    if (depth > this.#maxDepth) return 'depth'
    return values > maxJsonValues || this.#names.different > maxJsonNames ? 'too-many-values' : undefined
  }
}

const escapedSurrogate = /\\u[dD][89a-fA-F]/
const loneSurrogate = /\p{Surrogate}/u

const hasLoneSurrogate = (value: unknown): boolean => {
  if (typeof value === 'string') return loneSurrogate.test(value)
  if (typeof value !== 'object' || value === null) return false
  if (Array.isArray(value)) return value.some(hasLoneSurrogate)
  return Object.keys(value).some(
    (key) => loneSurrogate.test(key) || hasLoneSurrogate((value as Record<string, unknown>)[key]),
  )
}

const refused = (fault: JsonFault): JsonReading => ({ kind: 'refused', fault })

const parsed = (text: string): { readonly value: unknown } | undefined => {
  try {
    return { value: JSON.parse(text) }
  } catch {
    return undefined
  }
}

/** Reads the JSON of a request, with bounds on nesting, values and names; a byte order mark is a syntax error. */
export function* readJson(content: Buffer, maxDepth: number): Pieces<JsonReading> {
  if (!isUtf8(content)) return refused('utf8')
  const text = content.toString('utf8')
  const structure = new Structure(text, maxDepth)
  while (structure.at < text.length) {
    const fault = structure.readTo(Math.min(text.length, structure.at + charactersOfPiece))
    if (fault !== undefined) return refused(fault)
    yield
  }
  const parsing = parsed(text)
  if (parsing === undefined) return refused('syntax')
  if (text.includes('\\') && escapedSurrogate.test(text)) {
    yield
    if (hasLoneSurrogate(parsing.value)) return refused('surrogate')
  }
  yield
  return { kind: 'read', value: parsing.value, text, members: structure.members }
}
