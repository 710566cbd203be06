import { randomBytes } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Logger } from 'pino'
import type { Config, LimitsConfig } from '../config/config.ts'
import { GatewayError } from '../errors.ts'
import { earlyErrorResponse } from '../exchange/error-response.ts'
import {
  arrived,
  type Client,
  type ConfigSnapshot,
  changedResponse,
  type RequestContext,
  type Run,
  type Service,
} from '../exchange/exchange.ts'
import { corsForOwnResponse, plainOrigin } from '../http/headers/cors.ts'
import type { RequestHeaders } from '../http/headers/header-lines.ts'
import { isEventStream } from '../http/headers/media-type.ts'
import { memoizeByObject } from '../http/memo.ts'
import { discard, type GatewayRequest, type GatewayResponse } from '../http/message.ts'
import type { BufferedBytes, UnreadResponses } from './buffered-bytes.ts'
import { createCoverage, type HostCertificate } from './listener/certificates.ts'
import { createFront, type Front, type FrontOptions } from './listener/front.ts'
import { Http2EdgeRequest } from './listener/http2.ts'
import { contentOf } from './listener/request-content.ts'
import {
  authorityOf,
  createAddressList,
  createClientOf,
  EdgeRequest,
  isHttp2,
  isReset,
  withUnreadContent,
} from './read-request.ts'
import { createChangesFor } from './response-changes.ts'
import type { Revocations } from './revocations.ts'
import { createRoutes } from './routes.ts'
import { createGathering, type SendOptions, sendResponse } from './send/send-response.ts'
import { createHandshake } from './websocket/handshake.ts'
import type { WebSockets } from './websockets.ts'

/** Cheap ids, unique across processes: a random prefix for the process, then a count. */
const createRequestIds = (): (() => string) => {
  const prefix = randomBytes(6).toString('base64url')
  let count = 0
  return () => {
    count += 1
    return `${prefix}-${count.toString(36)}`
  }
}

/** A request that is refused before it reaches `handle`. */
export type RefusedEarly = {
  readonly id: string
  readonly service: Service | undefined
  readonly error: GatewayError
  readonly client: Client
  /** Undefined where the bytes are no request. */
  readonly request:
    | { readonly method: string; readonly target: string; readonly headers: RequestHeaders }
    | undefined
}

type EdgeOptions = Omit<
  FrontOptions,
  'take' | 'refuse' | 'serviceFor' | 'isCovered' | 'openWebSocket' | 'refusedEarly'
> & {
  refusedEarly(refusal: RefusedEarly): void
  readonly websockets: Pick<WebSockets, 'count'>
  readonly revocations: Pick<Revocations, 'watch'>
  /** Certificates for some hosts, beside the default one. */
  readonly certificates: readonly Pick<HostCertificate, 'hosts'>[]
  readonly snapshot: ConfigSnapshot
  /** HTML for `GET /`, in front of the services. */
  readonly frontPage?: string | undefined
  readonly limits: Pick<LimitsConfig, 'urlBytes' | 'keepAliveTimeoutMs' | 'websockets'>
  readonly trustedProxies: readonly string[]
  /** For requests of no service. */
  readonly cors: Config['cors'] | undefined
  readonly logger: Logger
  readonly run: Run
  isDraining(): boolean
  /** Called for each response that is not flushed synchronously. */
  readonly inFlight: { enter(): void; leave(): void }
  readonly unread: UnreadResponses
  readonly buffered: Pick<BufferedBytes, 'budget'>
}

export type Edge = Front & { close(): Promise<void> }

type ReadyResponse = {
  readonly context: RequestContext
  readonly outgoing: ServerResponse
  readonly response: GatewayResponse
}

/** A response over HTTP/2 whose stream has closed emits `close` no more. */
const hasLeft = (raw: ServerResponse): boolean => raw.destroyed || isReset(raw.req)

/** Creates the handlers of one configuration; every request runs through `handle`. */
export const createEdge = async (options: EdgeOptions): Promise<Edge> => {
  const { limits, snapshot, logger } = options
  const { services, table } = snapshot
  const nextId = createRequestIds()
  const clientOf = createClientOf(createAddressList(options.trustedProxies))
  const broken = (error: Error): void => logger.debug({ err: error }, 'the body ended early')

  const keepAliveSeconds = Math.floor(limits.keepAliveTimeoutMs / 1000)
  const sending: SendOptions = {
    isDraining: options.isDraining,
    keepAliveLines:
      limits.keepAliveTimeoutMs === 0
        ? 'Connection: keep-alive\r\n'
        : `Connection: keep-alive\r\nKeep-Alive: timeout=${keepAliveSeconds}\r\n`,
    broken,
  }

  const corsOf = (service: Service | undefined): Config['cors'] | undefined =>
    service === undefined ? options.cors : service.responses.cors
  const hasCors = options.cors !== undefined || services.some(({ responses }) => responses.cors !== undefined)
  const changesWith = memoizeByObject((cors: Config['cors']) => createChangesFor(cors))
  const changesWithoutCors = createChangesFor(undefined)
  /** The changes of the service are applied last, so that they hold for every header that the gateway adds. */
  const sendTo = (
    outgoing: ServerResponse,
    service: Service | undefined,
    response: GatewayResponse,
  ): void => {
    if (outgoing.headersSent || hasLeft(outgoing)) {
      discard(response.content)
      return
    }
    const cors = corsOf(service)
    const changesFor = cors === undefined ? changesWithoutCors : changesWith(cors)
    const changes = changesFor(service?.responses.changes, outgoing.req)
    sendResponse(outgoing, withUnreadContent(outgoing, response, options.poisoned), sending, changes)
  }
  const requestOf = (incoming: IncomingMessage, outgoing: ServerResponse): GatewayRequest =>
    isHttp2(incoming)
      ? new Http2EdgeRequest(incoming, outgoing, contentOf(incoming))
      : new EdgeRequest(incoming, outgoing, contentOf(incoming))
  const noHeaders: RequestHeaders = {}
  const refusedEarly = (
    error: GatewayError,
    service: Service | undefined,
    socket: Socket,
    incoming: IncomingMessage | undefined,
    id = nextId(),
  ): string => {
    const headers = incoming?.headers ?? noHeaders
    options.refusedEarly({
      id,
      service,
      error,
      client: clientOf(socket, headers),
      request:
        incoming === undefined
          ? undefined
          : { method: incoming.method as string, target: incoming.url as string, headers },
    })
    return id
  }
  const refuse = (
    outgoing: ServerResponse,
    service: Service | undefined,
    error: GatewayError,
    id: string,
  ): void => {
    const { req } = outgoing
    try {
      const response = earlyErrorResponse(service, error, {
        id: refusedEarly(error, service, req.socket, req, id),
        headers: req.headers,
      })
      const origins = service?.responses.anyOrigins
      // The request has no route: the index of a site speaks for it.
      const corsHeaders = origins && corsForOwnResponse(response, origins.site(), plainOrigin(req.headers))
      sendTo(outgoing, service, corsHeaders ?? response)
    } catch (cause) {
      broken(cause as Error)
      outgoing.destroy()
    }
  }
  const receive = (
    service: Service,
    incoming: IncomingMessage,
    request: GatewayRequest,
    id: string,
  ): RequestContext => {
    const target = incoming.url as string
    const at = target.indexOf('?')
    const path = at === -1 ? target : target.slice(0, at)
    return arrived({
      id,
      origin: 'client',
      client: clientOf(incoming.socket, incoming.headers),
      snapshot,
      service,
      request,
      path: path.length === service.mount.length ? '/' : path.slice(service.mount.length),
      query: at === -1 ? '' : target.slice(at + 1),
    })
  }

  const isUnderWay = (raw: ServerResponse): boolean =>
    !hasLeft(raw) && !(raw.writableEnded && raw.writableLength === 0)
  const bufferUnread = (
    outgoing: ServerResponse,
    content: GatewayResponse['content'],
    client: Client,
  ): void => {
    if (Buffer.isBuffer(content) && isUnderWay(outgoing))
      options.unread.buffer(outgoing, content, client.address)
  }
  /** An event stream may last for days, longer than the token that allowed it. */
  const endWithPermission = (
    outgoing: ServerResponse,
    response: GatewayResponse,
    { service, client, request }: RequestContext,
  ): void => {
    if (response.content === undefined || Buffer.isBuffer(response.content)) return
    if (!isEventStream(response) || !isUnderWay(outgoing)) return
    const opener = { service: service.name, address: client.address, headers: request.headers }
    const stop = options.revocations.watch(opener, 'event-stream', () => {
      options.report({ kind: 'connection-cut', reason: 'revoked' })
      outgoing.destroy()
    })
    outgoing.once('close', stop)
  }
  const failed = ({ service, id }: RequestContext, outgoing: ServerResponse, cause: unknown): void =>
    refuse(outgoing, service, new GatewayError('internal', { cause }), id)
  /** The response to a request whose content is still arriving ends the connection, so it does not wait for the content. */
  const mayWait = ({ context: { request }, outgoing }: ReadyResponse): boolean =>
    request.method === 'GET' || outgoing.req.complete
  const result = createGathering<ReadyResponse>(({ context, outgoing, response }) => {
    try {
      sendTo(outgoing, context.service, response)
      bufferUnread(outgoing, response.content, context.client)
      endWithPermission(outgoing, response, context)
    } catch (error) {
      failed(context, outgoing, error)
    }
  }, mayWait)
  const serviceFor = (authority: string, target: string): Service | undefined => {
    const choice = table.find(authority, target)
    return choice.kind === 'found' ? choice.service : undefined
  }
  /** Takes the response out of Fastify's hands: the gateway writes head and content itself. */
  const hijacked = (reply: FastifyReply): ServerResponse => {
    reply.hijack()
    return reply.raw
  }
  /** Errors found before a request has a route. Fastify's hooks see the request all the same. */
  const early = new WeakMap<IncomingMessage, GatewayError>()

  const handle = (service: Service, request: FastifyRequest, reply: FastifyReply): void => {
    const { raw: incoming } = request
    const { raw: outgoing } = reply
    if (isReset(incoming)) {
      reply.hijack()
      return
    }
    const context = receive(service, incoming, requestOf(incoming, outgoing), request.id)
    contentOf(incoming)?.count(options.buffered.budget('request-body', context.client.address))
    reply.hijack()
    const response = options.run(context)
    // From its first wait on (see decideShedding), until the connection has finished with the response, or the client has left.
    if (!hasLeft(outgoing)) {
      options.inFlight.enter()
      // Not `once`: it makes an object for each response, which closes once.
      outgoing.on('close', options.inFlight.leave)
    }
    response.then(
      (response) => result({ context, outgoing, response }),
      (cause: unknown) => failed(context, outgoing, cause),
    )
  }
  const ask = createHandshake({
    sockets: options.websockets,
    inFlight: options.inFlight,
    isDraining: options.isDraining,
    receive,
    run: options.run,
    complete: changedResponse,
    send: (outgoing, response) => sendResponse(outgoing, response, sending),
    addressOf: ({ socket, headers }) => clientOf(socket, headers).address,
  })
  const { take, upgrade, close } = await createRoutes({
    services,
    table,
    urlBytes: limits.urlBytes,
    frontPage: options.frontPage,
    messageBytes: limits.websockets.messageBytes,
    mayAddCors: hasCors ? (service) => corsOf(service) !== undefined : undefined,
    nextId,
    early,
    handle,
    ask,
    refuse: (service, error, { id }, reply) => refuse(hijacked(reply), service, error, id),
    // Safari waits for a content where there is no length.
    addCorsHeaders: (service, reply) =>
      sendTo(hijacked(reply), service, { status: 204, headers: ['Content-Length', '0'], content: undefined }),
  })
  const refuseEarly: FrontOptions['refuse'] = (incoming, outgoing, error) => {
    early.set(incoming, error)
    take(incoming, outgoing)
  }
  const openWebSocket: FrontOptions['openWebSocket'] = (incoming, outgoing, head) => {
    const service = serviceFor(authorityOf(incoming), incoming.url as string)
    if (service === undefined) take(incoming, outgoing)
    else if (!service.websockets) refuseEarly(incoming, outgoing, new GatewayError('websockets_off'))
    else {
      outgoing.detachSocket(incoming.socket)
      upgrade(incoming, incoming.socket, head)
    }
  }
  const front = createFront({
    ...options,
    refusedEarly,
    serviceFor,
    isCovered: createCoverage(options.certificates),
    take,
    openWebSocket: services.some(({ websockets }) => websockets) ? openWebSocket : undefined,
    refuse: refuseEarly,
  })
  return { ...front, close }
}
