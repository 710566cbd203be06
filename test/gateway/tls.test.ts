import { mkdtemp, writeFile } from 'node:fs/promises'
import { type ClientHttp2Session, connect as connectHttp2, type IncomingHttpHeaders } from 'node:http2'
import { request as httpsRequest } from 'node:https'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { connect as connectTls, type TLSSocket } from 'node:tls'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { checkConfig } from '../../src/gateway/load-config.ts'
import { keyPair, pem } from '../support/certificates.ts'
import { siteService, startTestGateway, type TestGateway } from '../support/gateway.ts'
import { createLatch } from '../support/latch.ts'
import { type Origin, startOrigin } from '../support/origin.ts'

type Tree = { readonly [key: string]: unknown }

const ca = pem('ca.pem')
const json = { 'Content-Type': 'application/json' }

let origin: Origin
let gateway: TestGateway
beforeAll(async () => {
  origin = await startOrigin()
})
afterAll(() => origin.close())
beforeEach(() => {
  origin.received.length = 0
  origin.script = ({ content }, wire) =>
    wire.respond({
      headers: { ...json, Connection: 'X-Hop', 'X-Hop': '1' },
      content: `{"read":${content.length}}`,
    })
})
afterEach(() => gateway.close())

const start = async (listen: Tree, more: Tree = {}): Promise<void> => {
  gateway = await startTestGateway({
    listen: { port: 0, ...listen },
    services: {
      site: siteService(origin.origin),
      open: {
        contract: 'open',
        mount: '/a',
        upstream: { targets: [origin.origin] },
        cache: { rules: [{ match: 'GET /hit/**', ttl: '60s' }] },
      },
    },
    ...more,
  })
}
const port = (): number => Number(new URL(gateway.publicAddress).port)
const secure = async (options: Tree = {}): Promise<TLSSocket> => {
  const socket = connectTls({ host: '127.0.0.1', port: port(), ca, rejectUnauthorized: false, ...options })
  await new Promise((resolve, reject) => socket.once('secureConnect', resolve).once('error', reject))
  return socket
}
const nameShown = async (): Promise<unknown> => {
  const socket = await secure()
  const name = socket.getPeerCertificate().subject.CN
  socket.destroy()
  return name
}

const overHttp1 = (path: string): Promise<{ status: number | undefined; version: string; body: string }> =>
  new Promise((resolve, reject) => {
    const sent = httpsRequest({ host: '127.0.0.1', port: port(), path, ca, agent: false }, async (response) =>
      resolve({ status: response.statusCode, version: response.httpVersion, body: await text(response) }),
    )
    sent.once('error', reject)
    sent.end()
  })

describe('TLS', () => {
  test('links, addresses and the headers for the upstream say https', async () => {
    await start({ tls: keyPair('good') })
    expect(gateway.publicAddress).toMatch(/^https:/)
    expect(await overHttp1('/a/x')).toMatchObject({ status: 200, version: '1.1' })
    expect(origin.received[0]?.headers['x-forwarded-proto']).toBe('https')
    expect(await gateway.metric('trellis_tls_certificate_expiry_timestamp_seconds')).toBeGreaterThan(
      4_000_000_000,
    )
  })

  test.each([false, true])(
    'a plain request gets 400 and the reason, and its connection ends (HTTP/2: %s)',
    async (http2) => {
      await start({ tls: keyPair('good'), http2 })
      const reply = await new Promise((resolve) => {
        const plain = connect(port(), '127.0.0.1')
        let received = ''
        plain.on('data', (bytes) => {
          received += bytes
        })
        plain.once('close', () => resolve(received))
        plain.write(
          `POST /a/x HTTP/1.1\r\nHost: a.test\r\nContent-Length: 100000\r\n\r\n${'x'.repeat(100_000)}`,
        )
      })
      expect(reply).toMatch(/^HTTP\/1\.1 400 .*https:\/\//s)
      expect(origin.received).toHaveLength(0)
    },
  )

  test('what is neither TLS nor HTTP gets no response', async () => {
    await start({ tls: keyPair('good') })
    const reply = await new Promise((resolve) => {
      const plain = connect(port(), '127.0.0.1')
      let received = ''
      plain.on('error', () => {})
      plain.on('data', (bytes) => {
        received += bytes.toString('latin1')
      })
      plain.once('close', () => resolve(received))
      plain.write('SSH-2.0-OpenSSH\r\n')
    })
    expect(reply).not.toContain('HTTP')
  })

  test('versions older than configured are not spoken', async () => {
    await start({ tls: { ...keyPair('good'), minVersion: '1.3' } })
    await expect(secure({ maxVersion: 'TLSv1.2' })).rejects.toThrow()
    expect((await secure()).getProtocol()).toBe('TLSv1.3')
  })

  test('a certificate that has changed in its file is shown from the next reload on; open connections stay', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'trellis-tls-'))
    const tls = { cert: `file:${join(folder, 'cert.pem')}`, key: `file:${join(folder, 'key.pem')}` }
    const write = async (name: string): Promise<void> => {
      await writeFile(join(folder, 'cert.pem'), pem(`${name}.pem`))
      await writeFile(join(folder, 'key.pem'), pem(`${name}.key`))
    }
    await write('good')
    await start({ tls })
    expect(await nameShown()).toBe('good')
    const kept = await secure()
    await write('client')
    const before = await gateway.metric('trellis_tls_certificate_expiry_timestamp_seconds')
    expect(await gateway.reload()).toMatchObject({ kind: 'applied' })
    expect(await nameShown()).not.toBe('good')
    expect(await gateway.metric('trellis_tls_certificate_expiry_timestamp_seconds')).not.toBe(before)
    kept.write('GET /a/x HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n')
    expect(await text(kept)).toContain('HTTP/1.1 200')
    await writeFile(join(folder, 'key.pem'), pem('good.key'))
    expect(await gateway.reload()).toMatchObject({ kind: 'invalid' })
    expect(await nameShown()).not.toBe('good')
  })
})

type Reply = { readonly status: number; readonly headers: IncomingHttpHeaders; readonly body: string }

const session = async (): Promise<ClientHttp2Session> => {
  const client = connectHttp2(gateway.publicAddress, { ca })
  client.on('error', () => {})
  await new Promise((resolve, reject) => client.once('connect', resolve).once('error', reject))
  return client
}
const ask = (
  client: ClientHttp2Session,
  headers: Record<string, string>,
  body?: string,
  onHead = () => {},
): Promise<Reply> =>
  new Promise((resolve, reject) => {
    const stream = client.request(headers, { endStream: body === undefined })
    stream.once('error', reject)
    stream.once('response', async (head) => {
      onHead()
      try {
        resolve({ status: head[':status'] ?? 0, headers: head, body: await text(stream) })
      } catch (error) {
        reject(error)
      }
    })
    if (body !== undefined) stream.end(body)
  })

describe('HTTP/2', () => {
  let client: ClientHttp2Session
  beforeEach(async () => {
    await start({ http2: true, tls: keyPair('good') })
    client = await session()
  })
  afterEach(() => client.destroy())

  test('is spoken by who can, HTTP/1.1 with others', async () => {
    expect(client.alpnProtocol).toBe('h2')
    expect((await ask(client, { ':path': '/a/x' })).status).toBe(200)
    expect(await overHttp1('/a/x')).toMatchObject({ status: 200, version: '1.1' })
  })

  test('a miss, a hit, a 304 and a HEAD', async () => {
    const first = await ask(client, { ':path': '/a/hit/1' })
    expect([first.status, first.body]).toEqual([200, '{"read":0}'])
    const second = await ask(client, { ':path': '/a/hit/1' })
    expect(second.headers['cache-status']).toContain('hit')
    expect(second.body).toBe('{"read":0}')
    const etag = String(second.headers['etag'])
    const third = await ask(client, { ':path': '/a/hit/1', 'if-none-match': etag })
    expect([third.status, third.body]).toEqual([304, ''])
    const head = await ask(client, { ':path': '/a/hit/1', ':method': 'HEAD' })
    expect([head.status, head.body, head.headers['content-length']]).toEqual([200, '', '10'])
  })

  test('connection headers are not forwarded in either direction, and repeated headers stay unchanged', async () => {
    origin.script = (_, wire) =>
      wire.write(
        'HTTP/1.1 200 OK\r\nSet-Cookie: a=1\r\nSet-Cookie: b=2\r\nKeep-Alive: timeout=5\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\nok',
      )
    const reply = await ask(client, { ':path': '/a/x', te: 'trailers' })
    expect(reply.headers['set-cookie']).toEqual(['a=1', 'b=2'])
    expect(reply.headers['connection']).toBeUndefined()
    expect(reply.headers['keep-alive']).toBeUndefined()
    expect(reply.body).toBe('ok')
    const names = Object.keys(origin.received[0]?.headers ?? {})
    expect(names.filter((name) => name.startsWith(':') || name === 'te')).toEqual([])
  })

  test('a header that has one value and came twice is one line, as HTTP/1.1 readers may take it, and ends nothing', async () => {
    const twice = ['ETag', 'Location', 'Content-Type', 'Last-Modified', 'Age', 'Expires', 'Retry-After']
    const lines = twice.map((name) => `${name}: 1\r\n${name}: 2\r\n`).join('')
    origin.script = (_, wire) => wire.write(`HTTP/1.1 200 OK\r\n${lines}Content-Length: 2\r\n\r\nok`)
    for (const path of ['/a/x', '/a/hit/twice', '/a/hit/twice']) {
      const reply = await ask(client, { ':path': path })
      expect([reply.status, reply.body]).toEqual([200, 'ok'])
      expect(reply.headers).toMatchObject({ location: '1, 2', 'retry-after': '1, 2' })
    }
  })

  test('content is read and checked, and streams, without a length too', async () => {
    const headers = { ':method': 'POST', authorization: 'Basic YTpi', 'content-type': 'application/json' }
    const bad = await ask(client, { ...headers, ':path': '/index.php/site-json/site/v2/posts' }, '{"title":')
    expect([bad.status, JSON.parse(bad.body)]).toMatchObject([400, { code: 'rest_invalid_json' }])
    const good = await ask(
      client,
      { ...headers, ':path': '/index.php/site-json/site/v2/posts' },
      '{"title":"x"}',
    )
    expect(good.status).toBe(200)
    const upload = { ...headers, 'content-type': 'application/octet-stream', ':path': '/a/upload' }
    expect((await ask(client, upload, 'x'.repeat(300_000))).body).toBe('{"read":300000}')
    expect(origin.received).toHaveLength(2)
  })

  test('a client that waits for a 100 gets it, and an expectation that nobody has acknowledged is ignored', async () => {
    const headers = { ':method': 'POST', ':path': '/a/upload', 'content-type': 'text/plain' }
    const waiting = client.request({ ...headers, expect: '100-continue' })
    waiting.once('continue', () => waiting.end('content'))
    expect(await text(waiting)).toBe('{"read":7}')
    expect((await ask(client, { ...headers, expect: 'the-best' }, 'content')).body).toBe('{"read":7}')
  })

  test('Host and :authority that differ are refused before an upstream request', async () => {
    const reply = await ask(client, { ':path': '/a/x', ':authority': 'a.test', host: 'b.test' })
    expect(reply.status).toBe(400)
    expect((await ask(client, { ':path': '/a/x', ':authority': 'a.test', host: 'A.test' })).status).toBe(200)
    expect(origin.received).toHaveLength(1)
  })

  test('an upstream that breaks off resets the stream: a short response does not look whole', async () => {
    // What breaks off before that is answered 502.
    const hasHead = createLatch()
    origin.script = async (_, wire) => {
      wire.write('HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nshort')
      await hasHead.opened
      wire.reset()
    }
    await expect(ask(client, { ':path': '/a/x' }, undefined, hasHead.open)).rejects.toThrow()
    origin.script = (_, wire) => wire.respond({ content: 'whole' })
    expect((await ask(client, { ':path': '/a/x' })).body).toBe('whole')
  })

  test('a client that goes away ends its request to the upstream', async () => {
    let gone = false
    origin.script = (_, wire) => {
      wire.socket.once('close', () => {
        gone = true
      })
    }
    const stream = client.request({ ':path': '/a/slow' })
    stream.on('error', () => {})
    await origin.until(() => origin.received.length === 1)
    stream.close(8)
    await expect.poll(() => gone).toBe(true)
  })

  test('interim responses are not passed on: Node writes them over HTTP/1.1 only', async () => {
    origin.script = (_, wire) =>
      wire.write(
        'HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok',
      )
    let interim = 0
    const stream = client.request({ ':path': '/a/x' })
    stream.on('headers', () => {
      interim += 1
    })
    expect(await text(stream)).toBe('ok')
    expect(interim).toBe(0)
  })

  test('many at once on one connection', async () => {
    const replies = await Promise.all(
      Array.from({ length: 50 }, (_, n) => ask(client, { ':path': `/a/hit/${n % 5}` })),
    )
    expect(new Set(replies.map(({ status }) => status))).toEqual(new Set([200]))
    expect(origin.received).toHaveLength(5)
  })

  test('a drain is announced: open streams finish, the session ends', async () => {
    const late = createLatch()
    origin.script = async (_, wire) => {
      await late.opened
      wire.respond({ content: 'late' })
    }
    const slow = ask(client, { ':path': '/a/x' })
    await origin.until(() => origin.received.length === 1)
    const goneAway = new Promise((resolve) => client.once('goaway', resolve))
    const drained = gateway.drain()
    await goneAway
    late.open()
    expect((await slow).body).toBe('late')
    expect(await drained).toBe('finished')
  })
})

test.each([
  ['HTTP/2 without TLS', { http2: true }, 'listen.http2'],
  ['a certificate without its key', { tls: { cert: pem('good.pem') } }, 'listen.tls.cert'],
  [
    'a key of another certificate',
    { tls: { cert: pem('good.pem'), key: pem('client.key') } },
    'listen.tls.cert',
  ],
  ['what is no certificate', { tls: { cert: 'x', key: 'y' } }, 'listen.tls.cert'],
])('%s is a fault', async (_, listen, path) => {
  await start({})
  const result = await checkConfig(JSON.stringify({ listen }), {})
  expect(result).toMatchObject({ kind: 'faults', faults: [{ path }] })
})
