import type { Worker } from 'node:cluster'

/** The message that `node:cluster` sends with an accepted connection, and the reply of the worker that took it. */
type Message = {
  readonly cmd?: unknown
  readonly act?: unknown
  readonly seq?: unknown
  readonly ack?: unknown
}
type Send = (message: Message, handle?: Handle, ...rest: unknown[]) => boolean
type Handle = { close(): void }
type Channel = {
  send: Send
  on(event: 'internalMessage', take: (message: Message) => void): unknown
  once(event: 'disconnect', then: () => void): unknown
  readonly connected: boolean
}
type Handed = { readonly message: Message; readonly handle: Handle }

/** Counts the workers that one connection was handed to; more mean that workers keep dying. */
const mostWaiting = 64

/**
 * Connections handed to a worker that has not accepted them yet. `node:cluster` forgets them when the worker ends, so that they
 * would never be answered or closed. A worker confirms a connection before it reads from it.
 */
export const createHandedConnections = () => {
  const untaken = new Map<Worker, Map<unknown, Handed>>()
  const takers = new Set<Worker>()
  let waiting: Handed[] = []
  let mostKept = mostWaiting

  const handOn = (): void => {
    for (const taker of takers) {
      if (!taker.isConnected()) continue
      const all = waiting
      waiting = []
      // Sends the same message again: the reply to it completes the first one.
      for (const { message, handle } of all) (taker.process as unknown as Channel).send(message, handle)
      return
    }
    for (const { handle } of waiting.splice(0, Math.max(0, waiting.length - mostKept))) handle.close()
  }
  return {
    watch: (worker: Worker): void => {
      const channel = worker.process as unknown as Channel
      const open = new Map<unknown, Handed>()
      untaken.set(worker, open)
      const send = channel.send.bind(channel)
      channel.send = (message, handle, ...rest) => {
        if (message.cmd === 'NODE_CLUSTER' && message.act === 'newconn' && handle !== undefined) {
          open.set(message.seq, { message, handle })
        }
        return send(message, handle, ...rest)
      }
      channel.on('internalMessage', ({ ack }) => {
        if (ack !== undefined) open.delete(ack)
      })
    },
    /** The worker has ended: connections that it did not take go to another worker, now or when one starts. */
    ended: (worker: Worker): void => {
      takers.delete(worker)
      const takeBack = (): void => {
        waiting.push(...(untaken.get(worker)?.values() ?? []))
        untaken.delete(worker)
        handOn()
      }
      // Its last messages may still be unread.
      const channel = worker.process as unknown as Channel
      if (channel.connected) channel.once('disconnect', takeBack)
      else takeBack()
    },
    ready: (worker: Worker): void => {
      takers.add(worker)
      handOn()
    },
    /** No other worker will start. */
    close: (): void => {
      mostKept = 0
      takers.clear()
      handOn()
    },
  }
}
