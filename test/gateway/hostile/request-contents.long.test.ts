import { once } from 'node:events'
import { connect as connectHttp2 } from 'node:http2'
import { connect, type Socket } from 'node:net'
import { text } from 'node:stream/consumers'
import { connect as connectTls, type TLSSocket } from 'node:tls'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { keyPair, pem } from '../../support/certificates.ts'
import { siteService, startTestGateway, type TestGateway } from '../../support/gateway.ts'
import { clientPreface, octets, postHead } from '../../support/http2-peer.ts'
import { type Origin, pause, startOrigin } from '../../support/origin.ts'

const mebibyte = 1024 * 1024
const ca = pem('ca.pem')

let origin: Origin
let gateway: TestGateway
let sockets: Socket[]

type Tree = { readonly [key: string]: unknown }

const start = async (limits: Tree = {}, more: Tree = {}, upstream: Tree = {}): Promise<void> => {
  gateway = await startTestGateway({
    limits,
    services: {
      site: siteService(origin.origin, {
        upstream: { targets: [origin.origin], basePath: '/index.php/wp-json', ...upstream },
      }),
      open: { contract: 'open', mount: '/open', upstream: { targets: [origin.origin], ...upstream } },
    },
    ...more,
  })
}
beforeEach(async () => {
  sockets = []
  origin = await startOrigin(({ target, content }, wire) => {
    if (!target.includes('silent')) wire.respond({ content: String(content.length) })
  })
})
afterEach(async () => {
  for (const socket of sockets) socket.destroy()
  await gateway.close()
  await origin.close()
})

const dial = async (localAddress = '127.0.0.2'): Promise<Socket> => {
  const { hostname, port } = new URL(gateway.publicAddress)
  const socket = connect({ host: hostname, port: Number(port), localAddress })
  sockets.push(socket)
  socket.on('error', () => {})
  await once(socket, 'connect')
  return socket
}
const post = (path: string, headers: string): string =>
  `POST ${path} HTTP/1.1\r\nHost: a.test\r\n${headers}\r\n\r\n`
const chunked = 'Content-Type: application/octet-stream\r\nTransfer-Encoding: chunked'
/** Everything that comes. */
const received = (socket: Socket): (() => string) => {
  let all = ''
  socket.on('data', (chunk: Buffer) => {
    all += chunk.toString('latin1')
  })
  return () => all
}
const buffered = (): Promise<number> => gateway.metric('trellis_buffered_bytes')
const inFlight = (): Promise<number> => gateway.metric('trellis_in_flight_requests')
const fillSlots = async (): Promise<void> => {
  const socket = await dial('127.0.0.7')
  socket.write('GET /open/silent HTTP/1.1\r\nHost: a.test\r\n\r\n')
  await origin.until(() => origin.received.length > 0)
}
const oneSlot = { maxConcurrent: 1, queue: { max: 256, timeout: '60s' }, clientShare: 1 }

describe('a content in pieces of one octet', () => {
  test.each([
    ['an open service whose slots are taken', '/open/up', chunked],
    [
      'the media of a site whose slots are taken',
      '/index.php/site-json/site/v2/media',
      chunked.replace('application/octet-stream', 'image/png'),
    ],
    ['an open service, with a length', '/open/up', 'Content-Type: image/png\r\nContent-Length: 100000'],
    ['a site, as JSON', '/index.php/site-json/site/v2/posts', chunked.replace('octet-stream', 'json')],
  ])('to %s takes no more memory than its octets, and is counted', async (_, path, headers) => {
    await start({}, {}, oneSlot)
    await fillSlots()
    const clients = await Promise.all(Array.from({ length: 100 }, () => dial()))
    for (const client of clients) client.write(post(path, headers))
    await expect.poll(inFlight).toBe(101)
    const before = process.memoryUsage()
    const piece = headers.includes('chunked') ? '1\r\n{\r\n' : '{'
    for (let sent = 0; sent < 60; sent += 1) {
      for (const client of clients) client.write(piece)
      await pause(2)
    }
    await expect.poll(buffered).toBeGreaterThan(0)
    await pause(100)
    const after = process.memoryUsage()
    const rise = after.arrayBuffers - before.arrayBuffers
    expect(rise).toBeLessThan(8 * mebibyte)
    for (const client of clients) client.destroy()
    await expect.poll(buffered).toBe(0)
  })
})

test('DATA frames of one octet, as many as the windows allow, take little memory', async () => {
  const keys = keyPair('good')
  await start({}, { listen: { http2: true, tls: keys } }, oneSlot)
  const { hostname, port } = new URL(gateway.publicAddress)
  const dialTls = async (protocol: string): Promise<TLSSocket> => {
    const socket = connectTls({
      host: hostname,
      port: Number(port),
      ca,
      checkServerIdentity: () => undefined,
      ALPNProtocols: [protocol],
    })
    sockets.push(socket)
    socket.on('error', () => {})
    await once(socket, 'secureConnect')
    socket.resume()
    return socket
  }
  const busy = await dialTls('http/1.1')
  busy.write('GET /open/silent HTTP/1.1\r\nHost: a.test\r\n\r\n')
  await origin.until(() => origin.received.length > 0)
  const client = await dialTls('h2')
  client.write(clientPreface)
  const streams = Array.from({ length: 20 }, (_, at) => 2 * at + 1)
  for (const stream of streams) client.write(postHead(stream, '/open/up'))
  await expect.poll(inFlight).toBe(21)
  globalThis.gc?.()
  const before = process.memoryUsage().rss
  // The window of a stream is 64 KiB; node:http2 opens that of the connection at once.
  for (const stream of streams) {
    client.write(octets(stream, 40_000))
    await pause(20)
  }
  await pause(500)
  expect(process.memoryUsage().rss - before).toBeLessThan(32 * mebibyte)
})

describe('a content whose request was refused', () => {
  const refused = { queue: { max: 1, timeout: '50ms' }, maxConcurrent: 1, clientShare: 1 }

  test.each([
    ['in chunks', 100_000, true],
    ['with a length', 100_000, false],
  ])('%s is read, and the next request on the connection is answered', async (_, length, isChunked) => {
    await start({}, {}, refused)
    await fillSlots()
    const client = await dial()
    const all = received(client)
    const body = 'x'.repeat(length)
    client.write(
      isChunked
        ? `${post('/open/up', chunked)}${length.toString(16)}\r\n${body}\r\n0\r\n\r\n`
        : `${post('/open/up', `Content-Length: ${length}`)}${body}`,
    )
    await expect.poll(all).toMatch(/^HTTP\/1\.1 503 /)
    client.write('GET /nowhere HTTP/1.1\r\nHost: a.test\r\n\r\n')
    await expect.poll(all).toMatch(/HTTP\/1\.1 404 /)
  })

  test('and goes on for ever: the connection is closed', async () => {
    await start({}, {}, refused)
    await fillSlots()
    const client = await dial()
    const all = received(client)
    client.write(post('/open/up', chunked))
    const piece = Buffer.from(`4000\r\n${'x'.repeat(16_384)}\r\n`)
    const more = setInterval(() => client.writable && client.write(piece), 5)
    const closed = once(client, 'close')
    await closed
    clearInterval(more)
    expect(all()).toMatch(/^HTTP\/1\.1 503 /)
    await expect.poll(buffered).toBe(0)
  })
})

describe('limits.requestTimeout', () => {
  const limits = { requestTimeout: '600ms' }

  test.each([
    ['with a length, to an open service', '/open/up', 'Content-Length: 200000', false],
    ['in chunks, to an open service', '/open/up', chunked, true],
    [
      'of JSON, to a site',
      '/index.php/site-json/site/v2/posts',
      'Content-Type: application/json\r\nContent-Length: 200000',
      false,
    ],
  ])('a content that keeps moving %s is not cut', async (_, path, headers, isChunked) => {
    await start(limits)
    const client = await dial()
    const all = received(client)
    client.write(post(path, headers))
    for (let sent = 0; sent < 20; sent += 1) {
      const piece = 'x'.repeat(10_000)
      client.write(isChunked ? `2710\r\n${piece}\r\n` : piece)
      await pause(100)
    }
    if (isChunked) client.write('0\r\n\r\n')
    await expect
      .poll(all)
      .toMatch(path.startsWith('/open') ? /^HTTP\/1\.1 200 [\s\S]*200000$/ : /^HTTP\/1\.1 400 /)
  })

  test.each([
    ['to an open service', '/open/up', 'Content-Length: 200000'],
    ['in chunks', '/open/up', chunked],
    [
      'to a site',
      '/index.php/site-json/site/v2/posts',
      'Content-Type: application/json\r\nContent-Length: 200000',
    ],
  ])('a content that falls silent %s gets 408', async (_, path, headers) => {
    await start(limits)
    const client = await dial()
    const all = received(client)
    client.write(post(path, headers))
    client.write(headers.includes('chunked') ? '1\r\nx\r\n' : 'x'.repeat(5_000))
    await expect.poll(all).toMatch(/^HTTP\/1\.1 408 /)
    await expect.poll(inFlight).toBe(0)
  })

  test('over HTTP/2 a content that keeps moving is not cut, and one that falls silent gets 408', async () => {
    await start(limits, { listen: { port: 0, http2: true, tls: keyPair('good') } })
    const client = connectHttp2(gateway.publicAddress, { ca })
    client.on('error', () => {})
    const moving = client.request({ ':method': 'POST', ':path': '/open/up' })
    const silent = client.request({ ':method': 'POST', ':path': '/open/up' })
    silent.write('x')
    const status = once(silent, 'response')
    for (let sent = 0; sent < 20; sent += 1) {
      moving.write('x'.repeat(10_000))
      await pause(100)
    }
    moving.end()
    expect(await text(moving)).toBe('200000')
    const [head] = (await status) as [{ ':status': number }]
    expect(head[':status']).toBe(408)
    client.destroy()
  })
})

describe('Expect: 100-continue', () => {
  const expecting = (length: number): string =>
    post('/open/up', `Expect: 100-continue\r\nContent-Length: ${length}`)

  test('is answered 413 without a 100 where the length is too large', async () => {
    await start()
    const client = await dial()
    const all = received(client)
    client.write(expecting(999_999_999_999))
    await once(client, 'close')
    expect(all()).toMatch(/^HTTP\/1\.1 413 /)
  })

  test('is answered 100 when the content is read', async () => {
    await start()
    const client = await dial()
    const all = received(client)
    client.write(expecting(3))
    await expect.poll(all).toMatch(/^HTTP\/1\.1 100 /)
    client.write('abc')
    await expect.poll(all).toMatch(/HTTP\/1\.1 200 [\s\S]*\r\n\r\n3$/)
  })
})
