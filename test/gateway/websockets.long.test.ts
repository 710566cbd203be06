import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { mkdtemp, writeFile } from 'node:fs/promises'
import { createServer, type IncomingHttpHeaders, type Server } from 'node:http'
import {
  type AddressInfo,
  connect,
  createServer as createTcpServer,
  type Socket,
  type TcpNetConnectOpts,
} from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest'
import { type ClientOptions, WebSocket, WebSocketServer } from 'ws'
import { checkConfig } from '../../src/gateway/load-config.ts'
import { keyPair } from '../support/certificates.ts'
import { closeAfterAll } from '../support/close.ts'
import { startTestGateway, type TestGateway } from '../support/gateway.ts'
import { startOrigin } from '../support/origin.ts'
import { exchangeBytes } from '../support/raw-client.ts'

type Upstream = {
  readonly origin: string
  readonly handshakes: { readonly url: string; readonly headers: IncomingHttpHeaders }[]
  readonly sockets: WebSocket[]
  close(): Promise<void>
}

/** A server that repeats every message, and answers requests that ask for no WebSocket, or for one at /refused. */
const startEcho = async (): Promise<Upstream> => {
  const handshakes: Upstream['handshakes'] = []
  const sockets: WebSocket[] = []
  const server: Server = createServer((request, response) => {
    response.writeHead(200, { 'Content-Type': 'text/plain', 'Cache-Control': 'max-age=60' })
    response.end(`plain ${request.method} ${request.headers.upgrade ?? 'none'}`)
  })
  const sockets13 = new WebSocketServer({
    noServer: true,
    handleProtocols: (offered) => [...offered].at(-1) ?? false,
  })
  server.on('upgrade', (request, socket, head) => {
    if (request.url?.startsWith('/refused') === true) {
      socket.end('HTTP/1.1 401 Unauthorized\r\nContent-Length: 5\r\nX-Why: closed\r\n\r\nnever')
      return
    }
    handshakes.push({ url: request.url ?? '', headers: request.headers })
    sockets13.handleUpgrade(request, socket, head, (one) => {
      sockets.push(one)
      one.on('error', () => {})
      one.on('message', (data, isBinary) => one.send(data, { binary: isBinary }))
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    handshakes,
    sockets,
    close: async () => {
      for (const one of sockets) one.terminate()
      server.closeAllConnections()
      server.close()
    },
  }
}

let echo: Upstream
let gateway: TestGateway
let keys: string

const configuration = () => {
  const upstream = { targets: [echo.origin] }
  return {
    limits: { websockets: { perService: 4, perClient: 5, idleTimeout: '2s', messageBytes: '8MiB' } },
    cors: { origins: ['https://page.example'] },
    rateLimits: [
      { name: 'sockets', match: 'GET /limited/**', service: 'live', max: 1, window: '1h', by: 'address' },
    ],
    services: {
      live: {
        contract: 'open',
        mount: '/live',
        upstream,
        websockets: true,
        cache: { rules: [{ match: 'GET /**', ttl: '60s' }] },
        responseHeaders: { set: { 'X-Edge': 'yes' } },
      },
      other: { contract: 'open', mount: '/other', upstream },
      quiet: { contract: 'open', mount: '/quiet', upstream, websockets: true },
      keyed: {
        contract: 'open',
        mount: '/keyed',
        upstream,
        websockets: true,
        access: { apiKeys: { file: keys, required: 'all' } },
      },
      denied: {
        contract: 'open',
        mount: '/denied',
        upstream,
        websockets: true,
        access: { deny: ['127.0.0.0/8'] },
      },
    },
  }
}

beforeAll(async () => {
  echo = await startEcho()
  keys = join(await mkdtemp(join(tmpdir(), 'trellis-')), 'keys')
  await writeFile(keys, `demo:${createHash('sha256').update('test').digest('hex')}\n`)
  gateway = await startTestGateway(configuration())
})
closeAfterAll(() => [gateway, echo])

const open = async (
  path: string,
  protocols: string[] = [],
  options: ClientOptions = {},
  to = gateway,
): Promise<WebSocket> => {
  const socket = new WebSocket(`${to.publicAddress.replace('http', 'ws')}${path}`, protocols, options)
  onTestFinished(() => socket.terminate())
  await once(socket, 'open')
  return socket
}

type Refused = { readonly status: number; readonly headers: IncomingHttpHeaders; readonly text: string }

/** The response to a handshake that is not accepted. */
const refused = (path: string, options: ClientOptions = {}): Promise<Refused> =>
  new Promise((resolve, reject) => {
    const socket = new WebSocket(`${gateway.publicAddress.replace('http', 'ws')}${path}`, options)
    socket.on('open', () => reject(new Error('it was accepted')))
    socket.on('error', () => {})
    socket.on('unexpected-response', async (_, response) => {
      let text = ''
      for await (const chunk of response) text += chunk
      resolve({ status: response.statusCode ?? 0, headers: response.headers, text })
    })
  })

const echoed = async (socket: WebSocket, message: string | Buffer): Promise<string> => {
  socket.send(message)
  const [data] = (await once(socket, 'message')) as [Buffer]
  return data.toString()
}

const gone = (socket: WebSocket): Promise<number> =>
  new Promise((resolve) => {
    socket.on('close', (code) => resolve(code))
  })

const noneOpen = () => expect.poll(() => gateway.metric('trellis_websockets_open', 'live')).toBe(0)

describe('a WebSocket through an open service', () => {
  test('carries messages both ways, with the subprotocol that the upstream chose', async () => {
    const socket = await open('/live/room?id=1', ['one', 'two'])
    expect(socket.protocol).toBe('two')
    expect(await echoed(socket, 'leaf')).toBe('leaf')
    expect(await echoed(socket, Buffer.alloc(3_000_000, 'x'))).toHaveLength(3_000_000)
    expect(echo.handshakes.at(-1)?.url).toBe('/room?id=1')
    expect(await gateway.metric('trellis_websockets_open', 'service="live"')).toBe(1)
    socket.close(4000, 'done')
    expect(await gone(socket)).toBe(4000)
    await noneOpen()
    expect(await gateway.metric('trellis_websockets_total', 'outcome="closed"', 'live')).toBe(1)
  })

  test('has the headers of any other request: rewritten ones, and none that a client may not set', async () => {
    const socket = await open('/live/fields', [], {
      headers: {
        'X-Forwarded-For': '1.2.3.4',
        'X-Forwarded-Host': 'evil.example',
        Forwarded: 'for=1.2.3.4',
        'X-Original-URL': '/admin',
        'X-HTTP-Method-Override': 'DELETE',
        'Proxy-Authorization': 'secret',
        'X-Kept': '1',
        Cookie: 'a=b',
        Host: 'evil.example',
      },
    })
    const headers: IncomingHttpHeaders = echo.handshakes.at(-1)?.headers ?? {}
    expect(headers).toMatchObject({
      host: new URL(echo.origin).host,
      'x-forwarded-for': '127.0.0.1',
      'x-forwarded-proto': 'http',
      'x-kept': '1',
      cookie: 'a=b',
      upgrade: 'websocket',
    })
    expect(headers['x-forwarded-host']).not.toContain('evil')
    for (const name of ['x-original-url', 'x-http-method-override', 'proxy-authorization'])
      expect(headers[name]).toBeUndefined()
    socket.terminate()
  })

  test('is carried by @fastify/http-proxy, which accepts it and opens one to the upstream', async () => {
    const accepted = vi.spyOn(WebSocketServer.prototype, 'handleUpgrade')
    onTestFinished(() => accepted.mockRestore())
    const socket = await open('/live/library')
    expect(await echoed(socket, 'a')).toBe('a')
    // The library's server, and that of the upstream in this test.
    expect(accepted.mock.instances).toHaveLength(2)
    socket.terminate()
  })

  test('passes the refusal of the upstream on', async () => {
    const before = await gateway.metric('trellis_websockets_total', 'outcome="refused"', 'live')
    const { status, headers, text } = await refused('/live/refused')
    expect([status, text, headers['x-why'], headers['x-edge']]).toEqual([401, 'never', 'closed', 'yes'])
    expect(await gateway.metric('trellis_websockets_total', 'outcome="refused"', 'live')).toBe(before + 1)
  })

  test('is neither answered from the cache nor stored', async () => {
    const url = `${gateway.publicAddress}/live/same`
    expect(await (await fetch(url)).text()).toBe('plain GET none')
    const socket = await open('/live/same')
    expect(await echoed(socket, 'a')).toBe('a')
    socket.terminate()
    const again = await fetch(url)
    expect([await again.text(), again.headers.get('cache-status')?.split(';')[1]]).toEqual([
      'plain GET none',
      ' hit',
    ])
  })

  test('is refused with 403 by a service without the setting', async () => {
    const { status, text } = await refused('/other/room')
    expect([status, JSON.parse(text).code]).toEqual([403, 'websockets_off'])
  })

  test('is refused by address, by API key and by rate limit as a request is', async () => {
    expect((await refused('/denied/room')).status).toBe(403)
    expect((await refused('/keyed/room')).status).toBe(401)
    expect((await refused('/keyed/room', { headers: { 'X-Api-Key': 'wrong' } })).status).toBe(401)
    const keyed = await open('/keyed/room', [], { headers: { 'X-Api-Key': 'test' } })
    expect(echo.handshakes.at(-1)?.headers['x-api-key']).toBeUndefined()
    keyed.terminate()
    ;(await open('/live/limited/room')).terminate()
    const { status, headers } = await refused('/live/limited/room')
    expect([status, headers['retry-after'] === undefined]).toEqual([429, false])
  })

  test('closes with 1009 for a message that is longer than messageBytes, in either direction', async () => {
    const socket = await open('/live/long')
    socket.send(Buffer.alloc(8 * 1024 * 1024 + 1))
    expect(await gone(socket)).toBe(1009)
    const second = await open('/live/long')
    echo.sockets.at(-1)?.send(Buffer.alloc(8 * 1024 * 1024 + 1))
    expect(await gone(second)).toBe(1011)
    await noneOpen()
  })

  test('has no extensions, whatever the client offers', async () => {
    const socket = await open('/live/plain', [], { perMessageDeflate: true })
    expect([socket.extensions, echo.handshakes.at(-1)?.headers['sec-websocket-extensions']]).toEqual([
      '',
      undefined,
    ])
    socket.terminate()
  })

  test('pings and pongs are those of the two ends', async () => {
    const socket = await open('/live/pings')
    const peer = echo.sockets.at(-1) as WebSocket
    const seen = once(peer, 'ping')
    socket.ping('a')
    expect(String((await seen)[0])).toBe('a')
    expect(String((await once(socket, 'pong'))[0])).toBe('a')
    socket.terminate()
  })

  test('shows the headers of the 101 that the upstream and the service have set', async () => {
    const socket = new WebSocket(`${gateway.publicAddress.replace('http', 'ws')}/live/fields`)
    onTestFinished(() => socket.terminate())
    const [response] = (await once(socket, 'upgrade')) as [{ headers: IncomingHttpHeaders }]
    expect(response.headers['x-edge']).toBe('yes')
    expect(response.headers['x-request-id']).toBeTypeOf('string')
  })

  test('is refused under no mount', async () => {
    expect((await refused('/nothing')).status).toBe(404)
  })

  test('is refused beyond the limits of its service and of its client', async () => {
    await noneOpen()
    const all = await Promise.all(Array.from({ length: 4 }, () => open('/live/many')))
    const fifth = await refused('/live/many')
    expect([fifth.status, JSON.parse(fifth.text).code]).toEqual([503, 'too_many_websockets'])
    const elsewhere = await open('/keyed/many', [], { headers: { 'X-Api-Key': 'test' } })
    expect((await refused('/keyed/many', { headers: { 'X-Api-Key': 'test' } })).status).toBe(503)
    for (const one of [...all, elsewhere]) one.terminate()
    await noneOpen()
    await expect.poll(() => gateway.metric('trellis_websockets_total', 'outcome="too-many"', 'live')).toBe(1)
    ;(await open('/live/many')).terminate()
  })

  test('is closed with 1001 when nothing is sent for too long, and not before', async () => {
    const busy = await open('/live/busy')
    const idle = await open('/live/idle')
    const began = performance.now()
    const talking = setInterval(() => busy.ping(), 200)
    onTestFinished(() => clearInterval(talking))
    expect(await gone(idle)).toBe(1001)
    expect(performance.now() - began).toBeGreaterThan(1_500)
    expect(await echoed(busy, 'still here')).toBe('still here')
    busy.terminate()
  })

  test('that ends without a close frame on one side ends on the other', async () => {
    const socket = await open('/live/cut')
    const peer = echo.sockets.at(-1) as WebSocket
    const ended = gone(peer)
    socket.terminate()
    // @fastify/http-proxy adds 3000 to a code that no frame may have.
    expect(await ended).toBe(4006)
    const second = await open('/live/cut')
    const closed = gone(second)
    echo.sockets.at(-1)?.terminate()
    expect(await closed).toBe(4006)
    await noneOpen()
  })

  test('that one side has ended is cut when the other side neither ends nor sends', async () => {
    const silent = createTcpServer({ allowHalfOpen: true }, (socket) => {
      socket.on('error', () => {})
      socket.once('data', (head) => {
        const key = /sec-websocket-key: (\S+)/i.exec(head.toString())?.[1] ?? ''
        const accept = createHash('sha1')
          .update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`)
          .digest('base64')
        const lines = ['101 Switching Protocols', 'Connection: Upgrade', 'Upgrade: websocket']
        socket.write(`HTTP/1.1 ${lines.join('\r\n')}\r\nSec-WebSocket-Accept: ${accept}\r\n\r\n`)
      })
    }).listen(0, '127.0.0.1')
    await once(silent, 'listening')
    onTestFinished(() => void silent.close())
    const target = `http://127.0.0.1:${(silent.address() as AddressInfo).port}`
    const live = { contract: 'open', mount: '/', websockets: true, upstream: { targets: [target] } }
    const other = await startTestGateway({ services: { live } })
    onTestFinished(() => other.close())
    const client = connect({
      port: Number(new URL(other.publicAddress).port),
      host: '127.0.0.1',
      allowHalfOpen: true,
    })
    onTestFinished(() => void client.destroy())
    client.write(
      `GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: ${Buffer.alloc(16).toString('base64')}\r\n\r\n`,
    )
    await once(client, 'data')
    expect(await other.metric('trellis_websockets_open', 'service="live"')).toBe(1)
    client.on('error', () => {}).end()
    await once(client, 'close')
    await expect.poll(() => other.metric('trellis_websockets_open', 'service="live"')).toBe(0)
  })

  test('buffers little for a slow reader', async () => {
    const socket = await open('/live/slow')
    const peer = echo.sockets.at(-1) as WebSocket
    peer.pause()
    const before = process.memoryUsage().external
    for (let i = 0; i < 200; i += 1) socket.send(Buffer.alloc(1024 * 1024))
    await new Promise((resolve) => setTimeout(resolve, 500))
    // What is not taken stays with the client, up to the buffers of the operating system.
    expect(socket.bufferedAmount).toBeGreaterThan(150 * 1024 * 1024)
    expect(await gateway.metric('trellis_websockets_open', 'service="live"')).toBe(1)
    expect(process.memoryUsage().external - before).toBeLessThan(300 * 1024 * 1024)
    socket.terminate()
  })

  test('that is open does not count as a request in flight, and takes no slot of the upstream', async () => {
    const socket = await open('/live/open')
    expect(await gateway.metric('trellis_in_flight_requests')).toBe(0)
    expect(await gateway.metric('trellis_upstream_in_flight', 'live')).toBe(0)
    socket.terminate()
  })
})

describe('handshakes that are not as they must be', () => {
  const handshake = (lines: readonly string[], path = '/live/a') =>
    `GET ${path} HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n${lines.map((line) => `${line}\r\n`).join('')}\r\n`
  const key = 'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=='
  const version = 'Sec-WebSocket-Version: 13'

  test.each([
    ['without a key', [version], 400],
    ['with a key of another form', [version, 'Sec-WebSocket-Key: short'], 400],
    ['with two keys', [version, key, key], 400],
    ['with another version', [key, 'Sec-WebSocket-Version: 8'], 426],
    ['without a version', [key], 426],
    [
      'with a key that holds no sixteen octets',
      [version, 'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZR=='],
      400,
    ],
    ['with a body', [version, key, 'Content-Length: 5'], 400],
  ])('%s is refused, and no request behind it is read', async (_, lines, status) => {
    const before = echo.handshakes.length
    const response = await exchangeBytes(
      gateway.publicAddress,
      `${handshake(lines)}GET /other/b HTTP/1.1\r\nHost: a\r\n\r\n`,
    )
    expect(response.toString().match(/HTTP\/1\.1 \d{3}/g)).toEqual([`HTTP/1.1 ${status}`])
    expect(echo.handshakes).toHaveLength(before)
  })

  test('another protocol is ignored where there is no body, and refused where there is one', async () => {
    const h2c =
      'Host: a\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n'
    const get = await exchangeBytes(gateway.publicAddress, `GET /live/h2c HTTP/1.1\r\n${h2c}\r\n`)
    expect(get.toString()).toContain('plain GET none')
    const post = await exchangeBytes(
      gateway.publicAddress,
      `POST /live/h2c HTTP/1.1\r\n${h2c}Content-Length: 3\r\n\r\nabc`,
    )
    expect(post.toString()).toMatch(/^HTTP\/1\.1 400 /)
  })

  test('one without Connection: Upgrade, which proxies remove, is refused with this reason', async () => {
    const response = await exchangeBytes(
      gateway.publicAddress,
      handshake([key, version]).replace('Connection: Upgrade\r\n', ''),
    )
    expect(response).toMatch(/^HTTP\/1\.1 400 /)
    expect(response).toContain('Connection: Upgrade')
  })

  test('one behind another request on its connection is not answered', async () => {
    const response = await exchangeBytes(
      gateway.publicAddress,
      `GET /live/first HTTP/1.1\r\nHost: a\r\n\r\n${handshake([key, version])}`,
    )
    expect(response.toString().match(/HTTP\/1\.1 \d{3}/g)).toEqual(['HTTP/1.1 200'])
  })

  test.each([
    ['another key', 'Sec-WebSocket-Accept: AAAAAAAAAAAAAAAAAAAAAAAAAAA=\r\n'],
    ['none', ''],
  ])('a 101 with the proof of %s opens nothing', async (_, accept) => {
    const origin = await startOrigin((_received, wire) =>
      wire.write(
        `HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n${accept}\r\nsecret`,
      ),
    )
    onTestFinished(() => origin.close())
    const other = await startTestGateway({
      services: {
        live: { contract: 'open', mount: '/live', upstream: { targets: [origin.origin] }, websockets: true },
      },
    })
    onTestFinished(() => other.close())
    const response = await exchangeBytes(other.publicAddress, handshake([key, version]))
    expect(response.toString()).toMatch(/^HTTP\/1\.1 502 /)
    expect(response.toString()).not.toContain('secret')
    await origin.until(() => origin.open === 0)
  })

  test.each([
    ['a client that goes away during the handshake ends it', [key, version]],
    ['a client that goes away while its request for another protocol is answered ends that', undefined],
  ])('%s', async (_, lines) => {
    const origin = await startOrigin(() => {})
    onTestFinished(() => origin.close())
    const upstream = { targets: [origin.origin], timeouts: { headers: '1m', total: '1m' } }
    const other = await startTestGateway({
      services: { live: { contract: 'open', mount: '/live', upstream, websockets: true } },
    })
    onTestFinished(() => other.close())
    const client = connect(Number(new URL(other.publicAddress).port), '127.0.0.1')
    client.write(
      lines === undefined
        ? 'GET /live/a HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n'
        : handshake(lines),
    )
    await origin.until(() => origin.received.length === 1)
    client.destroy()
    await origin.until(() => origin.open === 0)
    await expect.poll(() => other.metric('trellis_in_flight_requests')).toBe(0)
    expect(await other.metric('trellis_websockets_total', 'outcome="refused"')).toBe(
      lines === undefined ? 0 : 1,
    )
  })
})

test.each([false, true])('a WebSocket over TLS is opened, with HTTP/2 on the port: %s', async (http2) => {
  const other = await startTestGateway({
    ...configuration(),
    listen: { port: 0, tls: keyPair('good'), http2 },
  })
  onTestFinished(() => other.close())
  const socket = await open('/live/secure', [], { rejectUnauthorized: false }, other)
  expect(await echoed(socket, 'leaf')).toBe('leaf')
  expect(echo.handshakes.at(-1)?.headers['x-forwarded-proto']).toBe('https')
  socket.terminate()
})

test.each([['another contract', { contract: 'site', websockets: true }, 'unknown key']])(
  'websockets with %s is a fault of the configuration',
  async (_, service, message) => {
    const checked = await checkConfig(JSON.stringify({ services: { live: service } }), {})
    expect(
      checked.kind === 'faults' ? checked.faults.map((fault) => `${fault.path}: ${fault.message}`) : [],
    ).toEqual([expect.stringContaining(`services.live.websockets: ${message}`)])
  },
)

describe('the life of the gateway', () => {
  test('every outcome has a metric from the start', async () => {
    const text = await (await fetch(`${gateway.adminAddress}/metrics`)).text()
    const lines = text.split('\n').filter((line) => line.startsWith('trellis_websockets'))
    expect(lines.filter((line) => line.includes('"quiet"')).sort()).toEqual([
      'trellis_websockets_open{service="quiet"} 0',
      ...['broken', 'closed', 'drained', 'idle', 'refused', 'revoked', 'too-many'].map(
        (outcome) => `trellis_websockets_total{service="quiet",outcome="${outcome}"} 0`,
      ),
    ])
    expect(lines.filter((line) => line.includes('"other"'))).toEqual([])
  })

  test('a drain closes every WebSocket with 1001, behind a message that is half sent', async () => {
    const other = await startTestGateway({
      ...configuration(),
      limits: { websockets: { messageBytes: '8MiB' } },
      rateLimits: [],
    })
    const raw: Socket[] = []
    const createConnection = (options: TcpNetConnectOpts): Socket => {
      const connection = connect(options)
      raw.push(connection)
      return connection
    }
    const socket = await open(
      '/live/drained',
      [],
      { createConnection: createConnection as typeof connect },
      other,
    )
    const peer = echo.sockets.at(-1) as WebSocket
    const received: number[] = []
    socket.on('message', (data: Buffer) => received.push(data.length))
    const codes = Promise.all([gone(socket), gone(peer)])
    peer.send(Buffer.alloc(8 * 1024 * 1024))
    // The gateway has read the message, and sent a part of it.
    await once(raw[0] as Socket, 'data')
    const drained = other.drain()
    expect(await codes).toEqual([1001, 1001])
    expect(received).toEqual([8 * 1024 * 1024])
    expect(await drained).toBe('finished')
  })

  test('a reload keeps open WebSockets, also where it takes the setting away', async () => {
    const { services, ...rest } = configuration()
    const other = await startTestGateway({ ...rest, services })
    onTestFinished(() => other.close())
    const socket = await open('/live/reloaded', [], {}, other)
    const outcome = await other.put({
      ...rest,
      services: { ...services, live: { ...services.live, websockets: false } },
    })
    expect(outcome.kind).toBe('applied')
    expect(await echoed(socket, 'still here')).toBe('still here')
    socket.terminate()
  })
})
