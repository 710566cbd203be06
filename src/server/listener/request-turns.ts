import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Http2ServerRequest, Http2Session } from 'node:http2'
import type { Socket } from 'node:net'
import { addressGroup, createFairTurns } from '../../http/bounds.ts'
import type { EdgeEvent } from '../events.ts'
import { isHttp2, isReset } from '../read-request.ts'
import { continueReading, holdReading } from './socket-reading.ts'

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
  isHttp2(incoming) ? isReset(incoming) : !incoming.socket.writable

/** A session that has ended has no socket. */
const groupOf = (connection: Connection): string =>
  addressGroup(('socket' in connection ? connection.socket : connection)?.remoteAddress ?? '')

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
    if (behind.length === 0) holdReading(socket)
    pipelined += 1
    return 'counted'
  }
  const uncountPipelined = (socket: Socket, behind: Behind): void => {
    pipelined -= 1
    if (behind.length === 0) continueReading(socket)
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
