import type { IncomingMessage } from 'node:http'
import type { Http2ServerRequest } from 'node:http2'
import type { Socket } from 'node:net'
import type { Readable } from 'node:stream'
import { addressGroup, createFairTurns, type FairTurns } from '../../http/bounds.ts'
import { isHttp2 } from '../read-request.ts'

/** Each piece of a body is copied, counted and written by itself. */
const turnsOfPieces = { perTurn: 32, gatherMs: 0 }

/** Longer pieces cost their client as much as the gateway. */
const longestGathered = 4_096
const mostGathered = 16 * 1024

const noBytes = Buffer.alloc(0)

/**
 * Joins short pieces of a content that arrive in one turn of the event loop, and reads no more of it before they are passed on: a
 * client decides how many chunks or DATA frames it makes of a body. node:http and node:http2 give each piece to `push`.
 */
const gather = (content: Readable, socket: Socket | undefined, client: string, turns: FairTurns): void => {
  const { push } = content
  let gathered = noBytes
  let length = 0
  let isWaiting = false
  /** Returns whether the connection is read on; the rest of a destroyed content is dropped. */
  const pushOn = (chunk: Buffer | null, encoding?: BufferEncoding): boolean =>
    push.call(content, chunk, encoding) || content.destroyed
  const pass = (): void => {
    if (length === 0) return
    const piece = gathered.subarray(0, length)
    gathered = noBytes
    length = 0
    pushOn(piece)
  }
  /** Otherwise the next request on the connection would wait for the rest of a content that has no reader. */
  const readOn = (): void => {
    if (content.destroyed && !content.readableEnded) socket?.resume()
  }
  content.once('close', readOn)
  const passInTurn = (): void => {
    isWaiting = false
    pass()
    readOn()
  }
  content.push = (chunk: Buffer | null, encoding?: BufferEncoding): boolean => {
    if (chunk === null || chunk.length > longestGathered) {
      pass()
      return pushOn(chunk, encoding)
    }
    if (!isWaiting && turns.mayBegin()) return pushOn(chunk, encoding)
    if (length + chunk.length > mostGathered) pass()
    if (length === 0) gathered = Buffer.allocUnsafe(mostGathered)
    length += chunk.copy(gathered, length)
    if (!isWaiting) {
      isWaiting = true
      turns.begin(client, passInTurn)
    }
    return false
  }
}

/** Bounds what the pieces of all request bodies cost in one turn of the event loop, with clients in rotation. For requests with a body. */
export const createContentTurns = (): ((incoming: IncomingMessage) => void) => {
  const turns = createFairTurns(turnsOfPieces)
  return (incoming) => {
    if (!isHttp2(incoming)) {
      const { socket } = incoming
      gather(incoming, socket, addressGroup(socket.remoteAddress ?? ''), turns)
      return
    }
    const { stream } = incoming as unknown as Http2ServerRequest
    if (!stream.endAfterHeaders)
      gather(stream, undefined, addressGroup(stream.session?.socket?.remoteAddress ?? ''), turns)
  }
}
