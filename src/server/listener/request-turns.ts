import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Http2ServerRequest, Http2Session } from 'node:http2'
import type { Socket } from 'node:net'
import { addressGroup } from '../../http/bounds/client-network.ts'
import { createFairTurns } from '../../http/bounds/fair-turns.ts'
import type { EdgeEvent } from '../events.ts'
import { currentResponse, responseBegins } from './connections.ts'
import { isHttp2, isReset } from './read-request.ts'
import { whenContentIsKnown } from './request-content.ts'
import { continueReading, pauseReading, readAsStream } from './socket-reading.ts'

/**
 * Node accepts one connection in a turn of the event loop, and reads from all connections that have sent something: a turn that begins
 * a thousand requests keeps new clients waiting.
 */
const requestsPerTurn = 32

/** With more requests that wait, a connection is not read; until then the gateway notices that its client leaves. */
const maxReadOn = 16

/**
 * What was read already is parsed all the same, at a few kB a request: a connection may have this many, and more while all together have
 * fewer than `maxWaiting`. The requests of an HTTP/2 connection are as few as its streams.
 */
const maxOfConnection = 64
const maxWaiting = 8_192

type Handlers = {
  request(incoming: IncomingMessage, outgoing: ServerResponse): void
  clientError(error: Error, socket: Socket): void
}

type Exchange = { readonly incoming: IncomingMessage; readonly outgoing: ServerResponse }
type WaitingRequest = Exchange | { readonly error: Error }

const hasLeft = (incoming: IncomingMessage): boolean =>
  isHttp2(incoming) ? isReset(incoming) : !incoming.socket.writable

/** A session that has ended has no socket. */
const groupOf = (socket: Pick<Socket, 'remoteAddress'> | undefined): string =>
  addressGroup(socket?.remoteAddress ?? '')

/** The requests of HTTP/1.1 connections, in their order: each begins when the response before it has been sent. */
const createPipelining = (
  begin: (context: Exchange) => void,
  fail: Handlers['clientError'],
  report: (event: EdgeEvent) => void,
) => {
  const queues = new Map<Socket, WaitingRequest[]>()
  let waitingCount = 0

  /** A listener of `close`, whose argument is not the socket. */
  const leave = function (this: Socket): void {
    waitingCount -= queues.get(this)?.length ?? 0
    queues.delete(this)
  }
  const beginAlone = (context: Exchange): void => {
    responseBegins(context.incoming.socket, context.outgoing)
    begin(context)
  }
  const proceed = (socket: Socket): void => {
    const queue = queues.get(socket)
    const next = queue?.shift()
    if (queue === undefined || next === undefined) return
    waitingCount -= 1
    // Nothing behind it can be read.
    if ('error' in next) {
      fail(next.error, socket)
      return
    }
    const [behind] = queue
    if (behind === undefined) {
      queues.delete(socket)
      socket.off('close', leave)
    } else next.outgoing.once('finish', () => proceed(socket))
    if (queue.length === maxReadOn) continueReading(socket)
    beginAlone(next)
    // The error is the response to the request that is incomplete.
    if (behind !== undefined && 'error' in behind && !next.incoming.complete) proceed(socket)
  }
  const createQueue = (socket: Socket): WaitingRequest[] => {
    const queue: WaitingRequest[] = []
    queues.set(socket, queue)
    socket.once('close', leave)
    currentResponse(socket)?.once('finish', () => proceed(socket))
    return queue
  }
  const wait = (socket: Socket, next: WaitingRequest): void => {
    const queue = queues.get(socket) ?? createQueue(socket)
    if (waitingCount >= maxWaiting && queue.length >= maxOfConnection) {
      report({ kind: 'connection-cut', reason: 'pipelining' })
      socket.destroy()
      return
    }
    waitingCount += 1
    if (queue.push(next) === maxReadOn + 1) pauseReading(socket)
  }
  return {
    take: (context: Exchange): void => {
      const { socket } = context.incoming
      // node:http has paused the parser behind this request, and TLS has decrypted more.
      if ('encrypted' in socket && socket.isPaused()) readAsStream(socket)
      // node:http gives a response the socket when those before it have been sent.
      if (context.outgoing.socket !== null) beginAlone(context)
      else if (socket.writable) wait(socket, context)
    },
    /** The bytes behind the latest request cannot be parsed. */
    takeError: (error: Error, socket: Socket): void => {
      const isBehind = queues.has(socket) || currentResponse(socket)?.req.complete === true
      if (isBehind && socket.writable) wait(socket, { error })
      else fail(error, socket)
    },
  }
}

/**
 * Begins a bounded number of requests in each turn of the event loop, with addresses in rotation, and the HTTP/2 connections of each: one
 * with many connections or streams delays no other by more than a turn. A request whose client has left while it waited costs
 * nothing more.
 */
export const createRequestTurns = (
  /** Those that are current when the turn comes take the request. */
  handlers: { readonly current: Handlers | undefined },
  report: (event: EdgeEvent) => void,
) => {
  const turns = createFairTurns(requestsPerTurn)
  /** Requests behind the one of their session that waits for its turn. */
  const streams = new Map<Http2Session, Exchange[]>()

  const take = ({ incoming, outgoing }: Exchange): void => {
    whenContentIsKnown(incoming, () => {
      if (!hasLeft(incoming)) handlers.current?.request(incoming, outgoing)
    })
  }
  const begin = (context: Exchange): void => {
    if (turns.mayBegin()) take(context)
    else turns.begin(groupOf(context.incoming.socket), () => take(context))
  }
  const pipelining = createPipelining(
    begin,
    (error, socket) => handlers.current?.clientError(error, socket),
    report,
  )
  const enter = (session: Http2Session, context: Exchange, behind: Exchange[]): void => {
    turns.begin(groupOf(session.socket), () => {
      const next = behind.shift()
      if (next === undefined) streams.delete(session)
      take(context)
      if (next !== undefined) enter(session, next, behind)
    })
  }
  const takeHttp2 = (context: Exchange): void => {
    const { session } = (context.incoming as unknown as Http2ServerRequest).stream
    // It has ended.
    if (session === undefined) return
    const behind = streams.get(session)
    if (behind !== undefined) {
      if (!hasLeft(context.incoming)) behind.push(context)
    } else if (turns.mayBegin()) take(context)
    else {
      const queue: Exchange[] = []
      streams.set(session, queue)
      enter(session, context, queue)
    }
  }
  return {
    take: (incoming: IncomingMessage, outgoing: ServerResponse): void => {
      if (isHttp2(incoming)) takeHttp2({ incoming, outgoing })
      else pipelining.take({ incoming, outgoing })
    },
    takeError: pipelining.takeError,
  }
}
