import { Cluster, type Redis } from 'ioredis'
import { type Connection, type connectorFor, pauseMs } from './connections.ts'
import type { Troubled } from './redis-errors.ts'

export type ListenerOptions = {
  readonly channels: readonly string[]
  /** How often the server is asked for a sign of life. */
  readonly everyMs: number
  /** Publishes something to one of the channels. */
  readonly speak: () => Promise<unknown>
  readonly troubled: Troubled
  readonly connector: ReturnType<typeof connectorFor>
}

/** Hears what is published, from whichever server is there, until it is closed. */
export type Listener = { close(): void }

/** A node that has left its cluster, or is cut off from it, answers and passes nothing on. */
const mostUnheard = 3

const addressOf = ({ options: { host, port } }: Redis): string => `${host}:${port}`

/** Any node of a cluster will do, since what is published at one is heard at all; rather another one than the last. */
const serverOf = (calls: Connection, last: string): Redis | undefined => {
  if (!(calls instanceof Cluster)) return calls
  const nodes = calls.nodes()
  const others = nodes.filter((node) => addressOf(node) !== last)
  const choice = others.length === 0 ? nodes : others
  return choice[Math.floor(Math.random() * choice.length)]
}

/**
 * Listens at a server that another connection knows. ioredis would do so for a cluster as well, but with none of our
 * time limits and with sockets of its own (see connector.ts): it would wait for a node that fell silent for as long as
 * the kernel does.
 */
export const listen = (
  calls: Connection,
  { channels, connector, everyMs, speak, troubled }: ListenerOptions,
  hear: (channel: string, message: string) => void,
): Listener => {
  let ears: Redis | undefined
  let last = ''
  let attempts = 0
  let unheard = 0
  let retry: NodeJS.Timeout | undefined
  const again = (): void => {
    attempts += 1
    retry = setTimeout(begin, pauseMs(attempts))
  }
  const begin = (): void => {
    const server = serverOf(calls, last)
    if (server === undefined) {
      again()
      return
    }
    // Which server is next is chosen here, and no command waits for one.
    const one = server.duplicate({
      Connector: connector,
      retryStrategy: null,
      enableOfflineQueue: false,
      lazyConnect: true,
    })
    ears = one
    last = addressOf(one)
    unheard = 0
    one.on('error', troubled)
    one.on('message', (channel, message) => {
      unheard = 0
      hear(channel, message)
    })
    one.once('ready', () => {
      one.subscribe(...channels).then(
        () => {
          attempts = 0
          unheard = 0
        },
        (error: unknown) => {
          troubled(error)
          one.disconnect()
        },
      )
    })
    one.once('end', again)
    one.connect().catch(() => undefined)
  }
  begin()
  const look = setInterval(() => {
    if (unheard >= mostUnheard) ears?.disconnect()
    // A connection that only listens would not notice that nobody speaks any more.
    ears?.ping().catch(() => undefined)
    speak().then(
      () => {
        unheard += 1
      },
      () => undefined,
    )
  }, everyMs)
  return {
    close: () => {
      clearInterval(look)
      clearTimeout(retry)
      ears?.off('end', again)
      ears?.disconnect()
    },
  }
}
