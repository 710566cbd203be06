import cluster from 'node:cluster'
import type { ToWorker } from './messages.ts'
import type { Line } from './worker-link.ts'

/** Was this process started by a parent, to be one of its workers? */
export const isWorker = (): boolean => cluster.isWorker

/** The line of this process to its parent. */
export const parentLine = (): Line => ({
  send: (message) => {
    // After the parent is gone this process ends by itself; until it has heard of that, what it sends is an error, which is thrown
    // where nobody hears it.
    if (process.connected) process.send?.(message, undefined, undefined, () => undefined)
  },
  listen: (take) => {
    process.on('message', (message) => take(message as ToWorker))
  },
})
