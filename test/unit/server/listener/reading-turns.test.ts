import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'
import { setImmediate as turn } from 'node:timers/promises'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { createReadingTurns, type ReadingTurns } from '../../../../src/server/listener/reading-turns.ts'

const hostile = '127.0.0.2'
const honest = '127.0.0.3'
/** As many as a turn may have. */
const share = 2_048

let server: Server
let reading: ReadingTurns
const sockets: Socket[] = []

beforeEach(async () => {
  reading = createReadingTurns()
  server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
})
afterEach(() => {
  for (const socket of sockets.splice(0)) socket.destroy()
  server.close()
})

/** A connection as the gateway has it. */
const open = async (localAddress: string): Promise<Socket> => {
  const client = connect({ port: (server.address() as AddressInfo).port, host: '127.0.0.1', localAddress })
  const [socket] = (await once(server, 'connection')) as [Socket]
  sockets.push(client, socket)
  reading.add(socket)
  socket.resume()
  return socket
}
const openAll = async (count: number, address: string): Promise<Socket[]> => {
  const opened: Socket[] = []
  while (opened.length < count) opened.push(await open(address))
  return opened
}
const countAll = (count: number, client: string): void => {
  for (let i = 0; i < count; i += 1) reading.count(client)
}

test('a client that sends more pieces than a turn may have is not read further in this turn, nor is any other connection of it', async () => {
  const many = await openAll(20, hostile)
  const other = await open(honest)
  countAll(share, hostile)
  expect(many.filter((socket) => socket.isPaused())).toHaveLength(0)
  countAll(1, hostile)
  expect(many.filter((socket) => socket.isPaused())).toHaveLength(20)
  expect(other.isPaused()).toBe(false)
})

test('its connections are read on one in a turn', async () => {
  const many = await openAll(20, hostile)
  countAll(share + 1, hostile)
  const paused: number[] = []
  while (many.some((socket) => socket.isPaused())) {
    await turn()
    paused.push(many.filter((socket) => socket.isPaused()).length)
  }
  for (const [at, count] of paused.entries()) expect(count).toBeGreaterThanOrEqual((paused[at - 1] ?? 20) - 1)
})

test('what was above the share is made up for by turns that read nothing', async () => {
  const [socket] = (await openAll(1, hostile)) as [Socket]
  countAll(4 * share, hostile)
  let turns = 0
  for (; socket.isPaused(); turns += 1) await turn()
  expect(turns).toBeGreaterThanOrEqual(3)
})

test('a client within its share is not held', async () => {
  const socket = await open(honest)
  for (let i = 0; i < 5; i += 1) {
    countAll(share, honest)
    expect(socket.isPaused()).toBe(false)
    await turn()
    await turn()
  }
})
