import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Http2ServerRequest, Http2ServerResponse } from 'node:http2'
import type { Socket } from 'node:net'
import type { Readable } from 'node:stream'
import { fieldValues, type RequestFields, withoutFields } from '../../http/fields.ts'
import type { GatewayRequest, GatewayResponse } from '../../http/message.ts'
import { authorityForm } from './message-faults.ts'

const connectionField: ReadonlySet<string> = new Set(['connection'])

/** Nothing that comes on this connection is taken for a request any more; see guard.ts. */
export const distrust = (distrusted: Set<Socket>, socket: Socket): void => {
  distrusted.add(socket)
  socket.once('close', () => distrusted.delete(socket))
}

/**
 * An answer to content that is still coming ends its connection, and nothing behind that content is a request any more (RFC 9112 §9.6:
 * after `close` no further request is processed). Where the content has all come, what follows it begins where every parser
 * expects it: it may have been taken already, so it is answered, and the connection goes on.
 */
export const withUnreadContent = (
  raw: ServerResponse,
  response: GatewayResponse,
  distrusted: Set<Socket>,
): GatewayResponse => {
  // The only answers that are given for what the rest of the content may be.
  if (response.status !== 413 && response.status !== 408) return response
  const { req } = raw
  if (req.httpVersionMajor !== 1 || !fieldValues(response.fields, 'connection').includes('close'))
    return response
  if (req.complete) return { ...response, fields: withoutFields(response.fields, connectionField) }
  // The request may have lost its socket when its reader gave it up; the response has one from its turn on.
  const socket = raw.socket ?? (req.socket as Socket | null)
  if (socket !== null) distrust(distrusted, socket)
  return response
}

/** The host and port that the client asked for; '' when it named none, as HTTP/1.0 may. */
export const authorityOf = ({ headers }: IncomingMessage): string =>
  (headers as IncomingMessage['headers'] & { readonly ':authority'?: string })[':authority'] ??
  headers.host ??
  ''

/** Did it come over HTTP/2? Node's types know only the other kind here. */
export const isHttp2 = (message: IncomingMessage | ServerResponse): boolean => 'stream' in message

/** Its client has reset it: nothing is to be done for it any more. */
export const isReset = (incoming: IncomingMessage): boolean =>
  isHttp2(incoming) && (incoming as unknown as Http2ServerRequest).stream.closed

/** RFC 9113 §8.3.1: Host must not differ from :authority, neither has userinfo, and a target is a path. */
export const faultOfHttp2 = (incoming: IncomingMessage): 'host' | 'target' | undefined => {
  const { headers } = incoming as unknown as Http2ServerRequest
  const { host, ':authority': authority, ':path': path } = headers
  if (host !== undefined && authority !== undefined && host.toLowerCase() !== authority.toLowerCase()) {
    return 'host'
  }
  if (!authorityForm.test(authority ?? host ?? '')) return 'host'
  return path?.startsWith('/') === true || path === '*' ? undefined : 'target'
}

/** A client's request over HTTP/2. It hears of no interim responses: Node writes some of them over HTTP/1.1 only. */
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
