import { createServer, type IncomingMessage, METHODS } from 'node:http'
import { type FastifyInstance, type FastifyReply, type FastifyRequest, fastify } from 'fastify'
import { type ErrorCode, GatewayError } from '../errors.ts'
import { type Service, serviceAtHost } from '../exchange/exchange.ts'
import { remembered } from '../http/memo.ts'
import { hostOf } from '../http/targets.ts'
import {
  isCertain,
  planRoutes,
  type Routes,
  type ServiceChoice,
  type ServiceTable,
} from '../service/service-table.ts'
import type { EdgeHandlers } from './listener.ts'
import { authorityOf } from './read-request.ts'
import { isPreflight } from './response-changes.ts'
import type { Agreed } from './websocket/handshake.ts'

type Strategy = Parameters<FastifyInstance['addConstraintStrategy']>[0]
type RouteHandler = ReturnType<ReturnType<Strategy['storage']>['get']>

/** Lets Fastify's router compare hosts: a route is for groups of hosts, and a request is of one group (`planRoutes`). */
const hostStrategy = (groupOf: (authority: string) => string): Strategy => ({
  name: 'hosts',
  storage: () => {
    const handlers = new Map<unknown, RouteHandler>()
    return {
      // The routes of a service have the same groups; for a path, a group has one service.
      get: (group) => handlers.get(Array.isArray(group) ? group[0] : group) ?? null,
      set: (groups, handler) => {
        for (const group of groups as readonly string[]) handlers.set(group, handler)
      },
    }
  },
  deriveConstraint: (incoming) => groupOf(authorityOf(incoming)),
})

const isHandshake = 'websocket'

/** The routes of WebSockets are only for the requests that node:http has given away with their connection. */
const handshakeStrategy = (handshakes: WeakSet<IncomingMessage>): Strategy => ({
  name: 'handshake',
  storage: () => {
    const handlers = new Map<unknown, RouteHandler>()
    return {
      get: (value) => handlers.get(value) ?? null,
      set: (value, handler) => {
        handlers.set(value, handler)
      },
    }
  },
  deriveConstraint: (incoming) => (handshakes.has(incoming) ? isHandshake : undefined),
})

/** An error that a hook, a handler or Fastify has thrown. */
const asRefusal = (error: unknown): GatewayError => {
  if (error instanceof GatewayError) return error
  const status = (error as { readonly statusCode?: number }).statusCode
  const code = status !== undefined && status < 500 ? 'malformed_request' : 'internal'
  return new GatewayError(code, { cause: error })
}

/** CONNECT asks for a tunnel and TRACE for an echo of the credentials (RFC 9110 §9.3.6, §9.3.8): neither is routed. */
const routedMethods = METHODS.filter((method) => method !== 'CONNECT' && method !== 'TRACE')

type NoService = Exclude<ServiceChoice<Service>, { kind: 'found' }>

/** Why no service takes a request. */
const refusals: Readonly<Record<NoService['kind'], ErrorCode>> = {
  'no-service': 'no_route',
  'unknown-host': 'misdirected_request',
  ambiguous: 'ambiguous_request',
}

const refusalOf = ({ kind }: NoService): GatewayError => new GatewayError(refusals[kind])

const noQuery: Record<string, never> = {}

const pageFields = {
  'content-type': 'text/html; charset=utf-8',
  'content-security-policy':
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'none'",
  'cache-control': 'no-store',
  'x-content-type-options': 'nosniff',
}

type RoutesOptions = {
  readonly services: readonly Service[]
  readonly table: Pick<ServiceTable<Service>, 'find'>
  readonly urlBytes: number
  /** HTML for `GET /`, in front of the services. */
  readonly frontPage: string | undefined
  /** Are preflights answered by `permit`, before `handle` and without an upstream? Undefined: none is. */
  readonly permits: ((service: Service | undefined) => boolean) | undefined
  permit(service: Service | undefined, reply: FastifyReply): void
  nextId(): string
  /** Errors found before a request has a route. Fastify's hooks see the request all the same. */
  readonly early: WeakMap<IncomingMessage, GatewayError>
  handle(service: Service, request: FastifyRequest, reply: FastifyReply): void
  /** See `registerWebSockets`. */
  ask(service: Service, request: FastifyRequest, reply: FastifyReply): Promise<Agreed | undefined>
  readonly messageBytes: number
  /** Answers with an error in the format of the service; undefined: there is none. */
  refuse(
    service: Service | undefined,
    error: GatewayError,
    request: Pick<FastifyRequest, 'id'>,
    reply: FastifyReply,
  ): void
}

type HostRouting = {
  readonly take: EdgeHandlers['request']
  /** Takes a request for a WebSocket, with its connection. */
  readonly upgrade: NonNullable<EdgeHandlers['upgrade']>
  close(): Promise<void>
}

/** Fastify in front of the services: a plugin for each, chosen by Fastify's router. */
export const createRoutes = async (options: RoutesOptions): Promise<HostRouting> => {
  const { services, table, urlBytes, messageBytes, ask, nextId, early, handle, refuse } = options
  const handshakes = new WeakSet<IncomingMessage>()
  const serviceOf = (incoming: IncomingMessage): Service | undefined => {
    const choice = table.find(authorityOf(incoming), incoming.url as string)
    return choice.kind === 'found' ? choice.service : undefined
  }

  /** The routes of one service. Its hooks, handler and errors are Fastify's; the handler calls `handle`. */
  const registerService = async (
    server: FastifyInstance,
    { service, groups, isOuter }: Routes<Service>[number],
  ): Promise<void> => {
    const { mount, addressAt, hosts } = service
    const atAuthority =
      addressAt === undefined || hosts.length === 0
        ? undefined
        : remembered((authority) => serviceAtHost(service, hostOf(authority)))
    const formFor = (incoming: IncomingMessage): Service =>
      atAuthority === undefined ? service : atAuthority(authorityOf(incoming))
    const guard = (request: FastifyRequest, reply: FastifyReply, next: (error?: Error) => void): void => {
      const { raw } = request
      const target = raw.url as string
      const refusal = early.get(raw)
      if (refusal !== undefined) next(refusal)
      else if (target.length > urlBytes) next(new GatewayError('target_too_long'))
      else if (isCertain(mount, isOuter, target) || serviceOf(raw)?.name === service.name) next()
      else reply.callNotFound()
    }
    await server.register(
      async (scope) => {
        scope.setErrorHandler((error, request, reply) =>
          refuse(formFor(request.raw), asRefusal(error), request, reply),
        )
        scope.addHook('onRequest', guard)
        const constraints = groups === undefined ? {} : { hosts: groups }
        // Of a mount: the path itself, and all below it.
        for (const url of mount === '' ? ['/*'] : ['', '/*'])
          scope.route({
            method: routedMethods,
            url,
            constraints,
            handler: (request: FastifyRequest, reply: FastifyReply) =>
              handle(formFor(request.raw), request, reply),
          })
        if (service.websockets) {
          const { registerWebSockets } = await import('./websocket/proxy.ts')
          await registerWebSockets(scope, {
            constraints: { ...constraints, handshake: isHandshake },
            messageBytes,
            formFor,
            ask,
          })
        }
      },
      { prefix: mount },
    )
  }

  /** Fastify in front of some services: its router chooses the service by host and path. */
  const createInstance = async (
    routes: Routes<Service>,
    groupOf: (authority: string) => string,
  ): Promise<HostRouting> => {
    let routing: EdgeHandlers['request'] | undefined
    const server = fastify({
      // `handle` logs failures once; Fastify would create a logger for each request.
      logger: false,
      exposeHeadRoutes: false,
      genReqId: nextId,
      routerOptions: {
        // Only `handle` reads the query.
        querystringParser: () => noQuery,
        compile: true,
      },
      // The listener owns the port and outlives this instance: a reload makes another one.
      serverFactory: (handler) => {
        routing = handler as EdgeHandlers['request']
        return createServer()
      },
      return503OnClosing: false,
      // The router cannot decode the path.
      frameworkErrors: (error, request, reply) => {
        const { raw } = request
        const refusal = early.get(raw) ?? new GatewayError('malformed_request', { cause: error })
        refuse(serviceOf(raw), refusal, request, reply)
      },
    })
    server.addConstraintStrategy(hostStrategy(groupOf))
    server.addConstraintStrategy(handshakeStrategy(handshakes))
    // `handle` reads contents: Fastify never does.
    for (const method of routedMethods)
      server.addHttpMethod(method, { hasBody: false, overrideExisting: true })
    server.removeAllContentTypeParsers()
    server.setErrorHandler((error, request, reply) =>
      refuse(serviceOf(request.raw), asRefusal(error), request, reply),
    )
    server.setNotFoundHandler(({ raw }) => {
      const refusal = early.get(raw)
      if (refusal !== undefined) throw refusal
      const choice = table.find(authorityOf(raw), raw.url as string)
      throw choice.kind === 'found' ? new GatewayError('no_route') : refusalOf(choice)
    })
    const { permits } = options
    if (permits !== undefined)
      server.addHook('onRequest', ({ raw }, reply, next) => {
        const isAsked = isPreflight(raw) && !early.has(raw)
        const service = isAsked ? serviceOf(raw) : undefined
        if (isAsked && permits(service)) options.permit(service, reply)
        else next()
      })
    for (const route of routes) await registerService(server, route)
    const { frontPage } = options
    if (frontPage !== undefined)
      server.get('/', ({ raw }, reply) => {
        const refusal = early.get(raw)
        if (refusal !== undefined) throw refusal
        return reply.headers(pageFields).send(frontPage)
      })
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

  const plan = planRoutes(services)
  const instances = await Promise.all(plan.parts.map((routes) => createInstance(routes, plan.groupOf)))
  const [only] = instances
  if (only === undefined) throw new TypeError('there is no Fastify instance')
  const instanceFor =
    instances.length === 1
      ? (): HostRouting => only
      : (incoming: IncomingMessage): HostRouting => instances[plan.partOf(authorityOf(incoming))] ?? only

  return {
    take:
      instances.length === 1
        ? only.take
        : (incoming, outgoing) => instanceFor(incoming).take(incoming, outgoing),
    upgrade: (incoming, socket, head) => instanceFor(incoming).upgrade(incoming, socket, head),
    close: async () => {
      await Promise.all(instances.map((instance) => instance.close()))
    },
  }
}
