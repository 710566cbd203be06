import type { ServerResponse } from 'node:http'
import {
  addCount,
  addressGroup,
  type BufferedFor,
  type ByteBudget,
  type Reservation,
} from '../http/bounds.ts'
import type { EdgeEvent } from './events.ts'
import type { OverloadEvent } from './overload.ts'

export type BufferedBytesOptions = {
  /** The configured bound; read each time, since a reload may change it. */
  mostBytes(): number
  report(event: OverloadEvent): void
}

/** A reservation that can also exceed the bound for bytes that exist already. */
type ForcedReservation = Reservation & { force(bytes: number): void }

/** One client may hold half of what the others leave, so that each newcomer gets some, as with slots (upstream/send/slots.ts). */
const shareOfClient = 0.5

/** Counts all bytes that the process has buffered, except stored responses. */
export const createBufferedBytes = (options: BufferedBytesOptions) => {
  const byClient = new Map<string, number>()
  let total = 0

  const add = (client: string, bytes: number): void => {
    total += bytes
    addCount(byClient, client, bytes)
  }
  const hasRoom = (client: string, bytes: number): boolean => {
    const own = byClient.get(client) ?? 0
    return own + bytes <= (options.mostBytes() - (total - own)) * shareOfClient
  }
  const forced = (work: BufferedFor, address: string): ForcedReservation => {
    const client = addressGroup(address)
    let held = 0
    let isOver = false
    const take = (bytes: number): void => {
      held += bytes
      add(client, bytes)
    }
    const shrink = (bytes: number): void => {
      const back = Math.min(bytes, held)
      held -= back
      if (back > 0) add(client, -back)
    }
    return {
      reserve: (bytes) => {
        if (isOver) return false
        if (hasRoom(client, bytes)) {
          take(bytes)
          return true
        }
        options.report({ kind: 'buffer-refused', work })
        return false
      },
      force: take,
      shrink,
      release: () => {
        isOver = true
        shrink(held)
      },
    }
  }
  return {
    get bytes(): number {
      return total
    },
    budget: forced as ByteBudget,
    /** Reserves bytes that exist already and can no longer be refused. */
    forced,
  }
}

export type BufferedBytes = ReturnType<typeof createBufferedBytes>

export type UnreadAnswersOptions = {
  /** limits.bufferedBytes; read each time, since a reload may change it. */
  mostBytes(): number
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
export const createUnreadAnswers = (options: UnreadAnswersOptions) => {
  // In the order of their start.
  const unread = new Map<Buffer, Unread>()
  const byClient = new Map<string, number>()
  let total = 0

  const count = (client: string, bytes: number): void => {
    total += bytes
    addCount(byClient, client, bytes)
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
    /** Call it when a response was written and is not flushed. */
    hold: (raw: ServerResponse, content: Buffer, address: string): void => {
      if (content.length <= uncountedOf(raw)) return
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

export type UnreadAnswers = ReturnType<typeof createUnreadAnswers>
