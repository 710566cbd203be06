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
export const createJsonScanner = (rules: StringRules): ChunkMapper => {
  // An array of small numbers: allocating a buffer takes longer than walking a small content.
  const containers: number[] = []
  let depth = 0
  let kind: ValueKind = valueKinds.plain
  let expectsKey = false
  let mode: 'structure' | 'candidate' | 'skip' | 'blind' = 'structure'
  let escaped = false
  let pending: Buffer = nothing
  // Replacements in the current chunk.
  let output: Piece[] = []
  let copied = 0
  let tokenStart = 0

  const top = (): number => (depth === 0 ? 0 : (containers[depth - 1] as number))
  const containerKind = (): ValueKind => (top() & ~objectBit) as ValueKind

  const open = (isObject: boolean): void => {
    if (depth === maxDepth) {
      mode = 'blind'
      return
    }
    containers[depth++] = containerBits(isObject, kind)
    expectsKey = isObject
    kind = isObject ? valueKinds.plain : containerKind()
  }

  const close = (): void => {
    if (depth > 0) depth--
    expectsKey = false
    kind = valueKinds.plain
  }

  const separate = (): void => {
    expectsKey = (top() & objectBit) !== 0
    kind = expectsKey ? valueKinds.plain : containerKind()
  }

  const beginString = (content: Buffer, at: number): void => {
    tokenStart = at
    mode = expectsKey || rules.mayMapValue(content[at + 1], kind) ? 'candidate' : 'skip'
  }

  const onStructure = (content: Buffer, at: number): void => {
    switch (content[at]) {
      case quote:
        beginString(content, at)
        break
      case 0x2c: // ,
        separate()
        break
      case 0x7b: // {
        open(true)
        break
      case 0x5b: // [
        open(false)
        break
      case 0x7d: // }
      case 0x5d: // ]
        close()
        break
    }
  }

  /** Walks to the position behind the next quote that opens a string. */
  const walkStructure = (content: Buffer, from: number): number => {
    let at = from
    while (mode === 'structure') {
      at = nextStructural(content, at)
      if (at === content.length) break
      onStructure(content, at++)
    }
    return at
  }

  /** Position of the quote that closes the string, or the end of the content so far. */
  const walkString = (content: Buffer, from: number): number => {
    let at = from
    if (escaped && at < content.length) {
      escaped = false
      at++
    }
    for (at = nextInString(content, at); at < content.length; at = nextInString(content, at + 1)) {
      if (content[at] === quote) return at
      if (++at === content.length) escaped = true
    }
    return content.length
  }

  const replace = (end: number, text: string | undefined): void => {
    if (text === undefined) return
    output.push({ from: copied, to: tokenStart + 1, text })
    copied = end
  }

  const finishCandidate = (content: Buffer, end: number): void => {
    const start = tokenStart + 1
    if (expectsKey) {
      const within = containerKind()
      const replacement =
        end - start > rules.maxKeyLength(within) ? undefined : rules.key(content, start, end, within)
      replace(end, replacement?.text)
      kind = replacement?.opens ?? valueKinds.plain
    } else if (end - start <= rules.maxValueLength) {
      replace(end, rules.value(content, start, end, kind))
    }
  }

  const finishString = (content: Buffer, end: number): void => {
    if (mode === 'candidate') finishCandidate(content, end)
    else kind = expectsKey ? valueKinds.plain : kind
    expectsKey = false
    mode = 'structure'
  }

  const isTooLong = (length: number): boolean =>
    length > 1 + (expectsKey ? rules.maxKeyLength(containerKind()) : rules.maxValueLength)

  /** The output for the chunk; an unfinished candidate is held back. */
  const flush = (content: Buffer): Buffer => {
    if (mode === 'candidate' && isTooLong(content.length - tokenStart)) mode = 'skip'
    const end = mode === 'candidate' ? tokenStart : content.length
    // A copy, so that a few octets do not keep a whole chunk alive.
    pending = mode === 'candidate' ? Buffer.from(content.subarray(tokenStart)) : nothing
    if (output.length === 0) return end === content.length ? content : content.subarray(copied, end)
    return joined(content, output, copied, end)
  }

  const walk = (content: Buffer, from: number): void => {
    let at = from
    while (at < content.length && mode !== 'blind') {
      if (mode === 'structure') at = walkStructure(content, at)
      else {
        at = walkString(content, at)
        if (at < content.length) finishString(content, at++)
      }
    }
  }

  return {
    push: (chunk) => {
      if (mode === 'blind' || chunk.length === 0) return chunk
      const content = pending.length === 0 ? chunk : Buffer.concat([pending, chunk])
      output = []
      copied = 0
      tokenStart = 0
      walk(content, pending.length)
      return flush(content)
    },
    end: () => {
      const rest = pending
      pending = nothing
      return rest
    },
  }
}
