import type { Socket } from 'node:net'

/** As many as an attempt allows: see attempt.ts. */
const mostInterim = 1_000

/** Each of them copies what came before. */
const mostPieces = 1_000

const noOctets = Buffer.alloc(0)
const version = 'HTTP/1.'
const endOfHead = '\r\n\r\n'
const digitOne = 0x31
/** Of the first digit of the status in `HTTP/1.1 200`. */
const statusAt = 9

const interimStart = /^HTTP\/1\.\d 1(?!01)\d\d(?= |\r)/
const spacedColon = /^([!#$%&'*+.^_`|~\dA-Za-z-]+)[\t ]+:/
const connectionField = /^(?:connection|keep-alive)[\t ]*:/i

/** RFC 9112 §5.1: a proxy removes white space between the name of a response field and its colon. */
const withoutSpaces = (head: string): string =>
  head
    .split('\r\n')
    .map((line) => line.replace(spacedColon, '$1:'))
    .join('\r\n')

/**
 * An interim response as the HTTP client takes it: it ends the connection at a 100 that it has not asked for, and its parser at a
 * `Connection: close` or HTTP/1.0, which say nothing of the final response (RFC 9110 §15.2). '' = leave it out.
 */
const readableInterim = (head: string): string => {
  if (head.startsWith('100', statusAt)) return ''
  const [start = '', ...lines] = head.split('\r\n')
  return [`HTTP/1.1${start.slice(8)}`, ...lines.filter((line) => !connectionField.test(line))].join('\r\n')
}

/**
 * Corrects the heads of responses on their way from the socket to the HTTP client, whose parser takes less than a recipient must. Content
 * passes unread, and so does all that arrives without a request in flight: the client closes such a connection.
 */
export class ResponseHeads {
  readonly #mostBytes: number
  #awaitsHead = true
  #begun: Buffer | undefined
  #pieces = 0
  #interim = 0

  constructor(mostBytes: number) {
    this.#mostBytes = mostBytes
  }

  /** The next octets begin a response. */
  expect(): void {
    this.#awaitsHead = true
    this.#begun = undefined
    this.#pieces = 0
    this.#interim = 0
  }

  /** The octets for the client; undefined while it has to wait for the rest of a head. */
  take(chunk: Buffer): Buffer | undefined {
    if (!this.#awaitsHead) return chunk
    let rest = this.#begun === undefined ? chunk : Buffer.concat([this.#begun, chunk])
    this.#begun = undefined
    const ready: Buffer[] = []
    while (this.#awaitsHead) {
      const end = rest.indexOf(endOfHead)
      if (end === -1) {
        rest = this.#held(rest)
        break
      }
      const next = end + endOfHead.length
      const head = rest.subarray(0, next)
      const corrected = this.#corrected(head)
      if (corrected === head && ready.length === 0) return rest
      ready.push(corrected)
      rest = rest.subarray(next)
    }
    const octets = Buffer.concat([...ready, rest])
    return octets.length === 0 ? undefined : octets
  }

  /** Holds the beginning of a head back; what is none, or too long for one, is the client's to refuse. Returns what is not held. */
  #held(begun: Buffer): Buffer {
    this.#pieces += 1
    const isHead = begun.toString('latin1', 0, version.length) === version.slice(0, begun.length)
    this.#awaitsHead = isHead && begun.length <= this.#mostBytes && this.#pieces <= mostPieces
    if (!this.#awaitsHead) return begun
    this.#begun = begun
    return noOctets
  }

  /** What was held back: the connection ends within a head. */
  rest(): Buffer | undefined {
    const begun = this.#begun
    this.#begun = undefined
    return begun
  }

  #corrected(head: Buffer): Buffer {
    const isInterim = head[statusAt] === digitOne && interimStart.test(head.toString('latin1', 0, 16))
    if (isInterim && this.#interim < mostInterim) {
      this.#interim += 1
      return Buffer.from(readableInterim(withoutSpaces(head.toString('latin1'))), 'latin1')
    }
    this.#awaitsHead = false
    if (!head.includes(' :') && !head.includes('\t:')) return head
    return Buffer.from(withoutSpaces(head.toString('latin1')), 'latin1')
  }
}

/** Puts `heads` between a socket and its reader; `isAsked`: a request is in flight on this connection. */
export const correctHeads = (socket: Socket, heads: ResponseHeads, isAsked: () => boolean): void => {
  const { push } = socket
  socket.push = (chunk: unknown, encoding?: BufferEncoding): boolean => {
    if (chunk === null) {
      const rest = heads.rest()
      if (rest !== undefined) push.call(socket, rest)
    }
    if (!Buffer.isBuffer(chunk) || !isAsked()) return push.call(socket, chunk, encoding)
    const octets = heads.take(chunk)
    return octets === undefined ? true : push.call(socket, octets)
  }
}
