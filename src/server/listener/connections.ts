import type { ServerResponse } from 'node:http'
import type { Server, Socket } from 'node:net'
import type { TLSSocket } from 'node:tls'
import { addressGroup } from '../../http/bounds/client-network.ts'
import { addCount } from '../../http/bounds/counts.ts'
import { createFairTurns } from '../../http/bounds/fair-turns.ts'
import type { EdgeEvent } from '../events.ts'
import type { ReadingTurns } from './reading-turns.ts'

const responses = new WeakMap<Socket, ServerResponse>()

function responseEnds(this: ServerResponse): void {
  const { socket } = this.req
  // The next response may have begun before.
  if (responses.get(socket) === this) responses.delete(socket)
}

/** Of the requests on a connection, the one of this response is answered from now on. */
export const responseBegins = (socket: Socket, outgoing: ServerResponse): void => {
  responses.set(socket, outgoing)
  // Not `once`: it makes an object for each response, which ends once.
  outgoing.on('finish', responseEnds)
}

/** The response that is written to the connection now. */
export const currentResponse = (socket: Socket): ServerResponse | undefined => responses.get(socket)

/**
 * Without a response in flight. A client whose request head is incomplete must expect the connection to close, as with an idle one
 * (RFC 9112 §9.5). Node's `closeIdleConnections` keeps those open, and cuts connections whose last response the client has not read
 * yet. HTTP/2 sessions end with GOAWAY.
 */
const isIdle = (socket: Socket): boolean =>
  socket.writableLength === 0 &&
  currentResponse(socket) === undefined &&
  (socket as Partial<TLSSocket>).alpnProtocol !== 'h2'

const graceMs = 20

/** Resolves when the data that has arrived by now was read. */
const arrivedDataRead = (): Promise<void> =>
  new Promise((resolve) => setTimeout(() => setImmediate(resolve), graceMs))

type ConnectionOptions = {
  /** Concurrent connections of one address (an IPv6 /64); 0 = no bound. */
  readonly perAddress: number
  /** Longest time without progress while response bytes wait for the client; 0 = no bound. */
  readonly readerTimeoutMs: number
  /** Addresses without these bounds: all clients behind a trusted proxy have its address. */
  readonly isExempt: (address: string) => boolean
  /** With TLS, responses are written to the socket that TLS creates for the connection. */
  readonly encrypted: boolean
  readonly reading: ReadingTurns
  readonly report: (event: EdgeEvent) => void
}

/** Traffic of all connections since the start. */
export type Traffic = {
  readonly connections: number
  readonly receivedBytes: number
  readonly sentBytes: number
}

/** A client that abused its connections gets no new ones for this time. */
const refusedMs = 10_000

/** The latest refused clients are remembered, up to this number. */
const maxRefused = 10_000

/**
 * A TLS handshake takes up to two milliseconds, and a turn of the event loop should take less than ten. Node accepts one connection
 * per turn, in the order of the kernel's queue. Connections are accepted first, which costs a tenth of a millisecond each, and then
 * start in fair order.
 */
const connectionsPerTurn = 4
const gatherMs = 4

/** Up to this number of open connections without TLS, a new one starts at once: gathering would leave the processor idle. */
const fewConnections = 64

const ignore = (): void => {}

/** `cut` is there while the client reads nothing. */
type Watched = { sentBytes: number; cut: (() => void) | undefined }

/** Response bytes that the operating system has accepted. */
const sentBytesOf = (socket: Socket): number => socket.bytesWritten - socket.writableLength

/** The URL begins with http: where it has to begin with https:. TLS has no response of its own that a client would show. */
const plainText = 'This port speaks HTTPS: use https:// in the URL.\n'
const plainResponse = [
  'HTTP/1.1 400 Bad Request',
  'Content-Type: text/plain',
  `Content-Length: ${plainText.length}`,
  'Connection: close',
  '',
  plainText,
].join('\r\n')

/** Identifies a connection and the socket that TLS creates for it. */
const peerOf = ({ remoteAddress, remotePort }: Socket): string => `${remoteAddress} ${remotePort}`

/**
 * Requests cost nothing: connections are recorded when they open and checked a few times per timeout. Node's own socket timeout
 * would also run while the gateway waits for an upstream.
 */
class WatchedConnections {
  readonly #server: Server
  readonly #options: ConnectionOptions
  readonly #open = new Map<Socket, Watched>()
  readonly #handshakes = new Map<string, Socket>()
  readonly #turns = createFairTurns(connectionsPerTurn, gatherMs)
  readonly #waiting = new Set<Socket>()
  readonly #byAddress = new Map<string, number>()
  /** When the refusal of each group ends, by the monotonic clock, in order. */
  readonly #refusedUntil = new Map<string, number>()
  // Totals of closed connections.
  #receivedBytes = 0
  #sentBytes = 0
  /** The listeners of node:http or node:tls, which cost far more than accepting the connection. */
  readonly #connectionListeners: ReturnType<Server['listeners']>
  readonly #timer: NodeJS.Timeout | undefined

  constructor(server: Server, options: ConnectionOptions) {
    this.#server = server
    this.#options = options
    this.#connectionListeners = this.#server.listeners('connection')
    this.#server.removeAllListeners('connection')
    this.#server.on('connection', (socket: Socket) => {
      if (!this.#admit(socket)) {
        this.#options.report({ kind: 'connection-cut', reason: 'address' })
        socket.destroy()
        return
      }
      if (this.#options.encrypted) this.#watchHandshake(socket)
      else {
        this.#watch(socket)
        this.#options.reading.add(socket)
      }
      if (!this.#options.encrypted && this.#open.size <= fewConnections) {
        this.#begin(socket)
        return
      }
      this.#waiting.add(socket)
      socket.on('error', ignore)
      this.#turns.begin(addressGroup(socket.remoteAddress ?? ''), () => this.#begin(socket))
    })
    if (this.#options.encrypted) {
      this.#server.on('secureConnection', (socket: Socket) => {
        this.#handshakes.delete(peerOf(socket))
        this.#watch(socket)
        if ((socket as TLSSocket).alpnProtocol !== 'h2') this.#options.reading.add(socket)
      })
      this.#server.on('tlsClientError', ({ code }: NodeJS.ErrnoException, socket: Socket) => {
        const connection = this.#handshakes.get(peerOf(socket))
        if (code !== 'ERR_SSL_HTTP_REQUEST' || connection === undefined) return
        connection.write(plainResponse)
        connection.destroySoon()
      })
    }
    this.#server.on('drop', () => this.#options.report({ kind: 'connection-cut', reason: 'too-many' }))
    this.#timer =
      this.#options.readerTimeoutMs === 0
        ? undefined
        : setInterval(this.#checkProgress, Math.max(50, Math.min(5_000, this.#options.readerTimeoutMs / 4)))
    this.#timer?.unref()
  }

  /** Closes connections without a request in flight, after the data that has arrived was read. */
  async closeIdle(): Promise<void> {
    const hasBegun = (socket: Socket): boolean => !this.#waiting.has(socket)
    const idle = [...this.#open.keys()].filter((socket) => hasBegun(socket) && isIdle(socket))
    const handshaking = [...this.#handshakes.values()].filter(hasBegun)
    await arrivedDataRead()
    for (const socket of idle) if (isIdle(socket)) socket.destroy()
    for (const socket of handshaking) if (this.#handshakes.get(peerOf(socket)) === socket) socket.destroy()
  }

  /** Returns the number of connections that were closed. */
  destroyAll(): number {
    const count = this.#open.size
    for (const socket of [...this.#open.keys(), ...this.#handshakes.values()]) socket.destroy()
    return count
  }

  close(): void {
    clearInterval(this.#timer)
  }

  #isRefused(group: string): boolean {
    const until = this.#refusedUntil.get(group)
    if (until === undefined) return false
    if (until > performance.now()) return true
    this.#refusedUntil.delete(group)
    return false
  }

  refuse(group: string): void {
    this.#refusedUntil.delete(group)
    this.#refusedUntil.set(group, performance.now() + refusedMs)
    const [oldest] = this.#refusedUntil.keys()
    if (this.#refusedUntil.size > maxRefused && oldest !== undefined) this.#refusedUntil.delete(oldest)
  }

  /** Counts the connection; false if its address has too many or is refused. */
  #admit(socket: Socket): boolean {
    const address = socket.remoteAddress ?? ''
    if (this.#options.perAddress === 0 && this.#refusedUntil.size === 0) return true
    if (this.#options.isExempt(address.replace(/^::ffff:/, ''))) return true
    const group = addressGroup(address)
    if (this.#isRefused(group)) return false
    if (this.#options.perAddress === 0) return true
    if ((this.#byAddress.get(group) ?? 0) >= this.#options.perAddress) return false
    addCount(this.#byAddress, group, 1)
    socket.once('close', () => addCount(this.#byAddress, group, -1))
    return true
  }

  /** Node's socket timer distinguishes a slow client from one that reads nothing, also within one large write. */
  #limitStall(socket: Socket): () => void {
    const cut = (): void => {
      if (socket.writableLength === 0) return
      this.#options.report({ kind: 'connection-cut', reason: 'slow-reader' })
      socket.destroy()
    }
    socket.setTimeout(this.#options.readerTimeoutMs, cut)
    return cut
  }

  /** The client reads again. Between two responses the timer is that of node:http for idle connections. */
  #endStall(socket: Socket, cut: () => void): void {
    if (currentResponse(socket) === undefined) socket.off('timeout', cut)
    else socket.setTimeout(0, cut)
  }

  readonly #checkProgress = (): void => {
    for (const [socket, watched] of this.#open) {
      const sentBytes = sentBytesOf(socket)
      const isStalled = socket.writableLength > 0 && sentBytes === watched.sentBytes
      watched.sentBytes = sentBytes
      if (isStalled) watched.cut ??= this.#limitStall(socket)
      else if (watched.cut !== undefined) {
        this.#endStall(socket, watched.cut)
        watched.cut = undefined
      }
    }
  }

  #watch(socket: Socket): void {
    this.#open.set(socket, { sentBytes: 0, cut: undefined })
    socket.once('close', () => {
      this.#open.delete(socket)
      this.#receivedBytes += socket.bytesRead
      this.#sentBytes += socket.bytesWritten
    })
  }

  #watchHandshake(socket: Socket): void {
    const peer = peerOf(socket)
    this.#handshakes.set(peer, socket)
    socket.once('close', () => {
      if (this.#handshakes.get(peer) === socket) this.#handshakes.delete(peer)
    })
  }

  traffic(): Traffic {
    const sockets = [...this.#open.keys()]
    return {
      connections: sockets.length,
      receivedBytes: sockets.reduce((sum, socket) => sum + socket.bytesRead, this.#receivedBytes),
      sentBytes: sockets.reduce((sum, socket) => sum + socket.bytesWritten, this.#sentBytes),
    }
  }

  #begin(socket: Socket): void {
    this.#waiting.delete(socket)
    socket.off('error', ignore)
    if (socket.destroyed) return
    for (const listener of this.#connectionListeners) listener.call(this.#server, socket)
  }
}

export const watchConnections = (server: Server, options: ConnectionOptions) =>
  new WatchedConnections(server, options)
