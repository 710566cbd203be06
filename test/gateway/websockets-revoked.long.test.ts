import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { mkdtemp, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { connect as connectHttp2 } from 'node:http2'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { type ClientOptions, WebSocket, WebSocketServer } from 'ws'
import { keyPair, pem } from '../support/certificates.ts'
import { startTestGateway, type TestGateway } from '../support/gateway.ts'
import { audience, createKey, type Issuer, issuerName, startIssuer } from '../support/issuer.ts'

// A WebSocket, and an event stream, end with what allowed them.

type Tree = { readonly [key: string]: unknown }

let issuer: Issuer
let upstream: Tree
let close: () => void
let keys: string
const keyLine = (key: string): string => `${key}:${createHash('sha256').update(key).digest('hex')}\n`

beforeAll(async () => {
  issuer = await startIssuer([await createKey('first')])
  const server = createServer((request, response) => {
    const type = request.url?.includes('events') ? 'text/event-stream' : 'text/plain'
    response.writeHead(200, { 'Content-Type': type })
    response.write('data: 1\n\n')
  })
  const sockets = new WebSocketServer({ server })
  sockets.on('connection', (socket) => socket.on('message', (data) => socket.send(data)))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  upstream = { targets: [`http://127.0.0.1:${(server.address() as AddressInfo).port}`] }
  close = () => {
    server.closeAllConnections()
    server.close()
  }
  keys = join(await mkdtemp(join(tmpdir(), 'trellis-revoked-')), 'keys')
})
afterAll(async () => {
  close()
  await issuer.close()
})

const service = (more: Tree = {}): Tree => ({
  contract: 'open',
  mount: '/live',
  upstream,
  websockets: true,
  ...more,
})
const other = { contract: 'open', mount: '/other', websockets: true }
const jwt = (more: Tree = {}): Tree => ({
  access: { jwt: { jwks: issuer.url, issuer: issuerName, audience, leeway: '0s', ...more } },
})
const apiKeys = (): Tree => ({ access: { apiKeys: { file: keys, required: 'all' } } })

const started = async (live: Tree, more: Tree = {}): Promise<TestGateway> => {
  const gateway = await startTestGateway({ ...more, services: { live, other: { ...other, upstream } } })
  onTestFinished(() => gateway.close())
  return gateway
}

const open = async (gateway: TestGateway, path: string, options: ClientOptions = {}): Promise<WebSocket> => {
  const socket = new WebSocket(`${gateway.publicAddress.replace('http', 'ws')}${path}`, options)
  onTestFinished(() => socket.terminate())
  await once(socket, 'open')
  return socket
}
const closeCode = async (socket: WebSocket): Promise<number> => (await once(socket, 'close'))[0] as number
const echoed = async (socket: WebSocket): Promise<string> => {
  socket.send('still here')
  return String((await once(socket, 'message'))[0])
}

type Row = {
  readonly when: string
  readonly before: () => Tree
  /** The service in the next configuration. */
  readonly after: () => Tree | undefined
  readonly headers?: () => Promise<Record<string, string>>
}

const bearer = async (expiresIn = 300): Promise<Record<string, string>> => ({
  Authorization: `Bearer ${await issuer.token({ expiresIn })}`,
})

const rows: readonly Row[] = [
  {
    when: 'its address is denied',
    before: () => service(),
    after: () => service({ access: { deny: ['127.0.0.0/8'] } }),
  },
  { when: 'its service is removed', before: () => service(), after: () => undefined },
  {
    when: 'its service takes no WebSockets',
    before: () => service(),
    after: () => service({ websockets: false }),
  },
  {
    when: 'its API key is removed',
    before: () => service(apiKeys()),
    after: () => service(apiKeys()),
    headers: async () => ({ 'X-Api-Key': 'key' }),
  },
  {
    when: 'a token is required',
    before: () => service(),
    after: () => service(jwt({ required: 'all' })),
  },
  {
    when: 'its token is for another audience',
    before: () => service(jwt()),
    after: () => service(jwt({ audience: 'shop' })),
    headers: bearer,
  },
]

describe('after a reload', () => {
  test.each(rows)('a WebSocket is closed with 1008 when $when', async ({ before, after, headers }) => {
    await writeFile(keys, keyLine('key'))
    const gateway = await started(before())
    const socket = await open(gateway, '/live/a', { headers: (await headers?.()) ?? {} })
    const neighbour = await open(gateway, '/other/a')
    const code = closeCode(socket)
    await writeFile(keys, keyLine('another'))
    const live = after()
    const services = { ...(live === undefined ? {} : { live }), other: { ...other, upstream } }
    expect(await gateway.put({ services })).toMatchObject({ kind: 'applied' })
    expect(await code).toBe(1008)
    expect(await echoed(neighbour)).toBe('still here')
    await expect.poll(() => gateway.metric('trellis_websockets_total', 'outcome="revoked"')).toBe(1)
  })

  test('that allows it, a WebSocket goes on', async () => {
    await writeFile(keys, keyLine('key'))
    const gateway = await started(service(apiKeys()))
    const socket = await open(gateway, '/live/a', { headers: { 'X-Api-Key': 'key' } })
    await writeFile(keys, keyLine('key') + keyLine('another'))
    const live = service({ ...apiKeys(), mount: '/elsewhere' })
    expect(await gateway.put({ services: { live, other: { ...other, upstream } } })).toMatchObject({
      kind: 'applied',
    })
    await new Promise((resolve) => setTimeout(resolve, 1_500))
    expect(await echoed(socket)).toBe('still here')
  })
})

/** Reads the first event; the promise given is of the end. */
const subscribe = async (gateway: TestGateway, path: string, headers: Record<string, string> = {}) => {
  const { body } = await fetch(gateway.publicAddress + path, { headers })
  const reader = (body as ReadableStream<Uint8Array>).getReader()
  onTestFinished(() => reader.cancel().catch(() => {}))
  await reader.read()
  let isOpen = true
  const ended = reader.read().then(
    () => 'ended',
    () => {
      isOpen = false
      return 'cut'
    },
  )
  return { ended, isOpen: () => isOpen }
}

test.each(rows.filter(({ when }) => when !== 'its service takes no WebSockets'))(
  'an event stream ends when $when',
  async ({ before, after, headers }) => {
    await writeFile(keys, keyLine('key'))
    const gateway = await started(before())
    const stream = await subscribe(gateway, '/live/events', (await headers?.()) ?? {})
    const neighbour = await subscribe(gateway, '/other/events')
    await writeFile(keys, keyLine('another'))
    const live = after()
    const services = { ...(live === undefined ? {} : { live }), other: { ...other, upstream } }
    expect(await gateway.put({ services })).toMatchObject({ kind: 'applied' })
    expect(await stream.ended).toBe('cut')
    expect(neighbour.isOpen()).toBe(true)
    expect(await gateway.metric('trellis_connections_cut_total', 'reason="revoked"')).toBe(1)
  },
)

const overHttp2 = { listen: { port: 0, http2: true, tls: keyPair('good') } }

/** Streams of one HTTP/2 connection, as an EventSource of a browser has them. */
const http2Client = (gateway: TestGateway) => {
  const client = connectHttp2(gateway.publicAddress, { ca: pem('ca.pem') })
  onTestFinished(() => client.destroy())
  return async (path: string, headers: Record<string, string> = {}) => {
    const stream = client.request({ ':path': path, ...headers })
    stream.on('error', () => {})
    let ended: string | undefined
    stream.once('end', () => {
      ended = 'ended'
    })
    stream.once('close', () => {
      ended = stream.rstCode === 0 ? 'ended' : 'reset'
    })
    await once(stream, 'data')
    return { ended: () => ended }
  }
}

test.each(rows.filter(({ when }) => when !== 'its service takes no WebSockets'))(
  'an event stream over HTTP/2 is reset when $when, others of its connection go on',
  async ({ before, after, headers }) => {
    await writeFile(keys, keyLine('key'))
    const gateway = await started(before(), overHttp2)
    const subscribeHttp2 = http2Client(gateway)
    const stream = await subscribeHttp2('/live/events', (await headers?.()) ?? {})
    const neighbour = await subscribeHttp2('/other/events')
    await writeFile(keys, keyLine('another'))
    const live = after()
    const services = { ...(live === undefined ? {} : { live }), other: { ...other, upstream } }
    expect(await gateway.put({ ...overHttp2, services })).toMatchObject({ kind: 'applied' })
    await expect.poll(stream.ended).toBe('reset')
    expect(neighbour.ended()).toBe(undefined)
    expect(await gateway.metric('trellis_connections_cut_total', 'reason="revoked"')).toBe(1)
    await expect.poll(() => gateway.metric('trellis_upstream_in_flight_requests', 'service="live"')).toBe(0)
  },
)

test('an event stream over HTTP/2 is reset when its token expires, another of its connection goes on', async () => {
  const gateway = await started(service(jwt()), overHttp2)
  const subscribeHttp2 = http2Client(gateway)
  const short = await subscribeHttp2('/live/events', await bearer(3))
  const long = await subscribeHttp2('/live/events', await bearer())
  await expect.poll(short.ended).toBe('reset')
  expect(long.ended()).toBe(undefined)
})

test('an event stream ends when its token expires, another goes on', async () => {
  const gateway = await started(service(jwt()))
  const short = await subscribe(gateway, '/live/events', await bearer(3))
  const long = await subscribe(gateway, '/live/events', await bearer())
  expect(await short.ended).toBe('cut')
  expect(long.isOpen()).toBe(true)
})

test('a WebSocket ends when its token expires, another goes on', async () => {
  const gateway = await started(service(jwt()))
  const short = await open(gateway, '/live/a', { headers: await bearer(3) })
  const long = await open(gateway, '/live/a', { headers: await bearer() })
  expect(await echoed(short)).toBe('still here')
  expect(await closeCode(short)).toBe(1008)
  expect(await echoed(long)).toBe('still here')
})

test('what a removed service still has open is counted until it ends', async () => {
  const gateway = await started(service())
  const controller = new AbortController()
  const stream = await fetch(`${gateway.publicAddress}/live/log`, { signal: controller.signal })
  expect(stream.status).toBe(200)
  // It does not answer a close frame.
  const socket = await open(gateway, '/live/a')
  socket.pause()
  expect(await gateway.metric('trellis_upstream_in_flight_requests', 'service="live"')).toBe(1)
  await gateway.put({ services: { other: { ...other, upstream } } })
  expect(await gateway.metric('trellis_upstream_in_flight_requests', 'service="live"')).toBe(1)
  expect(await gateway.metric('trellis_websockets_open', 'service="live"')).toBe(1)
  controller.abort()
  await stream.body?.cancel().catch(() => {})
  await expect.poll(() => gateway.metric('trellis_upstream_in_flight_requests', 'service="live"')).toBe(0)
  await expect.poll(() => gateway.metric('trellis_websockets_open', 'service="live"')).toBe(0)
})
