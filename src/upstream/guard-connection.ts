import type { Socket } from 'node:net'
import { interposePush, interposeRead } from '../http/interposed-streams.ts'
import { resetCode } from './failure.ts'

/**
 * Emits the end of a connection only when a read has found nothing more. undici 7 asserts that no response is paused at that moment, and
 * one may be whose last octets were read: the failed assertion would end the process (nodejs/undici#5360). undici 8 needs Node 22.
 */
const endWhenRead = (socket: Socket): void => {
  let hasEnd = false
  let isPushed = false
  interposePush(socket, (push, chunk, encoding) => {
    hasEnd ||= chunk === null
    isPushed = hasEnd
    return push(chunk, encoding)
  })
  interposeRead(socket, (read, size) => {
    if (!hasEnd) return read(size)
    // node:net reads nothing right after it has pushed the end, so that the end is emitted.
    const isOfPush = isPushed && size === 0
    isPushed = false
    if (isOfPush) return null
    // A read of everything emits the end, a read of as many octets as there are does not.
    return read(socket.readableLength > 0 ? (size ?? socket.readableLength) : size)
  })
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

const reset = (): Error => Object.assign(new Error('read ECONNRESET'), { code: resetCode })

/**
 * libuv reports a reset that arrives together with the last octets as an end (a short read under POLLHUP), so a response that is
 * delimited by the end of its connection would look complete. After a reset the kernel has no peer address any more, after an end it
 * still has one. Nothing may have read the address before, because Node caches it.
 */
export const detectResets = (socket: Socket): void => {
  interposePush(socket, (push, chunk, encoding) => {
    if (chunk !== null || socket.remoteAddress !== undefined) return push(chunk, encoding)
    socket.destroy(reset())
    return false
  })
}

/** For every connection that undici reads from: no server can end the process. */
export const guardConnection = (socket: Socket, faulted: (error: unknown) => void): void => {
  endWhenRead(socket)
  containFaults(socket, faulted)
}
