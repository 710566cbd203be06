import type { ServerResponse } from 'node:http'
import { addressGroup, type BufferedFor, type Reservation } from '../http/bounds.ts'
import type { EdgeEvent } from './events.ts'

export type UnreadAnswersOptions = {
  /** limits.bufferedBytes; read each time, since a reload may change it. */
  mostBytes(): number
  /** As in overload/buffered-bytes.ts. */
  forced(work: BufferedFor, client: string): Pick<Reservation, 'release'> & { force(bytes: number): void }
  report(event: EdgeEvent): void
}

/** Contents of responses that clients have not read yet. */
export type UnreadAnswers = {
  /** Call it when a response was written and is not flushed. */
  hold(raw: ServerResponse, content: Buffer, address: string): void
}

/** Bytes that every connection may hold. */
const uncountedBytes = 65_536

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
  if (raw.req.httpVersionMajor === 1) raw.socket?.destroy()
  raw.destroy()
}

/**
 * Counts contents that are being sent to slow clients; stored ones too, since they may be evicted before they are sent. Above the
 * bound, the client with the most bytes loses the connection that has been reading longest.
 */
export const createUnreadAnswers = (options: UnreadAnswersOptions): UnreadAnswers => {
  // In the order of their start.
  const unread = new Map<Buffer, Unread>()
  const byClient = new Map<string, number>()
  let total = 0

  const count = (client: string, bytes: number): void => {
    total += bytes
    const held = (byClient.get(client) ?? 0) + bytes
    if (held === 0) byClient.delete(client)
    else byClient.set(client, held)
  }
  const take = (one: Unread): void => {
    const room = options.forced('slow-reader', one.client)
    room.force(one.content.length)
    one.room = room
    count(one.client, one.content.length)
  }
  const giveBack = (one: Unread): void => {
    one.room.release()
    count(one.client, -one.content.length)
  }
  /** Has an effect once for each reader. */
  const leave = (one: Unread, raw: ServerResponse): void => {
    if (!one.readers.delete(raw)) return
    const [next] = one.readers.values()
    if (next === one.client) return
    giveBack(one)
    if (next === undefined) {
      unread.delete(one.content)
      return
    }
    one.client = next
    take(one)
  }
  const heaviest = (): string | undefined => {
    let most = 0
    let found: string | undefined
    for (const [client, bytes] of byClient) {
      if (bytes > most) {
        most = bytes
        found = client
      }
    }
    return found
  }
  const cutOldestOf = (client: string, newest: Unread): boolean => {
    for (const one of unread.values()) {
      if (one.client !== client || one === newest) continue
      for (const [raw, reader] of one.readers) {
        if (reader !== client) continue
        options.report({ kind: 'connection-cut', reason: 'slow-reader' })
        leave(one, raw)
        cut(raw)
        return true
      }
    }
    return false
  }
  const makeRoom = (newest: Unread): void => {
    while (total > options.mostBytes() * shareOfUnread) {
      const client = heaviest()
      if (client === undefined || !cutOldestOf(client, newest)) return
    }
  }
  return {
    hold: (raw, content, address) => {
      if (content.length <= uncountedBytes) return
      const client = addressGroup(address)
      const known = unread.get(content)
      const one: Unread = known ?? { content, readers: new Map(), client, room: { release: () => {} } }
      one.readers.set(raw, client)
      raw.once('close', () => leave(one, raw))
      if (known !== undefined) return
      unread.set(content, one)
      take(one)
      makeRoom(one)
    },
  }
}
