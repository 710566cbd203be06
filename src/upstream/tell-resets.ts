import type { Socket } from 'node:net'
import { resetCode } from './failure.ts'

const reset = (): Error => Object.assign(new Error('read ECONNRESET'), { code: resetCode })

/**
 * libuv shows a reset that is there together with the last octets as an end (a short read under POLLHUP), and an answer that lasts until its connection
 * ends would look whole. After a reset the kernel knows no peer any more; after an end it still does. Nobody may
 * have asked for the address before: Node remembers it.
 */
export const tellResets = (socket: Socket): void => {
  const { push } = socket
  socket.push = (chunk: unknown, encoding?: BufferEncoding): boolean => {
    if (chunk !== null || socket.remoteAddress !== undefined) return push.call(socket, chunk, encoding)
    socket.destroy(reset())
    return false
  }
}
