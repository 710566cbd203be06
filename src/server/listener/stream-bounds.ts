import type { IncomingMessage, ServerResponse } from 'node:http'
import {
  constants,
  type Http2SecureServer,
  type Http2ServerRequest,
  type Http2Session,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from 'node:http2'
import { GatewayError } from '../../errors.ts'
import { addressGroup } from '../../http/bounds/address-group.ts'
import { createFairTurns } from '../../http/bounds/fair-turns.ts'
import type { EdgeEvent } from '../events.ts'
import { isHttp2, isReset } from './http2-request.ts'

export type StreamBounds = {
  /** As for connections: the longest time in which nothing is taken of an answer that waits; 0 = no bound. */
  readonly readerTimeoutMs: number
  /** Until the whole request has arrived; 0 = no bound. */
  readonly requestTimeoutMs: number
  /** Proxies of the operator: many clients share each of their sessions. */
  readonly isExempt: (address: string) => boolean
  /** Ends a client's sessions at their first octet for a while: called with the address group of one that resets too many streams. */
  readonly refuseConnections: (group: string) => void
  readonly report: (event: EdgeEvent) => void
}

/** What was seen of an answer: the octets that wait, and how many looks ago anything of them was taken. */
type Watched = { waiting: number; looks: number }

/** `close` would wait until the data in front of the reset has gone, which it never does; an error resets at once. */
const end = (stream: ServerHttp2Stream, reason: string): void => {
  stream.destroy(new Error(reason))
}

/** Each answer by itself: pings, and what else is taken of the connection, hide it from Node's own timer of a stream. */
const watchReaders = (server: Http2SecureServer, { readerTimeoutMs, report }: StreamBounds): void => {
  const open = new Map<ServerHttp2Stream, Watched>()
  const everyMs = Math.max(50, Math.min(5_000, readerTimeoutMs / 4))

  const suspect = (stream: ServerHttp2Stream, watched: Watched): void => {
    watched.looks += 1
    // What streams may wait in the same number of octets each time, and move all the same.
    if (watched.looks === 1) {
      stream.once('drain', () => {
        watched.looks = 0
      })
    }
    if (watched.looks * everyMs <= readerTimeoutMs) return
    report({ kind: 'connection-cut', reason: 'slow-reader' })
    open.delete(stream)
    end(stream, 'the client read nothing of the response')
  }
  const look = (): void => {
    for (const [stream, watched] of open) {
      const waiting = stream.bufferSize
      if (waiting > 0 && waiting === watched.waiting) suspect(stream, watched)
      else watched.looks = 0
      watched.waiting = waiting
    }
  }
  server.on('stream', (stream) => {
    open.set(stream, { waiting: 0, looks: 0 })
    stream.once('close', () => open.delete(stream))
  })
  const timer = setInterval(look, everyMs).unref()
  server.once('close', () => clearInterval(timer))
}

/** For an answer to be made and taken after the request's time is over. */
const lastAnswerMs = 2_000

/**
 * Ends the body of a request with an error, which the phases answer 408 in the shape of the service. The reset behind the answer
 * says that the rest of the body is not wanted (RFC 9113 §8.1).
 */
const answerTimeout = (request: Http2ServerRequest): void => {
  const { stream } = request
  stream.once('finish', () => stream.close(constants.NGHTTP2_NO_ERROR))
  const timer = setTimeout(() => end(stream, 'the client did not read the response'), lastAnswerMs).unref()
  stream.once('close', () => clearTimeout(timer))
  request.on('error', () => {})
  request.destroy(new GatewayError('request_timeout'))
}

const watchRequests = (server: Http2SecureServer, { requestTimeoutMs, report }: StreamBounds): void => {
  const requests = new WeakMap<ServerHttp2Stream, Http2ServerRequest>()
  const note = (request: Http2ServerRequest | IncomingMessage): void => {
    if ('stream' in request && !request.stream.endAfterHeaders) requests.set(request.stream, request)
  }
  for (const event of ['request', 'checkContinue', 'checkExpectation']) server.on(event, note)
  server.on('stream', (stream) => {
    if (stream.endAfterHeaders) return
    const timer = setTimeout(() => {
      report({ kind: 'no-request', reason: 'timeout' })
      const request = requests.get(stream)
      if (request === undefined || stream.headersSent) end(stream, 'the request did not arrive in time')
      else answerTimeout(request)
    }, requestTimeoutMs).unref()
    const arrived = (): void => clearTimeout(timer)
    stream.once('end', arrived)
    stream.once('close', arrived)
  })
}

/** A browser that leaves a page resets what it was still loading, up to `mostStreams` (listener.ts) at once. */
const resetBurst = 100
const resetsPerSecond = 33

/**
 * A stream that is reset before its answer has ended costs its client nothing, so that a client may open any number of them at once
 * (CVE-2023-44487). nghttp2 has such a bound too, with a burst of a thousand.
 */
const watchResets = (server: Http2SecureServer, bounds: StreamBounds): void => {
  const { report, isExempt, refuseConnections } = bounds
  const bound = (session: ServerHttp2Session): void => {
    const address = session.socket.remoteAddress ?? ''
    if (isExempt(address.replace(/^::ffff:/, ''))) return
    let left = resetBurst
    let sinceMs = performance.now()
    const reset = (): void => {
      const nowMs = performance.now()
      left = Math.min(resetBurst, left + ((nowMs - sinceMs) * resetsPerSecond) / 1000) - 1
      sinceMs = nowMs
      if (left >= 0 || session.destroyed) return
      report({ kind: 'connection-cut', reason: 'resets' })
      // A new connection would have a new burst, and costs a handshake.
      refuseConnections(addressGroup(address))
      session.goaway(constants.NGHTTP2_ENHANCE_YOUR_CALM)
      session.destroy()
    }
    session.on('stream', (stream) => {
      if (stream.closed) reset()
      else stream.once('aborted', reset)
    })
  }
  server.on('session', bound)
}

type TakeRequest = (incoming: IncomingMessage, outgoing: ServerResponse) => void

/** Of requests over HTTP/2, of which one read of a socket may bring a hundred for each connection. */
const turnsOfRequests = { perTurn: 8, gatherTurns: 0 }

/**
 * Hands on only so many requests in one turn of the event loop, those of different clients in turn. One that is reset while it waits, as
 * those of a client are that resets what it has just begun, costs nothing more.
 */
export const requestsInTurn = (take: TakeRequest): TakeRequest => {
  const turns = createFairTurns(turnsOfRequests)
  const groups = new WeakMap<Http2Session, string>()
  const groupOf = (session: Http2Session): string => {
    const known = groups.get(session)
    if (known !== undefined) return known
    const group = addressGroup(session.socket.remoteAddress ?? '')
    groups.set(session, group)
    return group
  }
  return (incoming, outgoing) => {
    if (!isHttp2(incoming)) {
      take(incoming, outgoing)
      return
    }
    const { session } = (incoming as unknown as Http2ServerRequest).stream
    if (session === undefined) return
    turns.begin(groupOf(session), () => {
      if (!isReset(incoming)) take(incoming, outgoing)
    })
  }
}

/**
 * The bounds of slow clients for streams of HTTP/2. Their own are needed: a window that stays shut leaves nothing in the
 * socket (RFC 9113 §5.2), a PING keeps a connection from being idle, and node:http2 knows no `requestTimeout`.
 */
export const boundStreams = (server: Http2SecureServer, bounds: StreamBounds): void => {
  watchResets(server, bounds)
  if (bounds.readerTimeoutMs > 0) watchReaders(server, bounds)
  if (bounds.requestTimeoutMs > 0) watchRequests(server, bounds)
}
