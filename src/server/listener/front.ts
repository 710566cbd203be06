import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { type ErrorCode, GatewayError } from '../../errors.ts'
import type { GatewayResponse } from '../../http/message.ts'
import { changedResponse, errorAnswer } from '../../pipeline/error-answer.ts'
import type { Service } from '../../pipeline/service.ts'
import type { EdgeEvent, ProtocolFault } from '../events.ts'
import type { EdgeHandlers } from '../listener.ts'
import { underWay } from './connections.ts'
import { authorityOf, distrust, faultOfHttp2, isHttp2 } from './http2-request.ts'
import { absoluteForm, createMessageLook, faultTexts, type MessageFault } from './message-faults.ts'

type GuardOptions = {
  /** Takes what is sound. */
  take(incoming: IncomingMessage, outgoing: ServerResponse): void
  /** Answers what is not, and says that the connection closes. */
  refuse(incoming: IncomingMessage, outgoing: ServerResponse, fault: MessageFault): void
  /** Connections on which nothing is taken for a request any more; kept when others take the requests of the port. */
  readonly distrusted: Set<Socket>
}

/** Responses that wait for their turn on one connection. */
const watchQueued = (): ((socket: Socket, outgoing: ServerResponse) => void) => {
  const queues = new WeakMap<Socket, Set<ServerResponse>>()
  const queueOf = (socket: Socket): Set<ServerResponse> => {
    const known = queues.get(socket)
    if (known !== undefined) return known
    const queue = new Set<ServerResponse>()
    queues.set(socket, queue)
    socket.once('close', () => {
      // node:http tells only the response whose turn it is; the others would wait, and hold what they hold, for ever.
      for (const outgoing of queue) {
        outgoing.destroy()
        outgoing.emit('close')
      }
    })
    return queue
  }
  return (socket, outgoing) => {
    const queue = queueOf(socket)
    queue.add(outgoing)
    // From its turn on, node:http tells it.
    outgoing.once('socket', () => queue.delete(outgoing))
  }
}

const slash = 0x2f

/** Brings the target into origin form (RFC 9112 §3.2.1); of one in absolute form the authority replaces Host (§3.2.2). False: it has no form. */
const toOriginForm = (incoming: IncomingMessage): boolean => {
  const target = incoming.url as string
  if (target.charCodeAt(0) === slash) return true
  const absolute = absoluteForm(target)
  if (absolute === undefined) return false
  incoming.url = absolute.path
  incoming.headers.host = absolute.authority
  return true
}

/**
 * Stands between the parser and everything else: what can be read in two ways is refused, and nothing that follows it on its
 * connection is taken for a request any more, since its beginning is unknown.
 */
const createGuard = ({ take, refuse, distrusted }: GuardOptions): GuardOptions['take'] => {
  const look = createMessageLook()
  const queued = watchQueued()

  return (incoming, outgoing) => {
    // HTTP/2 has frames of its own, and its own rules for what is malformed (RFC 9113 §8.1.1).
    if (isHttp2(incoming)) {
      const fault = faultOfHttp2(incoming)
      if (fault === undefined) take(incoming, outgoing)
      else refuse(incoming, outgoing, fault)
      return
    }
    const { socket } = incoming
    if (distrusted.size > 0 && distrusted.has(socket)) return
    if (outgoing.socket === null) queued(socket, outgoing)
    const seen = look(incoming)
    if (seen.kind === 'fault' || !toOriginForm(incoming)) {
      distrust(distrusted, socket)
      refuse(incoming, outgoing, seen.kind === 'fault' ? seen.fault : 'target')
      return
    }
    if (seen.asksUpgrade) {
      // The protocol stays what it is; node:http loses octets that come behind such a request in one piece with it.
      distrust(distrusted, socket)
      outgoing.shouldKeepAlive = false
    }
    take(incoming, outgoing)
  }
}

type ParserError = Error & { readonly code?: string; readonly rawPacket?: Buffer }

const codes: Readonly<Record<string, ErrorCode>> = {
  HPE_HEADER_OVERFLOW: 'fields_too_large',
  HPE_CHUNK_EXTENSIONS_OVERFLOW: 'content_too_large',
  ERR_HTTP_REQUEST_TIMEOUT: 'request_timeout',
}

/** What is wrong with bytes that node:http could not take for a request. */
const parserErrorCode = (error: ParserError): ErrorCode => codes[error.code ?? ''] ?? 'malformed_request'

const faults: Readonly<Record<string, ProtocolFault>> = {
  HPE_INVALID_METHOD: 'start-line',
  HPE_INVALID_URL: 'start-line',
  HPE_INVALID_VERSION: 'start-line',
  HPE_INVALID_CONSTANT: 'start-line',
  HPE_PAUSED_H2_UPGRADE: 'start-line',
  HPE_INVALID_HEADER_TOKEN: 'field',
  HPE_CR_EXPECTED: 'field',
  HPE_LF_EXPECTED: 'field',
  HPE_INVALID_CONTENT_LENGTH: 'framing',
  HPE_UNEXPECTED_CONTENT_LENGTH: 'framing',
  HPE_INVALID_TRANSFER_ENCODING: 'framing',
  HPE_INVALID_CHUNK_SIZE: 'chunking',
  HPE_STRICT: 'chunking',
  HPE_CHUNK_EXTENSIONS_OVERFLOW: 'chunking',
  HPE_HEADER_OVERFLOW: 'too-large',
  ERR_HTTP_REQUEST_TIMEOUT: 'timeout',
  HPE_INVALID_EOF_STATE: 'cut-off',
}

/** What was wrong with the bytes, in words of a closed list. */
const protocolFault = (error: ParserError): ProtocolFault => faults[error.code ?? ''] ?? 'other'

/** Path of the request line, as far as the bytes that could not be parsed show one; bounded, and used to pick the error's shape only. */
const pathOfPacket = (packet: unknown): string => {
  const line = Buffer.isBuffer(packet) ? packet.subarray(0, 2048).toString('latin1') : ''
  return /^[A-Z-]{1,20} (\/[^\s?#]*)/.exec(line)?.[1] ?? '/'
}

const reasonPhrases: Readonly<Record<number, string>> = {
  400: 'Bad Request',
  408: 'Request Timeout',
  413: 'Content Too Large',
  431: 'Request Header Fields Too Large',
}

const textOf = ({ status, fields, content }: GatewayResponse): Buffer => {
  const lines = [`HTTP/1.1 ${status} ${reasonPhrases[status] ?? 'Error'}`]
  for (let i = 0; i < fields.length; i += 2) {
    if (fields[i]?.toLowerCase() !== 'connection') lines.push(`${fields[i]}: ${fields[i + 1]}`)
  }
  lines.push('Connection: close', '', '')
  const head = Buffer.from(lines.join('\r\n'), 'latin1')
  return Buffer.isBuffer(content) ? Buffer.concat([head, content]) : head
}

const answerInTurn = (socket: Socket, response: GatewayResponse): void => {
  const before = underWay(socket)
  if (!socket.writable || before?.headersSent === true) socket.destroy()
  else socket.end(textOf(response))
}

const whenItsTurnComes = (socket: Socket, answer: () => void): void => {
  const before = underWay(socket)
  // An incomplete request is the very one whose content cannot be read.
  if (before?.req.complete === true) before.once('close', () => whenItsTurnComes(socket, answer))
  else answer()
}

const answered = new WeakSet<Socket>()

/** Each piece that comes behind an error raises it again. */
const isAnswered = (socket: Socket): boolean => answered.has(socket)

/**
 * Is it about what came over the connection? node:http also tells of clients that have gone, and of connections that the
 * gateway has destroyed itself, because the upstream broke off.
 */
const isRefusable = ({ code = '' }: ParserError): boolean =>
  code.startsWith('HPE_') || code === 'ERR_HTTP_REQUEST_TIMEOUT'

/**
 * Answers on a bare socket and closes it: after bytes that are no request nothing on this connection can be trusted. What was
 * asked before them is answered before them (RFC 9112 §9.3.2): the client would take the error for the answer to that.
 */
const answerSocket = (socket: Socket, response: GatewayResponse): void => {
  answered.add(socket)
  whenItsTurnComes(socket, () => answerInTurn(socket, response))
}

/** The error as ours, for the shape of the service that the path belongs to. */
const asRawError = (error: Error): GatewayError => new GatewayError(parserErrorCode(error), { cause: error })

export type FrontOptions = {
  /** The service that would answer; decides the shape of errors. */
  serviceFor(authority: string, target: string): Service | undefined
  /** Is the host of an HTTP/2 request one that the certificate of its connection is for? Undefined: all are. */
  readonly isCovered: ((incoming: IncomingMessage) => boolean) | undefined
  /** See guard.ts. */
  readonly distrusted: Set<Socket>
  /** Takes what is not refused here. */
  take(incoming: IncomingMessage, outgoing: ServerResponse): void
  send(outgoing: ServerResponse, response: GatewayResponse): void
  /** A request that never became an exchange: reported with the service whose shape its error has. */
  refusedEarly(error: GatewayError, service: Service | undefined): void
  report(event: EdgeEvent): void
  /** Why a request is not even looked at; undefined: it is. Asked by `turnAway` alone. */
  turnedAway(): GatewayError | undefined
}

/** What the public port calls. */
export type Front = EdgeHandlers & {
  /** In place of `request`, when even hits are given up. */
  turnAway(incoming: IncomingMessage, outgoing: ServerResponse): void
}

/** What stands before Fastify: everything that is refused without a route having been looked for. */
export const createFront = (options: FrontOptions): Front => {
  const { serviceFor, isCovered } = options

  const refuse = (incoming: IncomingMessage, outgoing: ServerResponse, error: GatewayError): void => {
    const service = serviceFor(authorityOf(incoming), incoming.url as string)
    options.refusedEarly(error, service)
    options.send(outgoing, changedResponse(errorAnswer(service, error), service))
  }
  /** A client may use a connection for every host that resolves to the same address (RFC 9113 §9.1.1): it then opens another one. */
  const take: FrontOptions['take'] =
    isCovered === undefined
      ? options.take
      : (incoming, outgoing) => {
          if (!isHttp2(incoming) || isCovered(incoming)) options.take(incoming, outgoing)
          else refuse(incoming, outgoing, new GatewayError('misdirected_request'))
        }
  const guard: Omit<GuardOptions, 'take'> = {
    distrusted: options.distrusted,
    refuse: (incoming, outgoing, fault) => {
      const code = fault === 'field-count' ? 'fields_too_large' : 'malformed_request'
      options.report({ kind: 'no-request', reason: fault })
      refuse(
        incoming,
        outgoing,
        new GatewayError(code, { detail: faultTexts[fault], fields: ['Connection', 'close'] }),
      )
    },
  }
  return {
    request: createGuard({ ...guard, take }),
    turnAway: createGuard({
      ...guard,
      take: (incoming, outgoing) => {
        const error = options.turnedAway()
        if (error === undefined) take(incoming, outgoing)
        else refuse(incoming, outgoing, error)
      },
    }),
    clientError: (error: Error & { readonly rawPacket?: Buffer }, socket) => {
      if (isAnswered(socket) || options.distrusted.has(socket)) return
      if (!isRefusable(error)) {
        socket.destroy()
        return
      }
      options.report({ kind: 'no-request', reason: protocolFault(error) })
      // What ends a request in the middle of its content shows no path.
      const request = underWay(socket)?.req
      const service =
        request?.complete === false
          ? serviceFor(authorityOf(request), request.url as string)
          : serviceFor('', pathOfPacket(error.rawPacket))
      const raw = asRawError(error)
      options.refusedEarly(raw, service)
      answerSocket(socket, changedResponse(errorAnswer(service, raw), service))
    },
  }
}
