import type { Worker } from 'node:cluster'

/** What `node:cluster` sends with an accepted connection, and answers with once it is taken. */
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

/**
 * Connections that were handed to a worker and that it has not taken yet. `node:cluster` knows them too, but forgets them with the
 * worker, and nobody would ever answer or close them. A worker says that it takes one before it reads from it.
 */
export type HandedConnections = {
  watch(worker: Worker): void
  /** It has ended: what it did not take goes to another one, now or as soon as there is one. */
  ended(worker: Worker): void
  ready(worker: Worker): void
  /** There will be no other one. */
  close(): void
}

/** One each time that a worker ends: more of them mean that none lives for long. */
const mostWaiting = 64

export const createHandedConnections = (): HandedConnections => {
  const untaken = new Map<Worker, Map<unknown, Handed>>()
  const takers = new Set<Worker>()
  let waiting: Handed[] = []
  let mostKept = mostWaiting

  const handOn = (): void => {
    for (const taker of takers) {
      if (!taker.isConnected()) continue
      const all = waiting
      waiting = []
      // The same message: the answer to it ends what the first one began.
      for (const { message, handle } of all) (taker.process as unknown as Channel).send(message, handle)
      return
    }
    for (const { handle } of waiting.splice(0, Math.max(0, waiting.length - mostKept))) handle.close()
  }
  return {
    watch: (worker) => {
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
    ended: (worker) => {
      takers.delete(worker)
      const takeBack = (): void => {
        waiting.push(...(untaken.get(worker)?.values() ?? []))
        untaken.delete(worker)
        handOn()
      }
      // What it has said last may not have been read yet.
      const channel = worker.process as unknown as Channel
      if (channel.connected) channel.once('disconnect', takeBack)
      else takeBack()
    },
    ready: (worker) => {
      takers.add(worker)
      handOn()
    },
    close: () => {
      mostKept = 0
      takers.clear()
      handOn()
    },
  }
}
