import type { ServerResponse } from 'node:http'
import type { BufferedFor, Reservation } from '../http/bounds/byte-budget.ts'
import { addressGroup } from '../http/bounds/client-network.ts'
import { addCount } from '../http/bounds/counts.ts'
import type { ForcedReservation } from './buffered-bytes.ts'
import type { EdgeEvent } from './events.ts'

export type UnreadResponsesOptions = {
  /** limits.bufferedBytes; read each time, since a reload may change it. */
  maxBytes(): number
  forced(work: BufferedFor, client: string): Pick<ForcedReservation, 'force' | 'release'>
  report(event: EdgeEvent): void
}

/** Bytes that every connection may hold. */
const uncountedBytes = 65_536
/** The same for one of many responses on a connection: those of HTTP/2, and those that wait for their turn. */
const uncountedBytesOfMany = 4_096

const uncountedOf = ({ req, socket }: ServerResponse): number =>
  req.httpVersionMajor === 1 && socket !== null ? uncountedBytes : uncountedBytesOfMany

/** The other half is for requests in progress. */
const shareOfUnread = 0.5

/** A content and the connections that send it: counted once, for the earliest of its remaining clients. */
type Unread = {
  readonly content: Buffer
  readonly readers: Map<ServerResponse, string>
  client: string
  room: Pick<Reservation, 'release'>
}

const cut = (raw: ServerResponse): void => {
  // HTTP/2: only the stream, which the compatibility layer resets.
  if (raw.req.httpVersionMajor === 1) raw.req.socket.destroy()
  raw.destroy()
}

/**
 * Counts contents that are being sent to slow clients; stored ones too, since they may be evicted before they are sent. Above the
 * bound, the client with the most bytes loses the connection that has been reading longest.
 */
export const createUnreadResponses = (options: UnreadResponsesOptions) => {
  // In the order of their start.
  const unread = new Map<Buffer, Unread>()
  const byClient = new Map<string, number>()
  let total = 0

  const count = (client: string, bytes: number): void => {
    total += bytes
    addCount(byClient, client, bytes)
  }
  const take = (entry: Unread): void => {
    const room = options.forced('slow-reader', entry.client)
    room.force(entry.content.length)
    entry.room = room
    count(entry.client, entry.content.length)
  }
  const giveBack = (entry: Unread): void => {
    entry.room.release()
    count(entry.client, -entry.content.length)
  }
  /** Has an effect once for each reader. */
  const leave = (entry: Unread, raw: ServerResponse): void => {
    if (!entry.readers.delete(raw)) return
    const [next] = entry.readers.values()
    if (next === entry.client) return
    giveBack(entry)
    if (next === undefined) {
      unread.delete(entry.content)
      return
    }
    entry.client = next
    take(entry)
  }
  const heaviest = (): string | undefined => {
    let max = 0
    let heaviestClient: string | undefined
    for (const [client, bytes] of byClient) {
      if (bytes > max) {
        max = bytes
        heaviestClient = client
      }
    }
    return heaviestClient
  }
  const cutOldestOf = (client: string, newest: Unread): boolean => {
    for (const entry of unread.values()) {
      if (entry.client !== client || entry === newest) continue
      for (const [raw, reader] of entry.readers) {
        if (reader !== client) continue
        options.report({ kind: 'connection-cut', reason: 'slow-reader' })
        leave(entry, raw)
        cut(raw)
        return true
      }
    }
    return false
  }
  const makeRoom = (newest: Unread): void => {
    while (total > options.maxBytes() * shareOfUnread) {
      const client = heaviest()
      if (client === undefined || !cutOldestOf(client, newest)) return
    }
  }
  return {
    /** Call it when a response was written and is not flushed. */
    buffer: (raw: ServerResponse, content: Buffer, address: string): void => {
      if (content.length <= uncountedOf(raw)) return
      const client = addressGroup(address)
      const currentEntry = unread.get(content)
      const entry: Unread = currentEntry ?? {
        content,
        readers: new Map(),
        client,
        room: { release: () => {} },
      }
      entry.readers.set(raw, client)
      raw.once('close', () => leave(entry, raw))
      if (currentEntry !== undefined) return
      unread.set(content, entry)
      take(entry)
      makeRoom(entry)
    },
  }
}

export type UnreadResponses = ReturnType<typeof createUnreadResponses>
