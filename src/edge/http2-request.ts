import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Http2ServerRequest, Http2ServerResponse } from 'node:http2'
import type { Readable } from 'node:stream'
import type { RequestFields } from '../http/fields.ts'
import type { GatewayRequest } from '../http/message.ts'
import { authorityForm } from './message-faults.ts'

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
