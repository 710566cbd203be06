import { randomBytes } from 'node:crypto'
import {
  createServer,
  type IncomingMessage,
  METHODS,
  type OutgoingHttpHeaders,
  type ServerResponse,
} from 'node:http'
import httpProxy from '@fastify/http-proxy'
import { type FastifyInstance, type FastifyReply, fastify } from 'fastify'
import type { Logger } from 'pino'
import type { Config, LimitsConfig } from '../config/config.ts'
import { type ErrorCode, GatewayError } from '../errors.ts'
import {
  type Answer,
  discard,
  type GatewayRequest,
  type GatewayResponse,
  type RequestFields,
} from '../http/message.ts'
import { errorAnswer } from '../pipeline/error-answer.ts'
import { arrived, changedResponse, type Received } from '../pipeline/exchange.ts'
import type { Client, Service } from '../pipeline/service.ts'
import { createServiceTable, type ServiceChoice, type ServiceTable } from '../request/service-table.ts'
import type { UnreadAnswers } from './buffered-bytes.ts'
import { registerCors, withCorsFields } from './cors.ts'
import { createCoverage, type HostCertificate } from './listener/certificates.ts'
import { createFront, type Front, type FrontOptions } from './listener/front.ts'
import { Http2EdgeRequest } from './listener/http2.ts'
import type { EdgeHandlers } from './listener.ts'
import {
  authorityOf,
  createAddressList,
  createClientOf,
  EdgeRequest,
  isHttp2,
  isReset,
  withUnreadContent,
} from './read-request.ts'
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

/** A request that is refused before it reaches the phases. */
export type RefusedEarly = {
  readonly id: string
  readonly service: Service | undefined
  readonly error: GatewayError
  readonly client: Client
  /** Undefined where the bytes are no request. */
  readonly request:
    | { readonly method: string; readonly target: string; readonly fields: RequestFields }
    | undefined
}

type EdgeOptions = Omit<
  FrontOptions,
  'take' | 'refuse' | 'serviceFor' | 'isCovered' | 'openWebSocket' | 'refusedEarly'
> & {
  refusedEarly(refusal: RefusedEarly): void
  readonly websockets: Pick<WebSockets, 'count'>
  /** Certificates for some hosts, beside the default one. */
  readonly certificates: readonly Pick<HostCertificate, 'hosts'>[]
  readonly services: readonly Service[]
  readonly limits: Pick<LimitsConfig, 'urlBytes' | 'keepAliveTimeoutMs'>
  readonly trustedProxies: readonly string[]
  /** Undefined: the upstream's CORS fields pass through. */
  readonly cors: Config['cors'] | undefined
  readonly logger: Logger
  run(exchange: Received): Answer
  isDraining(): boolean
  /** Called for each response that is not flushed synchronously. */
  readonly inFlight: { enter(): void; leave(): void }
  readonly unread: UnreadAnswers
}

/** Handles the requests of one configuration. */
export type Edge = Front &
  Pick<ServiceTable<Service>, 'reaches'> &
  Pick<FrontOptions, 'serviceFor'> & { close(): Promise<void> }

/** CONNECT asks for a tunnel and TRACE for an echo of the credentials (RFC 9110 §9.3.6, §9.3.8): neither is routed. */
const routedMethods = METHODS.filter((method) => method !== 'CONNECT' && method !== 'TRACE')

/** Why no service takes a request. */
const refusals: Readonly<Record<Exclude<ServiceChoice<Service>['kind'], 'found'>, ErrorCode>> = {
  'no-service': 'no_route',
  'unknown-host': 'misdirected_request',
  ambiguous: 'ambiguous_request',
}

/** Where a response goes: `cors` has the CORS fields that Fastify has made for it. */
type Destination = { readonly outgoing: ServerResponse; readonly cors: OutgoingHttpHeaders | undefined }

/** `isWatched`: it counts as in flight already. */
type ReadyAnswer = {
  exchange: Received
  destination: Destination
  response: GatewayResponse
  isWatched: boolean
}

/** A response over HTTP/2 whose stream has closed emits `close` no more. */
const hasLeft = (raw: ServerResponse): boolean => raw.destroyed || isReset(raw.req)

const noQuery: Record<string, never> = {}

/** GET or HEAD of a path that Fastify reads as it is. It decodes others, and refuses what it cannot decode. */
const isPlainRead = ({ method, url }: IncomingMessage): boolean => {
  if (method !== 'GET' && method !== 'HEAD') return false
  const target = url as string
  const encoded = target.indexOf('%')
  if (encoded === -1) return true
  const query = target.indexOf('?')
  return query !== -1 && query < encoded
}

/** Creates the handlers of one configuration; every request runs through the phases. */
export const createEdge = async (options: EdgeOptions): Promise<Edge> => {
  const { limits, services, logger } = options
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

  /** The changes of the service are applied last, so that they hold for every field that the gateway adds. */
  const sendTo = (
    { outgoing, cors }: Destination,
    service: Service | undefined,
    response: GatewayResponse,
  ): void => {
    if (outgoing.headersSent || hasLeft(outgoing)) {
      discard(response.content)
      return
    }
    const complete = cors === undefined ? response : withCorsFields(response, cors)
    const changed = changedResponse(complete, service)
    sendResponse(outgoing, withUnreadContent(outgoing, changed, options.distrusted), sending)
  }
  const requestOf = (incoming: IncomingMessage, outgoing: ServerResponse): GatewayRequest =>
    isHttp2(incoming) ? new Http2EdgeRequest(incoming, outgoing) : new EdgeRequest(incoming, outgoing)
  /** A response that is not flushed synchronously is in flight until its connection has finished with it. */
  const watch = (raw: ServerResponse): void => {
    options.inFlight.enter()
    raw.once('close', options.inFlight.leave)
  }
  const noFields: RequestFields = {}
  const refusedEarly: FrontOptions['refusedEarly'] = (error, service, socket, incoming) => {
    const id = nextId()
    const fields = incoming?.headers ?? noFields
    options.refusedEarly({
      id,
      service,
      error,
      client: clientOf(socket, fields),
      request:
        incoming === undefined
          ? undefined
          : { method: incoming.method as string, target: incoming.url as string, fields },
    })
    return id
  }
  const refuse = (destination: Destination, service: Service | undefined, error: GatewayError): void => {
    const { req } = destination.outgoing
    sendTo(destination, service, errorAnswer(service, error, refusedEarly(error, service, req.socket, req)))
  }
  const receive = (service: Service, incoming: IncomingMessage, request: GatewayRequest): Received => {
    const target = incoming.url as string
    const at = target.indexOf('?')
    const path = at === -1 ? target : target.slice(0, at)
    return arrived({
      id: nextId(),
      origin: 'client',
      client: clientOf(incoming.socket, incoming.headers),
      service,
      request,
      path: path.length === service.mount.length ? '/' : path.slice(service.mount.length),
      query: at === -1 ? '' : target.slice(at + 1),
    })
  }

  const isUnderWay = (raw: ServerResponse): boolean =>
    !hasLeft(raw) && !(raw.writableEnded && raw.writableLength === 0)
  const holdUnread = (
    outgoing: ServerResponse,
    content: GatewayResponse['content'],
    client: Client,
  ): void => {
    if (Buffer.isBuffer(content) && isUnderWay(outgoing))
      options.unread.hold(outgoing, content, client.address)
  }
  const failed = (destination: Destination, service: Service | undefined, cause: unknown): void => {
    try {
      refuse(destination, service, new GatewayError('internal', { cause }))
    } catch (error) {
      broken(error as Error)
      destination.outgoing.destroy()
    }
  }
  /** The response to a request whose content is still arriving ends the connection, so it does not wait for the content. */
  const mayWait = ({ exchange: { request }, destination: { outgoing } }: ReadyAnswer): boolean =>
    request.method === 'GET' || outgoing.req.complete
  const answer = createGathering<ReadyAnswer>(({ exchange, destination, response, isWatched }) => {
    const { outgoing } = destination
    try {
      sendTo(destination, exchange.service, response)
      holdUnread(outgoing, response.content, exchange.client)
    } catch (error) {
      failed(destination, exchange.service, error)
    }
    if (!isWatched && isUnderWay(outgoing)) watch(outgoing)
  }, mayWait)
  const answerLater = (
    exchange: Received,
    destination: Destination,
    later: Promise<GatewayResponse>,
  ): void => {
    watch(destination.outgoing)
    later.then(
      (response) => answer({ exchange, destination, response, isWatched: true }),
      (cause: unknown) => failed(destination, exchange.service, cause),
    )
  }
  const takeFor = (service: Service, destination: Destination): void => {
    const { outgoing } = destination
    const incoming = outgoing.req
    if (isReset(incoming)) return
    if ((incoming.url as string).length > limits.urlBytes) {
      refuse(destination, service, new GatewayError('target_too_long'))
      return
    }
    const exchange = receive(service, incoming, requestOf(incoming, outgoing))
    const response = options.run(exchange)
    if (response instanceof Promise) answerLater(exchange, destination, response)
    else answer({ exchange, destination, response, isWatched: false })
  }

  const table = createServiceTable(services, (service, host) => service.atHost?.(host) ?? service)
  const serviceFor = (authority: string, target: string): Service | undefined => {
    const choice = table.find(authority, target)
    return choice.kind === 'found' ? choice.service : undefined
  }
  const serviceOf = (incoming: IncomingMessage): Service | undefined =>
    serviceFor(authorityOf(incoming), incoming.url as string)
  const takeByTarget = (destination: Destination): void => {
    const { req } = destination.outgoing
    let service: Service | undefined
    try {
      const choice = table.find(authorityOf(req), req.url as string)
      if (choice.kind === 'found') {
        service = choice.service
        takeFor(service, destination)
      } else refuse(destination, undefined, new GatewayError(refusals[choice.kind]))
    } catch (cause) {
      failed(destination, service, cause)
    }
  }
  /** Takes the response out of Fastify's hands. */
  const hijacked = (reply: FastifyReply): Destination => {
    reply.hijack()
    return { outgoing: reply.raw, cors: options.cors && (reply.getHeaders() as OutgoingHttpHeaders) }
  }

  /**
   * The table chooses the service, so all paths are one route. The phases answer in `onRequest`: later hooks of Fastify check the
   * content type and may read the content. So @fastify/http-proxy is never called; its upstream is a placeholder (docs/decisions/0013).
   */
  const registerAll = async (server: FastifyInstance, placeholder: string): Promise<void> => {
    await server.register(async (scope) => {
      scope.addHook('onRequest', (_request, reply) => takeByTarget(hijacked(reply)))
      await scope.register(httpProxy, {
        prefix: '',
        upstream: placeholder,
        // @fastify/cors declares OPTIONS itself; OPTIONS requests that are no preflights reach the hook below.
        httpMethods:
          options.cors === undefined ? routedMethods : routedMethods.filter((method) => method !== 'OPTIONS'),
      })
    })
  }

  let takeByFastify: EdgeHandlers['request'] | undefined

  const server = fastify({
    // The phases log failures once; Fastify would create a logger for each request.
    logger: false,
    // Only the phases read the query.
    routerOptions: { querystringParser: () => noQuery },
    // The listener owns the port and its limits and outlives this instance; Fastify's own server never listens.
    serverFactory: (handler) => {
      takeByFastify = handler as EdgeHandlers['request']
      return createServer()
    },
    return503OnClosing: false,
    // An invalid URL is refused before routing; host and mount alone select the service.
    frameworkErrors: (error, request, reply) =>
      refuse(
        hijacked(reply),
        serviceOf(request.raw),
        new GatewayError('malformed_request', { cause: error }),
      ),
  })
  const known = new Set(server.supportedMethods)
  for (const method of routedMethods.filter((one) => !known.has(one))) server.addHttpMethod(method)
  server.removeAllContentTypeParsers()
  server.setErrorHandler((error, request, reply) => {
    const status = (error as { statusCode?: number }).statusCode
    const code = status !== undefined && status < 500 ? 'malformed_request' : 'internal'
    refuse(hijacked(reply), serviceOf(request.raw), new GatewayError(code, { cause: error }))
  })
  if (options.cors !== undefined) {
    await registerCors(server, options.cors)
    // Fastify sends nothing but preflights.
    server.addHook('onSend', async (request, reply) => {
      const changes = serviceOf(request.raw)?.responseChanges
      if (changes === undefined) return
      for (const name of changes.removed) reply.removeHeader(name)
      for (let i = 0; i < changes.set.length; i += 2)
        reply.header(changes.set[i] as string, changes.set[i + 1])
    })
  }
  const [first] = services
  if (first !== undefined) await registerAll(server, first.upstream.placeholderOrigin)
  // Added after the route, so that the route does not have it: answers the methods that it lacks.
  server.addHook('onRequest', (request, reply) => {
    if (request.method === 'OPTIONS') takeByTarget(hijacked(reply))
    else refuse(hijacked(reply), serviceOf(request.raw), new GatewayError('no_route'))
  })
  await server.ready()
  const throughFastify = takeByFastify
  if (throughFastify === undefined) throw new TypeError('Fastify made no server')
  /** Without CORS, Fastify only refuses paths that it cannot decode. */
  const take: EdgeHandlers['request'] =
    options.cors === undefined
      ? (incoming, outgoing) => {
          if (isPlainRead(incoming)) takeByTarget({ outgoing, cors: undefined })
          else throughFastify(incoming, outgoing)
        }
      : throughFastify
  const refuseRaw = (outgoing: ServerResponse, service: Service | undefined, error: GatewayError): void => {
    const id = refusedEarly(error, service, outgoing.req.socket, outgoing.req)
    sendResponse(outgoing, changedResponse(errorAnswer(service, error, id), service), sending)
  }
  const handshake = createHandshake({
    sockets: options.websockets,
    inFlight: options.inFlight,
    run: (service, incoming, request) => options.run(receive(service, incoming, request)),
    complete: changedResponse,
    send: (outgoing, response) => sendResponse(outgoing, response, sending),
    refuse: refuseRaw,
    addressOf: ({ socket, headers }) => clientOf(socket, headers).address,
  })
  const openWebSocket: FrontOptions['openWebSocket'] = (incoming, outgoing, head) => {
    const target = incoming.url as string
    const choice = table.find(authorityOf(incoming), target)
    if (choice.kind !== 'found') {
      refuseRaw(outgoing, undefined, new GatewayError(refusals[choice.kind]))
      return
    }
    const { service } = choice
    if (target.length > limits.urlBytes) refuseRaw(outgoing, service, new GatewayError('target_too_long'))
    else if (options.isDraining())
      refuseRaw(outgoing, service, new GatewayError('shutting_down', { retryAfterSeconds: 1 }))
    else handshake(service, incoming, outgoing, head)
  }
  const front = createFront({
    ...options,
    refusedEarly,
    serviceFor,
    isCovered: createCoverage(options.certificates),
    take,
    openWebSocket: services.some(({ websockets }) => websockets) ? openWebSocket : undefined,
    refuse: refuseRaw,
  })
  return { ...front, reaches: table.reaches, serviceFor, close: () => server.close() }
}
