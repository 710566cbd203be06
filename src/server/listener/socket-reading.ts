import type { Socket } from 'node:net'

/** The number of reasons not to read a connection. */
const pauses = new WeakMap<Socket, number>()

/** node:http resumes a socket after each response, and whenever its request is read. */
const stayPaused = function (this: Socket): void {
  this.pause()
}

const ignore = (): void => {}

const streams = new WeakSet<Socket>()

/**
 * With a listener for its data, node:http parses what the socket gives it, in place of reading the connection below the socket. There
 * it runs all pending ticks after each chunk of a content, and loses what TLS has decrypted behind a request that pauses the parser
 * (HPE_PAUSED). A request without content is read cheaper below the socket.
 */
export const readAsStream = (socket: Socket): void => {
  if (streams.has(socket)) return
  streams.add(socket)
  socket.on('data', ignore)
  // The stream has waited for data since the connection began; of a connection that is held now it would wait for ever.
  socket.push('')
}

/** Reads no more of a connection until each reason is gone. What has been read already is still parsed. */
export const pauseReading = (socket: Socket): void => {
  const count = pauses.get(socket) ?? 0
  pauses.set(socket, count + 1)
  if (count === 0) socket.on('resume', stayPaused).pause()
}

export const continueReading = (socket: Socket): void => {
  const count = pauses.get(socket) ?? 0
  if (count > 1) pauses.set(socket, count - 1)
  else if (count === 1) {
    pauses.delete(socket)
    socket.off('resume', stayPaused).resume()
  }
}
