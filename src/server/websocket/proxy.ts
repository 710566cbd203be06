import type { ClientRequest, IncomingMessage } from 'node:http'
import type { createConnection } from 'node:net'
import httpProxy from '@fastify/http-proxy'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { GatewayError } from '../../errors.ts'
import type { CountedWebSocket, WebSocket } from '../websockets.ts'
import type { Agreed } from './handshake.ts'
import { SwitchedConnection } from './switched-connection.ts'

/** A peer that does not answer a close frame is cut after this time. */
const closeTimeout = 3_000

/** For both sides. Each event in a turn of its own: a flood of short messages does not delay others. */
const shared = {
  allowSynchronousEvents: false,
  autoPong: false,
  perMessageDeflate: false,
  closeTimeout,
  maxFragments: 256,
  maxBufferedChunks: 16_384,
}

/** The server of `ws` that the library has. */
type WebSocketServer = {
  on(event: 'headers', listener: (lines: string[], incoming: IncomingMessage) => void): unknown
}

type ProxyOptions = {
  readonly constraints: Readonly<Record<string, unknown>>
  readonly messageBytes: number
  ask(request: FastifyRequest, reply: FastifyReply): Promise<Agreed | undefined>
}

/** Lets @fastify/http-proxy carry the WebSockets whose handshakes the upstream has agreed to. */
export const registerWebSockets = async (
  scope: FastifyInstance,
  { constraints, messageBytes, ask }: ProxyOptions,
): Promise<void> => {
  const agreed = new WeakMap<IncomingMessage, Agreed>()
  const counted = new WeakMap<WebSocket, CountedWebSocket>()
  const servers = new WeakSet<WebSocketServer>()
  /** Of the client of `ws` that is being made: its options are the same for all. */
  let opening: Agreed | undefined
  const showLines = (server: WebSocketServer): void => {
    if (servers.has(server)) return
    servers.add(server)
    server.on('headers', (lines, incoming) => lines.push(...(agreed.get(incoming)?.lines ?? [])))
  }
  // The types of the library lack `rewriteRequestHeaders`.
  const clientOptions = {
    ...shared,
    maxPayload: messageBytes,
    rewriteRequestHeaders: (headers: Record<string, string>, request: FastifyRequest) => {
      opening = agreed.get(request.raw)
      return headers
    },
    // node:http takes any Duplex; the types of `ws` name the functions of node:net and node:tls.
    createConnection: (() => {
      if (opening === undefined) throw new TypeError('no handshake has been agreed to')
      return new SwitchedConnection(opening.connection, opening.protocol)
    }) as unknown as typeof createConnection,
    finishRequest: (request: ClientRequest, target: WebSocket) => {
      if (opening !== undefined) counted.set(target, opening.counted)
      opening = undefined
      request.end()
    },
  }
  await scope.register(httpProxy, {
    // Each handshake has its own (`getUpstream`).
    upstream: '',
    websocket: true,
    httpMethods: ['GET'],
    constraints,
    preHandler: async (request, reply) => {
      if (!URL.canParse(request.url, 'ws://a')) throw new GatewayError('malformed_request')
      const handshake = await ask(request, reply)
      if (handshake === undefined) return
      agreed.set(request.raw, handshake)
      showLines(reply.getDecorator<{ readonly wss: WebSocketServer }>('wsProxy').wss)
    },
    // The target was sent with the handshake.
    preRewrite: (_url, _parameters, prefix) => prefix,
    replyOptions: { getUpstream: ({ raw }) => agreed.get(raw as IncomingMessage)?.origin ?? '' },
    wsServerOptions: {
      ...shared,
      clientTracking: false,
      maxPayload: messageBytes,
      handleProtocols: (_offered, incoming) => agreed.get(incoming)?.protocol ?? false,
    },
    wsClientOptions: clientOptions,
    wsHooks: {
      onConnect: (_context, source, target) => counted.get(target)?.connected(source, target),
      onIncomingMessage: (_context, source, target) => counted.get(target)?.passed(source, target),
      onOutgoingMessage: (_context, source, target) => counted.get(target)?.passed(target, source),
    },
  })
}
