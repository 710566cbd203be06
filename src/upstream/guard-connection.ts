import type { Socket } from 'node:net'

/**
 * Emits the end of a connection only when a read has found nothing more. undici 7 asserts that no response is paused at that moment, and
 * one may be whose last octets were read: the failed assertion would end the process (nodejs/undici#5360). undici 8 needs Node 22.
 */
const endWhenRead = (socket: Socket): void => {
  const { push, read } = socket
  let hasEnd = false
  let isPushed = false
  socket.push = (chunk: unknown, encoding?: BufferEncoding): boolean => {
    hasEnd ||= chunk === null
    isPushed = hasEnd
    return push.call(socket, chunk, encoding)
  }
  socket.read = (size?: number): unknown => {
    if (!hasEnd) return read.call(socket, size)
    // node:net reads nothing right after it has pushed the end, so that the end is emitted.
    const isOfPush = isPushed && size === 0
    isPushed = false
    if (isOfPush) return null
    // A read of everything emits the end, a read of as many octets as there are does not.
    return read.call(socket, socket.readableLength > 0 ? (size ?? socket.readableLength) : size)
  }
}

/**
 * What a listener of a connection throws, such as a failed assertion of the HTTP client, ends this connection, not the process. The
 * gateway's own code throws nothing here: undici catches what its handlers throw, and see Attempt.onError.
 */
const containFaults = (socket: Socket, faulted: (error: unknown) => void): void => {
  const { emit } = socket
  socket.emit = (...event: [string | symbol, ...unknown[]]): boolean => {
    try {
      return Reflect.apply(emit, socket, event) as boolean
    } catch (error) {
      faulted(error)
      socket.destroy(error instanceof Error ? error : new Error(String(error)))
      return true
    }
  }
}

/** For every connection that undici reads from: no server can end the process. */
export const guardConnection = (socket: Socket, faulted: (error: unknown) => void): void => {
  endWhenRead(socket)
  containFaults(socket, faulted)
}
