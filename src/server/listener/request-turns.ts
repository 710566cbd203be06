import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Http2ServerRequest } from 'node:http2'
import type { Socket } from 'node:net'
import { addressGroup, createFairTurns } from '../../http/bounds.ts'
import type { EdgeEvent } from '../events.ts'
import { isHttp2, isReset } from '../read-request.ts'

/**
 * Node accepts one connection in a turn of the event loop, and reads from all connections that have sent something: a turn that begins
 * a thousand requests keeps new clients waiting.
 */
const turnsOfRequests = { perTurn: 32, gatherMs: 0 }

/** Waiting pipelined requests at a few kB each: a connection may have this many, and more while all together have fewer than `mostWaiting`. */
const mostOfConnection = 64
const mostWaiting = 8_192

type TakeRequest = (incoming: IncomingMessage, outgoing: ServerResponse) => void

/** Requests behind the one of their connection that waits for its turn. */
type Pipelined = { readonly incoming: IncomingMessage; readonly outgoing: ServerResponse }[]

// node:http resumes the socket after each response.
const stayPaused = function (this: Socket): void {
  this.pause()
}

/**
 * Begins a bounded number of requests in each turn of the event loop, with addresses in rotation, and the connections of each: one with
 * many connections, many streams or many requests on a connection delays no other by more than a turn. A request whose client has left
 * while it waited costs nothing more. A connection with too many pipelined requests is cut.
 */
export const createRequestTurns = (take: TakeRequest, report: (event: EdgeEvent) => void): TakeRequest => {
  const turns = createFairTurns(turnsOfRequests)
  const waiting = new Map<Socket, Pipelined>()
  let pipelined = 0

  const waitHttp2 = (incoming: IncomingMessage, outgoing: ServerResponse): void => {
    const { session } = (incoming as unknown as Http2ServerRequest).stream
    turns.begin(addressGroup(session?.socket.remoteAddress ?? ''), () => {
      if (!isReset(incoming)) take(incoming, outgoing)
    })
  }
  const enter = (incoming: IncomingMessage, outgoing: ServerResponse, behind: Pipelined): void => {
    const { socket } = incoming
    turns.begin(addressGroup(socket.remoteAddress ?? ''), () => {
      const next = behind.shift()
      if (next === undefined) waiting.delete(socket)
      if (!socket.destroyed) take(incoming, outgoing)
      if (next === undefined) return
      pipelined -= 1
      if (behind.length === 0) socket.off('resume', stayPaused).resume()
      enter(next.incoming, next.outgoing, behind)
    })
  }
  const waitBehind = (behind: Pipelined, incoming: IncomingMessage, outgoing: ServerResponse): void => {
    const { socket } = incoming
    if (socket.destroyed) return
    if (pipelined >= mostWaiting && behind.length >= mostOfConnection) {
      report({ kind: 'connection-cut', reason: 'pipelining' })
      socket.destroy()
      return
    }
    if (behind.length === 0) socket.on('resume', stayPaused).pause()
    behind.push({ incoming, outgoing })
    pipelined += 1
  }
  return (incoming, outgoing) => {
    if (isHttp2(incoming)) {
      if (turns.mayBegin()) take(incoming, outgoing)
      else waitHttp2(incoming, outgoing)
      return
    }
    const behind = waiting.get(incoming.socket)
    if (behind !== undefined) waitBehind(behind, incoming, outgoing)
    else if (turns.mayBegin()) take(incoming, outgoing)
    else {
      const none: Pipelined = []
      waiting.set(incoming.socket, none)
      enter(incoming, outgoing, none)
    }
  }
}
