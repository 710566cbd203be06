import {
  createServer as createHttpServer,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from 'node:http'
import {
  createSecureServer,
  type Http2SecureServer,
  type SecureServerOptions,
  type ServerHttp2Session,
} from 'node:http2'
import { createServer as createHttpsServer, type Server as HttpsServer } from 'node:https'
import { type AddressInfo, Server as NetServer, type Socket } from 'node:net'
import type { SecureContext } from 'node:tls'
import type { LimitsConfig } from '../config/config.ts'
import type { EdgeEvent } from './events.ts'
import { type Certificate, createContexts } from './listener/certificates.ts'
import { watchConnections } from './listener/connections.ts'
import { boundStreams } from './listener/http2.ts'
import { Http2Incoming, Http2Outgoing } from './listener/http2-messages.ts'
import { isHttp2 } from './listener/read-request.ts'
import { createReadingTurns } from './listener/reading-turns.ts'
import { createRequestContents, Http1Incoming } from './listener/request-content.ts'
import { createRequestTurns } from './listener/request-turns.ts'

/** Finds a free port when the configuration leaves it open: links need the port before anything listens. */
export const freePort = (host: string): Promise<number> =>
  new Promise((resolve, reject) => {
    const server = new NetServer()
    server.once('error', reject)
    server.listen(0, host, () => {
      const { port } = server.address() as AddressInfo
      server.close(() => resolve(port))
    })
  })

type ListenerLimits =
  | 'headerBytes'
  | 'headersTimeoutMs'
  | 'requestTimeoutMs'
  | 'minBytesPerSecond'
  | 'keepAliveTimeoutMs'
  | 'readerTimeoutMs'
  | 'connections'
  | 'connectionsPerAddress'

export type ListenerOptions = Pick<LimitsConfig, ListenerLimits> & {
  /** Undefined: plain HTTP/1.1. */
  readonly certificate: Certificate | undefined
  /** Offered by ALPN beside HTTP/1.1; needs a certificate. */
  readonly http2: boolean
  readonly isExempt: (address: string) => boolean
  readonly report: (event: EdgeEvent) => void
}

export type EdgeHandlers = {
  request(incoming: IncomingMessage, outgoing: ServerResponse): void
  clientError(error: Error, socket: Socket): void
  /** Takes over connections of requests with Upgrade, with the bytes behind them in `head`; undefined: they are ordinary requests. */
  readonly upgrade?: ((incoming: IncomingMessage, socket: Socket, head: Buffer) => void) | undefined
}

type AnyServer = Server | HttpsServer | Http2SecureServer

/** Concurrent streams of one connection, as advised against the Rapid Reset attack (CVE-2023-44487). */
const maxStreams = 100

// They are made and passed on, and never read by node:http2.
const messagesOfHttp2 = {
  Http2ServerRequest: Http2Incoming,
  Http2ServerResponse: Http2Outgoing,
} as unknown as Pick<SecureServerOptions, 'Http2ServerRequest' | 'Http2ServerResponse'>

type ChooseContext = ReturnType<typeof createContexts>

const build = (
  options: ListenerOptions,
  contextFor: ChooseContext,
  refuseConnections: (group: string) => void,
): AnyServer => {
  const shared = {
    maxHeaderSize: options.headerBytes,
    // This interval bounds how late an overdue request is ended.
    connectionsCheckingInterval: Math.max(50, Math.min(5_000, options.headersTimeoutMs / 2)),
    // It would also end a content that moves (listener/request-content.ts).
    requestTimeout: 0,
    headersTimeout: options.headersTimeoutMs,
    keepAliveTimeout: options.keepAliveTimeoutMs,
    // TCP notices that the reader of a silent event stream is gone.
    keepAlive: true,
    keepAliveInitialDelay: 60_000,
    // guard.ts checks Host, and answers in the format of the service.
    requireHostHeader: false,
  }
  const { certificate } = options
  if (certificate === undefined) return createHttpServer({ ...shared, IncomingMessage: Http1Incoming })
  const { cert, key, minVersion } = certificate
  const secure = {
    ...shared,
    ...{ cert, key, minVersion },
    SNICallback: (name: string, done: (error: Error | null, context?: SecureContext) => void) =>
      done(null, contextFor(name)),
    handshakeTimeout: options.headersTimeoutMs,
  }
  if (!options.http2) return createHttpsServer({ ...secure, IncomingMessage: Http1Incoming })
  const server = createSecureServer({
    ...secure,
    allowHTTP1: true,
    Http1IncomingMessage: Http1Incoming,
    ...messagesOfHttp2,
    settings: {
      maxConcurrentStreams: maxStreams,
      maxHeaderListSize: options.headerBytes,
      enablePush: false,
    },
  })
  // The constructor does not accept these options for HTTP/1.1.
  const { maxHeaderSize: _bytes, connectionsCheckingInterval: _interval, ...timeouts } = shared
  boundStreams(server, { ...options, refuseConnections })
  return Object.assign(server, timeouts)
}

/** Tracks HTTP/2 sessions: closing the server leaves them open. */
const trackSessions = (server: AnyServer, idleMs: number): ReadonlySet<ServerHttp2Session> => {
  const sessions = new Set<ServerHttp2Session>()
  server.on('session', (session: ServerHttp2Session) => {
    sessions.add(session)
    session.once('close', () => sessions.delete(session))
    session.setTimeout(idleMs, () => session.close())
    // Node itself would reset one stream after another, and for a response that was being sent it can then write empty DATA frames into
    // memory without end (seen with Node 20.20).
    session.socket.prependListener('close', () => session.destroy())
  })
  return sessions
}

/** The public port, before it listens. It outlives configurations: a reload replaces the handlers and keeps the connections. */
export const createListener = (options: ListenerOptions) => {
  let contextFor: ChooseContext =
    options.certificate === undefined ? () => undefined : createContexts(options.certificate)
  const server = build(
    options,
    (name) => contextFor(name),
    (group) => connections.refuse(group),
  )
  if (options.connections > 0) server.maxConnections = options.connections
  const reading = createReadingTurns()
  const connections = watchConnections(server, {
    perAddress: options.connectionsPerAddress,
    readerTimeoutMs: options.readerTimeoutMs,
    isExempt: options.isExempt,
    encrypted: options.certificate !== undefined,
    reading,
    report: options.report,
  })
  const sessions = trackSessions(server, options.keepAliveTimeoutMs)
  const handlers: { current: EdgeHandlers | undefined } = { current: undefined }

  const closeGently = async (): Promise<void> => {
    let isClosed = false
    // node:http's close() would cut connections with an unread request, and stop the check for overdue requests.
    const closed = new Promise<void>((resolve) => {
      NetServer.prototype.close.call(server, () => {
        isClosed = true
        resolve()
      })
    })
    while (!isClosed) {
      // GOAWAY: open streams finish, new ones are refused (RFC 9113 §6.8).
      for (const session of sessions) session.close()
      await Promise.race([closed, connections.closeIdle()])
    }
    server.close(() => {})
  }

  const contents = createRequestContents(options, reading)
  const turns = createRequestTurns(handlers, options.report)
  const takeWith =
    (awaitsContinue: boolean) =>
    (incoming: IncomingMessage, outgoing: ServerResponse): void => {
      if (isHttp2(outgoing)) (outgoing as unknown as Http2Outgoing).req = incoming as unknown as Http2Incoming
      contents.take(incoming, outgoing, awaitsContinue)
      turns.take(incoming, outgoing)
    }
  // An unknown expectation may be ignored (RFC 9110 §10.1.1); node:http would answer without any check.
  for (const event of ['request', 'checkExpectation']) server.on(event, takeWith(false))
  server.on('checkContinue', takeWith(true))
  server.on('clientError', turns.takeError)

  return {
    use: (next: EdgeHandlers): void => {
      const { current } = handlers
      // node:http gives a connection away as soon as there is a listener.
      if (current?.upgrade !== undefined) server.removeListener('upgrade', current.upgrade)
      if (next.upgrade !== undefined) server.on('upgrade', next.upgrade)
      handlers.current = next
    },
    /** Resolves with the port in use. */
    listen: (host: string, port: number): Promise<number> =>
      new Promise((resolve, reject) => {
        server.once('error', reject)
        server.listen(port, host, () => {
          server.removeListener('error', reject)
          resolve((server.address() as AddressInfo).port)
        })
      }),
    traffic: () => connections.traffic(),
    /** Sets the certificates for new connections; open ones stay. */
    renew: (certificate: Certificate): void => {
      if (!('setSecureContext' in server)) return
      const { cert, key, minVersion } = certificate
      server.setSecureContext({ cert, key, minVersion })
      contextFor = createContexts(certificate)
    },
    /** Stops accepting connections and waits for requests until the timeout; resolves with the number of connections cut. */
    close: async (timeoutMs: number): Promise<number> => {
      let cut = 0
      const hard = setTimeout(() => {
        cut = connections.destroyAll()
        for (let i = 0; i < cut; i += 1) options.report({ kind: 'connection-cut', reason: 'drain' })
      }, timeoutMs)
      if (server.listening) await closeGently()
      clearTimeout(hard)
      connections.close()
      contents.close()
      return cut
    },
  }
}
