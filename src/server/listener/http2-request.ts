import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Http2ServerRequest, Http2ServerResponse } from 'node:http2'
import type { Socket } from 'node:net'
import type { Readable } from 'node:stream'
import { fieldValues, type RequestFields, withoutFields } from '../../http/fields.ts'
import type { GatewayRequest, GatewayResponse } from '../../http/message.ts'
import { authorityForm } from './message-faults.ts'

const connectionField: ReadonlySet<string> = new Set(['connection'])

/** Ignores all later requests on this connection; see front.ts. */
export const distrust = (distrusted: Set<Socket>, socket: Socket): void => {
  distrusted.add(socket)
  socket.once('close', () => distrusted.delete(socket))
}

/**
 * After a 413 or 408 to an incomplete body the connection closes, and the bytes after it are not read as requests (RFC 9112 §9.6).
 * If the body is complete, the next request may already have been read, so the connection stays open.
 */
export const withUnreadContent = (
  raw: ServerResponse,
  response: GatewayResponse,
  distrusted: Set<Socket>,
): GatewayResponse => {
  // Only these are sent because of the rest of the body.
  if (response.status !== 413 && response.status !== 408) return response
  const { req } = raw
  if (req.httpVersionMajor !== 1 || !fieldValues(response.fields, 'connection').includes('close'))
    return response
  if (req.complete) return { ...response, fields: withoutFields(response.fields, connectionField) }
  // The request may have lost its socket; the response has one from its turn on.
  const socket = raw.socket ?? (req.socket as Socket | null)
  if (socket !== null) distrust(distrusted, socket)
  return response
}

/** The host and port of the request; '' without one, as in HTTP/1.0. */
export const authorityOf = ({ headers }: IncomingMessage): string =>
  (headers as IncomingMessage['headers'] & { readonly ':authority'?: string })[':authority'] ??
  headers.host ??
  ''

/** Node's types know only HTTP/1.1 messages here. */
export const isHttp2 = (message: IncomingMessage | ServerResponse): boolean => 'stream' in message

/** Has the client reset the stream? */
export const isReset = (incoming: IncomingMessage): boolean =>
  isHttp2(incoming) && (incoming as unknown as Http2ServerRequest).stream.closed

/** RFC 9113 §8.3.1: Host must equal :authority, neither may have userinfo, and the target must be a path. */
export const faultOfHttp2 = (incoming: IncomingMessage): 'host' | 'target' | undefined => {
  const { headers } = incoming as unknown as Http2ServerRequest
  const { host, ':authority': authority, ':path': path } = headers
  if (host !== undefined && authority !== undefined && host.toLowerCase() !== authority.toLowerCase()) {
    return 'host'
  }
  if (!authorityForm.test(authority ?? host ?? '')) return 'host'
  return path?.startsWith('/') === true || path === '*' ? undefined : 'target'
}

/** A request over HTTP/2. It gets no interim responses, because Node sends some of them over HTTP/1.1 only. */
export class Http2EdgeRequest implements GatewayRequest {
  readonly #incoming: Http2ServerRequest
  readonly #outgoing: Http2ServerResponse
  #controller: AbortController | undefined
  readonly method: string
  readonly target: string
  readonly fields: RequestFields

  constructor(incoming: IncomingMessage, outgoing: ServerResponse) {
    this.#incoming = incoming as unknown as Http2ServerRequest
    this.#outgoing = outgoing as unknown as Http2ServerResponse
    this.method = this.#incoming.method
    this.target = this.#incoming.url
    this.fields = this.#incoming.headers
  }

  /** RFC 9113 §8.1: frames say where content ends; it needs no length. */
  get content(): Readable | undefined {
    return this.#incoming.stream.endAfterHeaders ? undefined : this.#incoming
  }

  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      const controller = new AbortController()
      this.#controller = controller
      const { stream } = this.#outgoing
      if (stream.destroyed || stream.aborted) controller.abort()
      else stream.once('aborted', () => controller.abort())
    }
    return this.#controller.signal
  }
}
