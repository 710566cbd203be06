import type { ServerResponse } from 'node:http'
import type { Server, Socket } from 'node:net'
import type { TLSSocket } from 'node:tls'
import { addressGroup } from '../../http/bounds/address-group.ts'
import { createFairTurns } from '../../http/bounds/fair-turns.ts'
import type { EdgeEvent } from '../events.ts'

/** The response whose turn it is on a connection. node:http keeps it there, under no public name. */
export const underWay = (socket: Socket): ServerResponse | undefined =>
  (socket as Socket & { readonly _httpMessage?: ServerResponse | null })._httpMessage ?? undefined

/**
 * A request whose head is not complete has not begun: its client must reckon with a connection that closes, as with an idle one
 * (RFC 9112 §9.5). Node's own `closeIdleConnections` leaves those open, and ends those on which an answer that is all written
 * waits to be taken. HTTP/2 sessions end by GOAWAY.
 */
const isQuiet = (socket: Socket): boolean =>
  socket.writableLength === 0 &&
  underWay(socket) === undefined &&
  (socket as Partial<TLSSocket>).alpnProtocol !== 'h2'

const graceMs = 20

/** Past the next reading of sockets: what has arrived was read. */
const arrivalsRead = (): Promise<void> =>
  new Promise((resolve) => setTimeout(() => setImmediate(resolve), graceMs))

type ConnectionOptions = {
  /** Connections of one address (an IPv6 /64) at a time; 0 = no bound. */
  readonly perAddress: number
  /** Longest time in which a client takes nothing of an answer that is ready for it; 0 = no bound. */
  readonly readerTimeoutMs: number
  /** Behind a proxy of ours all clients have one address. */
  readonly isExempt: (address: string) => boolean
  /** Answers are then written to the socket that TLS makes of the connection. */
  readonly encrypted: boolean
  readonly report: (event: EdgeEvent) => void
}

/** What went over connections. */
export type Traffic = {
  readonly connections: number
  readonly receivedBytes: number
  readonly sentBytes: number
}

/** The open connections of the public side. */
type Connections = {
  /** Refuses new connections of an address group for ten seconds. */
  refuse(group: string): void
  /** Ends connections without a request in flight, now and after the received data was read. */
  endQuiet(): Promise<void>
  /** How many are open, and the bytes of all that ever were. */
  traffic(): Traffic
  /** How many were ended. */
  destroyAll(): number
  close(): void
}

/** For how long a client that abused its connections gets no new ones. */
const refusedMs = 10_000

/** Refused clients are remembered up to this number, the latest ones. */
const mostRefused = 10_000

/**
 * A handshake takes up to two milliseconds, and a turn of the event loop should take less than ten. Node accepts one connection in each
 * turn, in the order in which the kernel has queued them for all: so those that wait are accepted first, which costs a tenth
 * of a millisecond each, and then begin in an order that is fair.
 */
const turnsOfConnections = { perTurn: 4, gatherTurns: 32 }

/** Among so few open connections without TLS a new one begins at once: to gather them would leave the processor idle between them. */
const fewConnections = 64

const ignore = (): void => {}

type Watched = { taken: number; isSuspect: boolean }

/** Octets of answers that have left the process. */
const takenOf = (socket: Socket): number => socket.bytesWritten - socket.writableLength

/** Tells a connection and the socket that TLS makes of it that they are one. */
const peerOf = ({ remoteAddress, remotePort }: Socket): string => `${remoteAddress} ${remotePort}`

/**
 * Costs nothing for a request: connections are noted when they open, and looked at a few times in the bound. Node's own socket
 * timeout cannot stand in for this: it also runs while an upstream is waited for.
 */
export const watchConnections = (server: Server, options: ConnectionOptions): Connections => {
  const { perAddress, readerTimeoutMs, report } = options
  const open = new Map<Socket, Watched>()
  const handshakes = new Map<string, Socket>()
  const turns = createFairTurns(turnsOfConnections)
  const waiting = new Set<Socket>()
  const byAddress = new Map<string, number>()
  /** When the refusal of a group ends, by the monotonic clock; the latest last. */
  const refusedUntil = new Map<string, number>()
  // Of connections that are closed.
  let receivedBytes = 0
  let sentBytes = 0

  const leave = (group: string): void => {
    const left = (byAddress.get(group) ?? 1) - 1
    if (left === 0) byAddress.delete(group)
    else byAddress.set(group, left)
  }
  const isRefused = (group: string): boolean => {
    const until = refusedUntil.get(group)
    if (until === undefined) return false
    if (until > performance.now()) return true
    refusedUntil.delete(group)
    return false
  }
  const refuse = (group: string): void => {
    refusedUntil.delete(group)
    refusedUntil.set(group, performance.now() + refusedMs)
    const [oldest] = refusedUntil.keys()
    if (refusedUntil.size > mostRefused && oldest !== undefined) refusedUntil.delete(oldest)
  }
  /** False when this address has too many connections. */
  const enter = (socket: Socket): boolean => {
    const address = socket.remoteAddress ?? ''
    if (perAddress === 0 && refusedUntil.size === 0) return true
    if (options.isExempt(address.replace(/^::ffff:/, ''))) return true
    const group = addressGroup(address)
    if (isRefused(group)) return false
    if (perAddress === 0) return true
    const count = byAddress.get(group) ?? 0
    if (count >= perAddress) return false
    byAddress.set(group, count + 1)
    socket.once('close', () => leave(group))
    return true
  }
  /** Node's timer tells a reader that takes little from one that takes nothing, also within a single large write. */
  const suspect = (socket: Socket, watched: Watched): void => {
    watched.isSuspect = true
    socket.setTimeout(readerTimeoutMs, () => {
      watched.isSuspect = false
      if (socket.writableLength === 0) return
      report({ kind: 'connection-cut', reason: 'slow-reader' })
      socket.destroy()
    })
  }
  const look = (): void => {
    for (const [socket, watched] of open) {
      const taken = takenOf(socket)
      if (socket.writableLength > 0 && taken === watched.taken && !watched.isSuspect) suspect(socket, watched)
      watched.taken = taken
    }
  }

  const watch = (socket: Socket): void => {
    open.set(socket, { taken: 0, isSuspect: false })
    socket.once('close', () => {
      open.delete(socket)
      receivedBytes += socket.bytesRead
      sentBytes += socket.bytesWritten
    })
  }
  const watchHandshake = (socket: Socket): void => {
    const peer = peerOf(socket)
    handshakes.set(peer, socket)
    socket.once('close', () => {
      if (handshakes.get(peer) === socket) handshakes.delete(peer)
    })
  }
  const traffic = (): Traffic => {
    const sockets = [...open.keys()]
    return {
      connections: sockets.length,
      receivedBytes: sockets.reduce((sum, socket) => sum + socket.bytesRead, receivedBytes),
      sentBytes: sockets.reduce((sum, socket) => sum + socket.bytesWritten, sentBytes),
    }
  }

  /** What node:http or node:tls do with a connection, which costs far more than to accept it. */
  const taking = server.listeners('connection')
  server.removeAllListeners('connection')
  const begin = (socket: Socket): void => {
    waiting.delete(socket)
    socket.off('error', ignore)
    if (socket.destroyed) return
    for (const take of taking) take.call(server, socket)
  }
  server.on('connection', (socket: Socket) => {
    if (!enter(socket)) {
      report({ kind: 'connection-cut', reason: 'address' })
      socket.destroy()
      return
    }
    if (options.encrypted) watchHandshake(socket)
    else watch(socket)
    if (!options.encrypted && open.size <= fewConnections) {
      begin(socket)
      return
    }
    waiting.add(socket)
    socket.on('error', ignore)
    turns.begin(addressGroup(socket.remoteAddress ?? ''), () => begin(socket))
  })
  if (options.encrypted) {
    server.on('secureConnection', (socket: Socket) => {
      handshakes.delete(peerOf(socket))
      watch(socket)
    })
  }
  server.on('drop', () => report({ kind: 'connection-cut', reason: 'too-many' }))
  const timer =
    readerTimeoutMs === 0 ? undefined : setInterval(look, Math.max(50, Math.min(5_000, readerTimeoutMs / 4)))
  timer?.unref()
  return {
    refuse,
    traffic,
    endQuiet: async () => {
      const hasBegun = (socket: Socket): boolean => !waiting.has(socket)
      const quiet = [...open.keys()].filter((socket) => hasBegun(socket) && isQuiet(socket))
      const begun = [...handshakes.values()].filter(hasBegun)
      await arrivalsRead()
      for (const socket of quiet) if (isQuiet(socket)) socket.destroy()
      for (const socket of begun) if (handshakes.get(peerOf(socket)) === socket) socket.destroy()
    },
    destroyAll: () => {
      const count = open.size
      for (const socket of [...open.keys(), ...handshakes.values()]) socket.destroy()
      return count
    },
    close: () => clearInterval(timer),
  }
}
