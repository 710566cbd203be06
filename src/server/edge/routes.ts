import { createServer, type IncomingMessage } from 'node:http'
import { type FastifyInstance, type FastifyReply, type FastifyRequest, fastify } from 'fastify'
import { type ErrorCode, GatewayError } from '../../errors.ts'
import type { Service } from '../../exchange/service.ts'
import { isPreflight } from '../../http/headers/cors.ts'
import { routedMethods } from '../../http/methods.ts'
import { asksServer } from '../listener/read-request.ts'
import type { EdgeHandlers } from '../listener.ts'
import type { Agreed } from '../websocket/handshake.ts'
import { frontPageHeaders } from './front-page.ts'
import { type Choice, type ServiceChoices, serviceOf } from './service-choices.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** Set by the first hook of the public port: no later hook or handler asks again. */
    choice: Choice | undefined
  }
}

/** An error that a hook, a handler or Fastify has thrown. */
const asRefusal = (error: unknown): GatewayError => {
  if (error instanceof GatewayError) return error
  const status = (error as { readonly statusCode?: number }).statusCode
  const code = status !== undefined && status < 500 ? 'malformed_request' : 'internal'
  return new GatewayError(code, { cause: error })
}

type NoService = Exclude<Choice, { kind: 'found' }>

const refusals: Readonly<Record<NoService['kind'], ErrorCode>> = {
  'no-service': 'no_route',
  'unknown-host': 'misdirected_request',
  ambiguous: 'ambiguous_request',
}

/** Throws the reason why there is no service. */
const chosenService = ({ choice }: FastifyRequest): Service => {
  if (choice?.kind === 'found') return choice.service
  throw new GatewayError(choice === undefined ? 'internal' : refusals[choice.kind])
}

/** The service of a request that one of the catch-all routes takes. */
const routedService = (request: FastifyRequest, urlBytes: number): Service => {
  const service = chosenService(request)
  if ((request.raw.url as string).length > urlBytes) throw new GatewayError('target_too_long')
  return service
}

const noQuery: Record<string, never> = {}

export type RoutesOptions = {
  readonly choices: ServiceChoices
  readonly urlBytes: number
  /** HTML for `GET /`, in front of the services. */
  readonly frontPage: string | undefined
  /** Are preflights answered by `respondToOptions`, before `handle` and without an upstream? Undefined: none is. */
  readonly respondsToPreflights: ((service: Service | undefined) => boolean) | undefined
  /** Responds to an OPTIONS without an upstream. */
  respondToOptions(status: 200 | 204, service: Service | undefined, reply: FastifyReply): void
  nextId(): string
  /** Errors found before a request has a route. Fastify's hooks see the request all the same. */
  readonly early: WeakMap<IncomingMessage, GatewayError>
  handle(service: Service, request: FastifyRequest, reply: FastifyReply): void
  /** Undefined: no service has WebSockets. */
  readonly websockets:
    | {
        readonly messageBytes: number
        ask(service: Service, request: FastifyRequest, reply: FastifyReply): Promise<Agreed | undefined>
      }
    | undefined
  /** Responses with an error in the format of the service; undefined: there is none. */
  refuse(
    service: Service | undefined,
    error: GatewayError,
    request: Pick<FastifyRequest, 'id'>,
    reply: FastifyReply,
  ): void
}

type Routes = {
  readonly take: EdgeHandlers['request']
  /** Takes a request for a WebSocket, with its connection. */
  readonly upgrade: NonNullable<EdgeHandlers['upgrade']>
  close(): Promise<void>
}

/** Requests whose connection node:http has given away, for a WebSocket. */
type Handshakes = WeakSet<IncomingMessage>

/** The first hook: chooses the service, refuses what was refused before, answers `OPTIONS *` and preflights. */
const addFirstHook = (server: FastifyInstance, options: RoutesOptions): void => {
  const { respondToOptions, respondsToPreflights, choices, early } = options
  server.decorateRequest('choice', undefined)
  server.addHook('onRequest', (request, reply, next) => {
    const { raw } = request
    request.choice = choices.of(raw)
    const refusal = early.get(raw)
    if (refusal !== undefined) next(refusal)
    else if (asksServer(raw)) respondToOptions(200, serviceOf(request.choice), reply)
    else if (
      respondsToPreflights !== undefined &&
      isPreflight(raw.method, raw.headers) &&
      respondsToPreflights(serviceOf(request.choice))
    )
      respondToOptions(204, serviceOf(request.choice), reply)
    else next()
  })
}

const addErrorHandlers = (server: FastifyInstance, { refuse }: RoutesOptions): void => {
  server.setErrorHandler((error, request, reply) =>
    refuse(serviceOf(request.choice), asRefusal(error), request, reply),
  )
  // A method that no route is for: HTTP/2 allows any.
  server.setNotFoundHandler((request) => {
    chosenService(request)
    throw new GatewayError('no_route')
  })
}

/** One route for every request that a service gets; the router only decodes its path. */
const addCatchAll = (server: FastifyInstance, { handle, urlBytes }: RoutesOptions): void => {
  // `handle` reads contents: Fastify never does.
  for (const method of routedMethods) server.addHttpMethod(method, { hasBody: false, overrideExisting: true })
  server.removeAllContentTypeParsers()
  server.route({
    method: [...routedMethods],
    url: '*',
    handler: (request: FastifyRequest, reply: FastifyReply) => {
      handle(routedService(request, urlBytes), request, reply)
    },
  })
}

/** The same catch-all route, for the requests that come with their connection. */
const addWebSockets = async (
  server: FastifyInstance,
  handshakes: Handshakes,
  { websockets, urlBytes }: RoutesOptions,
): Promise<void> => {
  if (websockets === undefined) return
  server.addConstraintStrategy({
    name: 'handshake',
    storage: () => new Map(),
    deriveConstraint: (incoming) => (handshakes.has(incoming) ? 'websocket' : undefined),
  })
  const { registerWebSockets } = await import('../websocket/proxy.ts')
  await registerWebSockets(server, {
    constraints: { handshake: 'websocket' },
    messageBytes: websockets.messageBytes,
    ask: (request, reply) => {
      return websockets.ask(routedService(request, urlBytes), request, reply)
    },
  })
}

const addFrontPage = (server: FastifyInstance, { frontPage }: RoutesOptions): void => {
  if (frontPage === undefined) return
  const headers = frontPageHeaders(frontPage)
  server.get('/', (_request, reply) => reply.headers(headers).send(frontPage))
}

/** The Fastify application in front of all services. */
export const createRoutes = async (options: RoutesOptions): Promise<Routes> => {
  const { choices, early, nextId, refuse } = options
  const handshakes: Handshakes = new WeakSet()
  let routing: EdgeHandlers['request'] | undefined
  const server = fastify({
    // `handle` logs failures once; Fastify would create a logger for each request.
    logger: false,
    exposeHeadRoutes: false,
    genReqId: nextId,
    routerOptions: {
      // Only `handle` reads the query.
      querystringParser: () => noQuery,
    },
    // The listener owns the port and outlives this application: a reload makes another one.
    serverFactory: (handler) => {
      routing = handler as EdgeHandlers['request']
      return createServer()
    },
    return503OnClosing: false,
    // The router cannot decode the path: no hook sees the request.
    frameworkErrors: (error, request, reply) => {
      const { raw } = request
      const refusal = early.get(raw) ?? new GatewayError('malformed_request', { cause: error })
      refuse(serviceOf(choices.of(raw)), refusal, request, reply)
    },
  })
  addFirstHook(server, options)
  addErrorHandlers(server, options)
  await addWebSockets(server, handshakes, options)
  addCatchAll(server, options)
  addFrontPage(server, options)
  await server.ready()
  if (routing === undefined) throw new TypeError('Fastify made no server')
  return {
    take: routing,
    upgrade: (incoming, socket, head) => {
      handshakes.add(incoming)
      server.server.emit('upgrade', incoming, socket, head)
    },
    close: () => server.close(),
  }
}
