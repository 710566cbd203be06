import { readFileSync } from 'node:fs'
import { mkdtemp, writeFile } from 'node:fs/promises'
import { type ClientHttp2Session, connect as connectHttp2, type IncomingHttpHeaders } from 'node:http2'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { connect as connectTls, type TLSSocket } from 'node:tls'
import { afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { closeAfterAll, closeAfterEach } from '../support/close.ts'
import { startTestGateway, type TestGateway } from '../support/gateway.ts'
import { type Origin, startOrigin } from '../support/origin.ts'

type Tree = { readonly [key: string]: unknown }

const pem = (name: string): string =>
  readFileSync(new URL(`fixtures/upstream-tls/${name}`, import.meta.url), 'utf8')
const pair = (name: string): Tree => ({ cert: pem(`${name}.pem`), key: pem(`${name}.key`) })

let origin: Origin
let gateway: TestGateway
const sessions: ClientHttp2Session[] = []
beforeAll(async () => {
  origin = await startOrigin(({ target, headers }, wire) =>
    wire.respond({
      headers: { 'Cache-Control': 'max-age=60' },
      content: `${target} ${headers['x-forwarded-host']}`,
    }),
  )
})
closeAfterAll(() => [origin])
beforeEach(() => {
  origin.received.length = 0
})
afterEach(() => {
  for (const session of sessions.splice(0)) session.destroy()
})

const certificates = [
  { hosts: ['blog.example', 'www.blog.example'], ...pair('blog') },
  { hosts: ['*.shop.example'], ...pair('shop') },
]
const configOf = (tls: Tree): Tree => ({
  listen: { port: 0, http2: true, tls },
  publicUrl: 'https://gateway.example',
  services: {
    sites: {
      contract: 'open',
      mount: '/',
      hosts: ['blog.example', 'www.blog.example', '*.shop.example'],
      upstream: { targets: [origin.origin] },
      cache: { profile: 'rfc-shared-cache' },
    },
    rest: { contract: 'open', mount: '/rest', upstream: { targets: [origin.origin] } },
  },
})
const start = async (tls: Tree = { ...pair('good'), certificates }): Promise<void> => {
  gateway = await startTestGateway(configOf(tls))
}
const port = (): number => Number(new URL(gateway.publicAddress).port)

/** `undefined`: without SNI. */
const secure = async (servername?: string): Promise<TLSSocket> => {
  const name = servername === undefined ? {} : { servername }
  const socket = connectTls({ host: '127.0.0.1', port: port(), rejectUnauthorized: false, ...name })
  await new Promise((resolve, reject) => socket.once('secureConnect', resolve).once('error', reject))
  return socket
}
const nameShown = async (servername?: string): Promise<unknown> => {
  const socket = await secure(servername)
  const name = socket.getPeerCertificate().subject.CN
  socket.destroy()
  return name
}
const overHttp1 = async (socket: TLSSocket, host: string, path = '/x'): Promise<string> => {
  socket.write(`GET ${path} HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`)
  return (await text(socket)).split('\r\n')[0] ?? ''
}
const session = (servername: string): ClientHttp2Session => {
  const one = connectHttp2(gateway.publicAddress, { servername, rejectUnauthorized: false })
  one.on('error', () => {})
  sessions.push(one)
  return one
}
const ask = async (
  one: ClientHttp2Session,
  headers: IncomingHttpHeaders,
): Promise<{ readonly status: number | undefined; readonly type: string; readonly body: string }> => {
  const stream = one.request({ ':path': '/x', ...headers })
  const head = await new Promise<IncomingHttpHeaders & { ':status'?: number }>((resolve, reject) =>
    stream.once('response', resolve).once('error', reject),
  )
  return { status: head[':status'], type: String(head['content-type']), body: await text(stream) }
}

describe('with certificates for some hosts', () => {
  beforeAll(() => start())
  closeAfterAll(() => [gateway])

  describe('certificates by host', () => {
    test.each<[name: string | undefined, shown: string]>([
      ['blog.example', 'blog'],
      ['BLOG.example', 'blog'],
      ['www.blog.example', 'blog'],
      ['a.shop.example', 'shop'],
      ['a.b.shop.example', 'shop'],
      ['shop.example', 'good'],
      ['other.example', 'good'],
      ['a.blog.example', 'good'],
      [undefined, 'good'],
    ])('a client that names %s gets %s', async (name, shown) => {
      expect(await nameShown(name)).toBe(shown)
    })
  })

  describe('one connection for several hosts over HTTP/2', () => {
    test.each<[title: string, name: string, authority: string, status: number]>([
      ['the host of the handshake', 'blog.example', 'blog.example', 200],
      ['another spelling of it', 'blog.example', 'BLOG.example.:443', 200],
      ['another host of the certificate', 'blog.example', 'www.blog.example', 200],
      ['another host below the wildcard', 'a.shop.example', 'b.shop.example', 200],
      [
        'a host below the wildcard that leads to the same certificate',
        'a.shop.example',
        'b.c.shop.example',
        200,
      ],
      ['a host of another certificate', 'blog.example', 'a.shop.example', 421],
      ['a host of the default certificate', 'blog.example', 'other.example', 421],
      ['an address of the default certificate', 'blog.example', '127.0.0.1', 421],
      ['a host with a certificate, under the default one', 'other.example', 'blog.example', 421],
      ['a host without a certificate, under the default one', 'other.example', 'third.example', 200],
    ])('%s', async (title, name, authority, status) => {
      // What an earlier one has stored answers none.
      const path = `/rest/${encodeURIComponent(title)}`
      const response = await ask(session(name), { ':authority': authority, ':path': path })
      expect(response.status).toBe(status)
      expect(origin.received).toHaveLength(status === 200 ? 1 : 0)
      if (status === 421) expect(response.type).toBe('application/problem+json')
    })

    test('a refused host does not end the connection, and refusals are not remembered for other hosts', async () => {
      const one = session('blog.example')
      const refused = () => gateway.metric('trellis_refusals_total', 'misdirected_request')
      const before = await refused()
      for (const [authority, status] of [
        ['blog.example', 200],
        ['a.shop.example', 421],
        ['a.shop.example', 421],
        ['blog.example', 200],
        ['www.blog.example', 200],
      ] as const) {
        expect((await ask(one, { ':authority': authority })).status).toBe(status)
      }
      expect((await refused()) - before).toBe(2)
    })

    test(':authority chooses the service and the stored response; a Host that differs is refused', async () => {
      const one = session('a.shop.example')
      expect((await ask(one, { ':authority': 'a.shop.example' })).body).toBe(`/x a.shop.example`)
      expect((await ask(one, { ':authority': 'b.shop.example' })).body).toBe(`/x b.shop.example`)
      expect((await ask(one, { ':authority': 'A.shop.example:9' })).body).toBe(`/x a.shop.example`)
      expect(origin.received).toHaveLength(2)
      expect((await ask(one, { ':authority': 'a.shop.example', host: 'b.shop.example' })).status).toBe(400)
    })
  })

  test('over HTTP/1.1 the host of a request is not compared with the certificate', async () => {
    expect(await overHttp1(await secure('blog.example'), 'a.shop.example')).toContain(' 200 ')
  })
})

describe('certificates', () => {
  closeAfterEach(() => [gateway])

  test('an exact host wins over a wildcard, and the longest wildcard over others', async () => {
    await start({
      ...pair('good'),
      certificates: [
        { hosts: ['*.example'], ...pair('client') },
        { hosts: ['*.shop.example'], ...pair('shop') },
        { hosts: ['a.shop.example'], ...pair('blog') },
      ],
    })
    expect(await nameShown('a.shop.example')).toBe('blog')
    expect(await nameShown('b.shop.example')).toBe('shop')
    expect(await nameShown('b.c.example')).toBe('trellis-test-client')
  })

  test('a reload replaces certificates from files, and open connections go on', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'trellis-hosts-'))
    const write = async (name: string): Promise<void> => {
      await writeFile(join(folder, 'cert.pem'), pem(`${name}.pem`))
      await writeFile(join(folder, 'key.pem'), pem(`${name}.key`))
    }
    await write('blog')
    const files = { cert: `file:${join(folder, 'cert.pem')}`, key: `file:${join(folder, 'key.pem')}` }
    const hosts = ['blog.example']
    await start({ ...pair('good'), certificates: [{ hosts, ...files }] })
    const kept = await secure('blog.example')
    const keptSession = session('blog.example')
    expect((await ask(keptSession, { ':authority': 'blog.example' })).status).toBe(200)
    await write('wrong-name')
    expect(await gateway.reload()).toMatchObject({ kind: 'applied' })
    expect(await nameShown('blog.example')).toBe('wrong-name')
    expect(await overHttp1(kept, 'blog.example')).toContain(' 200 ')
    expect((await ask(keptSession, { ':authority': 'blog.example' })).status).toBe(200)
    const other = configOf({ ...pair('good'), certificates: [{ hosts: ['*.shop.example'], ...files }] })
    expect(await gateway.put(other)).toMatchObject({ kind: 'applied' })
    expect([await nameShown('blog.example'), await nameShown('a.shop.example')]).toEqual([
      'good',
      'wrong-name',
    ])
    expect((await ask(keptSession, { ':authority': 'blog.example' })).status).toBe(200)
  })

  test('the metric tells when the first of them expires', async () => {
    await start({ ...pair('good'), certificates: [{ hosts: ['old.example'], ...pair('expired') }] })
    const seconds = await gateway.metric('trellis_tls_certificate_expiry_timestamp_seconds')
    expect(seconds).toBeLessThan(Date.now() / 1000)
    expect(seconds).toBeGreaterThan(0)
  })

  test('an unknown host gets 421 from the services, and 404 where a service without hosts exists', async () => {
    await start({ ...pair('good') })
    const one = session('blog.example')
    expect((await ask(one, { ':authority': 'unknown.example' })).status).toBe(404)
    expect((await ask(one, { ':authority': 'a.shop.example' })).status).toBe(200)
    const { rest: _rest, ...services } = configOf({})['services'] as Tree
    expect(await gateway.put({ ...configOf({ ...pair('good') }), services })).toMatchObject({
      kind: 'applied',
    })
    expect((await ask(one, { ':authority': 'unknown.example' })).status).toBe(421)
  })
})
