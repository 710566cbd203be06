import { once } from 'node:events'
import { buffer } from 'node:stream/consumers'
import { connect, type TLSSocket } from 'node:tls'
import { afterEach, beforeAll, expect, test } from 'vitest'
import { keyPair, pem } from '../../support/certificates.ts'
import { closeAfterAll } from '../../support/close.ts'
import { startTestGateway, type TestGateway } from '../../support/gateway.ts'
import { type Origin, startOrigin } from '../../support/origin.ts'

const ca = pem('ca.pem')
const mebibyte = 1024 * 1024
const large = Buffer.alloc(8 * mebibyte)
for (let at = 0; at < large.length; at += 4) large.writeUInt32LE(at, at)
const readers = 5

let origin: Origin
let gateway: TestGateway
let open: { destroy(): void }[] = []
beforeAll(async () => {
  origin = await startOrigin((_, wire) => wire.respond({ content: large }))
  gateway = await startTestGateway({
    listen: { port: 0, tls: keyPair('good') },
    cache: { maxEntryBytes: '32MiB' },
    services: {
      open: {
        contract: 'open',
        mount: '/',
        upstream: { targets: [origin.origin] },
        cache: { rules: [{ match: 'GET /**', ttl: '1h' }] },
      },
    },
  })
  expect((await readHttp1())[0]?.equals(large)).toBe(true)
})
afterEach(() => {
  for (const one of open) one.destroy()
  open = []
})
closeAfterAll(() => [gateway, origin])

const dial = async (): Promise<TLSSocket> => {
  const socket = connect({ port: Number(new URL(gateway.publicAddress).port), host: '127.0.0.1', ca })
  open.push(socket)
  socket.on('error', () => {})
  await once(socket, 'secureConnect')
  return socket
}
const get = (headers = ''): string => `GET /large HTTP/1.1\r\nHost: a.test\r\n${headers}\r\n`

/** Contents of a number of responses to concurrent requests. */
const readHttp1 = async (count = 1): Promise<Buffer[]> => {
  const socket = await dial()
  socket.write(get().repeat(count - 1) + get('Connection: close\r\n'))
  const bytes = await buffer(socket)
  const contents: Buffer[] = []
  for (let at = 0; at < bytes.length; at += large.length) {
    at = bytes.indexOf('\r\n\r\n', at) + 4
    contents.push(bytes.subarray(at, at + large.length))
  }
  return contents
}

test('over TLS a large stored response is encrypted no faster than its client takes it', async () => {
  const sent = (): Promise<number> => gateway.metric('trellis_sent_bytes_total')
  const before = await sent()
  for (let i = 0; i < readers; i += 1) {
    const socket = await dial()
    socket.pause()
    socket.write(get())
  }
  await expect.poll(() => gateway.metric('trellis_in_flight_requests')).toBe(readers)
  expect((await sent()) - before).toBeLessThan(readers * 0.9 * large.length)
})

test('over TLS answers that wait for each other arrive whole and in order', async () => {
  const contents = await readHttp1(3)
  expect(contents.length).toBe(3)
  for (const content of contents) expect(content.equals(large)).toBe(true)
})
