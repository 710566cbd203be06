import { randomBytes } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { FastifyReply } from 'fastify'
import { GatewayError } from '../errors.ts'
import { changedResponse } from '../exchange/service.ts'
import { createAddressList, createClientOf } from './access/client-address.ts'
import { EarlyRefusals } from './edge/early-refusals.ts'
import { RequestHandler } from './edge/request-handler.ts'
import { createRoutes, type RoutesOptions } from './edge/routes.ts'
import { ServiceChoices, serviceOf } from './edge/service-choices.ts'
import type { EdgeOptions } from './edge-options.ts'
import { createCoverage } from './listener/certificates.ts'
import { createEdgeGuard, type EdgeGuard, type EdgeGuardOptions } from './listener/guard.ts'
import { ResponseSender } from './send/response-sender.ts'
import { createHandshake } from './websocket/handshake.ts'

/** Cheap ids, unique across processes: a random prefix for the process, then a count. */
const createRequestIds = (): (() => string) => {
  const prefix = randomBytes(6).toString('base64url')
  let count = 0
  return () => {
    count += 1
    return `${prefix}-${count.toString(36)}`
  }
}

export type Edge = EdgeGuard & { close(): Promise<void> }

/** Takes the response out of Fastify's hands: the gateway writes head and content itself. */
const hijacked = (reply: FastifyReply): ServerResponse => {
  reply.hijack()
  return reply.raw
}

/** Creates the handlers of one configuration; every request runs through `handle`. */
export const createEdge = async (options: EdgeOptions): Promise<Edge> => {
  const { limits, snapshot } = options
  const { services, table } = snapshot
  const nextId = createRequestIds()
  const clientOf = createClientOf(createAddressList(options.trustedProxies))
  const sender = new ResponseSender({ ...options, services })
  const refusals = new EarlyRefusals({ ...options, sender, nextId, clientOf })
  const handler = new RequestHandler({ ...options, sender, refusals, clientOf })
  const choices = new ServiceChoices(table)
  /** Errors found before Fastify gets the request. */
  const early = new WeakMap<IncomingMessage, GatewayError>()
  const hasWebSockets = services.some(({ websockets }) => websockets)
  const ask: NonNullable<RoutesOptions['websockets']>['ask'] = createHandshake({
    sockets: options.websockets,
    inFlight: options.inFlight,
    isDraining: options.isDraining,
    receive: (...request) => handler.receive(...request),
    handle: options.handle,
    complete: changedResponse,
    send: (outgoing, response) => sender.sendComplete(outgoing, response),
    addressOf: ({ socket, headers }) => clientOf(socket, headers).address,
  })
  const { take, upgrade, close } = await createRoutes({
    ...{ choices, early, nextId },
    urlBytes: limits.urlBytes,
    frontPage: options.frontPage,
    websockets: hasWebSockets ? { messageBytes: limits.websockets.messageBytes, ask } : undefined,
    respondsToPreflights: sender.hasCors ? (service) => sender.corsOf(service) !== undefined : undefined,
    handle: (service, request, reply) => handler.handle(service, request, reply),
    refuse: (service, error, { id }, reply) => refusals.refuse(hijacked(reply), service, error, id),
    // Safari waits for a content where there is no length.
    respondToOptions: (status, service, reply) =>
      sender.send(hijacked(reply), service, {
        status,
        headers: ['Content-Length', '0'],
        content: undefined,
      }),
  })
  const refuse: EdgeGuardOptions['refuse'] = (incoming, outgoing, error) => {
    early.set(incoming, error)
    take(incoming, outgoing)
  }
  const openWebSocket: EdgeGuardOptions['openWebSocket'] = (incoming, outgoing, head) => {
    const service = serviceOf(choices.ofUpgrade(incoming))
    if (service === undefined) take(incoming, outgoing)
    else if (!service.websockets) refuse(incoming, outgoing, new GatewayError('websockets_off'))
    else {
      outgoing.detachSocket(incoming.socket)
      upgrade(incoming, incoming.socket, head)
    }
  }
  const guard = createEdgeGuard({
    ...options,
    ...{ choices, take, refuse },
    refusedEarly: (...refusal) => refusals.report(...refusal),
    isCovered: createCoverage(options.certificates),
    openWebSocket: hasWebSockets ? openWebSocket : undefined,
  })
  return { ...guard, close }
}
