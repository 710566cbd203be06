import { METHODS } from 'node:http'
import type { Socket } from 'node:net'
import httpProxy from '@fastify/http-proxy'
import {
  type FastifyBaseLogger,
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
  fastify,
  LogController,
} from 'fastify'
import type { Logger } from 'pino'
import { GatewayError } from '../errors.ts'
import type { Answer, GatewayResponse, HandOver, Outcome } from '../http/message.ts'
import { errorAnswer } from '../pipeline/error-answer.ts'
import type { Received } from '../pipeline/exchange.ts'
import type { Service } from '../pipeline/service.ts'
import { clientOf, createTrustedProxies } from './client-address.ts'
import { EdgeRequest } from './edge-request.ts'
import { type Carrier, carry } from './pass-through.ts'
import { answerSocket, asRawError, pathOfPacket } from './raw-errors.ts'
import { createRequestIds } from './request-ids.ts'
import { sendResponse } from './send-response.ts'
import { serviceOf } from './service-of.ts'

export type EdgeOptions = {
  readonly limits: {
    readonly headerBytes: number
    readonly urlBytes: number
    readonly uploadBytes: number
    readonly requestTimeoutMs: number
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
}

const handOverKey = Symbol('hand-over')

type WithHandOver = { [handOverKey]?: HandOver }

/** CONNECT asks for a tunnel and TRACE for an echo of the credentials (RFC 9110 §9.3.6, §9.3.8): neither is routed. */
const routedMethods = METHODS.filter((method) => method !== 'CONNECT' && method !== 'TRACE')

const contractOf = (service: Service | undefined): Service['contract'] => service?.contract ?? 'open'

/** Fastify keeps sockets, limits and timeouts; every request goes down the phases, and what they hand over is carried by @fastify/http-proxy. */
export const createEdge = async (options: EdgeOptions): Promise<FastifyInstance> => {
  const { limits, services, logger } = options
  const nextId = createRequestIds()
  const isTrusted = createTrustedProxies(options.trustedProxies)
  const broken = (error: Error): void => logger.debug({ err: error }, 'content broke off')

  const sendRaw = (reply: FastifyReply, response: GatewayResponse): void => {
    const { raw } = reply
    reply.hijack()
    if (raw.headersSent || raw.destroyed) {
      if (response.content !== undefined && !Buffer.isBuffer(response.content)) response.content.destroy()
      return
    }
    sendResponse(raw, response, { closing: options.isDraining(), broken })
  }
  const refuse = (reply: FastifyReply, service: Service | undefined, error: GatewayError): void => {
    options.refusedEarly(error, service)
    sendRaw(reply, errorAnswer(contractOf(service), error))
  }
  const receive = (service: Service, request: FastifyRequest, reply: FastifyReply): Received => {
    const target = request.raw.url as string
    const at = target.indexOf('?')
    const path = at === -1 ? target : target.slice(0, at)
    const socket = request.raw.socket as Socket & { encrypted?: boolean }
    return {
      id: nextId(),
      origin: 'client',
      client: clientOf(socket.remoteAddress, socket.encrypted === true, request.raw.headers, isTrusted),
      service,
      request: new EdgeRequest(request.raw, reply.raw),
      path: path.length === service.mount.length ? '/' : path.slice(service.mount.length),
      query: at === -1 ? '' : target.slice(at + 1),
      record: { route: 'unmatched', cache: 'none', upstreamMs: 0 },
    }
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
      // What goes wrong on the way is told once, by the phases; reply-from would tell it again.
      logLevel: 'silent',
      upstream: service.upstream.placeholderOrigin,
      undici: service.upstream.dispatcher,
      destroyAgent: false,
      disableRequestLogging: true,
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
        if (answer instanceof Promise) {
          answer
            .then(settle)
            .catch((error: unknown) => refuse(reply, service, new GatewayError('internal', { cause: error })))
        } else settle(answer)
      },
      handler: (request: FastifyRequest, reply: FastifyReply) =>
        carry(carrier, request, reply, (request as WithHandOver)[handOverKey] as HandOver),
    })
  }

  const server = fastify({
    loggerInstance: logger as FastifyBaseLogger,
    logController: new LogController({ disableRequestLogging: true }),
    bodyLimit: limits.uploadBytes,
    requestTimeout: limits.requestTimeoutMs,
    http: { maxHeaderSize: limits.headerBytes },
    return503OnClosing: false,
    // What cannot be a URL is refused before any route; the service is picked by its mount alone.
    frameworkErrors: (error, request, reply) => {
      const service = serviceOf(services, request.raw.url as string)
      refuse(reply, service, new GatewayError('malformed_request', { cause: error }))
    },
    clientErrorHandler: (error, socket) => {
      const service = serviceOf(services, pathOfPacket(error.rawPacket))
      const raw = asRawError(error)
      options.refusedEarly(raw, service)
      answerSocket(socket as Socket, errorAnswer(contractOf(service), raw))
    },
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
  return server
}
