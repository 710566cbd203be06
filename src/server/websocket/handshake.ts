import { type IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { GatewayError } from '../../errors.ts'
import { type Answer, type GatewayRequest, type GatewayResponse, withoutFields } from '../../http/message.ts'
import type { Service } from '../../pipeline/service.ts'
import { currentResponse } from '../listener/connections.ts'
import { EdgeRequest, hasContent } from '../read-request.ts'
import type { WebSockets } from '../websockets.ts'

/** Does a request ask for a WebSocket (RFC 6455 §4.1)? Any other protocol may be ignored (RFC 9110 §7.8). */
export const asksWebSocket = ({ headers, method }: IncomingMessage): boolean =>
  method === 'GET' && headers.upgrade?.trim().toLowerCase() === 'websocket'

/** 16 octets in base64. */
const keyForm = /^[A-Za-z0-9+/]{21}[AQgw]==$/

/** Why a handshake is refused without a request to the upstream (RFC 6455 §4.2.1). */
const faultOf = (incoming: IncomingMessage): GatewayError | undefined => {
  const { 'sec-websocket-version': version, 'sec-websocket-key': key = '' } = incoming.headers
  if (version !== '13') {
    return new GatewayError('websocket_version', {
      fields: ['Sec-WebSocket-Version', '13', 'Upgrade', 'websocket'],
    })
  }
  if (keyForm.test(key) && !hasContent(incoming.headers) && incoming.httpVersionMinor > 0) return undefined
  return new GatewayError('malformed_request', { detail: 'The WebSocket handshake is not valid.' })
}

/** A request for a WebSocket. Gets the connection to the upstream before its response. */
class WebSocketRequest extends EdgeRequest {
  connection: Duplex | undefined

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
  serveResponse(socket, outgoing)
  outgoing.once('finish', () => socket.destroySoon())
  return outgoing
}

const ofContent: ReadonlySet<string> = new Set(['content-length', 'content-type', 'content-encoding'])

const switchingHead = ({ fields }: GatewayResponse): Buffer => {
  const lines = ['HTTP/1.1 101 Switching Protocols', 'Connection: Upgrade', 'Upgrade: websocket']
  const kept = withoutFields(fields, ofContent)
  for (let i = 0; i < kept.length; i += 2) lines.push(`${kept[i]}: ${kept[i + 1]}`)
  return Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1')
}

type HandshakeOptions = {
  readonly sockets: Pick<WebSockets, 'count'>
  readonly inFlight: { enter(): void; leave(): void }
  /** Sends the request through the phases. */
  run(service: Service, incoming: IncomingMessage, request: GatewayRequest): Answer
  /** Gives a response its last form, without sending it. */
  complete(response: GatewayResponse, service: Service): GatewayResponse
  send(outgoing: ServerResponse, response: GatewayResponse): void
  refuse(outgoing: ServerResponse, service: Service, error: GatewayError): void
  addressOf(incoming: IncomingMessage): string
}

/** Opens a WebSocket for a request to a service: the phases decide about it as about any other request. */
export const createHandshake = (
  options: HandshakeOptions,
): ((service: Service, incoming: IncomingMessage, outgoing: ServerResponse, head: Buffer) => void) => {
  const { sockets, inFlight, complete, send, refuse } = options

  return (service, incoming, outgoing, head) => {
    const fault = service.websockets ? faultOf(incoming) : new GatewayError('websockets_off')
    const counted = fault === undefined ? sockets.count(service.name, options.addressOf(incoming)) : undefined
    if (counted === undefined) {
      refuse(outgoing, service, fault ?? new GatewayError('too_many_websockets', { retryAfterSeconds: 5 }))
      return
    }
    const { socket } = incoming
    const request = new WebSocketRequest(incoming, outgoing)
    const answered = (response: GatewayResponse): void => {
      inFlight.leave()
      const { connection } = request
      if (response.status === 101 && connection !== undefined && !socket.destroyed) {
        socket.write(switchingHead(complete(response, service)))
        if (head.length > 0) socket.unshift(head)
        // The end of one direction of a WebSocket is passed on and does not end the other.
        socket.off('end', endOwnSide)
        counted.join(socket, connection)
        return
      }
      connection?.destroy()
      counted.refused()
      send(outgoing, complete(response, service))
    }
    inFlight.enter()
    const failed = (cause: unknown): void => {
      inFlight.leave()
      request.connection?.destroy()
      counted.refused()
      refuse(outgoing, service, new GatewayError('internal', { cause }))
    }
    // The phases answer every error; a promise also where they answer at once.
    void Promise.resolve()
      .then(() => options.run(service, incoming, request))
      .then(answered, failed)
      .catch(() => socket.destroy())
  }
}
