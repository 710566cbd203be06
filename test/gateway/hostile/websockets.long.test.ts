import { once } from 'node:events'
import { mkdtemp, writeFile } from 'node:fs/promises'
import { connect, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { acceptOf } from '../../../src/http/websocket-accept.ts'
import { startTestGateway } from '../../support/gateway.ts'
import { pause, type Script, startOrigin } from '../../support/origin.ts'

const key = 'dGhlIHNhbXBsZSBub25jZQ=='

const handshake = (path: string, more = ''): string =>
  `GET ${path} HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: ${key}\r\n${more}\r\n`

const switching = `HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: ${acceptOf(key)}\r\n`

const startBoth = async (script: Script, upstream: Record<string, unknown> = {}) => {
  const origin = await startOrigin(script)
  onTestFinished(() => origin.close())
  const gateway = await startTestGateway({
    limits: { websockets: { messageBytes: '8MiB' } },
    services: {
      live: {
        contract: 'open',
        mount: '/live',
        upstream: { targets: [origin.origin], ...upstream },
        websockets: true,
      },
    },
  })
  onTestFinished(() => gateway.close())
  return { origin, gateway }
}

/** A connection to the gateway, with what has come back on it. */
const connectTo = async (address: string, bytes: string) => {
  const socket: Socket = connect(Number(new URL(address).port), '127.0.0.1')
  onTestFinished(() => void socket.destroy())
  const read = { bytes: 0, text: '', isClosed: false }
  socket.on('error', () => {})
  socket.on('data', (chunk: Buffer) => {
    read.bytes += chunk.length
    if (read.text.length < 4_000) read.text += chunk.toString('latin1')
  })
  socket.once('close', () => {
    read.isClosed = true
  })
  await once(socket, 'connect')
  socket.write(bytes, 'latin1')
  return { socket, read }
}

/** 4 MiB, more than the buffers of sockets and streams hold. */
const long = Buffer.alloc(4 * 1024 * 1024, 'x')
/** Of a binary message with this content. */
const frameHead = Buffer.from([0x82, 127, 0, 0, 0, 0, 0, 0x40, 0, 0])

/** The content of a short frame of a client (RFC 6455 §5.3). */
const unmasked = (frame: Buffer): Buffer =>
  Buffer.from(frame.subarray(6).map((octet, at) => octet ^ (frame[2 + (at % 4)] as number)))

describe('responses on connections that asked for another protocol', () => {
  test.each([
    ['to a handshake that the upstream answers as a plain request', handshake('/live/a')],
    [
      'to a request for HTTP/2 without TLS',
      'GET /live/a HTTP/1.1\r\nHost: a\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n\r\n',
    ],
  ])('a long response %s arrives whole', async (_, request) => {
    const { gateway } = await startBoth(async (_received, wire) => {
      wire.write(`HTTP/1.1 200 OK\r\nContent-Length: ${long.length}\r\n\r\n`)
      for (let at = 0; at < long.length; at += 65_536) {
        wire.write(long.subarray(at, at + 65_536))
        await pause(1)
      }
    })
    const { read } = await connectTo(gateway.publicAddress, request)
    await expect.poll(() => read.bytes).toBeGreaterThan(long.length)
    await expect.poll(() => read.isClosed).toBe(true)
    expect(await gateway.metric('trellis_in_flight_requests')).toBe(0)
  })

  test('a long response with a handshake pipelined behind it arrives whole', async () => {
    const { gateway } = await startBoth(async (_received, wire) => {
      wire.write(`HTTP/1.1 200 OK\r\nContent-Length: ${long.length}\r\n\r\n`)
      for (let at = 0; at < long.length; at += 65_536) {
        wire.write(long.subarray(at, at + 65_536))
        await pause(1)
      }
    })
    const { read } = await connectTo(
      gateway.publicAddress,
      `GET /live/a HTTP/1.1\r\nHost: a\r\n\r\n${handshake('/live/b')}`,
    )
    await expect.poll(() => read.bytes).toBeGreaterThan(long.length)
    await expect.poll(() => read.isClosed).toBe(true)
    expect(await gateway.metric('trellis_in_flight_requests')).toBe(0)
  })
})

describe('handshakes and what follows them', () => {
  test('frames in one packet with the handshake or the 101 arrive', async () => {
    const { gateway, origin } = await startBoth((_received, wire) => {
      wire.write(`${switching}\r\n\x81\x02hi`)
      wire.socket.removeAllListeners('data')
      wire.socket.on('data', (chunk: Buffer) =>
        wire.socket.write(Buffer.concat([Buffer.from([0x82, chunk.length - 6]), unmasked(chunk)])),
      )
    })
    const { read, socket } = await connectTo(
      gateway.publicAddress,
      `${handshake('/live/a')}\x81\x82\x00\x00\x00\x00yo`,
    )
    await expect.poll(() => read.text).toContain('\x81\x02hi')
    await expect.poll(() => read.text).toContain('yo')
    socket.destroy()
    await origin.until(() => origin.open === 0)
  })
  test('a WebSocket that the upstream resets at once is not counted as open', async () => {
    const { gateway, origin } = await startBoth((_received, wire) => {
      wire.socket.write(`${switching}\r\n`, () => wire.reset())
    })
    for (let i = 0; i < 30; i++) await connectTo(gateway.publicAddress, handshake('/live/a'))
    await origin.until(() => origin.received.length === 30)
    await expect.poll(() => gateway.metric('trellis_websockets_open', 'live')).toBe(0)
  })
  test('a WebSocket that the upstream ends at once is not counted as open', async () => {
    const { gateway, origin } = await startBoth((_received, wire) => {
      wire.socket.end(`${switching}\r\n`)
    })
    for (let i = 0; i < 30; i++) await connectTo(gateway.publicAddress, handshake('/live/a'))
    await origin.until(() => origin.received.length === 30)
    await expect.poll(() => gateway.metric('trellis_websockets_open', 'live')).toBe(0)
  })
  test('a WebSocket of a client that disconnects as the 101 arrives is not counted as open', async () => {
    const clients: Socket[] = []
    const { gateway, origin } = await startBoth((_received, wire, count) => {
      clients[count - 1]?.resetAndDestroy()
      wire.write(`${switching}\r\n`)
    })
    for (let i = 0; i < 30; i++) {
      const c = await connectTo(gateway.publicAddress, '')
      clients.push(c.socket)
      c.socket.write(handshake('/live/a'))
      await origin.until(() => origin.received.length === i + 1)
    }
    await expect.poll(() => gateway.metric('trellis_websockets_open', 'live')).toBe(0)
    await origin.until(() => origin.open === 0)
    expect(await gateway.metric('trellis_in_flight_requests')).toBe(0)
  })
  test('a WebSocket counts as a read: where only writes need an API key, it opens without one', async () => {
    const origin = await startOrigin((_received, wire) => wire.write(`${switching}\r\n`))
    onTestFinished(() => origin.close())
    const file = join(await mkdtemp(join(tmpdir(), 'trellis-')), 'keys')
    await writeFile(file, `demo:${'0'.repeat(64)}\n`)
    const gateway = await startTestGateway({
      services: {
        live: {
          contract: 'open',
          mount: '/live',
          upstream: { targets: [origin.origin] },
          websockets: true,
          access: { apiKeys: { file, required: 'writes' } },
        },
      },
    })
    onTestFinished(() => gateway.close())
    expect((await fetch(`${gateway.publicAddress}/live/a`, { method: 'POST' })).status).toBe(401)
    const { read } = await connectTo(gateway.publicAddress, handshake('/live/a'))
    await expect.poll(() => read.text).toContain('HTTP/1.1 101')
  })
  test('a handshake that does not reach one target is sent to another', async () => {
    const origin = await startOrigin((_received, wire) => wire.write(`${switching}\r\n`))
    const other = await startOrigin()
    onTestFinished(() => origin.close())
    await other.close()
    const gateway = await startTestGateway({
      services: {
        live: {
          contract: 'open',
          mount: '/live',
          upstream: { targets: [other.origin, origin.origin] },
          websockets: true,
        },
      },
    })
    onTestFinished(() => gateway.close())
    for (const path of ['/live/a', '/live/b']) {
      const { read } = await connectTo(gateway.publicAddress, handshake(path))
      await expect.poll(() => read.text).toContain('HTTP/1.1 101')
    }
  })
  test.each([
    ['with the proof of another key', `Sec-WebSocket-Accept: ${acceptOf('AAAAAAAAAAAAAAAAAAAAAA==')}\r\n`],
    ['without a proof', ''],
    ['with two proofs', `Sec-WebSocket-Accept: ${acceptOf(key)}\r\n`.repeat(2)],
  ])('a 101 %s counts as a failure of the upstream', async (_, accept) => {
    const bad = switching.replace(/Sec-WebSocket-Accept.*\r\n/, accept)
    const { gateway, origin } = await startBoth((_received, wire) => wire.write(`${bad}\r\n\x81\x02hi`), {
      breaker: { failureRatio: 0.5, minRequests: 4 },
    })
    for (let i = 0; i < 4; i++) {
      const { read } = await connectTo(gateway.publicAddress, handshake('/live/a'))
      await expect.poll(() => read.isClosed).toBe(true)
      expect(read.text).toMatch(/^HTTP\/1\.1 502 /)
      expect(read.text).not.toContain('\x81\x02hi')
    }
    expect((await fetch(`${gateway.publicAddress}/live/a`)).status).toBe(503)
    await origin.until(() => origin.open === 0)
    expect(await gateway.metric('trellis_upstream_attempts_total', 'outcome="answered"')).toBe(0)
    await expect.poll(() => gateway.metric('trellis_in_flight_requests')).toBe(0)
  })
  test('a handshake that one target answers with a wrong proof is sent to another', async () => {
    const bad = await startOrigin((_received, wire) =>
      wire.write(`${switching.replace(acceptOf(key), acceptOf('AAAAAAAAAAAAAAAAAAAAAA=='))}\r\n`),
    )
    const good = await startOrigin((_received, wire) => wire.write(`${switching}\r\n`))
    onTestFinished(async () => {
      await bad.close()
      await good.close()
    })
    const gateway = await startTestGateway({
      services: {
        live: {
          contract: 'open',
          mount: '/live',
          upstream: { targets: [bad.origin, good.origin] },
          websockets: true,
        },
      },
    })
    onTestFinished(() => gateway.close())
    for (const path of ['/live/a', '/live/b']) {
      const { read } = await connectTo(gateway.publicAddress, handshake(path))
      await expect.poll(() => read.text).toContain('HTTP/1.1 101')
    }
    expect(bad.received.length).toBeGreaterThan(0)
  })
  test('all that an upstream has sent before it ended reaches a client that reads later', async () => {
    const { gateway } = await startBoth((_received, wire) => {
      wire.write(`${switching}\r\n`)
      wire.socket.end(Buffer.concat([frameHead, long]))
    })
    const { read, socket } = await connectTo(gateway.publicAddress, handshake('/live/a'))
    socket.pause()
    await pause(300)
    socket.resume()
    await expect.poll(() => read.isClosed).toBe(true)
    expect(read.bytes).toBeGreaterThanOrEqual(
      long.length + frameHead.length + read.text.indexOf('\r\n\r\n') + 4,
    )
  })
  test('a handshake that the upstream accepts during a drain is closed with 1001', async () => {
    const accepting: (() => void)[] = []
    const { gateway, origin } = await startBoth((_received, wire) => {
      accepting.push(() => wire.write(`${switching}\r\n`))
    })
    const { read, socket } = await connectTo(gateway.publicAddress, handshake('/live/a'))
    await origin.until(() => accepting.length === 1)
    const drained = gateway.drain()
    await pause(100)
    for (const accept of accepting) accept()
    await expect.poll(() => read.text).toContain('\r\n\r\n\x88\x02\x03\xe9')
    socket.end()
    expect(await drained).toBe('finished')
  })
  test('a 101 to a plain request is a bad response', async () => {
    const { gateway, origin } = await startBoth((_received, wire) => {
      wire.write(`${switching}\r\nleak`)
    })
    const r = await fetch(`${gateway.publicAddress}/live/x`)
    expect(r.status).toBe(502)
    await origin.until(() => origin.open === 0)
  })
  test.each([
    ['several protocols', 'Upgrade: websocket, h2c\r\n', ''],
    ['two lines', 'Upgrade: websocket\r\nUpgrade: websocket\r\n', ''],
    ['a version of the protocol', 'Upgrade: websocket/13\r\n', ''],
    ['a body', 'Upgrade: websocket\r\nTransfer-Encoding: chunked\r\n', '5\r\nhello\r\n0\r\n\r\n'],
    ['another protocol', 'Upgrade: h2c\r\n', ''],
  ])('nothing behind a request with %s reaches an upstream', async (_, lines, body) => {
    const { gateway, origin } = await startBoth((_received, wire) => wire.respond({ content: 'plain' }))
    const { read } = await connectTo(
      gateway.publicAddress,
      `GET /live/a HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: ${key}\r\n${lines}\r\n${body}GET /live/smuggled HTTP/1.1\r\nHost: a\r\n\r\n`,
    )
    await expect.poll(() => read.isClosed).toBe(true)
    expect(read.text.match(/HTTP\/1\.1 \d+/g)).toHaveLength(1)
    expect(origin.received.filter(({ target }) => target.includes('smuggled'))).toEqual([])
  })
})
