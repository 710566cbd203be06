import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { distrust, faultOfHttp2, isHttp2 } from './http2-request.ts'
import { createMessageLook, type MessageFault, originForm } from './message-faults.ts'

export type GuardOptions = {
  /** Takes what is sound. */
  take(incoming: IncomingMessage, outgoing: ServerResponse): void
  /** Answers what is not, and says that the connection closes. */
  refuse(incoming: IncomingMessage, outgoing: ServerResponse, fault: MessageFault): void
  /** Connections on which nothing is taken for a request any more; kept when others take the requests of the port. */
  readonly distrusted: Set<Socket>
}

/** Responses that wait for their turn on one connection. */
const watchQueued = (): ((socket: Socket, outgoing: ServerResponse) => void) => {
  const queues = new WeakMap<Socket, Set<ServerResponse>>()
  const queueOf = (socket: Socket): Set<ServerResponse> => {
    const known = queues.get(socket)
    if (known !== undefined) return known
    const queue = new Set<ServerResponse>()
    queues.set(socket, queue)
    socket.once('close', () => {
      // node:http tells only the response whose turn it is; the others would wait, and hold what they hold, for ever.
      for (const outgoing of queue) {
        outgoing.destroy()
        outgoing.emit('close')
      }
    })
    return queue
  }
  return (socket, outgoing) => {
    const queue = queueOf(socket)
    queue.add(outgoing)
    // From its turn on, node:http tells it.
    outgoing.once('socket', () => queue.delete(outgoing))
  }
}

/**
 * Stands between the parser and everything else: what can be read in two ways is refused, and nothing that follows it on its
 * connection is taken for a request any more, since nobody can say where it begins.
 */
export const createGuard = ({ take, refuse, distrusted }: GuardOptions): GuardOptions['take'] => {
  const look = createMessageLook()
  const queued = watchQueued()

  return (incoming, outgoing) => {
    // HTTP/2 has frames of its own, and its own rules for what is malformed (RFC 9113 §8.1.1).
    if (isHttp2(incoming)) {
      const fault = faultOfHttp2(incoming)
      if (fault === undefined) take(incoming, outgoing)
      else refuse(incoming, outgoing, fault)
      return
    }
    const { socket } = incoming
    if (distrusted.size > 0 && distrusted.has(socket)) return
    if (outgoing.socket === null) queued(socket, outgoing)
    const seen = look(incoming)
    const target = originForm(incoming.url as string)
    if (seen.kind === 'fault' || target === undefined) {
      distrust(distrusted, socket)
      refuse(incoming, outgoing, seen.kind === 'fault' ? seen.fault : 'target')
      return
    }
    incoming.url = target
    if (seen.asksUpgrade) {
      // The protocol stays what it is; node:http loses octets that come behind such a request in one piece with it.
      distrust(distrusted, socket)
      outgoing.shouldKeepAlive = false
    }
    take(incoming, outgoing)
  }
}
