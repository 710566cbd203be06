import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { pem } from '../../support/certificates.ts'
import { startTestGateway } from '../../support/gateway.ts'
import {
  endHeaders,
  frame,
  frames,
  ok,
  type Peer,
  type React,
  startPeer,
  wholeAnswer,
} from '../../support/http2-peer.ts'
import { pause } from '../../support/origin.ts'

// What an upstream may say within HTTP/2 that no library would say for it: frames by hand (RFC 9113 §4.1).

const noError = 0
const cancel = 8

const peerWith = async (react: React): Promise<Peer> => {
  const peer = await startPeer(() => {})
  onTestFinished(peer.close)
  peer.react = react
  return peer
}

test.each<[string, React]>([
  [
    'resets each stream',
    (socket, stream) => socket.write(frame(frames.reset, 0, stream, Buffer.from([0, 0, 0, 2]))),
  ],
  [
    'sends content before a head',
    (socket, stream) => socket.write(frame(frames.data, 1, stream, Buffer.from('ok'))),
  ],
  ['sends content of no stream', (socket) => socket.write(frame(frames.data, 0, 0, Buffer.from('ok')))],
  [
    'sends a frame larger than allowed',
    (socket, stream) => socket.write(frame(frames.data, 0, stream, Buffer.alloc(100_000))),
  ],
  [
    'sends fields that cannot be read',
    (socket, stream) => socket.write(frame(frames.headers, endHeaders, stream, Buffer.alloc(6, 0xff))),
  ],
  [
    'asks for frames of one octet',
    (socket) => socket.write(frame(frames.settings, 0, 0, Buffer.from([0, 5, 0, 0, 0, 1]))),
  ],
  ['changes to HTTP/1.1', (socket) => socket.write('HTTP/1.1 400 Bad Request\r\n\r\n')],
])(
  'an upstream that %s is a bad gateway, and ends nothing',
  async (_, react) => {
    const peer = await peerWith(react)
    const gateway = await startTestGateway({
      services: {
        open: {
          contract: 'open',
          mount: '/',
          upstream: {
            targets: [peer.origin],
            http2: true,
            tls: { ca: pem('ca.pem') },
            timeouts: { connect: '600ms', headers: '300ms', idle: '300ms', total: '600ms' },
            breaker: { minRequests: 1_000 },
          },
        },
      },
    })
    onTestFinished(async () => void (await gateway.close()))
    const ask = async (content?: string): Promise<number> => {
      const sent = content === undefined ? {} : { method: 'POST', body: content }
      const response = await fetch(`${gateway.publicAddress}/x`, sent)
      await response.arrayBuffer()
      return response.status
    }
    for (let round = 0; round < 2; round += 1) {
      // Streamed content is sent a moment later, where an exception would not be caught.
      const statuses = [
        ...(await Promise.all([ask(), ask('x'), ask(), ask('x')])),
        await ask(),
        await ask('x'),
      ]
      expect(statuses.filter((status) => status !== 502 && status !== 504)).toEqual([])
    }
    peer.react = wholeAnswer
    await pause(100)
    await expect.poll(() => ask()).toBe(200)
  },
  30_000,
)

test.each([
  ['CANCEL', cancel],
  ['NO_ERROR', noError],
])(
  'an answer that is reset with %s before its end is not taken for a whole one, nor stored',
  async (_, code) => {
    const peer = await peerWith((socket, stream) => {
      socket.write(frame(frames.headers, endHeaders, stream, ok))
      socket.write(frame(frames.data, 0, stream, Buffer.from('a part')))
      setTimeout(() => socket.write(frame(frames.reset, 0, stream, Buffer.from([0, 0, 0, code]))), 50)
    })
    const gateway = await startTestGateway({
      services: {
        open: {
          contract: 'open',
          mount: '/',
          upstream: { targets: [peer.origin], http2: true, tls: { ca: pem('ca.pem') } },
          cache: { rules: [{ match: 'GET /**', ttl: '1m' }] },
        },
      },
    })
    onTestFinished(async () => void (await gateway.close()))
    const ask = async (): Promise<string> => {
      const response = await fetch(`${gateway.publicAddress}/x`)
      return `${response.status} ${await response.text()}`
    }
    const broken = await ask().catch(() => 'broken off')
    expect(broken).not.toMatch(/^200/)
    peer.react = wholeAnswer
    expect(await ask()).toBe('200 ok')
  },
)

test('an answer that is reset with NO_ERROR behind its end is whole', async () => {
  // RFC 9113 §8.1: so a server says that it wants no more of the request's content.
  const peer = await peerWith((socket, stream) => {
    wholeAnswer(socket, stream)
    socket.write(frame(frames.reset, 0, stream, Buffer.from([0, 0, 0, noError])))
  })
  const gateway = await startTestGateway({
    services: {
      open: {
        contract: 'open',
        mount: '/',
        upstream: { targets: [peer.origin], http2: true, tls: { ca: pem('ca.pem') } },
      },
    },
  })
  onTestFinished(async () => void (await gateway.close()))
  for (let round = 0; round < 20; round += 1) {
    const response = await fetch(`${gateway.publicAddress}/x`, { method: 'POST', body: 'content' })
    expect(`${response.status} ${await response.text()}`).toBe('200 ok')
  }
})

test('an upload whose upstream closes the connection without having read it gets 502 at once', async () => {
  const peer = await peerWith((socket) => setTimeout(() => socket.destroy(), 100))
  const gateway = await startTestGateway({
    services: {
      open: {
        contract: 'open',
        mount: '/',
        upstream: {
          targets: [peer.origin],
          http2: true,
          tls: { ca: pem('ca.pem') },
          timeouts: { idle: '60s', total: '60s' },
        },
      },
    },
  })
  onTestFinished(() => gateway.close())
  const upload = fetch(`${gateway.publicAddress}/a`, {
    method: 'POST',
    body: Buffer.alloc(2_000_000),
    signal: AbortSignal.timeout(5_000),
  })
  expect((await upload).status).toBe(502)
})

const long = 40_000_000
const ofChunks = 100_000
const bodies: readonly (readonly [string, string, Buffer])[] = [
  ['long', `Content-Length: ${long}`, Buffer.alloc(long)],
  ['of small chunks', 'Transfer-Encoding: chunked', Buffer.from(`${'1\r\nx\r\n'.repeat(ofChunks)}0\r\n\r\n`)],
]

test.each(
  bodies.flatMap(([name, ...body]) => [
    [name, 'HTTP/1.1', ...body] as const,
    [name, 'HTTP/2', ...body] as const,
  ]),
)(
  'after an upload %s whose upstream breaks off over %s, the connection of the client takes the next request',
  async (_, protocol, framing, body) => {
    const breakOff = (socket: Socket): unknown => setTimeout(() => socket.destroy(), 20)
    const peer = await peerWith(breakOff)
    const plain = createServer((socket) => breakOff(socket.on('error', () => {}))).listen(0, '127.0.0.1')
    onTestFinished(() => void plain.close())
    await once(plain, 'listening')
    const target =
      protocol === 'HTTP/2' ? peer.origin : `http://127.0.0.1:${(plain.address() as AddressInfo).port}`
    const gateway = await startTestGateway({
      services: {
        open: {
          contract: 'open',
          mount: '/',
          upstream: { targets: [target], http2: protocol === 'HTTP/2', tls: { ca: pem('ca.pem') } },
        },
      },
    })
    onTestFinished(() => gateway.close())
    const client = connect(Number(new URL(gateway.publicAddress).port), '127.0.0.1')
    onTestFinished(() => void client.destroy())
    let answers = ''
    client.on('data', (chunk) => {
      answers += chunk
    })
    client.write(`POST /a HTTP/1.1\r\nHost: a\r\n${framing}\r\n\r\n`)
    client.write(body)
    client.write('GET /status-of-nothing HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n')
    await once(client, 'close')
    expect(answers.match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 502', 'HTTP/1.1 502'])
  },
  15_000,
)
