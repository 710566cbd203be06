import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { type ErrorCode, GatewayError } from '../../errors.ts'
import { earlyErrorResponse } from '../../exchange/error-response.ts'
import { changedResponse, type Service } from '../../exchange/service.ts'
import type { GatewayResponse } from '../../http/message.ts'
import { type ServiceChoices, serviceOf } from '../edge/service-choices.ts'
import type { EdgeEvent, ProtocolFault } from '../events.ts'
import type { EdgeHandlers } from '../listener.ts'
import { asksWebSocket, namesUpgrade, responseOn } from '../websocket/handshake.ts'
import { currentResponse } from './connections.ts'
import { faultOfHttp2 } from './http2.ts'
import {
  absoluteForm,
  asksServer,
  faultTexts,
  hasContent,
  isHttp2,
  type MessageFault,
  messageFault,
  poison,
} from './read-request.ts'

type RequestGuardOptions = {
  take(incoming: IncomingMessage, outgoing: ServerResponse): void
  /** Handles a valid request for another protocol. */
  takeUpgrade(incoming: IncomingMessage, outgoing: ServerResponse): void
  /** Answers an invalid request with an error and `Connection: close`. */
  refuse(incoming: IncomingMessage, outgoing: ServerResponse, fault: MessageFault): void
  /** Connections whose further requests are ignored. Shared by all configuration snapshots of handlers. */
  readonly poisoned: Set<Socket>
}

const slash = 0x2f

/** Converts the target to origin form (RFC 9112 §3.2.1), except the `*` of OPTIONS; of one in absolute form the authority replaces Host (§3.2.2). False: it has no form. */
const toOriginForm = (incoming: IncomingMessage): boolean => {
  const target = incoming.url as string
  if (target.charCodeAt(0) === slash || asksServer(incoming)) return true
  const absolute = absoluteForm(target)
  if (absolute === undefined) return false
  incoming.url = absolute.path
  incoming.headers.host = absolute.authority
  return true
}

/**
 * Checks each parsed request. A request that can be read in two ways is refused, and over HTTP/1.1 all later requests on its
 * connection are ignored, because the start of the next one is unknown.
 */
const createRequestGuard = ({
  take,
  takeUpgrade,
  refuse,
  poisoned,
}: RequestGuardOptions): RequestGuardOptions['take'] => {
  return (incoming, outgoing) => {
    // HTTP/2 has frames, and other rules for malformed requests (RFC 9113 §8.1.1).
    if (isHttp2(incoming)) {
      const fault = faultOfHttp2(incoming)
      if (fault === undefined) take(incoming, outgoing)
      else refuse(incoming, outgoing, fault)
      return
    }
    const { socket } = incoming
    if (poisoned.size > 0 && poisoned.has(socket)) return
    const fault = messageFault(incoming) ?? (toOriginForm(incoming) ? undefined : 'target')
    if (fault !== undefined) {
      poison(poisoned, socket)
      refuse(incoming, outgoing, fault)
      return
    }
    if (incoming.headers.upgrade === undefined) {
      take(incoming, outgoing)
      return
    }
    // node:http loses bytes that arrive together with such a request.
    poison(poisoned, socket)
    outgoing.shouldKeepAlive = false
    takeUpgrade(incoming, outgoing)
  }
}

type ParserError = Error & { readonly code?: string; readonly rawPacket?: Buffer }

/** The errors for bytes that node:http could not parse; others are `malformed_request`. */
const codes: Readonly<Record<string, ErrorCode>> = {
  HPE_HEADER_OVERFLOW: 'fields_too_large',
  HPE_CHUNK_EXTENSIONS_OVERFLOW: 'content_too_large',
  ERR_HTTP_REQUEST_TIMEOUT: 'request_timeout',
}

/** The faults for metrics; others are `other`. */
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

/** The path in bytes that could not be parsed, if they show one. It only chooses the format of the error. */
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

const textOf = ({ status, headers, content }: GatewayResponse): Buffer => {
  const lines = [`HTTP/1.1 ${status} ${reasonPhrases[status] ?? 'Error'}`]
  for (let i = 0; i < headers.length; i += 2) {
    if (headers[i]?.toLowerCase() !== 'connection') lines.push(`${headers[i]}: ${headers[i + 1]}`)
  }
  lines.push('Connection: close', '', '')
  const head = Buffer.from(lines.join('\r\n'), 'latin1')
  return Buffer.isBuffer(content) ? Buffer.concat([head, content]) : head
}

/** A client that keeps sending gets the response within this time; destroyed at once, the connection could lose it (RFC 9112 §9.6). */
const lingerMs = 2_000

/** Writes the response to the socket and closes it, because the next bytes cannot be parsed. */
const respondOnSocket = (socket: Socket, response: GatewayResponse): void => {
  if (!socket.writable || currentResponse(socket)?.headersSent === true) {
    socket.destroy()
    return
  }
  socket.end(textOf(response))
  // node:http leaves the other half open for as long as the client does.
  const timer = setTimeout(() => socket.destroy(), lingerMs)
  socket.once('close', () => clearTimeout(timer))
}

/** Was the error caused by received bytes? node:http also reports disconnected clients and connections that the gateway destroyed. */
const isRefusable = ({ code = '' }: ParserError): boolean =>
  code.startsWith('HPE_') || code === 'ERR_HTTP_REQUEST_TIMEOUT'

export type EdgeGuardOptions = {
  /** The service of a request decides the format of errors. */
  readonly choices: Pick<ServiceChoices, 'of' | 'ofPath' | 'ofUpgrade'>
  /** Is the host of an HTTP/2 request one that the certificate of its connection is for? Undefined: all are. */
  readonly isCovered: ((incoming: IncomingMessage) => boolean) | undefined
  /** Connections whose further requests are ignored. */
  readonly poisoned: Set<Socket>
  /** Handles requests that are not refused here. */
  take(incoming: IncomingMessage, outgoing: ServerResponse): void
  /** Opens a WebSocket; undefined where no service has any. */
  readonly openWebSocket:
    | ((incoming: IncomingMessage, outgoing: ServerResponse, head: Buffer) => void)
    | undefined
  /** Responses with an error, in place of a response of the service. */
  refuse(incoming: IncomingMessage, outgoing: ServerResponse, error: GatewayError): void
  /** Reports an early refusal, with the service whose error format was used; returns the id of the request. */
  refusedEarly(
    error: GatewayError,
    service: Service | undefined,
    socket: Socket,
    incoming: IncomingMessage | undefined,
  ): string
  report(event: EdgeEvent): void
  /** Why a request is refused under overload; undefined if it is not. Used by `turnAway` only. */
  turnedAway(): GatewayError | undefined
}

export type EdgeGuard = EdgeHandlers & {
  /** Replaces `request` while even hits are refused. */
  turnAway(incoming: IncomingMessage, outgoing: ServerResponse): void
}

const noBytes = Buffer.alloc(0)
const noConnectionUpgrade = 'A WebSocket handshake has the header Connection: Upgrade.'
const noUpgradeWithBody = 'Send a request with a body without the header Upgrade.'

/** Runs before Fastify, for each connection: which of its requests are none, or are refused whatever their route is. */
export const createEdgeGuard = (options: EdgeGuardOptions): EdgeGuard => {
  const { choices, isCovered, refuse } = options

  /** A client may use a connection for every host that resolves to the same address (RFC 9113 §9.1.1): it then opens another one. */
  const take: EdgeGuardOptions['take'] =
    isCovered === undefined
      ? options.take
      : (incoming, outgoing) => {
          if (!isHttp2(incoming) || isCovered(incoming)) options.take(incoming, outgoing)
          else refuse(incoming, outgoing, new GatewayError('misdirected_request'))
        }
  const takeUnlessOverloaded: EdgeGuardOptions['take'] = (incoming, outgoing) => {
    const error = options.turnedAway()
    if (error === undefined) take(incoming, outgoing)
    else refuse(incoming, outgoing, error)
  }
  /**
   * node:http passes on a request for a WebSocket as any other where there are none, and where `Connection` does not name `Upgrade`,
   * which proxies remove: a service with WebSockets says so, and any other ignores it, as an unknown protocol.
   */
  const takeUpgrade: RequestGuardOptions['takeUpgrade'] = (incoming, outgoing) => {
    if (!asksWebSocket(incoming)) takeUnlessOverloaded(incoming, outgoing)
    else if (serviceOf(choices.ofUpgrade(incoming))?.websockets === true)
      refuse(incoming, outgoing, new GatewayError('malformed_request', { detail: noConnectionUpgrade }))
    else if (namesUpgrade(incoming)) refuse(incoming, outgoing, new GatewayError('websockets_off'))
    else takeUnlessOverloaded(incoming, outgoing)
  }
  const guard: Omit<RequestGuardOptions, 'take'> = {
    takeUpgrade,
    poisoned: options.poisoned,
    refuse: (incoming, outgoing, fault) => {
      const code = fault === 'field-count' ? 'fields_too_large' : 'malformed_request'
      options.report({ kind: 'no-request', reason: fault })
      refuse(
        incoming,
        outgoing,
        new GatewayError(code, { detail: faultTexts[fault], headers: ['Connection', 'close'] }),
      )
    },
  }
  const { openWebSocket } = options
  const heads = new WeakMap<ServerResponse, Buffer>()
  const guardUpgrade = createRequestGuard({
    ...guard,
    take: takeUnlessOverloaded,
    takeUpgrade: (incoming, outgoing) => {
      if (asksWebSocket(incoming)) openWebSocket?.(incoming, outgoing, heads.get(outgoing) ?? noBytes)
      else if (!hasContent(incoming.headers)) takeUnlessOverloaded(incoming, outgoing)
      // node:http has stopped to read the request.
      else refuse(incoming, outgoing, new GatewayError('malformed_request', { detail: noUpgradeWithBody }))
    },
  })
  return {
    upgrade:
      openWebSocket &&
      ((incoming, socket, head) => {
        const outgoing = responseOn(incoming, socket)
        if (outgoing === undefined) return
        heads.set(outgoing, head)
        guardUpgrade(incoming, outgoing)
      }),
    request: createRequestGuard({ ...guard, take }),
    turnAway: createRequestGuard({ ...guard, take: takeUnlessOverloaded }),
    clientError: (error: ParserError, socket) => {
      // Later data on such a connection raises the error again.
      if (options.poisoned.has(socket)) return
      if (!isRefusable(error)) {
        socket.destroy()
        return
      }
      options.report({ kind: 'no-request', reason: faults[error.code ?? ''] ?? 'other' })
      // The parser reads on behind a timeout, and a response on a connection that has been ended would be in flight for ever.
      poison(options.poisoned, socket)
      // If the fault is in the content, the bytes show no path; the incomplete request does.
      const request = currentResponse(socket)?.req
      const service = serviceOf(
        request?.complete === false ? choices.of(request) : choices.ofPath(pathOfPacket(error.rawPacket)),
      )
      const raw = new GatewayError(codes[error.code ?? ''] ?? 'malformed_request', { cause: error })
      // Its head may be that of an earlier request, so no path is reported.
      const id = options.refusedEarly(raw, service, socket, undefined)
      respondOnSocket(socket, changedResponse(earlyErrorResponse(service, raw, { id, headers: {} }), service))
    },
  }
}
