import type { IncomingMessage, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import { setImmediate as turn } from 'node:timers/promises'
import { afterEach, expect, test } from 'vitest'
import { createRequestTurns } from '../../../src/server/listener/request-turns.ts'

const sockets: Socket[] = []
afterEach(() => {
  for (const socket of sockets.splice(0)) socket.destroy()
})

/** What happens to pipelined requests on connections that are each read whole in one turn of the event loop. */
const readAll = (connections: number, requestsOfEach: number) => {
  const seen = { begun: 0, cuts: 0 }
  const request = (): void => {
    seen.begun += 1
  }
  const take = createRequestTurns({ current: { request } }, () => {
    seen.cuts += 1
  })
  for (let i = 0; i < connections; i += 1) {
    const socket = new Socket()
    sockets.push(socket)
    // As node:http has them: the responses behind the first one have no socket yet.
    const incoming = { socket, httpVersionMajor: 1, headers: {} } as IncomingMessage
    for (let request = 0; request < requestsOfEach; request += 1)
      take(incoming, { socket: null } as ServerResponse)
  }
  return seen
}

test('however many connections are full of requests, 32 begin in one turn, and connections are cut that have too many', async () => {
  const seen = readAll(16, 2_500)
  expect(seen.begun).toBe(32)
  expect(seen.cuts).toBe(13)
  for (let turns = 0; turns < 1_000; turns += 1) await turn()
  expect(seen.begun).toBe(3 * 2_500)
})

test('no connection is cut for a few requests, however many wait', async () => {
  const seen = readAll(1_000, 60)
  expect(seen).toEqual({ begun: 32, cuts: 0 })
  for (let turns = 0; turns < 4_000; turns += 1) await turn()
  expect(seen.begun).toBe(60_000)
})
