import { Cluster, type Redis } from 'ioredis'
import { type Connection, pauseMs } from './connections.ts'
import type { Troubled } from './troubles.ts'

export type ListenerOptions = {
  readonly channels: readonly string[]
  /** How often the server is asked for a sign of life. */
  readonly everyMs: number
  readonly troubled: Troubled
}

/** Hears what is published, from whichever server is there, until it is closed. */
export type Listener = { close(): void }

/** Any node of a cluster will do: what is published at one is heard at all. */
const serverOf = (calls: Connection): Redis | undefined => {
  if (!(calls instanceof Cluster)) return calls
  const nodes = calls.nodes()
  return nodes[Math.floor(Math.random() * nodes.length)]
}

/**
 * Listens at a server that another connection knows. ioredis would do so for a cluster as well, but with none of our
 * time limits and with sockets of its own (see connector.ts): it would wait for a node that fell silent for as long as
 * the kernel does.
 */
export const listen = (
  calls: Connection,
  { channels, everyMs, troubled }: ListenerOptions,
  hear: (channel: string, message: string) => void,
): Listener => {
  let ears: Redis | undefined
  let attempts = 0
  let retry: NodeJS.Timeout | undefined
  const again = (): void => {
    attempts += 1
    retry = setTimeout(begin, pauseMs(attempts))
  }
  const begin = (): void => {
    const server = serverOf(calls)
    if (server === undefined) {
      again()
      return
    }
    // Which server is next is chosen here, and no command waits for one.
    const one = server.duplicate({ retryStrategy: null, enableOfflineQueue: false, lazyConnect: true })
    ears = one
    one.on('error', troubled)
    one.on('message', hear)
    one.once('ready', () => {
      attempts = 0
      one.subscribe(...channels).catch(() => one.disconnect())
    })
    one.once('end', again)
    one.connect().catch(() => undefined)
  }
  begin()
  // A connection that only listens would not notice that nobody speaks any more.
  const ping = setInterval(() => {
    ears?.ping().catch(() => undefined)
  }, everyMs)
  return {
    close: () => {
      clearInterval(ping)
      clearTimeout(retry)
      ears?.off('end', again)
      ears?.disconnect()
    },
  }
}
