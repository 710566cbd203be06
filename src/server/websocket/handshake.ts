import { type IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { GatewayError } from '../../errors.ts'
import type { HandleRequest, RequestContext } from '../../exchange/request-context.ts'
import type { Service } from '../../exchange/service.ts'
import { headerValue, type RequestHeaders, withoutHeaders } from '../../http/headers/header-lines.ts'
import type { GatewayRequest, GatewayResponse } from '../../http/message.ts'
import { currentResponse, responseBegins } from '../listener/connections.ts'
import { EdgeRequest, hasContent } from '../listener/read-request.ts'
import type { CountedWebSocket, WebSockets } from '../websockets.ts'

/** Does a request ask for a WebSocket (RFC 6455 §4.1)? Any other protocol may be ignored (RFC 9110 §7.8). */
export const asksWebSocket = ({ headers, method, httpVersionMinor }: IncomingMessage): boolean =>
  method === 'GET' && httpVersionMinor > 0 && headers.upgrade?.trim().toLowerCase() === 'websocket'

/** Does `Connection` name `Upgrade`? Otherwise it is for another recipient (RFC 9110 §7.8). */
export const namesUpgrade = ({ headers }: IncomingMessage): boolean =>
  (headers.connection ?? '').split(',').some((option) => option.trim().toLowerCase() === 'upgrade')

/** 16 octets in base64. */
const keyForm = /^[A-Za-z0-9+/]{21}[AQgw]==$/

/** Why a handshake is refused without a request to the upstream (RFC 6455 §4.2.1). */
const faultOf = (incoming: IncomingMessage): GatewayError | undefined => {
  const { 'sec-websocket-version': version, 'sec-websocket-key': key = '' } = incoming.headers
  if (version !== '13') {
    return new GatewayError('websocket_version', {
      headers: ['Sec-WebSocket-Version', '13', 'Upgrade', 'websocket'],
    })
  }
  if (keyForm.test(key) && !hasContent(incoming.headers)) return undefined
  return new GatewayError('malformed_request', { detail: 'The WebSocket handshake is not valid.' })
}

/** A request for a WebSocket. Gets the connection to the upstream before its response. */
class WebSocketRequest extends EdgeRequest {
  connection: Duplex | undefined
  /** Without extensions: the library that passes messages on has none with the client. */
  override readonly headers: RequestHeaders

  constructor(incoming: IncomingMessage, outgoing: ServerResponse) {
    super(incoming, outgoing)
    const { 'sec-websocket-extensions': _extensions, ...headers } = incoming.headers
    this.headers = headers
  }

  readonly upgrade = (connection: Duplex): void => {
    this.connection = connection
  }
}

function endOwnSide(this: Socket): void {
  this.end()
}

/**
 * Does what the listeners did that node:http has removed with the connection: a response goes on when the client has read some of
 * it, and ends when the client disconnects.
 */
const serveResponse = (socket: Socket, outgoing: ServerResponse): void => {
  socket.on('drain', () => {
    if (outgoing.writableNeedDrain) outgoing.emit('drain')
  })
  socket.once('end', endOwnSide)
}

/** The response to a request with which node:http has given its connection away; the connection ends with it. */
export const responseOn = (incoming: IncomingMessage, socket: Socket): ServerResponse | undefined => {
  // Without a listener an error would end the process.
  socket.on('error', () => {})
  const before = currentResponse(socket)
  if (before !== undefined) {
    // Pipelined behind another request: no client of a WebSocket does that.
    serveResponse(socket, before)
    before.once('close', () => socket.destroy())
    return undefined
  }
  const outgoing = new ServerResponse(incoming)
  outgoing.shouldKeepAlive = false
  outgoing.assignSocket(socket)
  responseBegins(socket, outgoing)
  serveResponse(socket, outgoing)
  outgoing.once('finish', () => socket.destroySoon())
  return outgoing
}

const ofHandshake: ReadonlySet<string> = new Set([
  'content-length',
  'content-type',
  'content-encoding',
  'sec-websocket-accept',
  'sec-websocket-extensions',
  'sec-websocket-protocol',
])

/** The header lines of a 101 beside those of the handshake. `ws` writes UTF-8, so that only ASCII stays as it is. */
const shownLines = ({ headers }: GatewayResponse): readonly string[] => {
  const otherLines = withoutHeaders(headers, ofHandshake)
  const lines: string[] = []
  for (let i = 0; i < otherLines.length; i += 2) lines.push(`${otherLines[i]}: ${otherLines[i + 1]}`)
  return lines.filter((line) => /^[\t\x20-\x7e]*$/.test(line))
}

/** A handshake that the upstream has agreed to. */
export type Agreed = {
  readonly connection: Duplex
  readonly counted: CountedWebSocket
  /** Origin of the target that agreed. */
  readonly origin: string
  readonly protocol: string | undefined
  readonly lines: readonly string[]
}

type HandshakeOptions = {
  readonly sockets: Pick<WebSockets, 'count'>
  readonly inFlight: { enter(): void; leave(): void }
  isDraining(): boolean
  receive(service: Service, incoming: IncomingMessage, request: GatewayRequest, id: string): RequestContext
  readonly handle: HandleRequest
  /** Gives a response its last form, without sending it. */
  complete(response: GatewayResponse, service: Service): GatewayResponse
  send(outgoing: ServerResponse, response: GatewayResponse): void
  addressOf(incoming: IncomingMessage): string
}

/** Asks for a WebSocket: the request is handled as any other. Undefined: it was refused, with the response sent. */
export const createHandshake = (
  options: HandshakeOptions,
): ((service: Service, request: FastifyRequest, reply: FastifyReply) => Promise<Agreed | undefined>) => {
  const { sockets, inFlight, complete, send } = options

  return async (service, { raw: incoming, id }, reply) => {
    const { socket } = incoming
    const { raw: outgoing } = reply
    outgoing.shouldKeepAlive = false
    serveResponse(socket, outgoing)
    const fault = faultOf(incoming)
    if (fault !== undefined) throw fault
    if (options.isDraining()) throw new GatewayError('shutting_down', { retryAfterSeconds: 1 })
    const counted = sockets.count({
      service: service.name,
      address: options.addressOf(incoming),
      headers: incoming.headers,
    })
    if (counted === undefined) throw new GatewayError('too_many_websockets', { retryAfterSeconds: 5 })
    const request = new WebSocketRequest(incoming, outgoing)
    const context = options.receive(service, incoming, request, id)
    inFlight.enter()
    let response: GatewayResponse
    try {
      response = await options.handle(context)
    } catch (error) {
      request.connection?.destroy()
      counted.refused()
      throw error
    } finally {
      inFlight.leave()
    }
    const { connection } = request
    const completed = complete(response, service)
    if (response.status !== 101 || connection === undefined || socket.destroyed) {
      connection?.destroy()
      counted.refused()
      reply.hijack()
      send(outgoing, completed)
      return undefined
    }
    // An end of the client is the library's from here on.
    socket.off('end', endOwnSide)
    counted.opened(socket, connection)
    return {
      connection,
      counted,
      origin: context.record.target ?? '',
      protocol: headerValue(response.headers, 'sec-websocket-protocol'),
      lines: shownLines(completed),
    }
  }
}
