import type { ContentInspector } from '../../service/contract.ts'
import { foldPhpName } from './php-query.ts'
import { misplacedParameter } from './site-errors.ts'

// PHP has its own reading of multipart/form-data (main/rfc1867.c), by which it finds parts that RFC 2046 has not: behind the end, at lines
// that end with LF alone, with names in single quotes. What is found here is all that it finds, and more only at octets that no client sends.

/** PHP splits longer lines where its buffer ends, in the middle of anything. */
const maxLineOctets = 4096
const maxHeaderLines = 16
/** RFC 2046 §5.1.1 allows 70. */
const maxBoundaryOctets = 256

const tooLong = 'The header of a part of the form is too long.'
const badBoundary = 'The boundary of the form cannot be read.'

/** The boundary as PHP finds it: behind the first `boundary` anywhere. Undefined: it finds none, and does not read the form. */
export const boundaryOf = (contentType: string): string | undefined => {
  const exact = contentType.indexOf('boundary')
  const at = exact < 0 ? contentType.toLowerCase().indexOf('boundary') : exact
  const equals = at < 0 ? -1 : contentType.indexOf('=', at)
  if (equals < 0) return undefined
  const text = contentType.slice(equals + 1)
  if (!text.startsWith('"')) return text.split(/[,;]/, 1)[0]
  const end = text.indexOf('"', 1)
  return end < 0 ? undefined : text.slice(1, end)
}

const isSpace = (character: string | undefined): boolean =>
  character !== undefined && /^[\t-\r ]$/.test(character)

/** The end of what stands before `stop`, where quotes hide it. */
const endOfWord = (text: string, start: number, stop: string): number => {
  let at = start
  while (at < text.length && text[at] !== stop) {
    const quote = text[at]
    at += 1
    if (quote !== '"' && quote !== "'") continue
    while (at < text.length && text[at] !== quote) at += text[at] === '\\' && text[at + 1] === quote ? 2 : 1
    at += 1
  }
  return Math.min(at, text.length)
}

/** A value with its quotes and escapes undone. */
const plainValue = (text: string): string => {
  const trimmed = text.replace(/^[\t-\r ]+/, '')
  const quote = trimmed[0] === '"' || trimmed[0] === "'" ? trimmed[0] : undefined
  const escaped = quote === undefined ? (trimmed.split(/[\t-\r ]/, 1)[0] ?? '') : trimmed.slice(1)
  let value = ''
  for (let at = 0; at < escaped.length && (quote === undefined || escaped[at] !== quote); at++) {
    const next = escaped[at + 1]
    if (escaped[at] === '\\' && (next === '\\' || (quote !== undefined && next === quote))) at += 1
    value += escaped[at] ?? ''
  }
  return value
}

/** The names in the value of a Content-Disposition field; PHP takes the last one. */
const namesInDisposition = (value: string): string[] => {
  const names: string[] = []
  let at = 0
  while (at < value.length) {
    while (isSpace(value[at])) at += 1
    const end = endOfWord(value, at, ';')
    const pair = value.slice(at, end)
    const equals = endOfWord(pair, 0, '=')
    if (pair.includes('=') && pair.slice(0, equals).toLowerCase() === 'name')
      names.push(plainValue(pair.slice(equals).replace(/^=+/, '')))
    at = end
    while (value[at] === ';') at += 1
  }
  return names
}

const isDisposition = (name: string): boolean => name.trim().toLowerCase() === 'content-disposition'

/** The fields of a part, line by line. */
class PartHeader {
  #lines = 0
  #disposition: string | undefined

  /** The names that the part has so far; undefined: the header is too long. */
  add(line: string): readonly string[] | undefined {
    this.#lines += 1
    if (this.#lines > maxHeaderLines) return undefined
    const colon = isSpace(line[0]) ? -1 : line.indexOf(':')
    // A line without a colon goes on with the line before, whatever it begins with.
    if (colon < 0) this.#disposition &&= this.#disposition + line
    else this.#disposition = isDisposition(line.slice(0, colon)) ? line.slice(colon + 1) : undefined
    return this.#disposition === undefined ? [] : namesInDisposition(this.#disposition)
  }
}

/** Where it goes on, why the form is refused, or from where on it is kept until more arrives. */
type Step = number | string | { readonly keepFrom: number }

/** Names of the parts of a multipart form, as its octets arrive. */
export class MultipartInspector implements ContentInspector {
  readonly #delimiter: Buffer
  readonly #refused: ReadonlySet<string>
  readonly #refusal: string | undefined
  /** Octets that have not been understood yet: the beginning of a delimiter or of a line. */
  #rest: Buffer = Buffer.alloc(0)
  /** Of the part whose header is being read; undefined in a content. */
  #header: PartHeader | undefined

  constructor(boundary: string, refused: ReadonlySet<string>) {
    this.#delimiter = Buffer.from(`--${boundary}`, 'latin1')
    this.#refused = refused
    this.#refusal = boundary.length > maxBoundaryOctets ? badBoundary : undefined
  }

  read(piece: Buffer): string | undefined {
    if (this.#refusal !== undefined) return this.#refusal
    const octets = this.#rest.length === 0 ? piece : Buffer.concat([this.#rest, piece])
    for (let at = 0; ; ) {
      const step = this.#header === undefined ? this.#findPart(octets, at) : this.#readLine(octets, at)
      if (typeof step === 'string') return step
      if (typeof step !== 'number') {
        this.#rest = Buffer.from(octets.subarray(step.keepFrom))
        return undefined
      }
      at = step
    }
  }

  /** PHP does not read the last line of a header that ends without LF. */
  ifEnded(): string | undefined {
    return undefined
  }

  /** To the line behind the next delimiter. PHP looks for it at the beginning of lines, and anywhere in long ones. */
  #findPart(octets: Buffer, from: number): Step {
    const delimiter = this.#delimiter
    const at = octets.indexOf(delimiter, from)
    if (at < 0) return { keepFrom: Math.max(from, octets.length - delimiter.length + 1) }
    const end = at + delimiter.length
    const first = octets[end]
    // To PHP a NUL ends a text.
    if (first === 0) return badBoundary
    if (first === undefined || (first === 0x0d && octets[end + 1] === undefined)) return { keepFrom: at }
    const lineEnd = first === 0x0d ? end + 1 : end
    if (octets[lineEnd] !== 0x0a) return at + 1
    this.#header = new PartHeader()
    return lineEnd + 1
  }

  #readLine(octets: Buffer, from: number): Step {
    const end = octets.indexOf(0x0a, from)
    if ((end < 0 ? octets.length : end) - from > maxLineOctets) return tooLong
    if (end < 0) return { keepFrom: from }
    const line = octets.toString('latin1', from, end).replace(/\r$/, '')
    const text = line.split('\0', 1)[0] ?? ''
    if (text === '') {
      this.#header = undefined
      return end + 1
    }
    const names = this.#header?.add(text)
    if (names === undefined) return tooLong
    const refused = names.map(foldPhpName).find((name) => this.#refused.has(name))
    return refused === undefined ? end + 1 : misplacedParameter(refused)
  }
}
