import type { Socket } from 'node:net'
import { addressGroup, createFairTurns } from '../../http/bounds.ts'
import type { EdgeEvent } from '../events.ts'

/** One read of a socket may contain two thousand requests, and one turn of the event loop many reads. */
const turnsOfPipelined = { perTurn: 64, gatherTurns: 0 }

/** Waiting requests at a few kB each: a connection may have this many, and more while all together have fewer than `mostWaiting`. */
const mostOfConnection = 64
const mostWaiting = 8_192

/**
 * Begins pipelined requests in turns, with clients in rotation, so that a connection full of them delays no other client by more than
 * the parsing of one read: no more of it is read until all have begun. A connection with too many is cut: `begin` then finds its
 * socket destroyed.
 */
export const createPipelinedTurns = (
  report: (event: EdgeEvent) => void,
): ((socket: Socket, begin: () => void) => void) => {
  const turns = createFairTurns(turnsOfPipelined)
  const waiting = new Map<Socket, number>()
  let total = 0
  // node:http resumes the socket after each response.
  const stayPaused = function (this: Socket): void {
    this.pause()
  }
  const hold = (socket: Socket): void => {
    const count = waiting.get(socket) ?? 0
    waiting.set(socket, count + 1)
    total += 1
    if (count === 0) socket.on('resume', stayPaused).pause()
  }
  const release = (socket: Socket): void => {
    const count = waiting.get(socket) ?? 0
    total -= 1
    if (count > 1) waiting.set(socket, count - 1)
    else {
      waiting.delete(socket)
      socket.off('resume', stayPaused).resume()
    }
  }
  return (socket, begin) => {
    if (!socket.destroyed && total >= mostWaiting && (waiting.get(socket) ?? 0) >= mostOfConnection) {
      report({ kind: 'connection-cut', reason: 'pipelining' })
      socket.destroy()
    }
    if (socket.destroyed) {
      begin()
      return
    }
    let isHeld = false
    let hasBegun = false
    turns.begin(addressGroup(socket.remoteAddress ?? ''), () => {
      hasBegun = true
      if (isHeld) release(socket)
      begin()
    })
    isHeld = !hasBegun
    if (isHeld) hold(socket)
  }
}
