import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import { type ClientHttp2Session, connect as connectHttp2, type Http2ServerRequest } from 'node:http2'
import { connect, type Socket } from 'node:net'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { connect as connectTls } from 'node:tls'
import { expect, onTestFinished, test } from 'vitest'
import { createListener, type ListenerOptions } from '../../../src/server/listener.ts'
import { keyPair } from '../../support/certificates.ts'
import { clientPreface, requestAndReset } from '../../support/http2-peer.ts'

const certificate = { ...keyPair('good'), minVersion: 'TLSv1.2' as const, certificates: [] }

const greedy = '127.0.0.2'
const other = '127.0.0.3'

/** A port whose requests take half a millisecond of the event loop each; the addresses and paths of those that were taken, in order. */
const portOf = async (
  options: Partial<ListenerOptions> = {},
  took: (incoming: IncomingMessage) => void = () => {},
) => {
  const listener = createListener({
    certificate: undefined,
    http2: false,
    headerBytes: 16 * 1024,
    headersTimeoutMs: 60_000,
    requestTimeoutMs: 60_000,
    minBytesPerSecond: 0,
    keepAliveTimeoutMs: 60_000,
    readerTimeoutMs: 60_000,
    connections: 0,
    connectionsPerAddress: 0,
    isExempt: () => false,
    report: () => {},
    ...options,
  })
  const taken: string[] = []
  const paths: string[] = []
  listener.use({
    request: (incoming, outgoing) => {
      const until = performance.now() + 0.5
      while (performance.now() < until);
      taken.push(incoming.socket.remoteAddress ?? '')
      paths.push(incoming.url ?? '')
      took(incoming)
      outgoing.end('ok')
    },
    clientError: (_, socket) => socket.destroy(),
  })
  const port = await listener.listen('127.0.0.1', 0)
  onTestFinished(async () => void (await listener.close(0)))
  return { port, taken, paths }
}

const askOnce = (port: number, localAddress: string): Promise<unknown> => {
  const socket: Socket = connect({ port, host: '127.0.0.1', localAddress })
  onTestFinished(() => void socket.destroy())
  socket.write('GET / HTTP/1.1\r\nHost: a.test\r\n\r\n')
  return once(socket, 'data')
}

const dialHttp2 = async (port: number, localAddress: string): Promise<ClientHttp2Session> => {
  const client = connectHttp2(`https://127.0.0.1:${port}`, {
    createConnection: () =>
      connectTls({
        host: '127.0.0.1',
        port,
        rejectUnauthorized: false,
        ALPNProtocols: ['h2'],
        ...{ localAddress },
      }),
  })
  onTestFinished(() => client.destroy())
  client.on('error', () => {})
  await once(client, 'remoteSettings')
  return client
}
const responded = (client: ClientHttp2Session, path = '/'): Promise<unknown> =>
  once(client.request({ ':path': path }).resume(), 'end')

test('a connection does not wait for hundreds that another address opened before it', async () => {
  const { port, taken } = await portOf()
  const asked = Array.from({ length: 250 }, () => askOnce(port, greedy))
  await askOnce(port, other)
  expect(taken.indexOf(other)).toBeLessThan(150)
  await Promise.all(asked)
  expect(taken).toHaveLength(251)
})

test('as long as few connections are open, each begins as it arrives', async () => {
  const { port, taken } = await portOf()
  const asked = Array.from({ length: 40 }, () => askOnce(port, greedy))
  await Promise.all([...asked, askOnce(port, other)])
  expect(taken.indexOf(other)).toBe(40)
})

test('a new connection is answered while a hundred of another address never stop to send requests', async () => {
  const { port, taken } = await portOf()
  const busy = Array.from({ length: 100 }, () => connect({ port, host: '127.0.0.1', localAddress: greedy }))
  const ask = 'GET / HTTP/1.1\r\nHost: a.test\r\n\r\n'
  for (const socket of busy) {
    onTestFinished(() => void socket.destroy())
    socket.on('data', () => socket.write(ask))
    socket.write(ask)
  }
  await Promise.all(busy.map((socket) => once(socket, 'data')))
  const before = taken.length
  for (let count = 0; count < 5; count += 1) await askOnce(port, other)
  expect(taken.length - before).toBeLessThan(700)
})

test('a request over HTTP/2 does not wait for hundreds that another address has sent before it', async () => {
  const { port, taken } = await portOf({ certificate, http2: true })
  const clients = await Promise.all(Array.from({ length: 4 }, () => dialHttp2(port, greedy)))
  const late = await dialHttp2(port, other)
  const asked = clients.flatMap((client) => Array.from({ length: 75 }, () => responded(client)))
  while (taken.length === 0) await nextTurn()
  await responded(late)
  expect(taken.indexOf(other)).toBeLessThan(150)
  await Promise.all(asked)
  expect(taken).toHaveLength(301)
})

test('a request over HTTP/2 does not wait for hundreds that other connections of its address have sent before it', async () => {
  const { port, taken, paths } = await portOf({ certificate, http2: true })
  const clients = await Promise.all(Array.from({ length: 4 }, () => dialHttp2(port, greedy)))
  const late = await dialHttp2(port, greedy)
  const asked = clients.flatMap((client) => Array.from({ length: 75 }, () => responded(client)))
  while (taken.length === 0) await nextTurn()
  await responded(late, '/late')
  expect(paths.indexOf('/late')).toBeLessThan(200)
  await Promise.all(asked)
  expect(taken).toHaveLength(301)
})

test('requests of an HTTP/2 connection that ends while they wait are not taken', async () => {
  const { port, taken } = await portOf({ certificate, http2: true }, (incoming) => {
    if (taken.length === 40) (incoming as unknown as Http2ServerRequest).stream.session?.destroy()
  })
  const client = await dialHttp2(port, greedy)
  for (let at = 0; at < 100; at += 1) client.request({ ':path': '/' }).on('error', () => {})
  await once(client, 'close')
  await responded(await dialHttp2(port, greedy))
  expect(taken).toHaveLength(41)
})

test('requests over HTTP/2 that are reset as soon as they are sent are hardly ever taken', async () => {
  const { port, taken } = await portOf({ certificate, http2: true })
  const other = await dialHttp2(port, greedy)
  // node:http2 would not send them.
  const socket = connectTls({ host: '127.0.0.1', port, rejectUnauthorized: false, ALPNProtocols: ['h2'] })
  onTestFinished(() => void socket.destroy())
  await once(socket, 'secureConnect')
  const streams = Array.from({ length: 90 }, (_, at) => requestAndReset(2 * at + 1, '/'))
  socket.write(Buffer.concat([clientPreface, ...streams]))
  await once(socket, 'data')
  await responded(other)
  expect(taken.length).toBeGreaterThan(0)
  expect(taken.length).toBeLessThan(40)
})
