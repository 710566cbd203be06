import { request as httpRequest } from 'node:http'
import { type ClientHttp2Session, connect as connectHttp2, constants } from 'node:http2'
import { request as httpsRequest } from 'node:https'
import { connect, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { times } from '../support/breadth.ts'
import { keyPair, pem } from '../support/certificates.ts'
import { startTestGateway, type TestGateway } from '../support/gateway.ts'
import { type Origin, pause, startOrigin } from '../support/origin.ts'

// Clients at different loopback addresses: some hold as many upstream slots as they can, and one is an ordinary client.

type Tree = { readonly [key: string]: unknown }

const ca = pem('ca.pem')
const large = Buffer.alloc(16 * 1024 * 1024, 'x')

let origin: Origin
let gateway: TestGateway
let sockets: Socket[]
let sessions: ClientHttp2Session[]
let timers: NodeJS.Timeout[]
beforeEach(async () => {
  sockets = []
  sessions = []
  timers = []
  origin = await startOrigin(async ({ target }, wire) => {
    if (target.includes('slow')) await pause(3_000)
    if (!target.includes('large')) {
      wire.respond({ content: 'small' })
      return
    }
    // One buffer for all: nothing is copied.
    wire.write(`HTTP/1.1 200 OK\r\nCache-Control: no-store\r\nContent-Length: ${large.length}\r\n\r\n`)
    wire.write(large)
  })
})
afterEach(async () => {
  for (const timer of timers) clearInterval(timer)
  for (const session of sessions) session.destroy()
  for (const socket of sockets) socket.destroy()
  await gateway.close()
  await origin.close()
})

const start = async (
  more: { upstream?: Tree; limits?: Tree; listen?: Tree; root?: Tree } = {},
): Promise<void> => {
  gateway = await startTestGateway({
    listen: { port: 0, ...more.listen },
    ...(more.limits === undefined ? {} : { limits: more.limits }),
    services: {
      open: { contract: 'open', mount: '/', upstream: { targets: [origin.origin], ...more.upstream } },
    },
    ...more.root,
  })
}
const encrypted = { tls: keyPair('good') }

const dial = (localAddress: string, protocols: string[] = ['http/1.1']): Socket => {
  const url = new URL(gateway.publicAddress)
  const to = { host: url.hostname, port: Number(url.port), localAddress }
  const socket =
    url.protocol === 'https:'
      ? connectTls({ ...to, ca, checkServerIdentity: () => undefined, ALPNProtocols: protocols })
      : connect(to)
  sockets.push(socket)
  return socket.on('error', () => {})
}
/** Sends an upload of a megabyte, one octet every now and then. */
const trickle = (localAddress: string, more = ''): Socket => {
  const socket = dial(localAddress)
  socket.write(
    `POST /up HTTP/1.1\r\nHost: a.test\r\nContent-Type: application/octet-stream\r\n${more}Content-Length: 1000000\r\n\r\nxyz`,
  )
  timers.push(setInterval(() => socket.writable && socket.write('x'), 500))
  return socket
}
/** Requests a large response and does not read it. */
const leaveUnread = (localAddress: string): Socket => {
  const socket = dial(localAddress)
  socket.pause()
  socket.write('GET /large HTTP/1.1\r\nHost: a.test\r\n\r\n')
  return socket
}
const each = (count: number, begin: (at: number) => unknown): void => {
  for (let at = 0; at < count; at += 1) begin(at)
}
/** Several times what one address may have. */
const many = times(300, 1_000)
const addressOf = (at: number): string => `127.1.${1 + (at >> 7)}.${1 + (at & 127)}`

/** Status of one request of the client that does nothing wrong; `failed` when its connection broke. */
const ask = (path: string, content?: Buffer, more: Record<string, string> = {}): Promise<string> =>
  new Promise((resolve) => {
    const url = new URL(path, gateway.publicAddress)
    const headers = { ...more, ...(content === undefined ? {} : { 'Content-Type': 'image/png' }) }
    const options = { localAddress: '127.0.0.3', method: content === undefined ? 'GET' : 'POST', headers, ca }
    const request = (url.protocol === 'https:' ? httpsRequest : httpRequest)(url, {
      ...options,
      agent: false,
    })
    request.on('error', () => resolve('failed'))
    request.on('response', (response) => {
      response.resume()
      response.once('close', () => resolve(String(response.statusCode)))
    })
    request.end(content)
  })
const picture = Buffer.alloc(64_000, 'p')
/** One that is read before it takes a slot. */
const form = picture.subarray(0, 16_000)
/** Reads and small uploads, one of each every tenth of a second; the statuses that came. */
const askForSeconds = async (
  seconds: number,
  more: Record<string, string> = {},
  content = picture,
): Promise<Set<string>> => {
  const asked: Promise<string>[] = []
  for (let round = 0; round < seconds * 10; round += 1) {
    asked.push(ask(`/read/${round}`, undefined, more), ask('/write', content, more))
    await pause(100)
  }
  return new Set(await Promise.all(asked))
}

describe('clients that hold upstream slots leave others unharmed', () => {
  test('64 uploads of one address that trickle', async () => {
    await start()
    each(64, () => trickle('127.0.0.2'))
    await pause(300)
    expect(await askForSeconds(1)).toEqual(new Set(['200']))
  })

  test(`${many} uploads of one address that trickle`, async () => {
    await start()
    each(many, () => trickle('127.0.0.2'))
    await pause(1_000)
    expect(await askForSeconds(1)).toEqual(new Set(['200']))
  })

  test('300 uploads of 300 addresses that trickle', async () => {
    await start()
    each(300, (at) => trickle(addressOf(at)))
    await pause(500)
    expect(await askForSeconds(1, {}, form)).toEqual(new Set(['200']))
  })

  test('64 uploads that trickle through TLS', async () => {
    await start({ listen: encrypted })
    each(64, () => trickle('127.0.0.2'))
    await pause(500)
    expect(await askForSeconds(1)).toEqual(new Set(['200']))
  })

  test('64 large responses of one address that are not read', async () => {
    await start()
    each(64, () => leaveUnread('127.0.0.2'))
    await pause(500)
    expect(await askForSeconds(1)).toEqual(new Set(['200']))
  })

  test('200 large responses of two addresses that are not read', async () => {
    // Before they stand still, the buffers of the loopback take megabytes of each.
    await start({ upstream: { queue: { timeout: '150s' } } })
    each(200, (at) => leaveUnread(at % 2 === 0 ? '127.0.0.2' : '127.0.0.4'))
    await pause(500)
    expect(await askForSeconds(1)).toEqual(new Set(['200']))
  })

  test('120 large responses of 120 addresses that are not read', async () => {
    await start({ upstream: { queue: { timeout: '150s' } } })
    each(120, (at) => leaveUnread(addressOf(at)))
    await pause(500)
    expect(await askForSeconds(1)).toEqual(new Set(['200']))
  })

  test('100 requests of one address to a slow upstream', async () => {
    await start()
    each(100, (at) => dial('127.0.0.2').write(`GET /slow/${at} HTTP/1.1\r\nHost: a.test\r\n\r\n`))
    await pause(300)
    expect(await askForSeconds(1)).toEqual(new Set(['200']))
  })

  test(`${many} requests of two addresses to a slow upstream`, async () => {
    await start()
    each(many, (at) =>
      dial(at % 2 === 0 ? '127.0.0.2' : '127.0.0.4').write(
        `GET /slow/${at} HTTP/1.1\r\nHost: a.test\r\n\r\n`,
      ),
    )
    await pause(1_000)
    expect(await askForSeconds(1)).toEqual(new Set(['200']))
  })

  test('64 uploads of one address that trickle through a proxy that is trusted', async () => {
    await start({ root: { trustedProxies: ['127.0.0.0/8'] } })
    each(64, () => trickle('127.0.0.3', 'X-Forwarded-For: 192.0.2.1\r\n'))
    await pause(300)
    expect(await askForSeconds(1, { 'X-Forwarded-For': '192.0.2.2' })).toEqual(new Set(['200']))
  })

  test('100 uploads of as many addresses of one IPv6 /64', async () => {
    await start({ root: { trustedProxies: ['127.0.0.0/8'] } })
    each(100, (at) => trickle('127.0.0.3', `X-Forwarded-For: 2001:db8:0:1::${at + 1}\r\n`))
    await pause(300)
    expect(await askForSeconds(1, { 'X-Forwarded-For': '2001:db8:0:2::1' })).toEqual(new Set(['200']))
    expect(origin.maxInFlight).toBeLessThan(40)
  })

  test.each(['POST', 'GET'])('100 streams of one HTTP/2 connection: %s', async (method) => {
    await start({ listen: { ...encrypted, http2: true } })
    const session = connectHttp2(gateway.publicAddress, {
      createConnection: () => dial('127.0.0.2', ['h2']),
    })
    sessions.push(session)
    session.on('error', () => {})
    each(100, (at) => {
      const isUpload = method === 'POST'
      const stream = session.request(
        { ':method': method, ':path': isUpload ? '/up' : `/slow/${at}` },
        { endStream: !isUpload },
      )
      stream.on('error', () => {})
      if (!isUpload) return
      stream.write('xyz')
      timers.push(setInterval(() => stream.destroyed || stream.write('x'), 500))
    })
    await pause(500)
    expect(await askForSeconds(1)).toEqual(new Set(['200']))
  })
})

describe('streams that are reset as soon as they are opened', () => {
  /** Opens and resets a number of streams as fast as possible; returns the code with which the session was closed, 0 if it was not. */
  const resetStreams = async (session: ClientHttp2Session, count: number, path: string): Promise<number> => {
    let code = 0
    session.on('goaway', (errorCode) => {
      code = errorCode
    })
    session.on('error', () => {})
    await new Promise((resolve) => session.once('remoteSettings', resolve))
    for (let at = 0; at < count && !session.destroyed && !session.closed; at += 50) {
      const streams = Array.from({ length: 50 }, (_, next) => {
        const stream = session.request({ ':path': `${path}/${at + next}` })
        return stream.on('error', () => {})
      })
      // Past the turn in which the heads are written.
      await new Promise(setImmediate)
      for (const stream of streams) stream.close(constants.NGHTTP2_CANCEL)
      await new Promise(setImmediate)
    }
    await pause(300)
    return code
  }
  const open = (): ClientHttp2Session => {
    const session = connectHttp2(gateway.publicAddress, { createConnection: () => dial('127.0.0.2', ['h2']) })
    sessions.push(session)
    return session
  }

  test('from four connections: their sessions end with ENHANCE_YOUR_CALM, and others are served', async () => {
    await start({ listen: { ...encrypted, http2: true } })
    const resets = Promise.all([1, 2, 3, 4].map(() => resetStreams(open(), 3_000, '/slow')))
    expect(await askForSeconds(1)).toEqual(new Set(['200']))
    expect(await resets).toEqual([11, 11, 11, 11])
    expect(await gateway.metric('trellis_connections_cut_total', 'reason="resets"')).toBe(4)
  })

  test('a client whose session was ended for its resets gets no new connection for a while, others do', async () => {
    await start({ listen: { ...encrypted, http2: true } })
    expect(await resetStreams(open(), 3_000, '/slow')).toBe(11)
    const isOpened = (from: string): Promise<boolean> =>
      new Promise((resolve) => {
        const socket = dial(from, ['h2'])
        socket.once('secureConnect', () => resolve(true))
        socket.once('close', () => resolve(false))
      })
    expect(await isOpened('127.0.0.2')).toBe(false)
    expect(await isOpened('127.0.0.3')).toBe(true)
  })

  test('a client that cancels a page full of requests keeps its connection', async () => {
    await start({ listen: { ...encrypted, http2: true } })
    const session = open()
    expect(await resetStreams(session, 100, '/read')).toBe(0)
    const stream = session.request({ ':path': '/read/last' })
    const status = await new Promise((resolve) => stream.on('response', (head) => resolve(head[':status'])))
    expect(status).toBe(200)
  })
})

test('an upload that stays behind the rate gets 408 and is counted; one at 20 kB a second is carried out', async () => {
  await start()
  const slow = trickle('127.0.0.2')
  const honest = dial('127.0.0.4')
  let responses = ''
  for (const socket of [slow, honest])
    socket.on('data', (chunk: Buffer) => {
      responses += chunk.toString('latin1')
    })
  honest.write(
    'POST /up HTTP/1.1\r\nHost: a.test\r\nContent-Type: image/png\r\nContent-Length: 260000\r\n\r\n',
  )
  let left = 260_000
  timers.push(
    setInterval(() => {
      const piece = Math.min(left, 2_000)
      left -= piece
      if (piece > 0) honest.write(Buffer.alloc(piece, 'p'))
    }, 100),
  )
  await expect.poll(() => responses).toContain('HTTP/1.1 408')
  await expect.poll(() => responses).toContain('HTTP/1.1 200')
  expect(await gateway.metric('trellis_upstream_slow_clients_total', 'wait="request-body"')).toBe(1)
})
