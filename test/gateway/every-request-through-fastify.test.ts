import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { connect as connectHttp2 } from 'node:http2'
import type { FastifyInstance } from 'fastify'
import { describe, expect, onTestFinished, test } from 'vitest'
import { keyPair } from '../support/certificates.ts'
import { siteService, startTestGateway } from '../support/gateway.ts'
import { startOrigin } from '../support/origin.ts'
import { exchangeBytes } from '../support/raw-client.ts'

type Seen = { readonly method: string; readonly target: string; readonly route: string | undefined }

/** Adds a plugin to every instance of Fastify that is created: it notes the requests that its hooks see. */
const hooksSee = (): { readonly onRequest: Seen[]; readonly onResponse: string[] } => {
  const onRequest: Seen[] = []
  const onResponse: string[] = []
  const created = (message: unknown): void => {
    const { fastify } = message as { readonly fastify: FastifyInstance }
    fastify.addHook('onRequest', (request, _reply, next) => {
      const { method, url, routeOptions } = request
      onRequest.push({ method, target: url, route: routeOptions.url })
      next()
    })
    fastify.addHook('onResponse', (request, reply, next) => {
      onResponse.push(`${request.method} ${request.url} ${reply.raw.statusCode}`)
      next()
    })
  }
  subscribe('fastify.initialization', created)
  onTestFinished(() => void unsubscribe('fastify.initialization', created))
  return { onRequest, onResponse }
}

const start = async (listen: Record<string, unknown> = {}) => {
  const origin = await startOrigin((received, wire) =>
    wire.respond({
      content: received.method === 'HEAD' ? '' : '[]',
      headers: { 'Content-Type': 'application/json', 'Cache-Control': 'max-age=60', ETag: '"a"' },
    }),
  )
  onTestFinished(() => origin.close())
  const open = (mount: string) => ({
    contract: 'open',
    mount,
    upstream: { targets: [origin.origin] },
    cache: { rules: [{ match: 'GET /**', ttl: '60s' }] },
  })
  const gateway = await startTestGateway({
    listen: { port: 0, ...listen },
    limits: { urlBytes: 2048 },
    services: {
      site: siteService(origin.origin, { batch: {} }),
      plants: { contract: 'plants', mount: '/plants', upstream: { targets: [origin.origin] } },
      outer: open('/o'),
      inner: open('/o/in'),
      elsewhere: { ...open('/o'), hosts: ['*.shop.example'] },
    },
  })
  onTestFinished(() => gateway.close())
  return { origin, gateway }
}

describe('the hooks of a plugin see', () => {
  test('every kind of request of every service, with the prefix of the service that was chosen', async () => {
    const seen = hooksSee()
    const { gateway } = await start()
    const at = gateway.publicAddress
    const site = '/index.php/site-json'
    type Row = readonly [title: string, status: number, path: string, init?: RequestInit]
    const json = { 'Content-Type': 'application/json' }
    const rows: readonly Row[] = [
      ['a miss', 200, '/o/a'],
      ['a hit', 200, '/o/a'],
      ['a 304', 304, '/o/a', { headers: { 'If-None-Match': '"a"' } }],
      ['an escape', 200, '/o/%C3%A9'],
      ['an escape in the query', 200, '/o/a?x=%20'],
      ['the mount itself', 200, '/o'],
      ['HEAD', 200, '/o/a', { method: 'HEAD' }],
      ['OPTIONS', 200, '/o/a', { method: 'OPTIONS' }],
      ['a method of WebDAV', 200, '/o/a', { method: 'PROPFIND' }],
      ['another one', 200, '/o/a', { method: 'MOVE' }],
      ['QUERY without a content type', 200, '/o/a', { method: 'QUERY', body: '' }],
      ['an upload', 200, '/o/in/file', { method: 'PUT', body: 'x'.repeat(100_000) }],
      [
        'a content type that cannot be read',
        200,
        '/o/in/a',
        { method: 'POST', body: 'x', headers: { 'Content-Type': 'x; ; y' } },
      ],
      ['a site', 200, `${site}/site/v2/posts`],
      ['a refusal', 400, `${site}/site/v2/posts?page=none`],
      [
        'a batch',
        207,
        `${site}/batch/v1`,
        {
          method: 'POST',
          headers: json,
          body: JSON.stringify({ requests: [{ method: 'POST', path: '/site/v2/posts', body: {} }] }),
        },
      ],
      ['another contract', 405, '/plants/plants', { method: 'PATCH', body: 'x' }],
      ['a target that is too long', 414, `/o/${'a'.repeat(3_000)}`],
      ['a path of two services', 400, '/o//in/a'],
      ['another spelling of a path', 400, '/o/%69n/a'],
    ]
    for (const [title, status, path, init] of rows) {
      seen.onRequest.length = 0
      const { status: actual } = await fetch(`${at}${path}`, init)
      const target = new URL(`${at}${path}`)
      expect([title, actual, seen.onRequest]).toEqual([
        title,
        status,
        [{ method: init?.method ?? 'GET', target: `${target.pathname}${target.search}`, route: '*' }],
      ])
    }
    await expect.poll(() => seen.onResponse.filter((line) => line === 'GET /o/a 304')).toHaveLength(1)
    expect(seen.onResponse.filter((line) => line === 'GET /o/a 200')).toHaveLength(2)
  })

  test('requests without a service, for a host that has one, and those that are refused before they have a route', async () => {
    const seen = hooksSee()
    const { gateway } = await start()
    const ask = async (head: string): Promise<number> => {
      seen.onRequest.length = 0
      const response = await exchangeBytes(gateway.publicAddress, `${head}\r\nConnection: close\r\n\r\n`)
      return Number(/^HTTP\/1\.1 (\d{3})/.exec(response.toString())?.[1])
    }
    const requestLines: readonly (readonly [status: number, head: string])[] = [
      [404, 'GET /nothing HTTP/1.1\r\nHost: a'],
      [200, 'GET /o/a HTTP/1.1\r\nHost: x.shop.example'],
      [200, 'GET http://x.shop.example/o/a HTTP/1.1\r\nHost: a'],
      [400, 'GET /o/a HTTP/1.1\r\nHost: a b'],
      [400, 'GET /o/a HTTP/1.1\r\nHost: a\r\nHost: b'],
      [404, 'TRACE /o/a HTTP/1.1\r\nHost: a'],
      [403, 'GET /o/a HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket'],
    ]
    for (const [status, head] of requestLines)
      expect([head, await ask(head), seen.onRequest.length]).toEqual([head, status, 1])
    expect([await ask('OPTIONS * HTTP/1.1\r\nHost: a'), seen.onRequest.length]).toEqual([200, 1])
    // Fastify's router answers a path that it cannot decode with the handler for such errors, before any hook.
    expect([await ask('GET /o/%zz HTTP/1.1\r\nHost: a'), seen.onRequest.length]).toEqual([400, 0])
  })

  test('requests over HTTP/2', async () => {
    const seen = hooksSee()
    const { gateway } = await start({ tls: keyPair('good'), http2: true })
    const session = connectHttp2(gateway.publicAddress, { rejectUnauthorized: false })
    onTestFinished(() => session.destroy())
    const ask = (path: string, method = 'GET'): Promise<number> =>
      new Promise((resolve, reject) => {
        const stream = session.request({ ':path': path, ':method': method })
        stream.on('response', (headers) => resolve(Number(headers[':status'])))
        stream.on('error', reject)
        stream.resume().end()
      })
    expect(await ask('/o/a')).toBe(200)
    expect(await ask('/o/a')).toBe(200)
    expect(await ask('/o/%C3%A9')).toBe(200)
    expect(await ask('/o/in/a', 'DELETE')).toBe(200)
    expect(await ask('/nothing')).toBe(404)
    expect(await ask('*', 'OPTIONS')).toBe(200)
    expect(seen.onRequest.map(({ route }) => route)).toEqual(Array.from({ length: 6 }, () => '*'))
  })
})

test('more services of one path than a router has handlers are found by their hosts', async () => {
  const seen = hooksSee()
  const origin = await startOrigin((received, wire) => wire.respond({ content: received.target }))
  onTestFinished(() => origin.close())
  const services = Object.fromEntries(
    Array.from({ length: 80 }, (_, index) => [
      `s${index}`,
      {
        contract: 'open',
        mount: '/',
        hosts: [`h${index}.example`],
        upstream: { targets: [origin.origin], basePath: `/b${index}` },
      },
    ]),
  )
  const every = { contract: 'open', mount: '/every', upstream: { targets: [origin.origin] } }
  const gateway = await startTestGateway({ services: { ...services, every } })
  onTestFinished(() => gateway.close())
  const ask = async (host: string, path: string): Promise<string> =>
    String(
      await exchangeBytes(
        gateway.publicAddress,
        `GET ${path} HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`,
      ),
    )
  for (const index of [0, 29, 30, 31, 59, 60, 79])
    expect(await ask(`h${index}.example`, '/x')).toContain(`\r\n\r\n/b${index}/x`)
  expect(await ask('other.example', '/every/x')).toContain('\r\n\r\n/x')
  expect(await ask('other.example', '/x')).toMatch(/^HTTP\/1\.1 404 /)
  expect(seen.onRequest).toHaveLength(9)
})
