import type { Socket } from 'node:net'
import { interposePush } from '../../http/interposed-streams.ts'
import { maxInterimResponses } from '../messages.ts'

/** Of an interim response. Each of them copies what came before. */
const maxPieces = 1_000
/** Of a beginning of a line that is held back because its colon may follow. */
const maxNameBytes = 1_024

const endOfHead = '\r\n\r\n'
const protocol = 'HTTP/1.'
/** Of the first digit of the status in `HTTP/1.1 200`. */
const statusAt = 9
const statusEnd = 12

const [lf, cr, tab, space, one, colon] = [0x0a, 0x0d, 0x09, 0x20, 0x31, 0x3a]

/** Almost every response: a whole final head that needs no correction. One pass, since each search of a Buffer leaves JavaScript. */
const isRightHead = (octets: Buffer): boolean => {
  for (let at = 0; at < protocol.length; at += 1) if (octets[at] !== protocol.charCodeAt(at)) return false
  if (octets[statusAt] === one) return false
  for (let at = statusEnd; at < octets.length; at += 1) {
    const octet = octets[at]
    const before = octets[at - 1]
    if (octet === colon && (before === space || before === tab)) return false
    if (octet === lf && before === cr && octets[at - 2] === lf && octets[at - 3] === cr) return true
  }
  return false
}

const interimStart = /^HTTP\/1\.\d 1(?!01)\d\d/
const spacedColon = /^([!#$%&'*+.^_`|~\dA-Za-z-]+)[\t ]+:/
const connectionHeader = /^(?:connection|keep-alive)[\t ]*:/i

/** RFC 9112 §5.1: a proxy removes white space between the name of a response header and its colon. */
const withoutSpaces = (line: string): string => line.replace(spacedColon, '$1:')

/**
 * An interim response as the HTTP client takes it: it ends the connection at a 100 that it has not asked for, and its parser at a
 * `Connection: close` or HTTP/1.0, which say nothing of the final response (RFC 9110 §15.2). '' = leave it out.
 */
const readableInterim = (head: string): string => {
  if (head.startsWith('100', statusAt)) return ''
  const [start = '', ...lines] = head.split('\r\n')
  const readableLines = lines.map(withoutSpaces).filter((line) => !connectionHeader.test(line))
  return [`HTTP/1.1${start.slice(8)}`, ...readableLines].join('\r\n')
}

/** `start`: of a response; `headers`: of its final head; `content`: nothing is changed until the next response. */
type Part = 'start' | 'headers' | 'content'

/**
 * Corrects the heads of responses on their way from the socket to the HTTP client, whose parser takes less than a recipient must. Of final
 * heads it holds back no more than the beginning of a name, so that the client sees a fault at once. Content passes unread.
 */
export class ResponseHeads {
  /** Of one interim response. */
  readonly #maxBytes: number
  #part: Part = 'start'
  #buffered: Buffer | undefined
  /** What was passed on last ends within a line. */
  #withinLine = false
  #pieces = 0
  #interim = 0

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
  }

  /** The next octets begin a response. */
  expect(): void {
    this.#part = 'start'
    this.#buffered = undefined
    this.#withinLine = false
    this.#pieces = 0
    this.#interim = 0
  }

  /** The octets for the client; undefined when it has to wait. */
  take(chunk: Buffer): Buffer | undefined {
    if (this.#part === 'content') return chunk
    if (this.#part === 'start' && this.#buffered === undefined && isRightHead(chunk)) {
      this.#part = 'content'
      return chunk
    }
    let rest = this.#buffered === undefined ? chunk : Buffer.concat([this.#buffered, chunk])
    this.#buffered = undefined
    const ready: Buffer[] = []
    while (this.#part === 'start') {
      const end = this.#endOfInterim(rest)
      if (end === undefined) break
      ready.push(Buffer.from(readableInterim(rest.toString('latin1', 0, end)), 'latin1'))
      rest = rest.subarray(end)
    }
    if (this.#part === 'start') this.#buffered = rest
    else ready.push(this.#part === 'headers' ? this.#headers(rest) : rest)
    const octets = ready.length === 1 ? ready[0] : Buffer.concat(ready)
    return octets === undefined || octets.length === 0 ? undefined : octets
  }

  /** What was held back: the connection ends within a head. */
  rest(): Buffer | undefined {
    const buffered = this.#buffered
    this.#buffered = undefined
    return buffered
  }

  /** The end of the interim response that `octets` begin with; undefined if it is not there, or if they begin with another part. */
  #endOfInterim(octets: Buffer): number | undefined {
    const start = octets.toString('latin1', 0, statusEnd)
    if (!start.startsWith(protocol) && !protocol.startsWith(start)) this.#part = 'content'
    else if (start.length === statusEnd && !interimStart.test(start)) this.#part = 'headers'
    if (this.#part !== 'start') return undefined
    const end = octets.indexOf(endOfHead)
    this.#pieces += 1
    const isTooMuch =
      octets.length > this.#maxBytes || this.#pieces > maxPieces || this.#interim >= maxInterimResponses
    // The client refuses it.
    if (isTooMuch) this.#part = 'content'
    if (isTooMuch || end === -1) return undefined
    this.#pieces = 0
    this.#interim += 1
    return end + endOfHead.length
  }

  #headers(octets: Buffer): Buffer {
    const end = this.#withinLine ? -1 : octets.indexOf(endOfHead)
    const head = end === -1 ? octets : octets.subarray(0, end + endOfHead.length)
    if (end !== -1 && !head.includes(' :') && !head.includes('\t:')) {
      this.#part = 'content'
      return octets
    }
    const text = head.toString('latin1')
    let lines = ''
    let at = 0
    while (at < text.length && this.#part === 'headers') {
      const next = text.indexOf('\n', at) + 1 || text.length
      lines += this.#line(text.slice(at, next))
      at = next
    }
    return Buffer.concat([Buffer.from(lines, 'latin1'), octets.subarray(at)])
  }

  /** A line, or the part of it that has come. */
  #line(line: string): string {
    const isWhole = line.endsWith('\n')
    if (!this.#withinLine && !isWhole && !line.includes(':') && line.length <= maxNameBytes) {
      this.#buffered = Buffer.from(line, 'latin1')
      return ''
    }
    if (!this.#withinLine && (line === '\r\n' || line === '\n')) this.#part = 'content'
    const passed = this.#withinLine ? line : withoutSpaces(line)
    this.#withinLine = !isWhole
    return passed
  }
}

/** Puts `heads` between a socket and its reader; `isAsked`: a request is in flight on this connection. */
export const correctHeads = (socket: Socket, heads: ResponseHeads, isAsked: () => boolean): void => {
  interposePush(socket, (push, chunk, encoding) => {
    if (chunk === null) {
      const rest = heads.rest()
      if (rest !== undefined) push(rest)
    }
    if (!Buffer.isBuffer(chunk) || !isAsked()) return push(chunk, encoding)
    const octets = heads.take(chunk)
    return octets === undefined ? true : push(octets)
  })
}
