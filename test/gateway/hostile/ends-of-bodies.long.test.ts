import { once } from 'node:events'
import { connect as connectTls, type TLSSocket } from 'node:tls'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { keyPair, pem } from '../../support/certificates.ts'
import { siteService, startTestGateway, type TestGateway } from '../../support/gateway.ts'
import { clientPreface, data, goaway, octets, postHead, reset } from '../../support/http2-peer.ts'
import { type Origin, pause, startOrigin } from '../../support/origin.ts'

// Whatever ends a request gives back what its body was counted for in limits.bufferedBytes.

type Tree = { readonly [key: string]: unknown }

const site = '/index.php/site-json'
const busySite = '/busy/site-json'

const fates: readonly (readonly [title: string, path: string, type: string])[] = [
  ['has no service', '/nowhere', 'text/plain'],
  ['has a type that is not taken', `${site}/site/v2/posts`, 'text/csv'],
  ['has no route', `${site}/nowhere`, 'application/json'],
  ['has a body that is invalid', `${site}/site/v2/posts`, 'application/json'],
  ['is refused by access', '/guarded/up', 'image/png'],
  ['is over a rate limit', '/open/limited', 'image/png'],
  ['has an ambiguous path', '/open/..%2fx', 'image/png'],
  ['finds no free slot', '/busy/up', 'image/png'],
  ['is media, and finds no free slot', `${busySite}/site/v2/media`, 'image/png'],
  ['is JSON, and finds no free slot', `${busySite}/site/v2/posts/1`, 'application/json'],
  ['finds no upstream', '/down/up', 'image/png'],
  ['is answered before its body is read', '/open/early', 'image/png'],
  ['is cut by the upstream', '/open/reset', 'image/png'],
  ['is not answered in time', '/open/silent', 'image/png'],
  ['is executed', '/open/up', 'image/png'],
  ['is media, and executed', `${site}/site/v2/media`, 'image/png'],
]

/** Requests that occupy the only slots of two services. */
const fillers = 2

const quick = { connect: '300ms', headers: '300ms', idle: '300ms', total: '600ms' }
const noBreaker = { breaker: { failureRatio: 0 }, eject: { after: 1_000 } }
const oneSlot = {
  maxConcurrent: 1,
  clientShare: 1,
  queue: { max: 100, timeout: '400ms' },
  timeouts: { headers: '10m', total: '10m' },
}

let origin: Origin
let gateway: TestGateway
const sockets: TLSSocket[] = []

const dial = async (protocol: string, to = gateway): Promise<TLSSocket> => {
  const { hostname, port } = new URL(to.publicAddress)
  const socket = connectTls({
    host: hostname,
    port: Number(port),
    ca: pem('ca.pem'),
    checkServerIdentity: () => undefined,
    ALPNProtocols: [protocol],
  })
  sockets.push(socket)
  socket.on('error', () => {}).resume()
  await once(socket, 'secureConnect')
  return socket
}

beforeAll(async () => {
  origin = await startOrigin(({ target }, wire) => {
    if (target.includes('silent')) return
    if (target.includes('reset')) wire.reset()
    else wire.respond({ status: target.includes('early') ? 401 : 200, content: 'ok' })
  })
  const upstream = (more: Tree): Tree => ({
    targets: [origin.origin],
    timeouts: quick,
    ...noBreaker,
    ...more,
  })
  const open = (mount: string, more: Tree = {}, service: Tree = {}): Tree => ({
    contract: 'open',
    mount,
    upstream: upstream(more),
    ...service,
  })
  gateway = await startTestGateway({
    listen: { port: 0, http2: true, tls: keyPair('good') },
    limits: { requestTimeout: '800ms' },
    rateLimits: [{ name: 'limited', service: 'open', match: 'POST /limited', max: 1, window: '1h' }],
    services: {
      site: siteService(origin.origin),
      open: open('/open'),
      busy: open('/busy', oneSlot),
      'busy-site': siteService(origin.origin, {
        mount: busySite,
        upstream: { ...upstream(oneSlot), basePath: '/busy/wp-json' },
      }),
      down: open('/down', { targets: ['http://127.0.0.1:1'] }),
      guarded: open('/guarded', {}, { access: { allow: ['192.0.2.1'] } }),
    },
  })
  const first = await dial('http/1.1')
  first.write('POST /open/limited HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n')
  for (const path of ['/busy/silent', `${busySite}/silent`]) {
    const filler = await dial('http/1.1')
    filler.write(`GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`)
  }
  await origin.until(() => origin.received.length === 1 + fillers)
})
afterAll(async () => {
  for (const socket of sockets) socket.destroy()
  await gateway.close()
  await origin.close()
})

/** Sends a body of one request on a connection of its own, until its end. */
type Ending = readonly [
  title: string,
  protocol: 'http/1.1' | 'h2',
  send: (socket: TLSSocket, path: string, type: string) => unknown,
]

const http1 = (path: string, type: string, headers: string): string =>
  `POST ${path} HTTP/1.1\r\nHost: a\r\nContent-Type: ${type}\r\n${headers}\r\n\r\n`
const chunked = 'Transfer-Encoding: chunked'
const inPieces = async (socket: TLSSocket, piece: string | Buffer, count: number): Promise<void> => {
  for (let sent = 0; sent < count && socket.writable; sent += 1) {
    socket.write(piece)
    await pause(1)
  }
}
const stream = 1
const begin = (path: string, type: string): Buffer =>
  Buffer.concat([clientPreface, postHead(stream, path, type)])

const endings: readonly Ending[] = [
  [
    'whole, with its head',
    'http/1.1',
    (socket, path, type) => socket.write(`${http1(path, type, 'Content-Length: 300')}${'x'.repeat(300)}`),
  ],
  [
    'whole, in chunks behind its head',
    'http/1.1',
    async (socket, path, type) => {
      socket.write(http1(path, type, chunked))
      await inPieces(socket, '1\r\nx\r\n', 40)
      socket.write('0\r\n\r\n')
    },
  ],
  [
    'whole, and more than waits for a reader',
    'http/1.1',
    (socket, path, type) =>
      socket.write(`${http1(path, type, 'Content-Length: 200000')}${'x'.repeat(200_000)}`),
  ],
  [
    'whole, and then the client leaves',
    'http/1.1',
    async (socket, path, type) => {
      socket.write(`${http1(path, type, 'Content-Length: 300')}${'x'.repeat(300)}`)
      await pause(20)
      socket.destroy()
    },
  ],
  [
    'cut by a client that leaves',
    'http/1.1',
    async (socket, path, type) => {
      socket.write(`${http1(path, type, chunked)}5\r\nxxxxx\r\n`)
      await inPieces(socket, '1\r\nx\r\n', 20)
      socket.destroy()
    },
  ],
  [
    'cut by a client that sends no more',
    'http/1.1',
    (socket, path, type) => socket.write(`${http1(path, type, chunked)}5\r\nxxxxx\r\n`),
  ],
  [
    'cut by a half-closed connection',
    'http/1.1',
    (socket, path, type) => socket.end(`${http1(path, type, chunked)}5\r\nxxxxx\r\n`),
  ],
  [
    'malformed',
    'http/1.1',
    async (socket, path, type) => {
      socket.write(`${http1(path, type, chunked)}5\r\nxxxxx\r\n`)
      await pause(20)
      socket.write('no length\r\n')
    },
  ],
  [
    'whole, with its head',
    'h2',
    (socket, path, type) =>
      socket.write(Buffer.concat([begin(path, type), data(stream, Buffer.alloc(300), true)])),
  ],
  [
    'whole, in frames of one octet',
    'h2',
    async (socket, path, type) => {
      socket.write(Buffer.concat([begin(path, type), octets(stream, 1_000)]))
      await inPieces(socket, octets(stream, 1), 20)
      socket.write(data(stream, Buffer.alloc(1), true))
    },
  ],
  [
    'whole, and then its stream is reset',
    'h2',
    async (socket, path, type) => {
      socket.write(Buffer.concat([begin(path, type), data(stream, Buffer.alloc(300), true)]))
      await pause(20)
      socket.write(reset(stream))
    },
  ],
  ...[0, 8].map(
    (code): Ending => [
      `cut by a reset with code ${code}`,
      'h2',
      async (socket, path, type) => {
        socket.write(Buffer.concat([begin(path, type), octets(stream, 1_000)]))
        await pause(20)
        socket.write(reset(stream, code))
      },
    ],
  ),
  [
    'cut by a client that leaves',
    'h2',
    async (socket, path, type) => {
      socket.write(Buffer.concat([begin(path, type), octets(stream, 1_000)]))
      await inPieces(socket, octets(stream, 1), 20)
      socket.destroy()
    },
  ],
  [
    'cut by a client that sends no more',
    'h2',
    (socket, path, type) => socket.write(Buffer.concat([begin(path, type), octets(stream, 1_000)])),
  ],
]

const metric =
  (name: string, of = gateway) =>
  (): Promise<number> =>
    of.metric(name)
const timeout = { interval: 20 }

test.each(fates)('a request that %s counts no body when it has ended, in each way', async (_, path, type) => {
  const begun = await Promise.all(
    endings.map(async ([, protocol, send]) => [await dial(protocol), send] as const),
  )
  await Promise.all(begun.map(([socket, send]) => send(socket, path, type)))
  // Its connection may stay open: what is counted does not wait for its end.
  await expect.poll(metric('trellis_in_flight_requests'), timeout).toBe(fillers)
  await expect.poll(metric('trellis_buffered_bytes'), timeout).toBe(0)
  for (const [socket] of begun) socket.destroy()
})

/** An HTTP/2 client that breaks a content off, of which it has declared no length. */
const breaks: readonly (readonly [title: string, send: (socket: TLSSocket) => unknown])[] = [
  ['closes the connection', (socket) => socket.end()],
  ['destroys the connection', (socket) => socket.destroy()],
  ['says GOAWAY', (socket) => socket.end(goaway)],
  ['resets the stream without an error', (socket) => socket.write(reset(stream, 0))],
  ['resets the stream', (socket) => socket.write(reset(stream))],
]

describe('where no timeout ends a request', () => {
  let patient: TestGateway
  beforeAll(async () => {
    patient = await startTestGateway({
      listen: { port: 0, http2: true, tls: keyPair('good') },
      services: {
        site: siteService(origin.origin),
        open: { contract: 'open', mount: '/open', upstream: { targets: [origin.origin] } },
      },
    })
  })
  afterAll(() => patient.close())

  test.each(breaks)(
    'a content whose client %s before its end reaches no upstream as a whole',
    async (_, breakOff) => {
      const before = origin.received.length
      const targets = [
        ['/open/cut', 'image/png', 1_000],
        ['/open/cut', 'image/png', 60_000],
        [`${site}/site/v2/media`, 'image/png', 1_000],
        [`${site}/site/v2/posts`, 'application/x-www-form-urlencoded', 10],
      ] as const
      const clients = await Promise.all(targets.map(() => dial('h2', patient)))
      for (const [at, [path, type, size]] of targets.entries()) {
        const pieces = Array.from({ length: 10 }, () => data(stream, Buffer.alloc(size / 10, 'a=b&'), false))
        clients[at]?.write(Buffer.concat([begin(path, type), ...pieces]))
      }
      const inFlight = metric('trellis_in_flight_requests', patient)
      await expect.poll(inFlight, timeout).toBe(targets.length)
      for (const client of clients) breakOff(client)
      await expect.poll(inFlight, timeout).toBe(0)
      expect(origin.received.length).toBe(before)
    },
  )
})
