import { randomBytes } from 'node:crypto'
import { createServer, type IncomingMessage, METHODS, type ServerResponse } from 'node:http'
import httpProxy from '@fastify/http-proxy'
import { type FastifyInstance, type FastifyReply, type FastifyRequest, fastify } from 'fastify'
import type { Logger } from 'pino'
import { type ErrorCode, GatewayError } from '../errors.ts'
import {
  type Answer,
  discard,
  fieldValue,
  type GatewayRequest,
  type GatewayResponse,
  type RequestFields,
  withoutFields,
} from '../http/message.ts'
import { changedResponse, errorAnswer } from '../pipeline/error-answer.ts'
import { arrived, type Received } from '../pipeline/exchange.ts'
import type { Client, Service } from '../pipeline/service.ts'
import { createServiceTable } from '../request/service-table.ts'
import type { UnreadAnswers } from './buffered-bytes.ts'
import { createCoverage, type HostCertificate } from './listener/certificates.ts'
import { createFront, type Front, type FrontOptions } from './listener/front.ts'
import { Http2EdgeRequest, isReset } from './listener/http2.ts'
import type { EdgeHandlers } from './listener.ts'
import {
  authorityOf,
  createAddressList,
  createClientOf,
  EdgeRequest,
  isHttp2,
  withUnreadContent,
} from './read-request.ts'
import { createGathering, type SendOptions, sendEither, sendResponse } from './send/send-response.ts'
import { createHandshake } from './websocket/handshake.ts'
import type { WebSockets } from './websockets.ts'

type CorsOptions = {
  /** `*`, or origins as browsers spell them; at least one. */
  readonly origins: readonly string[]
  readonly methods: readonly string[]
  readonly headers: readonly string[]
  readonly exposedHeaders: readonly string[]
  readonly credentials: boolean
  readonly maxAgeMs: number
}

/** Fields that the gateway sends to browsers itself; those of upstreams are removed. */
const corsFields: ReadonlySet<string> = new Set([
  'access-control-allow-origin',
  'access-control-allow-credentials',
  'access-control-allow-methods',
  'access-control-allow-headers',
  'access-control-expose-headers',
  'access-control-max-age',
])

/** A preflight (Fetch standard, CORS-preflight fetch); any other OPTIONS is a request like others. */
const isPreflight = ({ headers }: FastifyRequest): boolean =>
  headers['access-control-request-method'] !== undefined && headers.origin !== undefined

/** Allows cross-origin requests from some origins. Preflights are answered here, before the phases and without an upstream. */
const registerCors = async (server: FastifyInstance, options: CorsOptions): Promise<void> => {
  const { default: fastifyCors } = await import('@fastify/cors')
  const everybody = options.origins.includes('*')
  const settings = {
    origin: everybody ? '*' : [...options.origins],
    methods: [...options.methods],
    allowedHeaders: [...options.headers],
    exposedHeaders: [...options.exposedHeaders],
    credentials: options.credentials,
    maxAge: Math.floor(options.maxAgeMs / 1000),
  }
  await server.register(fastifyCors, {
    delegator: (
      request: FastifyRequest,
      answer: (error: Error | null, chosen: typeof settings & { preflight: boolean }) => void,
    ) => answer(null, { ...settings, preflight: isPreflight(request) }),
  })
}

/** The response with the gateway's CORS fields in place of the upstream's. */
const withCorsFields = (response: GatewayResponse, reply: FastifyReply): GatewayResponse => {
  const fields = withoutFields(response.fields, new Set([...corsFields, 'vary']))
  const upstreamVary = fieldValue(response.fields, 'vary')
  const { vary: ownVary, ...own } = reply.getHeaders()
  for (const [name, value] of Object.entries(own)) {
    // Without Access-Control-Allow-Origin the other fields have no effect (Fetch standard, CORS check).
    if (corsFields.has(name) && own['access-control-allow-origin'] !== undefined)
      fields.push(name, String(value))
  }
  const names = new Set(
    [upstreamVary, ownVary === undefined ? undefined : String(ownVary)]
      .flatMap((text) => text?.split(',') ?? [])
      .map((name) => name.trim())
      .filter((name) => name !== ''),
  )
  if (names.size > 0) fields.push('Vary', [...names].join(', '))
  return { ...response, fields }
}

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
  'take' | 'send' | 'serviceFor' | 'isCovered' | 'openWebSocket' | 'refusedEarly'
> & {
  refusedEarly(refusal: RefusedEarly): void
  readonly websockets: Pick<WebSockets, 'count'>
  /** Certificates for some hosts, beside the default one. */
  readonly certificates: readonly Pick<HostCertificate, 'hosts'>[]
  readonly services: readonly Service[]
  readonly limits: {
    readonly urlBytes: number
  }
  readonly trustedProxies: readonly string[]
  /** The port offers HTTP/2 too. */
  readonly http2: boolean
  /** Undefined: the upstream's CORS fields pass through. */
  readonly cors: CorsOptions | undefined
  readonly logger: Logger
  run(exchange: Received): Answer
  isDraining(): boolean
  /** Called for each response that is not flushed synchronously. */
  readonly inFlight: { enter(): void; leave(): void }
  readonly unread: UnreadAnswers
}

/** Handles the requests of one configuration. */
export type Edge = Front & { close(): Promise<void> }

/** CONNECT asks for a tunnel and TRACE for an echo of the credentials (RFC 9110 §9.3.6, §9.3.8): neither is routed. */
const routedMethods = METHODS.filter((method) => method !== 'CONNECT' && method !== 'TRACE')

const notFoundCode = (kind: 'no-service' | string): ErrorCode =>
  kind === 'no-service' ? 'no_route' : 'misdirected_request'

/** `isWatched`: it counts as in flight already. */
type ReadyAnswer = { exchange: Received; reply: FastifyReply; response: GatewayResponse; isWatched: boolean }

const noQuery: Record<string, never> = {}

/** Creates the handlers of one configuration; every request runs through the phases. */
export const createEdge = async (options: EdgeOptions): Promise<Edge> => {
  const { limits, services, logger } = options
  const nextId = createRequestIds()
  const clientOf = createClientOf(createAddressList(options.trustedProxies))
  const broken = (error: Error): void => logger.debug({ err: error }, 'the body ended early')

  const sending: SendOptions = {
    isDraining: options.isDraining,
    broken,
  }

  const send = options.http2 ? sendEither : sendResponse
  const sendHijacked = (reply: FastifyReply, response: GatewayResponse): void => {
    const { raw } = reply
    reply.hijack()
    if (raw.headersSent || raw.destroyed) {
      discard(response.content)
      return
    }
    send(raw, withUnreadContent(raw, response, options.distrusted), sending)
  }
  /** The changes of the service are applied last, so that they hold for every field that the gateway adds. */
  const sendRaw = (reply: FastifyReply, service: Service | undefined, response: GatewayResponse): void => {
    const complete = options.cors === undefined ? response : withCorsFields(response, reply)
    sendHijacked(reply, changedResponse(complete, service))
  }
  const requestOf = options.http2
    ? (incoming: IncomingMessage, outgoing: ServerResponse): GatewayRequest =>
        isHttp2(incoming) ? new Http2EdgeRequest(incoming, outgoing) : new EdgeRequest(incoming, outgoing)
    : (incoming: IncomingMessage, outgoing: ServerResponse): GatewayRequest =>
        new EdgeRequest(incoming, outgoing)
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
  const refuse = (reply: FastifyReply, service: Service | undefined, error: GatewayError): void => {
    const { req } = reply.raw
    sendRaw(reply, service, errorAnswer(service, error, refusedEarly(error, service, req.socket, req)))
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
    !raw.destroyed && !(raw.writableEnded && raw.writableLength === 0)
  const holdUnread = ({ raw }: FastifyReply, content: GatewayResponse['content'], client: Client): void => {
    if (Buffer.isBuffer(content) && isUnderWay(raw)) options.unread.hold(raw, content, client.address)
  }
  const failed = ({ service }: Received, reply: FastifyReply, cause: unknown): void => {
    try {
      refuse(reply, service, new GatewayError('internal', { cause }))
    } catch (error) {
      broken(error as Error)
      reply.raw.destroy()
    }
  }
  /** The response to a request whose content is still arriving ends the connection, so it does not wait for the content. */
  const mayWait = ({ exchange: { request }, reply }: ReadyAnswer): boolean =>
    request.method === 'GET' || reply.request.raw.complete
  const answer = createGathering<ReadyAnswer>(({ exchange, reply, response, isWatched }) => {
    try {
      sendRaw(reply, exchange.service, response)
      holdUnread(reply, response.content, exchange.client)
    } catch (error) {
      failed(exchange, reply, error)
    }
    if (!isWatched && isUnderWay(reply.raw)) watch(reply.raw)
  }, mayWait)
  const answerLater = (exchange: Received, reply: FastifyReply, later: Promise<GatewayResponse>): void => {
    watch(reply.raw)
    later.then(
      (response) => answer({ exchange, reply, response, isWatched: true }),
      (cause: unknown) => failed(exchange, reply, cause),
    )
  }
  const takeFor = (service: Service, request: FastifyRequest, reply: FastifyReply): void => {
    if (options.http2 && isReset(request.raw)) return
    if ((request.raw.url as string).length > limits.urlBytes) {
      refuse(reply, service, new GatewayError('target_too_long'))
      return
    }
    const exchange = receive(service, request.raw, requestOf(request.raw, reply.raw))
    const response = options.run(exchange)
    if (response instanceof Promise) answerLater(exchange, reply, response)
    else answer({ exchange, reply, response, isWatched: false })
  }

  const table = createServiceTable(services, (service, host) => service.atHost?.(host) ?? service)
  const serviceFor = (authority: string, target: string): Service | undefined => {
    const choice = table.find(authority, target)
    return choice.kind === 'found' ? choice.service : undefined
  }
  const serviceOf = ({ raw }: FastifyRequest): Service | undefined =>
    serviceFor(authorityOf(raw), raw.url as string)
  const takeByHost = (request: FastifyRequest, reply: FastifyReply): void => {
    const choice = table.find(authorityOf(request.raw), request.raw.url as string)
    if (choice.kind === 'found') takeFor(choice.service, request, reply)
    else refuse(reply, undefined, new GatewayError(notFoundCode(choice.kind)))
  }

  /**
   * The phases answer each request in `onRequest`, as soon as its route is known: later hooks of Fastify check the content type
   * and may read the content. So @fastify/http-proxy mounts the service and is never called; its upstream is a placeholder
   * (docs/decisions/0013).
   */
  const register = async (
    server: FastifyInstance,
    { mount, upstream }: Pick<Service, 'mount' | 'upstream'>,
    take: (request: FastifyRequest, reply: FastifyReply) => void,
  ): Promise<void> => {
    await server.register(async (scope) => {
      scope.addHook('onRequest', (request, reply) => take(request, reply))
      await scope.register(httpProxy, {
        prefix: mount,
        upstream: upstream.placeholderOrigin,
        // @fastify/cors declares OPTIONS at the root itself; other OPTIONS requests reach the hook below.
        httpMethods:
          options.cors !== undefined && mount === ''
            ? routedMethods.filter((method) => method !== 'OPTIONS')
            : routedMethods,
      })
    })
  }

  let take: EdgeHandlers['request'] | undefined

  const server = fastify({
    // The phases log failures once; Fastify would create a logger for each request.
    logger: false,
    // Only the phases read the query.
    routerOptions: { querystringParser: () => noQuery },
    // The listener owns the port and its limits and outlives this instance; Fastify's own server never listens.
    serverFactory: (handler) => {
      take = handler as EdgeHandlers['request']
      return createServer()
    },
    return503OnClosing: false,
    // An invalid URL is refused before routing; host and mount alone select the service.
    frameworkErrors: (error, request, reply) =>
      refuse(reply, serviceOf(request), new GatewayError('malformed_request', { cause: error })),
  })
  const known = new Set(server.supportedMethods)
  for (const method of routedMethods.filter((one) => !known.has(one))) server.addHttpMethod(method)
  server.removeAllContentTypeParsers()
  server.setErrorHandler((error, request, reply) => {
    const status = (error as { statusCode?: number }).statusCode
    const code = status !== undefined && status < 500 ? 'malformed_request' : 'internal'
    refuse(reply, serviceOf(request), new GatewayError(code, { cause: error }))
  })
  if (options.cors !== undefined) {
    await registerCors(server, options.cors)
    // Fastify sends nothing but preflights.
    server.addHook('onSend', async (request, reply) => {
      const changes = serviceOf(request)?.responseChanges
      if (changes === undefined) return
      for (const name of changes.removed) reply.removeHeader(name)
      for (let i = 0; i < changes.set.length; i += 2)
        reply.header(changes.set[i] as string, changes.set[i + 1])
    })
  }
  // Fastify chooses by path alone, so with hosts all paths are one route.
  const [first] = services
  if (first !== undefined && table.hasHosts) {
    await register(server, { mount: '', upstream: first.upstream }, takeByHost)
  } else {
    for (const service of services)
      await register(server, service, (request, reply) => takeFor(service, request, reply))
  }
  // Added after the services, so that their routes do not have it: answers other paths and methods before Fastify reads the content.
  server.addHook('onRequest', (request, reply) => {
    if (request.method === 'OPTIONS') takeByHost(request, reply)
    else refuse(reply, serviceOf(request), new GatewayError('no_route'))
  })
  await server.ready()
  if (take === undefined) throw new TypeError('Fastify made no server')
  const refuseRaw = (outgoing: ServerResponse, service: Service | undefined, error: GatewayError): void => {
    const id = refusedEarly(error, service, outgoing.req.socket, outgoing.req)
    send(outgoing, changedResponse(errorAnswer(service, error, id), service), sending)
  }
  const handshake = createHandshake({
    sockets: options.websockets,
    inFlight: options.inFlight,
    run: (service, incoming, request) => options.run(receive(service, incoming, request)),
    complete: changedResponse,
    send: (outgoing, response) => send(outgoing, response, sending),
    refuse: refuseRaw,
    addressOf: ({ socket, headers }) => clientOf(socket, headers).address,
  })
  const openWebSocket: FrontOptions['openWebSocket'] = (incoming, outgoing, head) => {
    const target = incoming.url as string
    const choice = table.find(authorityOf(incoming), target)
    const service = choice.kind === 'found' ? choice.service : undefined
    if (service === undefined) refuseRaw(outgoing, service, new GatewayError(notFoundCode(choice.kind)))
    else if (target.length > limits.urlBytes)
      refuseRaw(outgoing, service, new GatewayError('target_too_long'))
    else if (options.isDraining())
      refuseRaw(outgoing, service, new GatewayError('shutting_down', { retryAfterSeconds: 1 }))
    else handshake(service, incoming, outgoing, head)
  }
  const front = createFront({
    ...options,
    refusedEarly,
    serviceFor,
    isCovered: options.http2 ? createCoverage(options.certificates) : undefined,
    take,
    openWebSocket: services.some(({ websockets }) => websockets) ? openWebSocket : undefined,
    send: (outgoing, response) => send(outgoing, response, sending),
  })
  return { ...front, close: () => server.close() }
}
