import { Cluster, type Redis } from 'ioredis'
import { type Connection, type connectorFor, pauseMs, type Troubled } from './connections.ts'

export type ListenerOptions = {
  readonly channels: readonly string[]
  /** Interval of the pings that detect a silent server. */
  readonly everyMs: number
  /** Publishes a message to one of the channels. */
  readonly speak: () => Promise<unknown>
  readonly troubled: Troubled
  readonly connector: ReturnType<typeof connectorFor>
}

/** Receives published messages from any available server, until it is closed. */
export type Listener = { close(): void }

/** A node that has left its cluster, or is cut off from it, still answers but forwards no messages. */
const mostUnheard = 3

const addressOf = ({ options: { host, port } }: Redis): string => `${host}:${port}`

/** Any node of a cluster serves, since all nodes get every message; prefer another node than the last. */
const serverOf = (calls: Connection, last: string): Redis | undefined => {
  if (!(calls instanceof Cluster)) return calls
  const nodes = calls.nodes()
  const others = nodes.filter((node) => addressOf(node) !== last)
  const choice = others.length === 0 ? nodes : others
  return choice[Math.floor(Math.random() * choice.length)]
}

/**
 * Subscribes at a server that another connection has found. ioredis can do so for a cluster, but without our time limits and
 * with its own sockets (see connector.ts): it would wait for a silent node as long as the kernel does.
 */
export const listen = (
  calls: Connection,
  { channels, connector, everyMs, speak, troubled }: ListenerOptions,
  hear: (channel: string, message: string) => void,
): Listener => {
  let subscriber: Redis | undefined
  let last = ''
  let attempts = 0
  let unanswered = 0
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
    // The next server is chosen here, and no command waits for a connection.
    const one = server.duplicate({
      Connector: connector,
      retryStrategy: null,
      enableOfflineQueue: false,
      lazyConnect: true,
    })
    subscriber = one
    last = addressOf(one)
    unanswered = 0
    one.on('error', troubled)
    one.on('message', (channel, message) => {
      unanswered = 0
      hear(channel, message)
    })
    one.once('ready', () => {
      one.subscribe(...channels).then(
        () => {
          attempts = 0
          unanswered = 0
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
    if (unanswered >= mostUnheard) subscriber?.disconnect()
    // A connection that only receives does not notice a silent server.
    subscriber?.ping().catch(() => undefined)
    speak().then(
      () => {
        unanswered += 1
      },
      () => undefined,
    )
  }, everyMs)
  return {
    close: () => {
      clearInterval(look)
      clearTimeout(retry)
      subscriber?.off('end', again)
      subscriber?.disconnect()
    },
  }
}
