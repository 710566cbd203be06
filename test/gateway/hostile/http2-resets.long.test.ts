import { once } from 'node:events'
import { connect, type TLSSocket } from 'node:tls'
import { afterEach, beforeAll, expect, test } from 'vitest'
import { keyPair } from '../../support/certificates.ts'
import { closeAfterAll } from '../../support/close.ts'
import { startTestGateway, type TestGateway } from '../../support/gateway.ts'
import { clientPreface, getHead, octets, postHead, reset } from '../../support/http2-peer.ts'
import { type Origin, startOrigin } from '../../support/origin.ts'

// A client may reset a stream with any code, NO_ERROR among them, while octets of either side wait: nothing of the stream stays.

const mebibyte = 1024 * 1024

let origin: Origin
let gateway: TestGateway
let sockets: TLSSocket[] = []

beforeAll(async () => {
  origin = await startOrigin(
    ({ method, target }, wire) => {
      if (method === 'POST' || target.includes('silent')) return
      wire.respond({ content: Buffer.alloc(mebibyte) })
    },
    { respondsEarly: true },
  )
  const upstream = { targets: [origin.origin], maxConcurrent: 64, clientShare: 1 }
  gateway = await startTestGateway({
    listen: { http2: true, tls: keyPair('good') },
    services: {
      open: { contract: 'open', mount: '/open', upstream },
      stored: {
        contract: 'open',
        mount: '/stored',
        upstream,
        cache: { rules: [{ match: 'GET /**', ttl: '1h' }] },
      },
    },
  })
})
afterEach(() => {
  for (const socket of sockets) socket.destroy()
  sockets = []
})
closeAfterAll(() => [gateway, origin])

const dial = async (): Promise<TLSSocket> => {
  const { hostname: host, port } = new URL(gateway.publicAddress)
  const socket = connect({ host, port: Number(port), rejectUnauthorized: false, ALPNProtocols: ['h2'] })
  sockets.push(socket)
  socket.on('error', () => {})
  await once(socket, 'secureConnect')
  socket.resume()
  socket.write(clientPreface)
  return socket
}
const inFlight = (): Promise<number> => gateway.metric('trellis_in_flight_requests')
const streams = Array.from({ length: 20 }, (_, at) => 2 * at + 1)

test.each([
  ['NO_ERROR', 0],
  ['CANCEL', 8],
  ['a code that is none', 0xffff],
])('a stream that is reset with %s ends, whatever waits', async (_, code) => {
  const client = await dial()
  const paths = ['/open/large', '/stored/large', '/open/silent', '/stored/large']
  for (const stream of streams) {
    const path = paths[((stream - 1) / 2) % paths.length] as string
    if (stream % 3 === 0) client.write(Buffer.concat([postHead(stream, '/open/up'), octets(stream, 100)]))
    else client.write(getHead(stream, path))
  }
  // Nothing opens the windows: the responses wait.
  await expect.poll(inFlight).toBeGreaterThan(10)
  for (const stream of streams) client.write(reset(stream, code))
  await expect.poll(inFlight).toBe(0)
  await expect.poll(() => gateway.metric('trellis_buffered_bytes')).toBe(0)
  await expect.poll(() => gateway.metric('trellis_upstream_in_flight_requests')).toBe(0)
})

test('a connection with a malformed frame is closed and counted', async () => {
  const counted = () => gateway.metric('trellis_protocol_refusals_total', 'reason="http2"')
  const before = await counted()
  const client = await dial()
  // A PRIORITY frame of no stream (RFC 9113 §6.3).
  client.write(Buffer.from([0, 0, 5, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]))
  await once(client, 'end')
  await expect.poll(counted).toBe(before + 1)
})
