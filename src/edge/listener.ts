import {
  createServer as createHttpServer,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from 'node:http'
import { createSecureServer, type Http2SecureServer, type ServerHttp2Session } from 'node:http2'
import { createServer as createHttpsServer, type Server as HttpsServer } from 'node:https'
import { type AddressInfo, Server as NetServer, type Socket } from 'node:net'
import { type Traffic, watchConnections } from './connections.ts'
import type { EdgeEvent } from './events.ts'
import { boundStreams, requestsInTurn } from './stream-bounds.ts'

/** PEM texts of the public side's certificate and what it is spoken with. */
export type Certificate = {
  readonly cert: string
  readonly key: string
  readonly minVersion: 'TLSv1.2' | 'TLSv1.3'
}

export type ListenerOptions = {
  /** Undefined: plain HTTP/1.1. */
  readonly certificate: Certificate | undefined
  /** Offered by ALPN beside HTTP/1.1; needs a certificate. */
  readonly http2: boolean
  readonly headerBytes: number
  /** Until all fields of a request, and until the whole request, have arrived. */
  readonly headersTimeoutMs: number
  readonly requestTimeoutMs: number
  readonly keepAliveTimeoutMs: number
  readonly readerTimeoutMs: number
  /** 0 = no bound. */
  readonly connections: number
  readonly connectionsPerAddress: number
  readonly isExempt: (address: string) => boolean
  readonly report: (event: EdgeEvent) => void
}

/** Who takes requests. */
export type EdgeHandlers = {
  request(incoming: IncomingMessage, outgoing: ServerResponse): void
  clientError(error: Error, socket: Socket): void
}

/** The public port. It outlives configurations: who takes its requests can be exchanged without a connection being lost. */
export type Listener = {
  use(handlers: EdgeHandlers): void
  /** Gives the port that was taken. */
  listen(host: string, port: number): Promise<number>
  traffic(): Traffic
  /** New connections get the new certificate; those that are open stay. */
  renew(certificate: Certificate): void
  /** Takes no new connections and lets requests finish, for so long; gives the number of connections that were cut then. */
  close(timeoutMs: number): Promise<number>
}

type AnyServer = Server | HttpsServer | Http2SecureServer

/** One client's requests under way on one connection, as the document for the Rapid Reset attack advises (CVE-2023-44487). */
const mostStreams = 100

const build = (options: ListenerOptions, refuseConnections: (group: string) => void): AnyServer => {
  const shared = {
    maxHeaderSize: options.headerBytes,
    // How often overdue requests are looked for bounds how much later than its time one is ended.
    connectionsCheckingInterval: Math.max(50, Math.min(5_000, options.headersTimeoutMs / 2)),
    requestTimeout: options.requestTimeoutMs,
    headersTimeout: Math.min(options.headersTimeoutMs, options.requestTimeoutMs || Number.POSITIVE_INFINITY),
    keepAliveTimeout: options.keepAliveTimeoutMs,
    // guard.ts looks at Host, and answers in the shape of the service.
    requireHostHeader: false,
  }
  const { certificate } = options
  if (certificate === undefined) return createHttpServer(shared)
  const secure = { ...shared, ...certificate, handshakeTimeout: options.headersTimeoutMs }
  if (!options.http2) return createHttpsServer(secure)
  const server = createSecureServer({
    ...secure,
    allowHTTP1: true,
    settings: {
      maxConcurrentStreams: mostStreams,
      maxHeaderListSize: options.headerBytes,
      enablePush: false,
    },
  })
  // The constructor takes no such options for the HTTP/1.1 side.
  const { maxHeaderSize: _bytes, connectionsCheckingInterval: _interval, ...timeouts } = shared
  boundStreams(server, { ...options, refuseConnections })
  return Object.assign(server, timeouts)
}

/** Notes HTTP/2 sessions: closing the server alone leaves them open. */
const trackSessions = (server: AnyServer, idleMs: number): ReadonlySet<ServerHttp2Session> => {
  const sessions = new Set<ServerHttp2Session>()
  server.on('session', (session: ServerHttp2Session) => {
    sessions.add(session)
    session.once('close', () => sessions.delete(session))
    session.setTimeout(idleMs, () => session.close())
  })
  return sessions
}

/**
 * An interim response of which the turn has not come is told when it comes, if there is no answer yet: node:http would keep it and
 * write it behind the head of the answer, as a part of the content.
 */
const tellToContinue = (outgoing: ServerResponse): void => {
  if (outgoing.socket !== null) outgoing.writeContinue()
  else outgoing.once('socket', () => outgoing.headersSent || outgoing.writeContinue())
}

/** Makes the public port; nothing listens yet. */
export const createListener = (options: ListenerOptions): Listener => {
  const server = build(options, (group) => connections.refuse(group))
  if (options.connections > 0) server.maxConnections = options.connections
  const connections = watchConnections(server, {
    perAddress: options.connectionsPerAddress,
    readerTimeoutMs: options.readerTimeoutMs,
    isExempt: options.isExempt,
    encrypted: options.certificate !== undefined,
    report: options.report,
  })
  const sessions = trackSessions(server, options.keepAliveTimeoutMs)
  let current: EdgeHandlers | undefined

  const closeGently = async (): Promise<void> => {
    let isClosed = false
    // node:http's own close() would end connections on which a request has arrived that nobody has read yet, and the search for overdue requests.
    const closed = new Promise<void>((resolve) => {
      NetServer.prototype.close.call(server, () => {
        isClosed = true
        resolve()
      })
    })
    while (!isClosed) {
      // GOAWAY: streams under way finish, new ones are refused (RFC 9113 §6.8).
      for (const session of sessions) session.close()
      await Promise.race([closed, connections.endQuiet()])
    }
    server.close(() => {})
  }

  const takeCurrent = (incoming: IncomingMessage, outgoing: ServerResponse): void =>
    current?.request(incoming, outgoing)
  // Requests over HTTP/2 may wait for a turn, and then belong to those who take requests by then.
  const takeInTurn = options.http2 ? requestsInTurn(takeCurrent) : undefined
  // RFC 9110 §10.1.1. Who is current may be looked up here: such requests are rare.
  server.on('checkContinue', (incoming: IncomingMessage, outgoing: ServerResponse) => {
    tellToContinue(outgoing)
    const take = takeInTurn ?? takeCurrent
    take(incoming, outgoing)
  })

  return {
    use: (handlers) => {
      // Over HTTP/1.1 registered themselves, not behind a function that looks up who is current: a hit pays for nothing.
      const request = (takeInTurn ?? handlers.request) as (...given: unknown[]) => void
      for (const event of ['request', 'checkExpectation']) {
        if (current !== undefined) server.removeListener(event, takeInTurn ?? current.request)
        // An expectation that nobody knows may be passed over (RFC 9110 §10.1.1); node:http would answer without any check.
        server.on(event, request)
      }
      if (current !== undefined) server.removeListener('clientError', current.clientError)
      server.on('clientError', handlers.clientError)
      current = handlers
    },
    listen: (host, port) =>
      new Promise((resolve, reject) => {
        server.once('error', reject)
        server.listen(port, host, () => {
          server.removeListener('error', reject)
          resolve((server.address() as AddressInfo).port)
        })
      }),
    traffic: connections.traffic,
    renew: (certificate) => {
      if ('setSecureContext' in server) server.setSecureContext(certificate)
    },
    close: async (timeoutMs) => {
      let cut = 0
      const hard = setTimeout(() => {
        cut = connections.destroyAll()
        for (let i = 0; i < cut; i += 1) options.report({ kind: 'connection-cut', reason: 'drain' })
      }, timeoutMs)
      if (server.listening) await closeGently()
      clearTimeout(hard)
      connections.close()
      return cut
    },
  }
}
