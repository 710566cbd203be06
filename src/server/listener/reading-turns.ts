import type { Socket } from 'node:net'
import { addressGroup } from '../../http/bounds/client-network.ts'
import { createFairTurns } from '../../http/bounds/fair-turns.ts'
import { continueReading, pauseReading } from './socket-reading.ts'

/**
 * Of contents, in one turn of the event loop. Node reads up to 64 KiB from each connection that has sent something, which can be ten
 * thousand pieces of one octet: with three hundred such connections a turn would take seconds.
 */
const piecesPerTurn = 2_048

/** A connection that is read on may bring as much again; then the next one waits for some turns, in which other clients are served. */
const readOnPerTurn = 1

/** Bounds what a turn of the event loop parses: the connections of a client that has sent more than a share are read in turns. */
export const createReadingTurns = () => {
  const pieces = createFairTurns(piecesPerTurn)
  const turns = createFairTurns(readOnPerTurn)
  const connections = new Map<string, Set<Socket>>()
  const pausedSockets = new Set<Socket>()
  /** Clients whose connections are held since this turn. */
  const overdrawn = new Set<string>()
  /** Pieces above the bound, less those that turns have made up for. */
  let debt = 0

  /** Reads on in a later turn. */
  const wait = (client: string, readOn: () => void): void =>
    turns.wait(client, () => {
      if (debt <= 0) readOn()
      else {
        debt -= piecesPerTurn
        wait(client, readOn)
      }
    })
  const pause = (socket: Socket, client: string): void => {
    if (pausedSockets.has(socket)) return
    pausedSockets.add(socket)
    pauseReading(socket)
    wait(client, () => {
      pausedSockets.delete(socket)
      continueReading(socket)
    })
  }
  return {
    /** An HTTP/1.1 connection, while it is open. */
    add: (socket: Socket): void => {
      const client = addressGroup(socket.remoteAddress ?? '')
      const sockets = connections.get(client)
      if (sockets === undefined) connections.set(client, new Set([socket]))
      else sockets.add(socket)
      socket.once('close', () => {
        const sockets = connections.get(client)
        sockets?.delete(socket)
        if (sockets?.size === 0) connections.delete(client)
      })
    },
    /** Counts a piece of a content of this client. */
    count: (client: string): void => {
      if (pieces.mayBegin()) return
      debt += 1
      if (overdrawn.has(client)) return
      if (overdrawn.size === 0) setImmediate(() => overdrawn.clear())
      overdrawn.add(client)
      for (const socket of connections.get(client) ?? []) pause(socket, client)
    },
    wait,
  }
}

export type ReadingTurns = ReturnType<typeof createReadingTurns>
