import { backslash, quote } from '../../http/json-text.ts'

/** The meaning of a value, by its key. Containers pass it on: see `containerBits`. */
export const valueKinds = { plain: 0, routes: 1, namespace: 2, segment: 3, link: 4 } as const

export type ValueKind = (typeof valueKinds)[keyof typeof valueKinds]

/** Maps complete strings; `text` is the text between the quotes, with its escapes, one character for each octet. */
export type StringRules = {
  /** Longest key that can be mapped in such an object: bounds what is held back. */
  maxKeyLength(kind: ValueKind): number
  /** Longest value that can be mapped. */
  readonly maxValueLength: number
  /** Cheap test on the first octet (undefined: not arrived yet), before anything is held back. */
  mayMapValue(first: number | undefined, kind: ValueKind): boolean
  /** New text of a key and the kind of its value; undefined for a key without a rule. */
  key(
    content: Buffer,
    start: number,
    end: number,
    kind: ValueKind,
  ): { readonly text: string | undefined; readonly opens: ValueKind } | undefined
  /** New text of a value; undefined to keep it. */
  value(content: Buffer, start: number, end: number, kind: ValueKind): string | undefined
}

/** Maps content chunk by chunk; what `push` and `end` return, joined, is the mapped content. */
export type ChunkMapper = {
  push(chunk: Buffer): Buffer
  end(): Buffer
}

const objectBit = 0x80

/** Deeper content passes unmapped: WordPress itself refuses to read or write more than 512 levels. */
const maxDepth = 1024

/** Octets between strings that change the state; all others are white space, colons, numbers and literals. */
const structural = new Uint8Array(256)
for (const octet of Buffer.from('",{}[]')) structural[octet] = 1

const nextStructural = (content: Buffer, from: number): number => {
  const length = content.length
  let at = from
  while (at < length && structural[content[at] as number] === 0) at++
  return at
}

/** The next quote or backslash. */
const nextInString = (content: Buffer, from: number): number => {
  const length = content.length
  let at = from
  while (at < length && content[at] !== quote && content[at] !== backslash) at++
  return at
}

/** A key's kind holds for the object or the strings of the array behind the key, no deeper. */
const containerBits = (isObject: boolean, kind: ValueKind): number => {
  if (isObject)
    return objectBit | (kind === valueKinds.routes || kind === valueKinds.namespace ? kind : valueKinds.plain)
  return kind === valueKinds.routes ? valueKinds.plain : kind
}

const nothing = Buffer.alloc(0)

/** A range of the input that is kept, and the text that replaces the string behind it. */
type Piece = { readonly from: number; readonly to: number; readonly text: string }

/** Not from the pool: stored responses keep the buffer. */
const joined = (content: Buffer, pieces: readonly Piece[], from: number, to: number): Buffer => {
  let length = to - from
  for (const piece of pieces) length += piece.to - piece.from + piece.text.length
  const whole = Buffer.allocUnsafeSlow(length)
  let at = 0
  for (const piece of pieces) {
    at += content.copy(whole, at, piece.from, piece.to)
    at += whole.write(piece.text, at, 'latin1')
  }
  content.copy(whole, at, from, to)
  return whole
}

/**
 * Walks JSON text once and replaces strings; every other octet stays. Chunks may end anywhere: at most one string of bounded
 * length is held back. Text that is not JSON passes too.
 */
class JsonScanner implements ChunkMapper {
  readonly #rules: StringRules
  // An array of small numbers: allocating a buffer takes longer than walking a small content.
  readonly #containers: number[] = []
  #depth = 0
  #kind: ValueKind = valueKinds.plain
  #expectsKey = false
  #mode: 'structure' | 'candidate' | 'skip' | 'blind' = 'structure'
  #escaped = false
  #pending: Buffer = nothing
  // Replacements in the current chunk.
  #output: Piece[] = []
  #copied = 0
  #tokenStart = 0

  constructor(rules: StringRules) {
    this.#rules = rules
  }

  readonly push = (chunk: Buffer): Buffer => {
    if (this.#mode === 'blind' || chunk.length === 0) return chunk
    const content = this.#pending.length === 0 ? chunk : Buffer.concat([this.#pending, chunk])
    this.#output = []
    this.#copied = 0
    this.#tokenStart = 0
    this.#walk(content, this.#pending.length)
    return this.#flush(content)
  }

  readonly end = (): Buffer => {
    const rest = this.#pending
    this.#pending = nothing
    return rest
  }

  #top(): number {
    return this.#depth === 0 ? 0 : (this.#containers[this.#depth - 1] as number)
  }

  #containerKind(): ValueKind {
    return (this.#top() & ~objectBit) as ValueKind
  }

  #open(isObject: boolean): void {
    if (this.#depth === maxDepth) {
      this.#mode = 'blind'
      return
    }
    this.#containers[this.#depth++] = containerBits(isObject, this.#kind)
    this.#expectsKey = isObject
    this.#kind = isObject ? valueKinds.plain : this.#containerKind()
  }

  #close(): void {
    if (this.#depth > 0) this.#depth--
    this.#expectsKey = false
    this.#kind = valueKinds.plain
  }

  #separate(): void {
    this.#expectsKey = (this.#top() & objectBit) !== 0
    this.#kind = this.#expectsKey ? valueKinds.plain : this.#containerKind()
  }

  #beginString(content: Buffer, at: number): void {
    this.#tokenStart = at
    this.#mode =
      this.#expectsKey || this.#rules.mayMapValue(content[at + 1], this.#kind) ? 'candidate' : 'skip'
  }

  #onStructure(content: Buffer, at: number): void {
    switch (content[at]) {
      case quote:
        this.#beginString(content, at)
        break
      case 0x2c: // ,
        this.#separate()
        break
      case 0x7b: // {
        this.#open(true)
        break
      case 0x5b: // [
        this.#open(false)
        break
      case 0x7d: // }
      case 0x5d: // ]
        this.#close()
        break
    }
  }

  /** Walks to the position behind the next quote that opens a string. */
  #walkStructure(content: Buffer, from: number): number {
    let at = from
    while (this.#mode === 'structure') {
      at = nextStructural(content, at)
      if (at === content.length) break
      this.#onStructure(content, at++)
    }
    return at
  }

  /** Position of the quote that closes the string, or the end of the content so far. */
  #walkString(content: Buffer, from: number): number {
    let at = from
    if (this.#escaped && at < content.length) {
      this.#escaped = false
      at++
    }
    for (at = nextInString(content, at); at < content.length; at = nextInString(content, at + 1)) {
      if (content[at] === quote) return at
      if (++at === content.length) this.#escaped = true
    }
    return content.length
  }

  #replace(end: number, text: string | undefined): void {
    if (text === undefined) return
    this.#output.push({ from: this.#copied, to: this.#tokenStart + 1, text })
    this.#copied = end
  }

  #finishCandidate(content: Buffer, end: number): void {
    const start = this.#tokenStart + 1
    if (this.#expectsKey) {
      const within = this.#containerKind()
      const replacement =
        end - start > this.#rules.maxKeyLength(within)
          ? undefined
          : this.#rules.key(content, start, end, within)
      this.#replace(end, replacement?.text)
      this.#kind = replacement?.opens ?? valueKinds.plain
    } else if (end - start <= this.#rules.maxValueLength) {
      this.#replace(end, this.#rules.value(content, start, end, this.#kind))
    }
  }

  #finishString(content: Buffer, end: number): void {
    if (this.#mode === 'candidate') this.#finishCandidate(content, end)
    else this.#kind = this.#expectsKey ? valueKinds.plain : this.#kind
    this.#expectsKey = false
    this.#mode = 'structure'
  }

  #isTooLong(length: number): boolean {
    return (
      length >
      1 + (this.#expectsKey ? this.#rules.maxKeyLength(this.#containerKind()) : this.#rules.maxValueLength)
    )
  }

  /** The output for the chunk; an unfinished candidate is held back. */
  #flush(content: Buffer): Buffer {
    if (this.#mode === 'candidate' && this.#isTooLong(content.length - this.#tokenStart)) this.#mode = 'skip'
    const end = this.#mode === 'candidate' ? this.#tokenStart : content.length
    // A copy, so that a few octets do not keep a whole chunk alive.
    this.#pending = this.#mode === 'candidate' ? Buffer.from(content.subarray(this.#tokenStart)) : nothing
    if (this.#output.length === 0)
      return end === content.length ? content : content.subarray(this.#copied, end)
    return joined(content, this.#output, this.#copied, end)
  }

  #walk(content: Buffer, from: number): void {
    let at = from
    while (at < content.length && this.#mode !== 'blind') {
      if (this.#mode === 'structure') at = this.#walkStructure(content, at)
      else {
        at = this.#walkString(content, at)
        if (at < content.length) this.#finishString(content, at++)
      }
    }
  }
}

export const createJsonScanner = (rules: StringRules): ChunkMapper => new JsonScanner(rules)
