import { Socket } from 'node:net'
import { setImmediate as turn } from 'node:timers/promises'
import { afterEach, expect, test } from 'vitest'
import { createPipelinedTurns } from '../../../src/server/listener/pipelining.ts'

const sockets: Socket[] = []
afterEach(() => {
  for (const socket of sockets.splice(0)) socket.destroy()
})

/** What happens to connections that are each read whole in one turn of the event loop. */
const readAll = (connections: number, requestsOfEach: number) => {
  const seen = { begun: 0, skipped: 0, cuts: 0 }
  const inTurn = createPipelinedTurns(() => {
    seen.cuts += 1
  })
  for (let i = 0; i < connections; i += 1) {
    const socket = new Socket()
    sockets.push(socket)
    for (let request = 0; request < requestsOfEach; request += 1) {
      inTurn(socket, () => {
        if (socket.destroyed) seen.skipped += 1
        else seen.begun += 1
      })
    }
  }
  return seen
}

test('however many connections are full of requests, 64 begin in one turn, and connections are cut that have too many', async () => {
  const seen = readAll(16, 2_500)
  expect(seen.begun).toBe(64)
  expect(seen.cuts).toBe(13)
  while (seen.begun + seen.skipped < 16 * 2_500) await turn()
  expect(seen.begun).toBe(3 * 2_500)
})

test('no connection is cut for a few requests, however many wait', async () => {
  const seen = readAll(1_000, 60)
  expect(seen).toMatchObject({ begun: 64, cuts: 0 })
  while (seen.begun < 60_000) await turn()
  expect(seen.skipped).toBe(0)
})
