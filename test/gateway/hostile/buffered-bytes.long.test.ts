import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { postBatch, siteService, startTestGateway, type TestGateway } from '../../support/gateway.ts'
import { type Origin, pause, startOrigin } from '../../support/origin.ts'

// limits.bufferedBytes: memory held for requests in flight, all of which is released.

const kibibyte = 1024
const mount = '/index.php/site-json'
const posts = `${mount}/site/v2/posts`
/** Half of limits.bufferedBytes is 1 MiB: one of these fits for one client, two do not. */
const large = JSON.stringify('x'.repeat(700 * kibibyte))
const json = { 'Content-Type': 'application/json' }

let origin: Origin
let gateway: TestGateway
let sockets: Socket[]

const start = async (longest: string): Promise<void> => {
  sockets = []
  origin = await startOrigin((request, wire) => {
    const length = Buffer.byteLength(large)
    if (request.target.includes('small')) wire.respond({ headers: json, content: '{}' })
    else if (request.target.includes('broken')) {
      wire.write(`HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: ${length}\r\n\r\n`)
      wire.write(large.slice(0, 300_000))
      setTimeout(() => wire.reset(), 50)
    } else if (request.target.includes('silent')) {
      wire.write(`HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: ${length}\r\n\r\n`)
      wire.write(large.slice(0, 300_000))
    } else wire.respond({ headers: { ...json, 'Cache-Control': 'max-age=60' }, content: large })
  })
  const timeouts = { headers: longest, idle: longest, total: longest }
  const upstream = { targets: [origin.origin], basePath: '/index.php/wp-json', timeouts }
  gateway = await startTestGateway({
    limits: {
      bufferedBytes: '2MiB',
      requestTimeout: longest,
      headersTimeout: longest,
      readerTimeout: longest,
    },
    services: {
      site: siteService(origin.origin, {
        upstream,
        batch: { split: 'item', idempotency: { maxBytes: '16MiB' } },
        cache: { rules: [{ match: 'GET /site/v2/**', ttl: '60s' }] },
      }),
      open: {
        contract: 'open',
        mount: '/open',
        upstream: { targets: [origin.origin], timeouts },
        cache: { profile: 'rfc-shared-cache' },
      },
    },
  })
}
afterEach(async () => {
  for (const socket of sockets) socket.destroy()
  await gateway.close()
  await origin.close()
})

const send = (bytes: string, from = '127.0.0.1'): Socket => {
  const { hostname, port } = new URL(gateway.publicAddress)
  const socket = connect({ host: hostname, port: Number(port), localAddress: from })
  socket.on('error', () => {})
  sockets.push(socket)
  socket.write(bytes)
  return socket
}
const body = (bytes: number, declared: number, from = '127.0.0.1'): Socket =>
  send(
    `POST ${posts} HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: ${declared}\r\n\r\n{"title":"${'t'.repeat(bytes)}`,
    from,
  )
const get = (path: string): string => `GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`
const buffered = (): Promise<number> => gateway.metric('trellis_buffered_bytes')
const refused = (work: string): Promise<number> =>
  gateway.metric('trellis_buffered_refusals_total', `work="${work}"`)

const firstBytes = async (socket: Socket): Promise<string> => {
  const [bytes] = (await once(socket, 'data')) as [Buffer]
  return bytes.toString('latin1')
}

const batchOf = async (requests: readonly unknown[], headers: Readonly<Record<string, string>> = {}) => {
  const response = await postBatch(gateway, { requests }, headers)
  const { responses } = (await response.json()) as {
    responses: { status: number; body: { code?: string } | string; headers: Record<string, string> }[]
  }
  return responses
}

describe('when the budget is used up', () => {
  beforeEach(() => start('1m'))

  test('a request body that would be read whole gets 503 with Retry-After, and other clients are served', async () => {
    body(900 * kibibyte, 1_000 * kibibyte)
    await expect.poll(buffered).toBeGreaterThan(900 * kibibyte)
    const second = body(900 * kibibyte, 1_000 * kibibyte)
    const response = await firstBytes(second)
    expect(response).toMatch(/^HTTP\/1\.1 503 /)
    expect(response).toMatch(/\r\nRetry-After: 1\r\n/i)
    expect(response).toContain('trellis_overloaded')
    expect(await refused('request-body')).toBe(1)
    body(500 * kibibyte, 600 * kibibyte, '127.0.0.9')
    await expect.poll(buffered).toBeGreaterThan(1_400 * kibibyte)
    expect(origin.received).toHaveLength(0)
    for (const socket of sockets) socket.destroy()
    await expect.poll(buffered).toBe(0)
  })

  test('a few addresses that hold bodies leave bytes for the write of another one', async () => {
    for (const from of ['127.0.0.4', '127.0.0.5', '127.0.0.6'])
      for (let size = 1_000; size > 1; size /= 2) body(size * kibibyte, 1_001 * kibibyte, from)
    await expect.poll(() => refused('request-body')).toBeGreaterThan(3)
    const write = await fetch(gateway.publicAddress + posts, {
      method: 'POST',
      headers: { ...json, Authorization: 'Basic YTpi' },
      body: JSON.stringify({ title: 'x'.repeat(100_000) }),
    })
    expect(write.status).toBe(200)
  })

  test('a body in chunks of one byte that arrive one by one counts for what its chunks cost', async () => {
    const socket = send(
      `POST ${posts} HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n`,
    )
    const response = firstBytes(socket)
    for (let sent = 0; sent < 10_000 && socket.bytesRead === 0; sent += 1) {
      socket.write('1\r\n{\r\n')
      await new Promise(setImmediate)
    }
    expect(await response).toMatch(/^HTTP\/1\.1 503 /)
  })

  test('a response streams to its client, whole, and is not stored', async () => {
    body(900 * kibibyte, 1_000 * kibibyte)
    await expect.poll(buffered).toBeGreaterThan(900 * kibibyte)
    const ask = async (): Promise<Response> => fetch(`${gateway.publicAddress}/open/large`)
    const first = await ask()
    expect(await first.text()).toBe(large)
    expect(await refused('fill')).toBeGreaterThan(0)
    await (await ask()).text()
    expect(origin.received).toHaveLength(2)
    expect(await gateway.metric('trellis_cache_not_stored_total', 'reason="no-room"')).toBeGreaterThan(0)
    for (const socket of sockets) socket.destroy()
    await expect.poll(buffered).toBe(0)
    await (await ask()).text()
    expect((await ask()).headers.get('Cache-Status')).toContain('hit')
  })

  test('a read of a batch gets 503 in its place, the others their responses', async () => {
    const responses = await batchOf([
      { method: 'GET', path: '/site/v2/posts/1' },
      { method: 'GET', path: '/site/v2/posts/2' },
    ])
    expect(responses.map(({ status }) => status).sort()).toEqual([200, 503])
    const [failed] = responses.filter(({ status }) => status === 503)
    expect(failed).toMatchObject({ body: { code: 'trellis_overloaded' }, headers: { 'Retry-After': '1' } })
    expect(await refused('batch-item')).toBeGreaterThan(0)
  })

  test('a write of a batch whose response cannot be held says that it was carried out, and is not served stale', async () => {
    const ask = async (): Promise<string> =>
      (await fetch(`${gateway.publicAddress}${posts}/1`)).headers.get('Cache-Status') ?? ''
    await ask()
    await expect.poll(ask).toContain('hit')
    // The response is compressed for the first readers.
    await expect.poll(buffered).toBe(0)
    body(900 * kibibyte, 1_000 * kibibyte)
    await expect.poll(buffered).toBeGreaterThan(900 * kibibyte)
    const responses = await batchOf([{ method: 'POST', path: '/site/v2/posts/1', body: { title: 'new' } }])
    const messages = responses.map(({ body: response }) => JSON.stringify(response)).join()
    expect(messages).toMatch(/was executed/)
    expect(origin.received.filter(({ method }) => method === 'POST')).toHaveLength(1)
    expect(await ask()).not.toContain('hit')
  })
})

describe('everything is given back', () => {
  beforeEach(() => start('2s'))

  const ended = (socket: Socket): void => {
    socket.destroy()
  }
  test.each<[description: string, run: () => Promise<void>]>([
    [
      'after a body whose client goes away in the middle',
      async () => {
        const socket = body(500 * kibibyte, 900 * kibibyte)
        await expect.poll(buffered).toBeGreaterThan(400 * kibibyte)
        ended(socket)
      },
    ],
    [
      'after a body that does not arrive in time',
      async () => {
        const socket = body(500 * kibibyte, 900 * kibibyte)
        await expect.poll(buffered).toBeGreaterThan(400 * kibibyte)
        expect(await firstBytes(socket)).toContain(' 408 ')
      },
    ],
    [
      'after a write that was answered',
      async () => {
        const content = JSON.stringify({ title: 't'.repeat(300 * kibibyte) })
        await (
          await fetch(`${gateway.publicAddress}${posts}/1`, { method: 'POST', headers: json, body: content })
        ).text()
      },
    ],
    [
      'after an upstream that breaks off',
      async () => {
        await fetch(`${gateway.publicAddress}/open/broken`)
          .then((response) => response.text())
          .catch(() => '')
      },
    ],
    [
      'after an upstream that falls silent',
      async () => {
        await fetch(`${gateway.publicAddress}/open/silent`)
          .then((response) => response.text())
          .catch(() => '')
      },
    ],
    [
      'after readers that go away before the end',
      async () => {
        const readers = ['a', 'b', 'c'].map((name) => send(get(`/open/large/${name}`)).pause())
        const joined = ['a', 'b', 'c'].map((name) => send(get(`/open/large/${name}`)).pause())
        await pause(100)
        for (const socket of [...readers, ...joined]) ended(socket)
      },
    ],
    [
      'after readers that take nothing',
      async () => {
        for (const name of ['a', 'b', 'c']) send(get(`/open/large/${name}`)).pause()
        await pause(100)
      },
    ],
    [
      'after a batch',
      async () => {
        await batchOf([1, 2, 3].map((id) => ({ method: 'GET', path: `/site/v2/posts/${id}` })))
      },
    ],
    [
      'after a batch whose items fail',
      async () => {
        await batchOf([
          { method: 'GET', path: '/site/v2/posts/1?search=broken' },
          { method: 'GET', path: '/site/v2/posts/2?search=silent' },
        ])
      },
    ],
    [
      'after a batch whose client goes away',
      async () => {
        const content = JSON.stringify({
          requests: [1, 2].map((id) => ({ method: 'GET', path: `/site/v2/posts/${id}?search=silent` })),
        })
        const socket = send(
          `POST ${mount}/batch/v1 HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: ${content.length}\r\n\r\n${content}`,
        )
        await origin.until(() => origin.received.length > 0)
        ended(socket)
      },
    ],
    [
      'after a batch with a key that is kept',
      async () => {
        await batchOf([{ method: 'GET', path: '/site/v2/posts/1' }], { 'Idempotency-Key': '"one"' })
      },
    ],
  ])('%s', async (_, run) => {
    await run()
    await expect.poll(buffered).toBe(0)
  })
})
