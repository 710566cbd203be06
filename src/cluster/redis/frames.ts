/** One reply or command of RESP, versions 2 and 3, as far as its lengths describe it. */
export type Frame = {
  readonly kind: 'text' | 'error' | 'number' | 'null' | 'list' | 'push'
  /** Bytes of a text. */
  readonly length: number
  /** How many elements of a list, counted from its first one, are texts. */
  readonly leadingTexts: number
  /** Text of an error. */
  readonly said: string
}

export type FrameLimits = {
  readonly bytes: number
  /** Elements that lists announce, nested ones included: they are allocated before they arrive. */
  readonly elements: number
}

/** Reads chunks; returns the first fault. After a fault it is not used again. */
export type FrameReader = { read(chunk: Buffer): string | undefined }

const longestLine = 65_536
const deepest = 16
const lineFeed = 10

type Type = {
  readonly kind: Frame['kind']
  /** Content of its line. */
  readonly rest: RegExp
  /** What the number in the line counts. */
  readonly of: 'nothing' | 'bytes' | 'elements' | 'pairs'
}

/** By the first octet of a line. The commands in use never return doubles, large numbers, attributes or errors with a length. */
const types = new Map<string, Type>([
  ['+', { kind: 'text', rest: /^/, of: 'nothing' }],
  ['-', { kind: 'error', rest: /^/, of: 'nothing' }],
  [':', { kind: 'number', rest: /^[+-]?\d{1,19}$/, of: 'nothing' }],
  ['#', { kind: 'number', rest: /^[tf]$/, of: 'nothing' }],
  ['_', { kind: 'null', rest: /^$/, of: 'nothing' }],
  ['$', { kind: 'text', rest: /^(?:-1|\d{1,10})$/, of: 'bytes' }],
  // Three letters of what it is and a colon come first.
  ['=', { kind: 'text', rest: /^(?:[4-9]|\d{2,10})$/, of: 'bytes' }],
  ['*', { kind: 'list', rest: /^(?:-1|\d{1,10})$/, of: 'elements' }],
  ['~', { kind: 'list', rest: /^\d{1,10}$/, of: 'elements' }],
  ['%', { kind: 'list', rest: /^\d{1,10}$/, of: 'pairs' }],
  ['>', { kind: 'push', rest: /^\d{1,10}$/, of: 'elements' }],
])

/** Reads lines, and skips the texts whose lengths they give; `take` returns the fault of a whole frame. */
export const createFrameReader = (
  limits: FrameLimits,
  take: (frame: Frame) => string | undefined,
): FrameReader => {
  let line = ''
  let leftOfText = 0
  let bytes = 0
  let elements = 0
  let root: Frame | undefined
  /** Elements still to come of each open list, outermost first. */
  const open: number[] = []

  const ended = (): string | undefined => {
    while (open.length > 0) {
      const left = (open.pop() as number) - 1
      if (left > 0) {
        open.push(left)
        return undefined
      }
    }
    const whole = root as Frame
    root = undefined
    bytes = 0
    elements = 0
    return take(whole)
  }
  const begun = (kind: Frame['kind'], length: number, said = ''): void => {
    if (root === undefined) root = { kind, length, said, leadingTexts: 0 }
    else if (open.length === 1 && kind === 'text' && root.length - (open[0] as number) === root.leadingTexts)
      root = { ...root, leadingTexts: root.leadingTexts + 1 }
  }
  const scalar = (kind: Frame['kind'], length: number, said: string): string | undefined => {
    begun(kind, length, said)
    return ended()
  }
  const text = (length: number): string | undefined => {
    if (bytes + length > limits.bytes) return 'a reply that is too long'
    begun('text', length)
    leftOfText = length + 2
    return undefined
  }
  const list = (kind: Frame['kind'], length: number): string | undefined => {
    elements += length
    if (elements > limits.elements || open.length === deepest) return 'a list that is too long'
    begun(kind, length)
    if (length === 0) return ended()
    open.push(length)
    return undefined
  }
  const header = (octet: string, rest: string): string | undefined => {
    const type = types.get(octet)
    if (type === undefined || !type.rest.test(rest)) return 'not a reply of Redis'
    const { kind } = type
    if (kind === 'push' && root !== undefined) return 'a message within a reply'
    switch (type.of) {
      case 'nothing':
        return scalar(kind, rest.length, rest)
      case 'bytes':
        return rest === '-1' ? scalar('null', 0, '') : text(Number(rest))
      case 'elements':
        return rest === '-1' ? scalar('null', 0, '') : list(kind, Number(rest))
      case 'pairs':
        return list(kind, 2 * Number(rest))
    }
  }

  type Read = { readonly at: number; readonly fault: string | undefined }

  /** Reads to the end of the line, or of the chunk. */
  const readLine = (chunk: Buffer, at: number): Read => {
    const feed = chunk.indexOf(lineFeed, at)
    const end = feed < 0 ? chunk.length : feed + 1
    bytes += end - at
    if (line.length + end - at > longestLine) return { at: end, fault: 'a line that is too long' }
    line += chunk.toString('latin1', at, end)
    if (feed < 0) return { at: end, fault: undefined }
    const whole = line
    line = ''
    // ioredis ends a line at the first of the two octets.
    if (whole.indexOf('\r') !== whole.length - 2) return { at: end, fault: 'a line with a wrong ending' }
    return { at: end, fault: header(whole.charAt(0), whole.slice(1, -2)) }
  }
  const skipText = (chunk: Buffer, at: number): Read => {
    const taken = Math.min(leftOfText, chunk.length - at)
    bytes += taken
    leftOfText -= taken
    return { at: at + taken, fault: leftOfText === 0 ? ended() : undefined }
  }

  return {
    read: (chunk) => {
      let at = 0
      while (at < chunk.length) {
        const next = leftOfText > 0 ? skipText(chunk, at) : readLine(chunk, at)
        if (next.fault !== undefined) return next.fault
        at = next.at
      }
      return undefined
    },
  }
}
