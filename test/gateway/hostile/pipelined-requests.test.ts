import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { afterEach, beforeAll, expect, test } from 'vitest'
import { closeAfterAll } from '../../support/close.ts'
import { startTestGateway, type TestGateway } from '../../support/gateway.ts'
import { type Origin, startOrigin } from '../../support/origin.ts'

let origin: Origin
let gateway: TestGateway
const sockets: Socket[] = []

beforeAll(async () => {
  origin = await startOrigin()
  gateway = await startTestGateway({
    services: {
      all: {
        contract: 'open',
        mount: '/',
        upstream: { targets: [origin.origin] },
        cache: { rules: [{ match: 'GET /**', ttl: '1h', scope: 'public' }] },
      },
    },
  })
})
afterEach(() => {
  for (const socket of sockets.splice(0)) socket.destroy()
})
closeAfterAll(() => [gateway, origin])

/** A connection and the number of responses that have come from it. */
const open = async (): Promise<{ socket: Socket; count(): number }> => {
  const socket = connect(Number(new URL(gateway.publicAddress).port), '127.0.0.1')
  sockets.push(socket)
  let text = ''
  let responses = 0
  socket.setEncoding('latin1').on('data', (chunk) => {
    const parts = (text + chunk).split('HTTP/1.1 200 OK')
    responses += parts.length - 1
    // What may be the beginning of the next one.
    text = (parts.at(-1) ?? '').slice(-16)
  })
  socket.on('error', () => undefined)
  await once(socket, 'connect')
  return { socket, count: () => responses }
}

const hit = 'GET /a HTTP/1.1\r\nHost: a\r\n\r\n'

test('another client is answered before a connection full of requests', async () => {
  await fetch(`${gateway.publicAddress}/a`)
  const [full, other] = [await open(), await open()]
  full.socket.write(hit.repeat(6_000))
  other.socket.write(hit)
  let before = 0
  await new Promise<void>((resolve) =>
    other.socket.once('data', () => {
      before = full.count()
      resolve()
    }),
  )
  expect(before).toBeLessThan(500)
  await expect.poll(full.count).toBe(6_000)
})

test('a connection that closes with requests that have not begun leaves none in flight', async () => {
  await fetch(`${gateway.publicAddress}/a`)
  const { socket, count } = await open()
  socket.write(hit.repeat(6_000))
  await expect.poll(count, { interval: 1 }).toBeGreaterThan(0)
  socket.destroy()
  await expect.poll(() => gateway.metric('trellis_in_flight_requests')).toBe(0)
  const { socket: next, count: responded } = await open()
  next.write(hit)
  await expect.poll(responded).toBe(1)
})

test('a thousand requests to the admin side in one packet do not delay others, and no more than 256 are answered', async () => {
  await fetch(`${gateway.publicAddress}/a`)
  const admin = connect(Number(new URL(gateway.adminAddress).port), '127.0.0.1')
  sockets.push(admin)
  await once(admin, 'connect')
  let text = ''
  admin.setEncoding('latin1').on('data', (chunk) => {
    text += chunk
  })
  const responded = (): number => text.split('HTTP/1.1 200 OK').length - 1
  admin.write('GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n'.repeat(1_000))
  await expect.poll(responded, { interval: 1 }).toBeGreaterThan(0)
  const other = await open()
  other.socket.write(hit)
  await expect.poll(other.count, { interval: 1 }).toBe(1)
  const before = responded()
  await once(admin, 'close')
  expect([responded(), text.split('HTTP/1.1 503').length - 1]).toEqual([256, 1])
  expect(before).toBeLessThan(200)
  await expect.poll(async () => (await fetch(`${gateway.adminAddress}/metrics`)).status).toBe(200)
})

test('a content that comes later behind more pipelined requests than are read on is read', async () => {
  await fetch(`${gateway.publicAddress}/a`)
  const { socket, count } = await open()
  const post = 'POST /b HTTP/1.1\r\nHost: a\r\nContent-Type: text/plain\r\nContent-Length: 4\r\n\r\n'
  socket.write(`${hit.repeat(40)}${post}ab`)
  await expect.poll(count).toBe(40)
  socket.write(`cd${hit}`)
  await expect.poll(count).toBe(42)
})
