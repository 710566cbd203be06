import type { Socket } from 'node:net'
import type { Readable } from 'node:stream'

type Push = (chunk: unknown, encoding?: BufferEncoding) => boolean

/**
 * Each chunk goes through `through` before a reader gets it, and so does the end, null; returns the `push` behind it. Of a stream that
 * Node has made, a connection or a stream of HTTP/2, nothing documented comes before its readers.
 */
export const interposePush = (
  stream: Readable,
  through: (push: Push, chunk: unknown, encoding?: BufferEncoding) => boolean,
): Push => {
  const { push } = stream
  const pushOn: Push = (chunk, encoding) => push.call(stream, chunk, encoding)
  stream.push = (chunk: unknown, encoding?: BufferEncoding) => through(pushOn, chunk, encoding)
  return pushOn
}

/** Each read of the stream goes through `through`. */
export const interposeRead = (
  stream: Readable,
  through: (read: (size?: number) => unknown, size: number | undefined) => unknown,
): void => {
  const { read } = stream
  const readOn = (size?: number): unknown => read.call(stream, size)
  stream.read = (size?: number) => through(readOn, size)
}

/** `written` gets what is written to the stream, before it is. */
export const watchWrites = (stream: Socket, written: (data: Buffer) => void): void => {
  const { write } = stream
  stream.write = ((data: Buffer | string, ...rest: []) => {
    written(typeof data === 'string' ? Buffer.from(data) : data)
    return write.call(stream, data, ...rest)
  }) as typeof write
}
