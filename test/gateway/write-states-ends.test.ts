import { once } from 'node:events'
import { type ClientHttp2Session, connect as connectHttp2 } from 'node:http2'
import { connect, type Socket } from 'node:net'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { keyPair } from '../support/certificates.ts'
import { postBatch, siteService, startTestGateway, type TestGateway } from '../support/gateway.ts'
import { createLatch, type Latch } from '../support/latch.ts'
import { type Origin, type Script, startOrigin } from '../support/origin.ts'

/** Reads show the version. What a write does to it, and when, is for the script of the test. */
let origin: Origin
let gateway: TestGateway
let version: number
let commit: Latch
let sockets: Socket[]
let writes: Script
let shown: (target: string) => unknown

const json = { 'Content-Type': 'application/json' }
const head = 'HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n'
const event = (text: string): string => `${(text.length + 2).toString(16)}\r\n${text}\n\n\r\n`

const cache = { rules: [{ match: 'GET /**', ttl: '1h' }] }
/** Nothing ends because a busy machine is late. */
const timeouts = { headers: '1m', idle: '1m', total: '1m' }
const pages = (more: Record<string, unknown> = {}) => ({
  contract: 'open',
  mount: '/',
  upstream: { targets: [origin.origin], timeouts },
  cache,
  ...more,
})
const site = (more: Record<string, unknown> = {}) => siteService(origin.origin, { cache, ...more })
const start = async (
  more: Record<string, unknown> = {},
  ofSite: Record<string, unknown> = {},
  of: Record<string, string> = timeouts,
) => {
  gateway = await startTestGateway({
    services: {
      pages: pages({ websockets: true, upstream: { targets: [origin.origin], timeouts: of } }),
      site: site(ofSite),
    },
    ...more,
  })
}

beforeEach(async () => {
  version = 1
  commit = createLatch()
  sockets = []
  shown = () => [{ id: version }]
  origin = await startOrigin(
    (request, wire, count) => {
      const { method, headers, target } = request
      if (method !== 'GET' || headers['upgrade'] !== undefined) return writes(request, wire, count)
      wire.respond({ headers: json, content: JSON.stringify(shown(target)) })
    },
    { respondsEarly: true },
  )
})
afterEach(async () => {
  for (const socket of sockets) socket.destroy()
  await gateway.close()
  await origin.close()
})

const paths = ['/import', '/index.php/site-json/site/v2/posts'] as const
const readAll = (): Promise<readonly (readonly [string, string])[]> =>
  Promise.all(
    paths.map(async (path) => {
      const response = await fetch(gateway.publicAddress + path)
      return [await response.text(), response.headers.get('cache-status') ?? ''] as const
    }),
  )
const areHits = async (): Promise<boolean> => (await readAll()).every(([, status]) => status.includes('hit'))

const store = async (): Promise<void> => {
  await readAll()
  expect(await areHits()).toBe(true)
}
/** What is read now is not stored, and so is right once the write has been carried out. */
const isQuarantined = async (concerns: (path: string) => boolean = () => true): Promise<void> => {
  const concerned = async () => (await readAll()).filter((_, at) => concerns(paths[at] ?? ''))
  for (const [, status] of await concerned()) expect(status).toContain('unsettled')
  commit.open()
  await expect.poll(() => version).toBeGreaterThan(1)
  for (const [text] of await concerned()) expect(text).not.toBe('[{"id":1}]')
}
/** An open service keeps what it stores on other URLs than that of the write. */
const isOfSite = (path: string): boolean => path === paths[1]
const states = (state: string): Promise<number> =>
  gateway.metric('trellis_write_states_total', `state="${state}"`)
const post = (init: RequestInit = {}): Promise<Response> =>
  fetch(`${gateway.publicAddress}/import`, { method: 'POST', body: 'x', ...init })
const commitLater = async (): Promise<void> => {
  await commit.opened
  version += 1
}
const dial = async (text: string): Promise<Socket> => {
  const { hostname, port } = new URL(gateway.publicAddress)
  const socket = connect(Number(port), hostname)
  sockets.push(socket)
  socket.on('error', () => {})
  await once(socket, 'connect')
  socket.write(text)
  return socket
}

const profiles = { safe: {}, 'rfc-shared-cache': { profile: 'rfc-shared-cache' } } as const
const gaveUp = [202, 408, 460, 499, 502, 504, 520, 522, 524].flatMap((status) =>
  (['safe', 'rfc-shared-cache'] as const).map((profile) => [status, profile] as const),
)

test.each(gaveUp)(
  'ended with %i, which leaves open what it did: quarantined (%s)',
  async (status, profile) => {
    await start({ services: { pages: pages({ cache: { ...cache, ...profiles[profile] } }), site: site() } })
    writes = (_, wire) => {
      wire.respond({ status, content: 'gone' })
      return commitLater()
    }
    await store()
    expect((await post()).status).toBe(status)
    await isQuarantined()
  },
)

test('ended with 202: its content shows the state before', async () => {
  const texts = {
    title: { rendered: 'a' },
    content: { rendered: 'a', protected: false },
    guid: { rendered: 'a' },
  }
  const head = { slug: 'a', link: 'a', type: 'post', date: '2026-01-01T00:00:00', author: 1, sticky: false }
  const more = { format: 'standard', template: '', categories: [1], tags: [], ...texts, ...head }
  const post = (status: string) => ({ id: 3, status, date_gmt: head.date, featured_media: 0, ...more })
  await start()
  shown = (target) => (target.endsWith('/3') ? post('draft') : version === 1 ? [] : [post('publish')])
  writes = (_, wire) => {
    wire.respond({ status: 202, headers: json, content: JSON.stringify(post('draft')) })
    return commitLater()
  }
  const list = gateway.publicAddress + paths[1]
  for (const url of [`${list}/3`, list]) await (await fetch(url)).text()
  expect((await fetch(list)).headers.get('cache-status')).toContain('hit')
  await fetch(`${list}/3`, { method: 'PUT', headers: json, body: '{"status":"publish"}' })
  expect((await fetch(list)).headers.get('cache-status')).toContain('unsettled')
  commit.open()
  await expect.poll(() => version).toBe(2)
  expect(await (await fetch(list)).json()).toHaveLength(1)
})

test('broken off: a response that passes unread since limits.bufferedBytes is full', async () => {
  await start({ limits: { bodyBytes: '16KiB', bufferedBytes: '64KiB' } })
  writes = async (_, wire) => {
    wire.write('HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 100002\r\n\r\n"')
    wire.write('x'.repeat(100_000))
    wire.reset()
    await commitLater()
  }
  await store()
  await fetch(`${gateway.publicAddress}${paths[1]}/1`, {
    method: 'PUT',
    headers: json,
    body: '{"title":"x"}',
  })
    .then((response) => response.text())
    .catch(() => 'cut')
  await expect.poll(() => states('broken-off')).toBe(1)
  await isQuarantined(isOfSite)
})

test('broken off: a batch that is sent whole', async () => {
  await start({}, { batch: { split: 'chunk' } })
  writes = (_, wire) => {
    wire.reset()
    return commitLater()
  }
  await store()
  const item = { method: 'PUT', path: '/site/v2/posts/1', body: { title: 'x' } }
  const response = await postBatch(gateway, { requests: [item, { ...item, path: '/site/v2/posts/2' }] })
  expect(await response.text()).toContain('"outcome":"unknown"')
  await isQuarantined(isOfSite)
})

const handshake = [
  'GET /import HTTP/1.1',
  'Host: a.test',
  'Connection: Upgrade',
  'Upgrade: websocket',
  'Sec-WebSocket-Version: 13',
  'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
  '\r\n',
].join('\r\n')

test.each([
  ['without a response', (): string | undefined => undefined],
  ['with 502', () => 'HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n'],
])('the handshake of a WebSocket that fails %s is no write: what is stored stays', async (_, answer) => {
  await start()
  writes = (__, wire) => {
    const text = answer()
    if (text === undefined) wire.reset()
    else wire.write(text)
  }
  await store()
  const socket = await dial(handshake)
  expect(String(((await once(socket, 'data')) as [Buffer])[0])).toMatch(/^HTTP\/1.1 502/)
  expect(await areHits()).toBe(true)
})

test.each(['sent', 'open'] as const)('broken off: a drain that passes its time while %s', async (state) => {
  await start({ drain: { delay: '0ms', timeout: '200ms' } })
  writes = (_, wire) => {
    if (state === 'open') wire.write(head + event('begun'))
    return commitLater()
  }
  const ended = post()
    .then((response) => response.text())
    .catch(() => 'cut')
  await expect.poll(() => states(state)).toBe(1)
  expect(await gateway.drain('at-once')).toBe('cut')
  expect(await ended).toBe('cut')
})

test.each(['partly-sent', 'open'] as const)(
  'broken off: a stream of HTTP/2 that is reset while %s',
  async (state) => {
    // The client of Node ends the body before it resets: the write is sent, and ends with this timeout.
    await start({ listen: { tls: keyPair('good'), http2: true } }, {}, { ...timeouts, headers: '1s' })
    const allowed: ClientHttp2Session = connectHttp2(gateway.publicAddress.replace('http:', 'https:'), {
      rejectUnauthorized: false,
    })
    const ask = (more: Record<string, string> = {}): Promise<string> =>
      new Promise((resolve, reject) => {
        const stream = allowed.request({ ':path': paths[0], ...more })
        let status = ''
        stream.on('response', (headers) => {
          status = String(headers['cache-status'])
        })
        stream.on('error', reject)
        stream.on('end', () => resolve(status))
        stream.resume()
      })
    try {
      writes = (_, wire) => {
        if (state === 'open') wire.write(head + event('begun'))
        return commitLater()
      }
      await ask()
      expect(await ask()).toContain('hit')
      const stream = allowed.request({ ':method': 'POST', ':path': paths[0] }, { endStream: false })
      stream.on('error', () => undefined)
      if (state === 'open') stream.end('x')
      else stream.write('x')
      await expect.poll(() => states(state)).toBe(1)
      stream.close(8)
      await expect.poll(() => states('broken-off')).toBe(1)
      expect(await ask()).toContain('unsettled')
      expect(await ask()).toContain('unsettled')
    } finally {
      allowed.destroy()
    }
  },
)
