import type { IncomingMessage, ServerResponse } from 'node:http'
import {
  constants,
  type Http2SecureServer,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from 'node:http2'
import type { Readable } from 'node:stream'
import { addressGroup } from '../../http/bounds/client-network.ts'
import { OpenList } from '../../http/bounds/open-list.ts'
import type { RequestHeaders } from '../../http/headers/header-lines.ts'
import type { GatewayRequest } from '../../http/message.ts'
import type { EdgeEvent } from '../events.ts'
import type { Http2Incoming, Http2Outgoing } from './http2-messages.ts'
import { authorityForm } from './read-request.ts'

/** RFC 9113 §8.3.1: Host must equal :authority, neither may have userinfo, and the target must be a path. */
export const faultOfHttp2 = (incoming: IncomingMessage): 'host' | 'target' | undefined => {
  const { headers } = incoming as unknown as Http2Incoming
  const { host, ':authority': authority, ':path': path } = headers
  if (host !== undefined && authority !== undefined && host.toLowerCase() !== authority.toLowerCase()) {
    return 'host'
  }
  if (!authorityForm.test(authority ?? host ?? '')) return 'host'
  return path?.startsWith('/') === true || path === '*' ? undefined : 'target'
}

/** A request over HTTP/2. It gets no interim responses, because Node sends some of them over HTTP/1.1 only. */
export class Http2EdgeRequest implements GatewayRequest {
  readonly #outgoing: Http2Outgoing
  #controller: AbortController | undefined
  readonly method: string
  readonly target: string
  readonly headers: RequestHeaders
  readonly content: Buffer | Readable | undefined

  constructor(incoming: IncomingMessage, outgoing: ServerResponse, content: Buffer | Readable | undefined) {
    const { method, url, headers } = incoming as unknown as Http2Incoming
    this.#outgoing = outgoing as unknown as Http2Outgoing
    this.method = method
    this.target = url
    this.headers = headers
    this.content = content
  }

  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      const controller = new AbortController()
      this.#controller = controller
      const { stream } = this.#outgoing
      if (stream.destroyed || stream.aborted) controller.abort()
      else stream.once('aborted', () => controller.abort())
    }
    return this.#controller.signal
  }
}

export type StreamBounds = {
  /** Longest time without progress while response bytes wait for the client; 0 = no bound. */
  readonly readerTimeoutMs: number
  /** Addresses without these bounds: many clients share a session of a trusted proxy. */
  readonly isExempt: (address: string) => boolean
  /** Refuses new connections of an address group for a while, after one of its clients reset too many streams. */
  readonly refuseConnections: (group: string) => void
  readonly report: (event: EdgeEvent) => void
}

/** A stream with the response bytes that waited at the last check, and the number of checks without progress. */
type WatchedStream = {
  index: number
  readonly stream: ServerHttp2Stream
  waiting: number
  stalledChecks: number
}

/** `close` would wait until the buffered data is sent, which a stalled client prevents; an error resets the stream at once. */
const end = (stream: ServerHttp2Stream, reason: string): void => {
  stream.destroy(new Error(reason))
}

/** Checks each response by itself: pings and other streams keep Node's timer of the session from firing. */
const watchReaders = (server: Http2SecureServer, { readerTimeoutMs, report }: StreamBounds): void => {
  const open = new OpenList<WatchedStream>()
  const everyMs = Math.max(50, Math.min(5_000, readerTimeoutMs / 4))

  const countStalled = (watched: WatchedStream): void => {
    watched.stalledChecks += 1
    // The number of waiting bytes may be equal although the stream makes progress.
    if (watched.stalledChecks === 1) {
      watched.stream.once('drain', () => {
        watched.stalledChecks = 0
      })
    }
    if (watched.stalledChecks * everyMs <= readerTimeoutMs) return
    report({ kind: 'connection-cut', reason: 'slow-reader' })
    open.remove(watched)
    end(watched.stream, 'the client did not read the response')
  }
  const checkProgress = (): void => {
    for (const watched of [...open.all]) {
      const bytes = watched.stream.bufferSize
      if (bytes > 0 && bytes === watched.waiting) countStalled(watched)
      else {
        watched.waiting = bytes
        watched.stalledChecks = 0
      }
    }
  }
  server.on('stream', (stream) => {
    const watched = { index: -1, stream, waiting: 0, stalledChecks: 0 }
    open.add(watched)
    // Not `once`: it makes an object for each stream, which closes once.
    stream.on('close', () => open.remove(watched))
  })
  const timer = setInterval(checkProgress, everyMs).unref()
  server.once('close', () => clearInterval(timer))
}

/** A browser that leaves a page resets the requests in flight, up to `maxStreams` (listener.ts) at once. */
const resetBurst = 100
const resetsPerSecond = 33

/**
 * A stream that is reset before its response costs the client nothing, so it could open any number of them (CVE-2023-44487). nghttp2
 * has a bound of a thousand.
 */
const watchResets = (server: Http2SecureServer, bounds: StreamBounds): void => {
  const { report, isExempt, refuseConnections } = bounds
  const bound = (session: ServerHttp2Session): void => {
    const address = session.socket.remoteAddress ?? ''
    if (isExempt(address.replace(/^::ffff:/, ''))) return
    let tokens = resetBurst
    let sinceMs = performance.now()
    const reset = (): void => {
      const nowMs = performance.now()
      tokens = Math.min(resetBurst, tokens + ((nowMs - sinceMs) * resetsPerSecond) / 1000) - 1
      sinceMs = nowMs
      if (tokens >= 0 || session.destroyed) return
      report({ kind: 'connection-cut', reason: 'resets' })
      // A new connection would have a new burst, and costs a handshake.
      refuseConnections(addressGroup(address))
      session.goaway(constants.NGHTTP2_ENHANCE_YOUR_CALM)
      session.destroy()
    }
    session.on('stream', (stream) => {
      if (stream.closed) reset()
      else stream.on('aborted', reset)
    })
  }
  server.on('session', bound)
}

/**
 * Bounds for slow clients on HTTP/2 streams. The socket bounds do not apply: a closed window leaves no data in the socket (RFC 9113
 * §5.2), and a PING keeps a connection active.
 */
export const boundStreams = (server: Http2SecureServer, bounds: StreamBounds): void => {
  watchResets(server, bounds)
  server.on('sessionError', ({ code }: NodeJS.ErrnoException) => {
    // nghttp2 has found a frame malformed, or too many of them that mean nothing.
    if (code === 'ERR_HTTP2_ERROR') bounds.report({ kind: 'no-request', reason: 'http2' })
  })
  if (bounds.readerTimeoutMs > 0) watchReaders(server, bounds)
}
