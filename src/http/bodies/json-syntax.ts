import type { Pieces } from './turns.ts'

const isSpace = (code: number): boolean => code === 0x20 || code === 0x0a || code === 0x0d || code === 0x09
const isDigit = (code: number | undefined): boolean => code !== undefined && code >= 0x30 && code <= 0x39

const isHexDigit = (code = 0): boolean => {
  const lower = code | 0x20
  return isDigit(code) || (lower >= 0x61 && lower <= 0x66)
}

const isHexQuad = (content: Buffer, at: number): boolean =>
  isHexDigit(content[at]) &&
  isHexDigit(content[at + 1]) &&
  isHexDigit(content[at + 2]) &&
  isHexDigit(content[at + 3])

/** Read in one piece: less than a millisecond. */
const octetsOfPiece = 64 * 1024

const number = { minus: 0x2d, zero: 0x30, point: 0x2e, plus: 0x2b } as const
const quote = 0x22
const backslash = 0x5c
const literals = [Buffer.from('true'), Buffer.from('false'), Buffer.from('null')]
const escapes: ReadonlySet<number | undefined> = new Set(Buffer.from('"\\/bfnrtu'))

/** What may come next. */
type Expected = 'value' | 'first-value' | 'name' | 'first-name' | 'separator' | 'nothing'

/** Reads JSON (RFC 8259) without making values of it. Octets that are no UTF-8 are allowed in strings, as in decoded text. */
class JsonSyntax {
  readonly #content: Buffer
  /** One bit for each level: is it an object? */
  readonly #objects: number[] = []
  #depth = 0
  #at = 0
  #expected: Expected = 'value'
  isBroken = false

  constructor(content: Buffer) {
    this.#content = content
  }

  get isWhole(): boolean {
    return !this.isBroken && this.#at >= this.#content.length && this.#expected === 'nothing'
  }

  get isOver(): boolean {
    return this.isBroken || this.#at >= this.#content.length
  }

  readPiece(): void {
    const content = this.#content
    const end = Math.min(this.#at + octetsOfPiece, content.length)
    while (this.#at < end && !this.isBroken) {
      const code = content[this.#at] as number
      if (isSpace(code)) this.#at += 1
      else this.isBroken = !this.#readSign(code)
    }
  }

  get #isInObject(): boolean {
    const bits = this.#objects[this.#depth >> 5] ?? 0
    return ((bits >> (this.#depth & 31)) & 1) === 1
  }

  #open(isObject: boolean): boolean {
    this.#at += 1
    this.#depth += 1
    const [word, bit] = [this.#depth >> 5, 1 << (this.#depth & 31)]
    const bits = this.#objects[word] ?? 0
    this.#objects[word] = isObject ? bits | bit : bits & ~bit
    this.#expected = isObject ? 'first-name' : 'first-value'
    return true
  }

  #close(isObject: boolean): boolean {
    const isEmpty = this.#expected === (isObject ? 'first-name' : 'first-value')
    if (this.#depth === 0 || this.#isInObject !== isObject || !(isEmpty || this.#expected === 'separator'))
      return false
    this.#at += 1
    this.#depth -= 1
    return this.#valueRead()
  }

  #valueRead(): boolean {
    this.#expected = this.#depth === 0 ? 'nothing' : 'separator'
    return true
  }

  #readSign(code: number): boolean {
    switch (code) {
      case 0x7d:
        return this.#close(true)
      case 0x5d:
        return this.#close(false)
      case 0x2c:
        if (this.#expected !== 'separator') return false
        this.#at += 1
        this.#expected = this.#isInObject ? 'name' : 'value'
        return true
      case quote:
        return this.#readString()
    }
    if (this.#expected !== 'value' && this.#expected !== 'first-value') return false
    if (code === 0x7b || code === 0x5b) return this.#open(code === 0x7b)
    const isRead = code === number.minus || isDigit(code) ? this.#readNumber() : this.#readLiteral(code)
    return isRead && this.#valueRead()
  }

  #readString(): boolean {
    const isName = this.#expected === 'name' || this.#expected === 'first-name'
    if (!isName && this.#expected !== 'value' && this.#expected !== 'first-value') return false
    if (!this.#skipString()) return false
    if (!isName) return this.#valueRead()
    while (isSpace(this.#content[this.#at] ?? 0)) this.#at += 1
    if (this.#content[this.#at] !== 0x3a) return false
    this.#at += 1
    this.#expected = 'value'
    return true
  }

  #skipString(): boolean {
    const content = this.#content
    for (let at = this.#at + 1; at < content.length; at += 1) {
      const code = content[at] as number
      if (code < 0x20) return false
      if (code === quote) {
        this.#at = at + 1
        return true
      }
      if (code !== backslash) continue
      const escaped = content[at + 1]
      if (!escapes.has(escaped)) return false
      if (escaped === 0x75 && !isHexQuad(content, at + 2)) return false
      at += 1
    }
    return false
  }

  #skipDigits(): boolean {
    const from = this.#at
    while (isDigit(this.#content[this.#at])) this.#at += 1
    return this.#at > from
  }

  #readNumber(): boolean {
    const content = this.#content
    if (content[this.#at] === number.minus) this.#at += 1
    if (content[this.#at] === number.zero) this.#at += 1
    else if (!this.#skipDigits()) return false
    if (content[this.#at] === number.point) {
      this.#at += 1
      if (!this.#skipDigits()) return false
    }
    if (((content[this.#at] ?? 0) | 0x20) !== 0x65) return true
    this.#at += 1
    const sign = content[this.#at]
    if (sign === number.plus || sign === number.minus) this.#at += 1
    return this.#skipDigits()
  }

  #readLiteral(code: number): boolean {
    const literal = literals.find(([first]) => first === code)
    if (literal === undefined) return false
    const end = this.#at + literal.length
    if (!this.#content.subarray(this.#at, end).equals(literal)) return false
    this.#at = end
    return true
  }
}

/** Is the content one JSON text? Nothing is made of it, so that a hostile one costs as much as any other. */
export function* isJsonInPieces(content: Buffer): Pieces<boolean> {
  const syntax = new JsonSyntax(content)
  while (!syntax.isOver) {
    syntax.readPiece()
    yield
  }
  return syntax.isWhole
}
