import { createServer, type IncomingMessage } from 'node:http'
import { type FastifyInstance, type FastifyReply, type FastifyRequest, fastify } from 'fastify'
import { type ErrorCode, GatewayError } from '../errors.ts'
import type { Service } from '../exchange/exchange.ts'
import { isPreflight } from '../http/headers/cors.ts'
import { routedMethods } from '../http/methods.ts'
import type { ServiceChoice, ServiceTable } from '../service/service-table.ts'
import type { EdgeHandlers } from './listener.ts'
import { authorityOf } from './read-request.ts'
import type { Agreed } from './websocket/handshake.ts'

/** The routes of WebSockets are only for the requests that node:http has given away with their connection. */
const ofWebSockets = (name: string): string => `${name} websocket`

/** The router has at most 31 routes for a path, two of each service: more services on one path are in another instance of Fastify. */
const maxOnPath = 15

const dividedByPath = (services: readonly Service[]): readonly (readonly Service[])[] => {
  const parts: Service[][] = [[]]
  for (const service of services) {
    const hasRoom = (part: readonly Service[]): boolean =>
      part.filter(({ mount }) => mount === service.mount).length < maxOnPath
    const part = parts.find(hasRoom)
    if (part === undefined) parts.push([service])
    else part.push(service)
  }
  return parts
}

/** An error that a hook, a handler or Fastify has thrown. */
const asRefusal = (error: unknown): GatewayError => {
  if (error instanceof GatewayError) return error
  const status = (error as { readonly statusCode?: number }).statusCode
  const code = status !== undefined && status < 500 ? 'malformed_request' : 'internal'
  return new GatewayError(code, { cause: error })
}

type NoService = Exclude<ServiceChoice<Service>, { kind: 'found' }>

const refusals: Readonly<Record<NoService['kind'], ErrorCode>> = {
  'no-service': 'no_route',
  'unknown-host': 'misdirected_request',
  ambiguous: 'ambiguous_request',
}

const refusalOf = ({ kind }: NoService): GatewayError => new GatewayError(refusals[kind])

const noQuery: Record<string, never> = {}

const pageHeaders = {
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
  /** Are preflights answered by `addCorsHeaders`, before `handle` and without an upstream? Undefined: none is. */
  readonly mayAddCors: ((service: Service | undefined) => boolean) | undefined
  addCorsHeaders(service: Service | undefined, reply: FastifyReply): void
  nextId(): string
  /** Errors found before a request has a route. Fastify's hooks see the request all the same. */
  readonly early: WeakMap<IncomingMessage, GatewayError>
  handle(service: Service, request: FastifyRequest, reply: FastifyReply): void
  ask(service: Service, request: FastifyRequest, reply: FastifyReply): Promise<Agreed | undefined>
  readonly messageBytes: number
  /** Responses with an error in the format of the service; undefined: there is none. */
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
  const registerService = async (server: FastifyInstance, service: Service): Promise<void> => {
    const { name, mount, addressAt } = service
    const formFor = (incoming: IncomingMessage): Service =>
      addressAt === undefined ? service : (serviceOf(incoming) ?? service)
    await server.register(
      async (scope) => {
        scope.setErrorHandler((error, request, reply) =>
          refuse(formFor(request.raw), asRefusal(error), request, reply),
        )
        scope.addHook('onRequest', ({ raw }, _reply, next) => {
          const isTooLong = (raw.url as string).length > urlBytes
          next(early.get(raw) ?? (isTooLong ? new GatewayError('target_too_long') : undefined))
        })
        // Of a mount: the path itself, and all below it.
        for (const url of mount === '' ? ['/*'] : ['', '/*'])
          scope.route({
            method: [...routedMethods],
            url,
            constraints: { service: name },
            handler: (request: FastifyRequest, reply: FastifyReply) =>
              handle(formFor(request.raw), request, reply),
          })
        if (service.websockets) {
          const { registerWebSockets } = await import('./websocket/proxy.ts')
          await registerWebSockets(scope, {
            constraints: { service: ofWebSockets(name) },
            messageBytes,
            formFor,
            ask,
          })
        }
      },
      { prefix: mount },
    )
  }

  const createInstance = async (ofInstance: readonly Service[]): Promise<HostRouting> => {
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
    // The router compares paths decoded, and no hosts. A route is for the requests for which the table chooses its service.
    server.addConstraintStrategy({
      name: 'service',
      storage: () => new Map(),
      deriveConstraint: (incoming) => {
        const name = serviceOf(incoming)?.name
        return name !== undefined && handshakes.has(incoming) ? ofWebSockets(name) : name
      },
    })
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
    const { mayAddCors } = options
    if (mayAddCors !== undefined)
      server.addHook('onRequest', ({ raw }, reply, next) => {
        const isAsked = isPreflight(raw.method, raw.headers) && !early.has(raw)
        const service = isAsked ? serviceOf(raw) : undefined
        if (isAsked && mayAddCors(service)) options.addCorsHeaders(service, reply)
        else next()
      })
    for (const service of ofInstance) await registerService(server, service)
    const { frontPage } = options
    if (frontPage !== undefined)
      server.get('/', ({ raw }, reply) => {
        const refusal = early.get(raw)
        if (refusal !== undefined) throw refusal
        return reply.headers(pageHeaders).send(frontPage)
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

  const parts = dividedByPath(services)
  const instances = await Promise.all(parts.map(createInstance))
  const [first] = instances
  if (first === undefined) throw new TypeError('there is no Fastify instance')
  if (instances.length === 1) return first
  const byService = new Map(
    instances.flatMap((instance, at) => (parts[at] ?? []).map(({ name }) => [name, instance] as const)),
  )
  const instanceFor = (incoming: IncomingMessage): HostRouting =>
    byService.get(serviceOf(incoming)?.name ?? '') ?? first
  return {
    take: (incoming, outgoing) => instanceFor(incoming).take(incoming, outgoing),
    upgrade: (incoming, socket, head) => instanceFor(incoming).upgrade(incoming, socket, head),
    close: async () => {
      await Promise.all(instances.map((instance) => instance.close()))
    },
  }
}
