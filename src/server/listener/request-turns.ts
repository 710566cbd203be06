import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Http2ServerRequest, Http2Session } from 'node:http2'
import type { Socket } from 'node:net'
import type { Readable } from 'node:stream'
import { addressGroup, createFairTurns, type FairTurns } from '../../http/bounds.ts'
import type { EdgeEvent } from '../events.ts'
import { hasContent, isHttp2, isReset } from '../read-request.ts'

/**
 * Node accepts one connection in a turn of the event loop, and reads from all connections that have sent something: a turn that begins
 * a thousand requests keeps new clients waiting.
 */
const requestsPerTurn = 32

/**
 * Waiting pipelined requests at a few kB each: a connection may have this many, and more while all together have fewer than
 * `mostWaiting`. Those of HTTP/2 are as few as its streams.
 */
const mostOfConnection = 64
const mostWaiting = 8_192

type TakeRequest = (incoming: IncomingMessage, outgoing: ServerResponse) => void

type Waiting = { readonly incoming: IncomingMessage; readonly outgoing: ServerResponse }

/** Requests behind the one of their connection that waits for its turn. */
type Behind = Waiting[]

type Connection = Socket | Http2Session

/** Undefined: it has ended. */
const connectionOf = (incoming: IncomingMessage): Connection | undefined =>
  isHttp2(incoming) ? (incoming as unknown as Http2ServerRequest).stream.session : incoming.socket

const hasLeft = (incoming: IncomingMessage): boolean =>
  isHttp2(incoming) ? isReset(incoming) : incoming.socket.destroyed

/** A session that has ended has no socket. */
const groupOf = (connection: Connection): string =>
  addressGroup(('socket' in connection ? connection.socket : connection)?.remoteAddress ?? '')

// node:http resumes the socket after each response.
const stayPaused = function (this: Socket): void {
  this.pause()
}

/**
 * Begins a bounded number of requests in each turn of the event loop, with addresses in rotation, and the connections of each: one with
 * many connections, many streams or many requests on a connection delays no other by more than a turn. A request whose client has left
 * while it waited costs nothing more. A connection with too many pipelined requests is cut.
 */
export const createRequestTurns = (
  /** Those that are current when the turn comes take the request. */
  handlers: { readonly current: { readonly request: TakeRequest } | undefined },
  report: (event: EdgeEvent) => void,
): TakeRequest => {
  const boundContent = createContentTurns()
  const turns = createFairTurns(requestsPerTurn)
  const waiting = new Map<Connection, Behind>()
  let pipelined = 0

  /** Counts what node:http has read of one connection. */
  const countPipelined = (socket: Socket, behind: Behind): 'counted' | 'cut' => {
    if (pipelined >= mostWaiting && behind.length >= mostOfConnection) {
      report({ kind: 'connection-cut', reason: 'pipelining' })
      socket.destroy()
      return 'cut'
    }
    if (behind.length === 0) socket.on('resume', stayPaused).pause()
    pipelined += 1
    return 'counted'
  }
  const uncountPipelined = (socket: Socket, behind: Behind): void => {
    pipelined -= 1
    if (behind.length === 0) socket.off('resume', stayPaused).resume()
  }
  const enter = (connection: Connection, { incoming, outgoing }: Waiting, behind: Behind): void => {
    turns.begin(groupOf(connection), () => {
      const next = behind.shift()
      if (next === undefined) waiting.delete(connection)
      if (!hasLeft(incoming)) handlers.current?.request(incoming, outgoing)
      if (next === undefined) return
      if (connection === incoming.socket) uncountPipelined(connection, behind)
      enter(connection, next, behind)
    })
  }
  return (incoming, outgoing) => {
    const connection = connectionOf(incoming)
    if (connection === undefined) return
    if (isHttp2(incoming) || hasContent(incoming.headers)) boundContent(incoming)
    const behind = waiting.get(connection)
    if (behind === undefined) {
      if (turns.mayBegin()) handlers.current?.request(incoming, outgoing)
      else {
        const none: Behind = []
        waiting.set(connection, none)
        enter(connection, { incoming, outgoing }, none)
      }
      return
    }
    if (hasLeft(incoming)) return
    if (connection === incoming.socket && countPipelined(connection, behind) === 'cut') return
    behind.push({ incoming, outgoing })
  }
}

/** Each piece of a body is copied, counted and written by itself. */
const piecesPerTurn = 32

/** Longer pieces cost their client as much as the gateway. */
const longestGathered = 4_096
const mostGathered = 16 * 1024

const noBytes = Buffer.alloc(0)

/**
 * Joins short pieces of a content that arrive in one turn of the event loop, and reads no more of it before they are passed on: a
 * client decides how many chunks or DATA frames it makes of a body. node:http and node:http2 give each piece to `push`.
 */
const gather = (content: Readable, socket: Socket | undefined, client: string, turns: FairTurns): void => {
  const { push } = content
  let gathered = noBytes
  let length = 0
  let isWaiting = false
  /** Returns whether the connection is read on; the rest of a destroyed content is dropped. */
  const pushOn = (chunk: Buffer | null, encoding?: BufferEncoding): boolean =>
    push.call(content, chunk, encoding) || content.destroyed
  const pass = (): void => {
    if (length === 0) return
    const piece = gathered.subarray(0, length)
    gathered = noBytes
    length = 0
    pushOn(piece)
  }
  /** Otherwise the next request on the connection would wait for the rest of a content that has no reader. */
  const readOn = (): void => {
    if (content.destroyed && !content.readableEnded) socket?.resume()
  }
  content.once('close', readOn)
  const passInTurn = (): void => {
    isWaiting = false
    pass()
    readOn()
  }
  content.push = (chunk: Buffer | null, encoding?: BufferEncoding): boolean => {
    if (chunk === null || chunk.length > longestGathered) {
      pass()
      return pushOn(chunk, encoding)
    }
    if (!isWaiting && turns.mayBegin()) return pushOn(chunk, encoding)
    if (length + chunk.length > mostGathered) pass()
    if (length === 0) gathered = Buffer.allocUnsafe(mostGathered)
    length += chunk.copy(gathered, length)
    if (!isWaiting) {
      isWaiting = true
      turns.begin(client, passInTurn)
    }
    return false
  }
}

/** Bounds what the pieces of all request bodies cost in one turn of the event loop, with clients in rotation. For requests with a body. */
const createContentTurns = (): ((incoming: IncomingMessage) => void) => {
  const turns = createFairTurns(piecesPerTurn)
  return (incoming) => {
    if (!isHttp2(incoming)) {
      const { socket } = incoming
      gather(incoming, socket, addressGroup(socket.remoteAddress ?? ''), turns)
      return
    }
    const { stream } = incoming as unknown as Http2ServerRequest
    if (!stream.endAfterHeaders)
      gather(stream, undefined, addressGroup(stream.session?.socket?.remoteAddress ?? ''), turns)
  }
}
