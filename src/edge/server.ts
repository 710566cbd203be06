import { createServer, METHODS, type ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import httpProxy from '@fastify/http-proxy'
import { type FastifyInstance, type FastifyReply, type FastifyRequest, fastify } from 'fastify'
import type { Logger } from 'pino'
import { GatewayError } from '../errors.ts'
import type { Answer, GatewayResponse, HandOver, Outcome } from '../http/message.ts'
import { errorAnswer } from '../pipeline/error-answer.ts'
import { arrived, type Received } from '../pipeline/exchange.ts'
import type { Service } from '../pipeline/service.ts'
import { createClientOf, createTrustedProxies } from './client-address.ts'
import { EdgeRequest } from './edge-request.ts'
import { createGuard } from './guard.ts'
import type { EdgeHandlers } from './listener.ts'
import { faultTexts } from './message-faults.ts'
import { type Carrier, carry } from './pass-through.ts'
import { answerSocket, asRawError, pathOfPacket } from './raw-errors.ts'
import { createRequestIds } from './request-ids.ts'
import { type SendOptions, sendResponse } from './send-response.ts'
import { createSentTexts } from './sent-texts.ts'
import { serviceOf } from './service-of.ts'

export type EdgeOptions = {
  readonly limits: {
    readonly urlBytes: number
    readonly uploadBytes: number
  }
  readonly trustedProxies: readonly string[]
  /** In any order; the longest mount that fits wins. */
  readonly services: readonly Service[]
  readonly logger: Logger
  /** See upstream/client-signal.ts. */
  readonly signalKey: symbol
  readonly interimKey: symbol
  run(exchange: Received): Answer
  /** A request that never became an exchange: reported with the service whose shape its error has. */
  refusedEarly(error: GatewayError, service: Service | undefined): void
  isDraining(): boolean
  /** Called once each for an answer that is not out in the turn in which its request came. */
  readonly inFlight: { enter(): void; leave(): void }
}

/** Who takes the requests of one configuration. */
export type Edge = EdgeHandlers & { close(): Promise<void> }

/** Of contents that are sent often, as text: see sent-texts.ts. */
const mostTextBytes = 32 * 1024 * 1024

const handOverKey = Symbol('hand-over')

type WithHandOver = { [handOverKey]?: HandOver }

/** CONNECT asks for a tunnel and TRACE for an echo of the credentials (RFC 9110 §9.3.6, §9.3.8): neither is routed. */
const routedMethods = METHODS.filter((method) => method !== 'CONNECT' && method !== 'TRACE')

const noQuery: Record<string, never> = {}

const contractOf = (service: Service | undefined): Service['contract'] => service?.contract ?? 'open'

/** Fastify keeps sockets, limits and timeouts; every request goes down the phases, and what they hand over is carried by @fastify/http-proxy. */
export const createEdge = async (options: EdgeOptions): Promise<Edge> => {
  const { limits, services, logger } = options
  const nextId = createRequestIds()
  const clientOf = createClientOf(createTrustedProxies(options.trustedProxies))
  const broken = (error: Error): void => logger.debug({ err: error }, 'content broke off')

  const sending: SendOptions = {
    isDraining: options.isDraining,
    texts: createSentTexts(mostTextBytes),
    broken,
  }

  const sendRaw = (reply: FastifyReply, response: GatewayResponse): void => {
    const { raw } = reply
    reply.hijack()
    if (raw.headersSent || raw.destroyed) {
      if (response.content !== undefined && !Buffer.isBuffer(response.content)) response.content.destroy()
      return
    }
    sendResponse(raw, response, sending)
  }
  /** What is not out in the turn in which it came is in flight until its connection is done with it. */
  const watch = (raw: ServerResponse): void => {
    options.inFlight.enter()
    raw.once('close', options.inFlight.leave)
  }
  const refuse = (reply: FastifyReply, service: Service | undefined, error: GatewayError): void => {
    options.refusedEarly(error, service)
    sendRaw(reply, errorAnswer(contractOf(service), error))
  }
  const receive = (service: Service, request: FastifyRequest, reply: FastifyReply): Received => {
    const target = request.raw.url as string
    const at = target.indexOf('?')
    const path = at === -1 ? target : target.slice(0, at)
    return arrived({
      id: nextId(),
      origin: 'client',
      client: clientOf(request.raw.socket, request.raw.headers),
      service,
      request: new EdgeRequest(request.raw, reply.raw),
      path: path.length === service.mount.length ? '/' : path.slice(service.mount.length),
      query: at === -1 ? '' : target.slice(at + 1),
    })
  }

  const register = async (server: FastifyInstance, service: Service): Promise<void> => {
    const carrier: Carrier = {
      placeholderOrigin: service.upstream.placeholderOrigin,
      signalKey: options.signalKey,
      interimKey: options.interimKey,
      uploadBytes: limits.uploadBytes,
      send: sendRaw,
      broken,
    }
    await server.register(httpProxy, {
      prefix: service.mount,
      upstream: service.upstream.placeholderOrigin,
      undici: service.upstream.dispatcher,
      destroyAgent: false,
      httpMethods: routedMethods,
      preHandler: (request: FastifyRequest, reply: FastifyReply, done: () => void) => {
        if ((request.raw.url as string).length > limits.urlBytes) {
          refuse(reply, service, new GatewayError('target_too_long'))
          return
        }
        const settle = (outcome: Outcome): void => {
          if (outcome.kind === 'response') sendRaw(reply, outcome)
          else {
            ;(request as WithHandOver)[handOverKey] = outcome
            done()
          }
        }
        const answer = options.run(receive(service, request, reply))
        const { raw } = reply
        if (answer instanceof Promise) {
          watch(raw)
          answer
            .then(settle)
            .catch((error: unknown) => refuse(reply, service, new GatewayError('internal', { cause: error })))
          return
        }
        settle(answer)
        const isOut = raw.writableEnded && raw.writableLength === 0
        if (!isOut && !raw.destroyed) watch(raw)
      },
      handler: (request: FastifyRequest, reply: FastifyReply) =>
        carry(carrier, request, reply, (request as WithHandOver)[handOverKey] as HandOver),
    })
  }

  const clientError = (error: Error & { readonly rawPacket?: Buffer }, socket: Socket): void => {
    const service = serviceOf(services, pathOfPacket(error.rawPacket))
    const raw = asRawError(error)
    options.refusedEarly(raw, service)
    answerSocket(socket, errorAnswer(contractOf(service), raw))
  }
  let take: EdgeHandlers['request'] | undefined

  const server = fastify({
    // What goes wrong is told once, by the phases; and Fastify would make a logger for each request.
    logger: false,
    // Nobody reads a query but the phases.
    routerOptions: { querystringParser: () => noQuery },
    bodyLimit: limits.uploadBytes,
    // The listener owns the port and its limits, and outlives this instance; Fastify's own server never listens.
    serverFactory: (handler) => {
      take = handler as EdgeHandlers['request']
      return createServer()
    },
    return503OnClosing: false,
    // What cannot be a URL is refused before any route; the service is picked by its mount alone.
    frameworkErrors: (error, request, reply) => {
      const service = serviceOf(services, request.raw.url as string)
      refuse(reply, service, new GatewayError('malformed_request', { cause: error }))
    },
    clientErrorHandler: (error, socket) => clientError(error as Error, socket as Socket),
  })
  const known = new Set(server.supportedMethods)
  for (const method of routedMethods.filter((one) => !known.has(one)))
    server.addHttpMethod(method, { hasBody: method !== 'GET' && method !== 'HEAD' })
  server.setNotFoundHandler((request, reply) =>
    refuse(reply, serviceOf(services, request.raw.url as string), new GatewayError('no_route')),
  )
  server.setErrorHandler((error, request, reply) => {
    const status = (error as { statusCode?: number }).statusCode
    const code =
      status === 413
        ? 'content_too_large'
        : status !== undefined && status < 500
          ? 'malformed_request'
          : 'internal'
    refuse(reply, serviceOf(services, request.raw.url as string), new GatewayError(code, { cause: error }))
  })
  for (const service of services) await register(server, service)
  await server.ready()
  if (take === undefined) throw new TypeError('Fastify made no server')
  const request = createGuard({
    take,
    refuse: (incoming, outgoing, fault) => {
      const service = serviceOf(services, incoming.url as string)
      const code = fault === 'field-count' ? 'fields_too_large' : 'malformed_request'
      const error = new GatewayError(code, { detail: faultTexts[fault], fields: ['Connection', 'close'] })
      options.refusedEarly(error, service)
      sendResponse(outgoing, errorAnswer(contractOf(service), error), sending)
    },
  })
  return { request, clientError, close: () => server.close() }
}
