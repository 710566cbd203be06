import { once } from 'node:events'
import { type ClientHttp2Session, type ClientHttp2Stream, connect, constants } from 'node:http2'
import { text } from 'node:stream/consumers'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { keyPair, pem } from '../../support/certificates.ts'
import { siteService, startTestGateway, type TestGateway } from '../../support/gateway.ts'
import { type Origin, pause, startOrigin } from '../../support/origin.ts'

// What slow and wrong clients may do within one HTTP/2 connection, which is open and busy all the time.

const ca = pem('ca.pem')
const large = Buffer.alloc(1024 * 1024, 'x')

let origin: Origin
let gateway: TestGateway
let clients: ClientHttp2Session[]
beforeEach(async () => {
  clients = []
  origin = await startOrigin(async ({ target }, wire) => {
    if (target.includes('slow')) await pause(700)
    wire.respond({
      content: target.includes('large') ? large : target.includes('medium') ? medium : 'small',
    })
  })
})
afterEach(async () => {
  for (const client of clients) client.destroy()
  await gateway.close()
  await origin.close()
})

const medium = Buffer.alloc(60_000, 'x')

const start = async (limits: Record<string, string>): Promise<void> => {
  gateway = await startTestGateway({
    listen: { port: 0, http2: true, tls: keyPair('good') },
    limits,
    services: {
      site: siteService(origin.origin),
      open: {
        contract: 'open',
        mount: '/a',
        upstream: { targets: [origin.origin] },
        cache: { rules: [{ match: 'GET /hit/**', ttl: '60s' }] },
      },
    },
  })
}
const dial = async (initialWindowSize: number): Promise<ClientHttp2Session> => {
  const client = connect(gateway.publicAddress, { ca, settings: { initialWindowSize } })
  clients.push(client)
  client.on('error', () => {})
  await new Promise((resolve, reject) => client.once('remoteSettings', resolve).once('error', reject))
  return client
}
const keepBusy = (client: ClientHttp2Session): NodeJS.Timeout =>
  setInterval(() => client.destroyed || client.ping(() => {}), 50).unref()
/** `close` alone is not enough: a write at the moment of the reset may stay pending in node:http2, and its stream is never destroyed. */
const closed = (stream: ClientHttp2Stream): Promise<number> =>
  new Promise((resolve) => {
    stream.on('error', () => {})
    for (const event of ['aborted', 'close']) stream.once(event, () => resolve(stream.rstCode))
  })
const inFlight = (): Promise<number> => gateway.metric('trellis_in_flight_requests')
const cut = (reason: string): Promise<number> =>
  gateway.metric('trellis_connections_cut_total', `reason="${reason}"`)

test('a header whose name CGI reads as another one does not reach the upstream', async () => {
  await start({})
  const client = await dial(65_535)
  const headers = { accept_language: 'xx', 'accept.language': 'xx', if_none_match: 'xx', 'x-own': 'own' }
  expect(await text(client.request({ ':path': '/a/small', ...headers }))).toBe('small')
  expect(origin.received[0]?.head).not.toContain('xx')
  expect(origin.received[0]?.headers['x-own']).toBe('own')
})

test('CONNECT opens no tunnel, and WebSockets over HTTP/2 are not offered', async () => {
  await start({})
  const tunnel = (await dial(65_535)).request({ ':method': 'CONNECT', ':authority': 'a.test:443' })
  tunnel.on('error', () => {})
  const [head] = await once(tunnel, 'response')
  expect(head[':status']).toBe(405)
  const client = await dial(65_535)
  expect(client.remoteSettings.enableConnectProtocol).toBe(false)
  expect(origin.received).toEqual([])
})

describe('a window that stays shut', () => {
  test('does not keep a stream open whose request did not arrive in time', async () => {
    await start({ requestTimeout: '300ms', readerTimeout: '60s' })
    const client = await dial(0)
    keepBusy(client)
    const stream = client.request({ ':method': 'POST', ':path': '/a/small' })
    const drip = setInterval(() => stream.destroyed || stream.write(' '), 50)
    try {
      expect(await Promise.race([closed(stream), pause(15_000)])).toBe(constants.NGHTTP2_INTERNAL_ERROR)
    } finally {
      clearInterval(drip)
    }
    await expect.poll(inFlight).toBe(0)
  })

  test.each(['/a/hit/large', '/a/hit/small', '/a/large'])('%s: the stream ends', async (path) => {
    await start({ readerTimeout: '300ms' })
    const client = await dial(0)
    keepBusy(client)
    const streams = [1, 2, 3].map(() => closed(client.request({ ':path': path })))
    expect(await Promise.all(streams)).toEqual([2, 2, 2])
    expect(await cut('slow-reader')).toBe(3)
    await expect.poll(inFlight).toBe(0)
  })

  test('a client that waits for a slow upstream does not count as a slow reader', async () => {
    await start({ readerTimeout: '200ms' })
    const client = await dial(65_535)
    expect(await text(client.request({ ':path': '/a/slow' }))).toBe('small')
    expect(await cut('slow-reader')).toBe(0)
  })

  test('a slow reader gets the whole response', async () => {
    // Less than it takes altogether, and far more than it takes nothing.
    await start({ readerTimeout: '1500ms' })
    const stream = (await dial(65_535)).request({ ':path': '/a/large' })
    let taken = 0
    for await (const chunk of stream) {
      taken += (chunk as Buffer).length
      await pause(30)
    }
    expect(taken).toBe(large.length)
  })
})

test('responses of 60 kB that no window is opened for count in limits.bufferedBytes, and the oldest are reset', async () => {
  await start({ bufferedBytes: '2MiB', bodyBytes: '1MiB' })
  const client = await dial(0)
  const streams = Array.from({ length: 60 }, (_, at) => client.request({ ':path': `/a/medium?${at}` }))
  for (const stream of streams) stream.on('error', () => {})
  await expect.poll(() => cut('slow-reader')).toBeGreaterThan(30)
  expect(await gateway.metric('trellis_buffered_bytes')).toBeLessThan(1.1 * 1024 * 1024)
  client.destroy()
  await expect.poll(() => gateway.metric('trellis_buffered_bytes')).toBe(0)
  await expect.poll(inFlight).toBe(0)
})

test('an endless body gets 408 and a reset after limits.requestTimeout, and its upstream request ends', async () => {
  await start({ requestTimeout: '600ms' })
  const client = await dial(65_535)
  keepBusy(client)
  const head = { ':method': 'POST', authorization: 'Basic YTpi', 'content-type': 'application/json' }
  const stream = client.request({ ...head, ':path': '/index.php/site-json/site/v2/posts' })
  const drip = setInterval(() => stream.destroyed || stream.write(' '), 50)
  let status: number | undefined
  stream.on('response', (headers) => {
    status = headers[':status']
  })
  stream.resume()
  try {
    expect(await Promise.race([closed(stream), pause(15_000)])).toBe(constants.NGHTTP2_NO_ERROR)
    expect(status).toBe(408)
  } finally {
    clearInterval(drip)
  }
  expect(origin.received).toHaveLength(0)
  await expect.poll(inFlight).toBe(0)
})

// RFC 9113 §8.1.1: what node:http2 finds malformed by itself, which is more in newer versions, it answers with PROTOCOL_ERROR.
test.each(['user:secret@a.test', '[fe80::1%25eth0]', 'a.test:b', 'a.test/x', 'a test'])(
  ':authority %s is refused, as it is as Host in HTTP/1.1',
  async (authority) => {
    await start({})
    const stream = (await dial(65_535)).request({ ':path': '/a/x', ':authority': authority })
    const outcome = new Promise((resolve) => {
      stream.once('response', (head) => resolve(head[':status']))
      stream.once('error', () => resolve(stream.rstCode))
    })
    expect([400, constants.NGHTTP2_PROTOCOL_ERROR]).toContain(await outcome)
    expect(origin.received).toHaveLength(0)
  },
)
