import { connect, type Socket } from 'node:net'

/** Many connections to one server at a time, each with its own bytes. */
export type Conversations = {
  /** Sends the bytes; gives back what came until the server closed, `isEnough` held, or it had nothing more to say. */
  hold(bytes: Buffer, isEnough?: () => boolean): Promise<Buffer>
  close(): void
}

type Options = {
  readonly address: string
  /** Conversations in which something goes on. Those that wait in silence cost nothing and are not counted. */
  readonly atOnce: number
  /** Looks without anything new, after which there is nothing more to come. At most one look in a turn of the event loop. */
  readonly silentLooks: number
}

type Conversation = {
  readonly socket: Socket
  silentLooks: number
  isBusy: boolean
}

// Time says nothing about silence in a process that has too much to do; a turn of the event loop reads whatever has come.
const lookEveryMs = 5
/** A conversation that is silent for this number of checks is set aside for another one. */
const quietLooks = 25
/** A server that waits for more gets the end of the connection, and closes: then all that had come was read. */
const closingLooks = 400

/** A server that waits for the rest of a request is silent; the end of the connection behind the bytes makes it close. */
export const createConversations = ({ address, atOnce, silentLooks }: Options): Conversations => {
  const { hostname, port } = new URL(address)
  const going = new Set<Conversation>()
  const waiting: (() => void)[] = []
  let busy = 0

  const makeRoom = (one: Conversation): void => {
    if (!one.isBusy) return
    one.isBusy = false
    const next = waiting.shift()
    if (next === undefined) busy -= 1
    else next()
  }
  const room = async (): Promise<void> => {
    if (busy < atOnce) busy += 1
    else await new Promise<void>((resolve) => waiting.push(resolve))
  }
  const look = (): void => {
    for (const one of going) {
      one.silentLooks += 1
      if (one.silentLooks === quietLooks) makeRoom(one)
      if (one.silentLooks === silentLooks) one.socket.end()
      if (one.silentLooks === silentLooks + closingLooks) one.socket.destroy()
    }
  }
  const timer = setInterval(look, lookEveryMs)

  return {
    hold: async (bytes, isEnough = () => false) => {
      await room()
      return await new Promise((resolve) => {
        const socket = connect({ port: Number(port), host: hostname, noDelay: true, allowHalfOpen: true })
        const chunks: Buffer[] = []
        const one: Conversation = { socket, silentLooks: 0, isBusy: true }
        going.add(one)
        socket.on('connect', () => {
          one.silentLooks = 0
        })
        socket.on('data', (chunk) => {
          one.silentLooks = 0
          chunks.push(chunk)
          if (isEnough()) socket.resetAndDestroy()
        })
        socket.on('end', () => socket.destroy())
        socket.on('error', () => {})
        // A server that closes with unread bytes resets; both end here.
        socket.on('close', () => {
          makeRoom(one)
          going.delete(one)
          resolve(Buffer.concat(chunks))
        })
        socket.write(bytes)
      })
    },
    close: () => {
      clearInterval(timer)
      for (const { socket } of going) socket.destroy()
    },
  }
}
