import { EventEmitter } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import { setImmediate as turn } from 'node:timers/promises'
import { afterEach, expect, test } from 'vitest'
import { createRequestTurns } from '../../../../src/server/listener/request-turns.ts'

const sockets: Socket[] = []
afterEach(() => {
  for (const socket of sockets.splice(0)) socket.destroy()
})

/** As node:http has it: the response behind another has no socket until that is sent. */
type Response = EventEmitter & { req: IncomingMessage; socket: Socket | null }

/** What happens to pipelined requests on connections that are each read whole in one turn of the event loop. */
const readAll = (connections: number, requestsOfEach: number) => {
  const seen = { begun: 0, cuts: 0 }
  const queues = new Map<Socket, Response[]>()
  const request = ({ socket }: IncomingMessage, outgoing: ServerResponse): void => {
    seen.begun += 1
    setImmediate(() => {
      const next = queues.get(socket)?.shift()
      if (next === undefined) return
      next.socket = socket
      outgoing.emit('finish')
    })
  }
  const { take } = createRequestTurns({ current: { request, clientError: () => {} } }, () => {
    seen.cuts += 1
  })
  for (let i = 0; i < connections; i += 1) {
    const socket = new Socket()
    Object.defineProperty(socket, 'writable', { get: () => !socket.destroyed })
    sockets.push(socket)
    const incoming = { socket, httpVersionMajor: 1, headers: {} } as IncomingMessage
    const queue: Response[] = []
    queues.set(socket, queue)
    for (let request = 0; request < requestsOfEach; request += 1) {
      const outgoing: Response = Object.assign(new EventEmitter(), {
        req: incoming,
        socket: request === 0 ? socket : null,
      })
      if (request > 0) queue.push(outgoing)
      take(incoming, outgoing as unknown as ServerResponse)
    }
  }
  return seen
}

test('however many connections are full of requests, 32 begin in one turn, and connections are cut that have too many', async () => {
  const seen = readAll(64, 2_500)
  expect(seen.begun).toBe(32)
  expect(seen.cuts).toBe(61)
  await expect.poll(() => seen.begun).toBeGreaterThan(3 * 2_500)
})

test('no connection is cut for a few requests, however many wait', async () => {
  const seen = readAll(1_000, 60)
  expect(seen).toEqual({ begun: 32, cuts: 0 })
  for (let turns = 0; turns < 60_000 && seen.begun < 60_000; turns += 1) await turn()
  expect(seen.begun).toBe(60_000)
})
