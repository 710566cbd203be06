import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { TLSSocket } from 'node:tls'

/** The response whose turn it is on a connection. node:http keeps it there, under no public name. */
export const underWay = (socket: Socket): ServerResponse | undefined =>
  (socket as Socket & { readonly _httpMessage?: ServerResponse | null })._httpMessage ?? undefined

/**
 * A request whose head is not complete has not begun: its client must reckon with a connection that closes, as with an idle one
 * (RFC 9112 §9.5). Node's own `closeIdleConnections` leaves those open, and ends those on which an answer that is all written
 * waits to be taken. HTTP/2 sessions end by GOAWAY.
 */
export const isQuiet = (socket: Socket): boolean =>
  socket.writableLength === 0 &&
  underWay(socket) === undefined &&
  (socket as Partial<TLSSocket>).alpnProtocol !== 'h2'

const graceMs = 20

/** Past the next reading of sockets: what has arrived was read. */
export const arrivalsRead = (): Promise<void> =>
  new Promise((resolve) => setTimeout(() => setImmediate(resolve), graceMs))
