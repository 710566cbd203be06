import { once } from 'node:events'
import {
  type ClientHttp2Session,
  type ClientHttp2Stream,
  connect as connectHttp2,
  constants,
} from 'node:http2'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { keyPair, pem } from '../../support/certificates.ts'
import { siteService, startTestGateway, type TestGateway } from '../../support/gateway.ts'
import { type Origin, pause, type Script, startOrigin } from '../../support/origin.ts'

// A request whose body never arrives whole has changed nothing at the upstream, and is no fault of the upstream.

const ca = pem('ca.pem')
const read = '/wp-json/wp/v2/posts'
const response: Script = ({ method }, wire) =>
  wire.respond({ headers: { 'Content-Type': 'application/json' }, content: method === 'GET' ? '[]' : '{}' })

/** Of an upload no less than ten seconds count. */
const shortTotal = { connect: '500ms', headers: '500ms', idle: '500ms', total: '9s' }

let origin: Origin
let gateway: TestGateway
let sockets: Socket[]

const start = async (
  timeouts: Record<string, string> = shortTotal,
  more: Record<string, unknown> = {},
  originOptions: Parameters<typeof startOrigin>[1] = {},
  failureRatio = 0.1,
): Promise<void> => {
  origin = await startOrigin(response, originOptions)
  const upstream = {
    targets: [origin.origin],
    timeouts,
    eject: { after: 1, for: '10m' },
    breaker: { failureRatio, minRequests: 2, window: '1m', for: '10m' },
  }
  gateway = await startTestGateway({
    services: {
      site: siteService(origin.origin, {
        mount: '/wp-json',
        names: 'same',
        upstream: { ...upstream, basePath: '/wp-json' },
        cache: { rules: [{ match: 'GET /wp/v2/**', ttl: '1h' }] },
      }),
      pages: { contract: 'open', mount: '/', upstream },
    },
    ...more,
  })
  await get()
  expect(await get()).toContain('hit')
}
beforeEach(() => {
  sockets = []
})
afterEach(async () => {
  for (const socket of sockets) socket.destroy()
  await gateway.close()
  await origin.close()
})

const get = async (path = read): Promise<string> => {
  if (gateway.publicAddress.startsWith('https')) {
    const client = connectHttp2(gateway.publicAddress, { ca })
    const stream = client.request({ ':path': path })
    const [head] = (await once(stream, 'response')) as [Record<string, string>]
    client.destroy()
    return head['cache-status'] ?? ''
  }
  return (await fetch(gateway.publicAddress + path)).headers.get('cache-status') ?? ''
}
const dial = async (): Promise<Socket> => {
  const { hostname, port } = new URL(gateway.publicAddress)
  const socket = connect(Number(port), hostname)
  sockets.push(socket)
  socket.on('error', () => {})
  await once(socket, 'connect')
  return socket
}
const firstResponse = async (socket: Socket): Promise<string> =>
  String(((await once(socket, 'data')) as [Buffer])[0])
const drip = async (socket: Socket | ClientHttp2Stream, text: string): Promise<void> => {
  while (!socket.destroyed && socket.writable) {
    socket.write(text)
    await pause(100)
  }
}
const framed = 'Content-Type: image/png\r\nContent-Length: 100000'
const chunked = 'Content-Type: image/png\r\nTransfer-Encoding: chunked'

/** Nothing was dropped, nothing is held back from the cache, and the upstream takes requests as before. */
const nothingHappened = async (): Promise<void> => {
  expect(await get()).toContain('hit')
  expect(await get(`${read}?per_page=7`)).toContain('stored')
  expect(await get(`${read}?per_page=7`)).toContain('hit')
  await noneFailed()
}

/** The upstream may have acted on the part that it has: what it may have changed is quarantined. */
const isInDoubt = async (): Promise<void> => {
  expect(await get()).toContain('unsettled')
  await noneFailed()
}

const noneFailed = async (): Promise<void> => {
  expect(await gateway.metric('trellis_upstream_attempts_total', 'outcome="timeout"')).toBe(0)
  expect(await gateway.metric('trellis_upstream_attempts_total', 'outcome="broken"')).toBe(0)
  expect(await gateway.metric('trellis_requests_total', 'status_class="5xx"')).toBe(0)
}

const ways: readonly (readonly [string, string, string, string])[] = [
  ['a path that no row lists', '/wp-json/unlisted/path', framed, 'trellis_request_timeout'],
  ['the media route', '/wp-json/wp/v2/media', framed, 'trellis_request_timeout'],
  ['an open service of the same upstream', '/wp-admin/any', framed, '"request_timeout"'],
  ['the same in chunks', '/wp-admin/any', chunked, '"request_timeout"'],
  ['the media route in chunks', '/wp-json/wp/v2/media', chunked, 'trellis_request_timeout'],
]

describe('a client that sends its body too slowly', () => {
  test('gets 408 after the total timeout of the upstream, whatever the path and the framing', async () => {
    await start(shortTotal)
    const ask = async (path: string, headers: string): Promise<string> => {
      const socket = await dial()
      socket.write(`POST ${path} HTTP/1.1\r\nHost: a.test\r\n${headers}\r\n\r\n`)
      void drip(socket, headers === framed ? 'x' : '1\r\nx\r\n')
      return firstResponse(socket)
    }
    // Side by side: each waits ten seconds.
    const asked = [...ways, ...ways].map(async ([title, path, headers, code]) => ({
      ...{ title, code },
      text: await ask(path, headers),
    }))
    for (const { title, code, text } of await Promise.all(asked)) {
      expect(text, title).toMatch(/^HTTP\/1\.1 408 /)
      expect(text, title).toContain(code)
    }
    await isInDoubt()
  })

  test.each(ways)('to %s gets 408 after the idle timeout', async (_, path, headers, code) => {
    await start({ idle: '300ms' })
    const socket = await dial()
    socket.write(`POST ${path} HTTP/1.1\r\nHost: a.test\r\n${headers}\r\n\r\n`)
    const text = await firstResponse(socket)
    expect(text).toMatch(/^HTTP\/1\.1 408 /)
    expect(text).toContain(code)
    await nothingHappened()
  })

  test.each(ways)('to %s gets 408 after limits.requestTimeout', async (_, path, headers, code) => {
    await start({}, { limits: { requestTimeout: '300ms' } })
    const socket = await dial()
    socket.write(`POST ${path} HTTP/1.1\r\nHost: a.test\r\n${headers}\r\n\r\n`)
    void drip(socket, headers === framed ? 'x' : '1\r\nx\r\n')
    const text = await firstResponse(socket)
    expect(text).toMatch(/^HTTP\/1\.1 408 /)
    expect(text).toContain(code)
    await isInDoubt()
  })

  test.each(ways)('to %s may disconnect in the middle', async (_, path, headers) => {
    await start({})
    const socket = await dial()
    socket.write(`POST ${path} HTTP/1.1\r\nHost: a.test\r\n${headers}\r\n\r\n`)
    await origin.until(() => origin.open > 0)
    await expect.poll(() => gateway.metric('trellis_in_flight_requests')).toBe(1)
    socket.resetAndDestroy()
    await expect.poll(() => gateway.metric('trellis_in_flight_requests')).toBe(0)
    await nothingHappened()
  })

  test.each(ways)('to %s does not count as a failure of the upstream', async (_, path, headers) => {
    await start({}, {}, { respondsEarly: true })
    origin.script = (received, wire) =>
      received.method === 'GET' ? response(received, wire, 0) : pause(1_100).then(wire.reset)
    const socket = await dial()
    socket.write(
      `POST ${path} HTTP/1.1\r\nHost: a.test\r\n${headers}\r\n\r\n${headers === framed ? 'x' : '1\r\nx\r\n'}`,
    )
    expect(await firstResponse(socket)).toMatch(/^HTTP\/1\.1 502 /)
    expect(await get()).toContain('unsettled')
  })

  test.each(ways)('to %s leaves an unknown outcome when a 504 comes early', async (_, path, headers) => {
    await start({}, {}, { respondsEarly: true })
    origin.script = (received, wire) =>
      received.method === 'GET'
        ? response(received, wire, 0)
        : pause(1_100).then(() => wire.respond({ status: 504 }))
    const socket = await dial()
    socket.write(
      `POST ${path} HTTP/1.1\r\nHost: a.test\r\n${headers}\r\n\r\n${headers === framed ? 'x' : '1\r\nx\r\n'}`,
    )
    expect(await firstResponse(socket)).toMatch(/^HTTP\/1\.1 504 /)
    expect(await get()).toContain('unsettled')
  })
})

describe('a client that sends its body whole', () => {
  test.each(ways)(
    'to %s leaves an unknown outcome behind when the upstream is silent',
    async (_, path, headers) => {
      // The outcome stays unknown for as long as `total` says.
      await start({ ...shortTotal, total: '1m' }, {}, {}, 0)
      origin.script = (received, wire) =>
        received.method === 'GET' ? response(received, wire, 0) : undefined
      const socket = await dial()
      const body = headers === framed ? 'x'.repeat(100_000) : '1\r\nx\r\n0\r\n\r\n'
      socket.write(`POST ${path} HTTP/1.1\r\nHost: a.test\r\n${headers}\r\n\r\n${body}`)
      expect(await firstResponse(socket)).toMatch(/^HTTP\/1\.1 504 /)
      expect(await gateway.metric('trellis_upstream_attempts_total', 'outcome="timeout"')).toBe(1)
      origin.script = response
      expect(await get(path.endsWith('/media') ? '/wp-json/wp/v2/media' : read)).toContain('unsettled')
    },
  )

  test('does not get 408 when the upstream reads nothing', async () => {
    await start(shortTotal)
    origin.script = () => {}
    const deaf = createServer((socket) => socket.pause().on('error', () => {})).listen(0, '127.0.0.1')
    await once(deaf, 'listening')
    const { port } = deaf.address() as AddressInfo
    const services = {
      deaf: {
        contract: 'open',
        mount: '/',
        upstream: { targets: [`http://127.0.0.1:${port}`], timeouts: { idle: '300ms' } },
      },
    }
    await gateway.put({ services })
    const socket = await dial()
    const length = 32 * 1024 * 1024
    socket.write(`POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: ${length}\r\n\r\n`)
    socket.write(Buffer.alloc(length))
    expect(await firstResponse(socket)).toMatch(/^HTTP\/1\.1 504 /)
    expect(await gateway.metric('trellis_upstream_attempts_total', 'outcome="timeout"')).toBe(1)
    deaf.close()
  })
})

describe('over HTTP/2', () => {
  const declared = { 'content-length': '100000' }
  const begin = (headers: Record<string, string>, body: string): ClientHttp2Stream => {
    const client = connectHttp2(gateway.publicAddress, { ca })
    clients.push(client)
    client.on('error', () => {})
    const stream = client.request({ ':method': 'POST', ':path': '/wp-json/unlisted', ...headers })
    stream.on('error', () => {})
    stream.write(body)
    return stream
  }
  const post = async (headers: Record<string, string>, body: string): Promise<ClientHttp2Stream> => {
    const inFlight = (): Promise<number> => gateway.metric('trellis_upstream_in_flight_requests', 'site')
    const others = await inFlight()
    const stream = begin(headers, body)
    await expect.poll(inFlight).toBeGreaterThan(others)
    return stream
  }
  const clients: ClientHttp2Session[] = []
  const listen = { port: 0, http2: true, tls: keyPair('good') }
  const restart = async (timeouts: Record<string, string>, more: Record<string, unknown>): Promise<void> => {
    await gateway.close()
    await origin.close()
    await start(timeouts, { listen, ...more })
  }
  beforeEach(() => start({}, { listen }))
  afterEach(() => {
    for (const client of clients.splice(0)) client.destroy()
  })

  test('a body that comes too slowly is answered 408, with a length and without one', async () => {
    await restart(shortTotal, {})
    // Side by side: each waits ten seconds.
    const heads = [declared, {}].map((headers) => {
      const stream = begin(headers, 'x')
      void drip(stream, 'x')
      return once(stream, 'response') as Promise<[{ ':status': number }]>
    })
    expect((await Promise.all(heads)).map(([head]) => head[':status'])).toEqual([408, 408])
    await isInDoubt()
  })

  test.each<[string, Record<string, string>, string]>([
    ['/wp-json/unlisted', declared, 'trellis_request_timeout'],
    ['/wp-json/unlisted', {}, 'trellis_request_timeout'],
    ['/wp-json/unlisted', { expect: '100-continue' }, 'trellis_request_timeout'],
    ['/wp-json/wp/v2/media', { 'content-type': 'image/png' }, 'trellis_request_timeout'],
    ['/wp-json/wp/v2/posts', { 'content-type': 'application/json' }, 'trellis_request_timeout'],
    ['/wp-json/batch/v1', { 'content-type': 'application/json' }, 'trellis_request_timeout'],
    ['/wp-admin/any', {}, 'request_timeout'],
  ])(
    'a body for %s (%j) whose own time is over is answered 408 and then reset',
    async (path, headers, code) => {
      // A contract reads JSON before it is sent.
      const isRead = headers['content-type'] === 'application/json'
      await restart({}, { limits: { requestTimeout: '300ms' } })
      const client = connectHttp2(gateway.publicAddress, { ca })
      clients.push(client)
      const authorization = 'Basic YTpi'
      const stream = client.request({ ':method': 'POST', ':path': path, authorization, ...headers })
      const errors: Error[] = []
      stream.on('error', (error) => errors.push(error))
      let body = ''
      stream.on('data', (chunk: Buffer) => {
        body += chunk
      })
      // The stream of node:http2 never closes if the reset comes while a write of the client waits.
      const ended = new Promise((resolve) => stream.once('aborted', resolve))
      stream.write(' ')
      void drip(stream, ' ')
      const [head] = (await once(stream, 'response')) as [{ ':status': number }]
      expect(head[':status']).toBe(408)
      await ended
      expect(JSON.parse(body)).toMatchObject({ code })
      expect(errors).toEqual([])
      expect(stream.rstCode).toBe(constants.NGHTTP2_NO_ERROR)
      await expect.poll(() => gateway.metric('trellis_in_flight_requests')).toBe(0)
      await expect.poll(() => gateway.metric('trellis_upstream_in_flight_requests', 'site')).toBe(0)
      expect(await gateway.metric('trellis_refusals_total', '"request_timeout"')).toBe(1)
      // The connection goes on.
      const next = client.request({ ':path': read })
      const [responded] = (await once(next, 'response')) as [{ ':status': number }]
      expect(responded[':status']).toBe(200)
      next.close()
      await (isRead ? nothingHappened() : isInDoubt())
    },
  )

  test.each([declared, {}])(
    'a body that is broken off (%j) is not taken for a whole one',
    async (headers) => {
      const stream = await post(headers, 'x')
      await pause(50)
      const before = origin.received.length
      stream.destroy(new Error('gone'))
      await expect.poll(() => gateway.metric('trellis_in_flight_requests')).toBe(0)
      expect(origin.received.slice(before).map(({ head }) => head)).toEqual([])
      await isInDoubt()
    },
  )

  test('a write whose body a contract reads is not made of a part of it', async () => {
    const client = connectHttp2(gateway.publicAddress, { ca })
    clients.push(client)
    const stream = client.request({
      ':method': 'POST',
      ':path': '/wp-json/wp/v2/posts',
      authorization: 'Basic YTpi',
      'content-type': 'application/x-www-form-urlencoded',
    })
    stream.on('error', () => {})
    stream.write('title=a')
    await expect.poll(() => gateway.metric('trellis_in_flight_requests')).toBe(1)
    const before = origin.received.length
    stream.destroy(new Error('gone'))
    await expect.poll(() => gateway.metric('trellis_in_flight_requests')).toBe(0)
    await nothingHappened()
    expect(origin.received.slice(before).map(({ method }) => method)).not.toContain('POST')
  })

  test('a request that breaks off after its last byte is carried out', async () => {
    let respond = (): void => {}
    origin.script = (received, wire, count) => {
      if (received.method === 'GET') return response(received, wire, count)
      respond = () => wire.respond({ status: 404 })
    }
    const stream = await post({ 'content-length': '100000' }, 'x'.repeat(100_000))
    await origin.until(() => origin.received.some(({ method }) => method === 'POST'))
    stream.destroy(new Error('gone'))
    await expect.poll(() => gateway.metric('trellis_in_flight_requests')).toBe(0)
    expect(await gateway.metric('trellis_upstream_in_flight_requests', 'site')).toBe(1)
    respond()
    await expect.poll(() => gateway.metric('trellis_upstream_in_flight_requests', 'site')).toBe(0)
    await nothingHappened()
  })
})
