import { createConnection, type Socket } from 'node:net'
import { type ConnectionOptions, connect, type TLSSocket } from 'node:tls'
import { AbstractConnector } from 'ioredis'
import { interposePush, watchWrites } from '../../http/interposed-streams.ts'
import { systemLookup } from '../../system-lookup.ts'

/** A connection either sends commands or subscribes to channels. */
type ConnectionUse = 'calls' | 'listens'

export type ReplyLimits = {
  /** Longest wait for one command. */
  readonly timeoutMs: number
  /** Longest reply. */
  readonly maxReplyBytes: number
}

/** A connection whose replies are late is closed after these many timeouts. */
const lateTimeouts = 4

/** The client allocates the announced length of a list at once. Enough for the slots of a cluster with their nodes. */
const maxElements = 524_288
/** Status, number or error. */
const longestLine = 65_536
const lineFeed = 10

/** A line of RESP 2. The client ends a line at its first carriage return, therefore there is no other one. */
const linePattern = /^(?:[+-][^\r]*|:[+-]?\d{1,19}|[$*](?:-1|\d{1,10}))\r\n$/

/** The client takes the address of another node out of such an error. */
const brokenRedirect = /^-(?:MOVED|ASK)(?!\S)(?! \d{1,5} \S*:\d{1,5}\r)/

/** The first line of a reply; `isFlat`: there is no null in it, and no list in a list. */
type Reply = { readonly first: string; isFlat: boolean }

/** Finds the ends of replies or commands, by the lengths that they announce; returns the first fault. */
const createReplyReader = (maxBytes: number, ended: (reply: Reply) => string | undefined) => {
  let line = ''
  let reply: Reply | undefined
  let bytes = 0
  let elements = 0
  /** Elements still to arrive, and bytes left of the present one. */
  let pending = 1
  let textBytes = 0

  const endElement = (): string | undefined => {
    if (pending > 0 || reply === undefined) return undefined
    const whole = reply
    reply = undefined
    bytes = 0
    elements = 0
    pending = 1
    return ended(whole)
  }
  /** Starts a text or a list; other elements are complete with their line. */
  const startElement = (length: number): string | undefined => {
    if (line.startsWith('$')) {
      textBytes = length + 2
      return bytes + textBytes > maxBytes ? 'a reply that is too long' : undefined
    }
    pending += length
    elements += length
    return elements > maxElements ? 'a list that is too long' : endElement()
  }
  const readLine = (): string | undefined => {
    if (!linePattern.test(line)) return 'not a reply of RESP 2'
    const isNull = line === '$-1\r\n' || line === '*-1\r\n'
    const isNested = reply !== undefined && line.startsWith('*')
    reply ??= { first: line, isFlat: true }
    if (isNull || isNested) reply.isFlat = false
    pending -= 1
    return isNull || /^[+:-]/.test(line) ? endElement() : startElement(Number(line.slice(1)))
  }
  const addToLine = (text: string, isWhole: boolean): string | undefined => {
    line += text
    if (line.length > longestLine) return 'a line that is too long'
    if (!isWhole) return undefined
    const fault = readLine()
    line = ''
    return fault
  }
  const skipText = (length: number): string | undefined => {
    textBytes -= length
    return textBytes === 0 ? endElement() : undefined
  }

  return (chunk: Buffer): string | undefined => {
    let fault: string | undefined
    for (let at = 0; at < chunk.length && fault === undefined; ) {
      const isText = textBytes > 0
      const feed = isText ? 0 : chunk.indexOf(lineFeed, at) + 1
      const end = isText ? Math.min(at + textBytes, chunk.length) : feed || chunk.length
      bytes += end - at
      fault = isText ? skipText(end - at) : addToLine(chunk.toString('latin1', at, end), feed > 0)
      at = end
    }
    return fault
  }
}

/** On a connection that listens, the client reads the second element of a list, or the second byte of a text, without looking for it. */
const isMessage = ({ first, isFlat }: Reply): boolean =>
  isFlat && (/^[$*](?![01]\r)/.test(first) || /^\+../.test(first) || first.startsWith('-'))

/**
 * Ends the connection at an invalid reply. The client trusts its server: an unexpected null, a reply without a command or a
 * redirect without an address ends the process, and 72 bytes that announce lists allocate 1.5 GB (docs/decisions/0012).
 */
const guardReplies = (
  stream: Socket,
  purpose: ConnectionUse,
  { timeoutMs, maxReplyBytes }: ReplyLimits,
): void => {
  let commandCount = 0
  let responded = 0
  let isSubscribed = false
  /** All commands sent by then have to be answered in time: late ones stay in the memory of the client. */
  let mark = { commandCount: 0, atMs: performance.now() }
  const readCommands = createReplyReader(Infinity, () => {
    commandCount += 1
    return undefined
  })
  const readReplies = createReplyReader(maxReplyBytes, (reply) => {
    if (brokenRedirect.test(reply.first)) return 'an invalid redirect'
    if (purpose === 'listens' && !isMessage(reply)) return 'not a message of a channel'
    const isList = reply.first.startsWith('*')
    isSubscribed ||= purpose === 'listens' && isList
    // From then on subscriptions, messages and signs of life come, which are lists.
    if (isSubscribed) return isList ? undefined : 'not a message of a channel'
    responded += 1
    return responded > commandCount ? 'a reply without a command' : undefined
  })
  const lateness = (): string | undefined => {
    const nowMs = performance.now()
    if (responded >= mark.commandCount) mark = { commandCount, atMs: nowMs }
    return nowMs - mark.atMs > lateTimeouts * timeoutMs ? 'replies that are too late' : undefined
  }
  watchWrites(stream, readCommands)
  interposePush(stream, (push, chunk, encoding) => {
    const fault = Buffer.isBuffer(chunk)
      ? (readReplies(chunk) ?? (purpose === 'calls' ? lateness() : undefined))
      : undefined
    if (fault === undefined) return push(chunk, encoding)
    stream.destroy(new Error(`MALFORMED ${fault}`))
    return false
  })
}

type ConnectorOptions = {
  readonly host: string
  readonly port: number
  readonly family?: number
  readonly tls?: ConnectionOptions
  readonly disconnectTimeout: number
}

/**
 * Opens the sockets of the client, whose own connector listens to one error of each. TLS may emit two: an invalid record, then a
 * failed write (Node closes a socket at the first error only during the handshake). A second error without a listener ends the
 * process.
 */
export const connectorFor = (purpose: ConnectionUse, limits: ReplyLimits) =>
  class Connector extends AbstractConnector {
    readonly #options: ConnectorOptions

    constructor(options: unknown) {
      const connectorOptions = options as ConnectorOptions
      super(connectorOptions.disconnectTimeout)
      this.#options = connectorOptions
    }

    override async connect(): Promise<Socket | TLSSocket> {
      const { host, port, family, tls } = this.#options
      const server = { host, port, lookup: systemLookup, ...(family === undefined ? {} : { family }) }
      this.connecting = true
      const stream = tls === undefined ? createConnection(server) : connect({ ...server, ...tls })
      guardReplies(stream, purpose, limits)
      this.stream = stream
      stream.on('error', (error) => {
        this.firstError = error
        stream.destroy()
      })
      return stream
    }
  }
