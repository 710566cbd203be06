import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { GatewayError } from '../../errors.ts'
import { arrived, type Client, type RequestContext } from '../../exchange/request-context.ts'
import type { Service } from '../../exchange/service.ts'
import type { RequestHeaders } from '../../http/headers/header-lines.ts'
import { isEventStream } from '../../http/headers/media-type.ts'
import type { GatewayRequest, GatewayResponse } from '../../http/message.ts'
import type { EdgeOptions } from '../edge-options.ts'
import { Http2EdgeRequest } from '../listener/http2.ts'
import { EdgeRequest, isHttp2, isReset } from '../listener/read-request.ts'
import { contentOf, RequestContent } from '../listener/request-content.ts'
import { hasLeft, type ResponseSender } from '../send/response-sender.ts'
import { createGathering } from '../send/send-response.ts'
import type { EarlyRefusals } from './early-refusals.ts'

type ReadyResponse = {
  readonly context: RequestContext
  readonly outgoing: ServerResponse
  readonly response: GatewayResponse
}

type HandlerParts = Pick<
  EdgeOptions,
  'buffered' | 'inFlight' | 'report' | 'revocations' | 'handle' | 'snapshot' | 'unread'
> & {
  readonly sender: ResponseSender
  readonly refusals: EarlyRefusals
  clientOf(socket: Socket, headers: RequestHeaders): Client
}

const requestOf = (incoming: IncomingMessage, outgoing: ServerResponse): GatewayRequest =>
  isHttp2(incoming)
    ? new Http2EdgeRequest(incoming, outgoing, contentOf(incoming))
    : new EdgeRequest(incoming, outgoing, contentOf(incoming))

const isUnderWay = (raw: ServerResponse): boolean =>
  !hasLeft(raw) && !(raw.writableEnded && raw.writableLength === 0)

/** The response to a request whose content is still arriving ends the connection, so it does not wait for the content. */
const mayWait = ({ context: { request }, outgoing }: ReadyResponse): boolean =>
  request.method === 'GET' || outgoing.req.complete || Buffer.isBuffer(request.content)

/** The handler of the catch-all route: runs `handle` for each request, and sends its response. */
export class RequestHandler {
  readonly #parts: HandlerParts
  readonly #sendGathered: (ready: ReadyResponse) => void

  constructor(parts: HandlerParts) {
    this.#parts = parts
    this.#sendGathered = createGathering((ready) => this.#send(ready), mayWait)
  }

  handle(service: Service, request: FastifyRequest, reply: FastifyReply): void {
    const { buffered, inFlight, handle } = this.#parts
    const { raw: incoming } = request
    const { raw: outgoing } = reply
    if (isReset(incoming)) {
      reply.hijack()
      return
    }
    const context = this.receive(service, incoming, requestOf(incoming, outgoing), request.id)
    const content = contentOf(incoming)
    if (content instanceof RequestContent)
      content.count(buffered.budget('request-body', context.client.address))
    reply.hijack()
    const response = handle(context)
    // From its first wait on (see decideShedding), until the connection has finished with the response, or the client has left.
    if (!hasLeft(outgoing)) {
      inFlight.enter()
      // Not `once`: it makes an object for each response, which closes once.
      outgoing.on('close', inFlight.leave)
    }
    response.then(
      (response) => this.#sendGathered({ context, outgoing, response }),
      (cause: unknown) => this.#failed(context, outgoing, cause),
    )
  }

  receive(service: Service, incoming: IncomingMessage, request: GatewayRequest, id: string): RequestContext {
    const target = incoming.url as string
    const at = target.indexOf('?')
    const path = at === -1 ? target : target.slice(0, at)
    return arrived({
      id,
      origin: 'client',
      client: this.#parts.clientOf(incoming.socket, incoming.headers),
      snapshot: this.#parts.snapshot,
      service,
      request,
      path: path.length === service.mount.length ? '/' : path.slice(service.mount.length),
      query: at === -1 ? '' : target.slice(at + 1),
    })
  }

  #send({ context, outgoing, response }: ReadyResponse): void {
    try {
      this.#parts.sender.send(outgoing, context.service, response)
      this.#bufferUnread(outgoing, response.content, context.client)
      this.#endWithPermission(outgoing, response, context)
    } catch (error) {
      this.#failed(context, outgoing, error)
    }
  }

  #failed({ service, id }: RequestContext, outgoing: ServerResponse, cause: unknown): void {
    this.#parts.refusals.refuse(outgoing, service, new GatewayError('internal', { cause }), id)
  }

  #bufferUnread(outgoing: ServerResponse, content: GatewayResponse['content'], client: Client): void {
    if (Buffer.isBuffer(content) && isUnderWay(outgoing))
      this.#parts.unread.buffer(outgoing, content, client.address)
  }

  /** An event stream may last for days, longer than the token that allowed it. */
  #endWithPermission(
    outgoing: ServerResponse,
    response: GatewayResponse,
    { service, client, request }: RequestContext,
  ): void {
    if (response.content === undefined || Buffer.isBuffer(response.content)) return
    if (!isEventStream(response) || !isUnderWay(outgoing)) return
    const { report, revocations } = this.#parts
    const opener = { service: service.name, address: client.address, headers: request.headers }
    const stop = revocations.watch(opener, 'event-stream', () => {
      report({ kind: 'connection-cut', reason: 'revoked' })
      outgoing.destroy()
    })
    outgoing.once('close', stop)
  }
}
