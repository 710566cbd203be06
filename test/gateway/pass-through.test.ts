import { createHash, randomBytes } from 'node:crypto'
import { Readable } from 'node:stream'
import { beforeAll, beforeEach, expect, test } from 'vitest'
import { closeAfterAll } from '../support/close.ts'
import { siteService, startTestGateway, type TestGateway } from '../support/gateway.ts'
import { createLatch } from '../support/latch.ts'
import { type Origin, startOrigin } from '../support/origin.ts'

let origin: Origin
let gateway: TestGateway

beforeAll(async () => {
  origin = await startOrigin()
  gateway = await startTestGateway({
    limits: { uploadBytes: '8MiB' },
    services: {
      site: siteService(origin.origin),
      legacy: { contract: 'open', mount: '/legacy', upstream: { targets: [origin.origin] } },
      shared: {
        contract: 'open',
        mount: '/shared',
        upstream: { targets: [origin.origin], basePath: '/base' },
        cache: { profile: 'rfc-shared-cache' },
      },
    },
  })
})
closeAfterAll(() => [gateway, origin])
beforeEach(() => {
  origin.received.length = 0
  origin.script = (_, wire) =>
    wire.respond({ headers: { 'Content-Type': 'application/json' }, content: '{}' })
})

const digest = (content: Buffer): string => createHash('sha256').update(content).digest('hex')
const file = randomBytes(3 * 1024 * 1024)

test('an upload reaches the upstream byte for byte, once, and its response comes back in public names', async () => {
  origin.script = (_, wire) =>
    wire.respond({
      status: 201,
      headers: {
        'Content-Type': 'application/json',
        Location: `${origin.origin}/index.php/wp-json/wp/v2/media/9`,
      },
      content: `{"id":9,"_links":{"self":[{"href":"${origin.origin}/index.php/wp-json/wp/v2/media/9"}]}}`,
    })
  const root = `${gateway.publicAddress}/index.php/site-json`
  const response = await fetch(`${root}/site/v2/media`, {
    method: 'POST',
    headers: { 'Content-Type': 'image/png', 'Content-Disposition': 'attachment; filename="x.png"' },
    body: file,
  })
  expect(response.status).toBe(201)
  expect(response.headers.get('location')).toBe(`${root}/site/v2/media/9`)
  expect(await response.json()).toMatchObject({ _links: { self: [{ href: `${root}/site/v2/media/9` }] } })
  expect(origin.received).toHaveLength(1)
  expect(digest(origin.received[0]?.content ?? Buffer.alloc(0))).toBe(digest(file))
  expect(origin.received[0]?.target).toBe('/index.php/wp-json/wp/v2/media')
})

test('an upload makes the lists it can be in stale', async () => {
  const list = `${gateway.publicAddress}/index.php/site-json/site/v2/media?per_page=2`
  origin.script = (_, wire) =>
    wire.respond({ headers: { 'Content-Type': 'application/json' }, content: '[]' })
  await fetch(list)
  expect((await fetch(list)).headers.get('cache-status')).toContain('hit')
  await fetch(list.replace('?per_page=2', ''), {
    method: 'POST',
    headers: { 'Content-Type': 'image/png' },
    body: 'x',
  })
  expect((await fetch(list)).headers.get('cache-status')).toContain('uri-miss')
})

// Its outcome is unknown: from then on nothing of the site is stored.
test('an upload in chunks that exceeds the bound is broken off with 413', async () => {
  const stream = Readable.from(
    (async function* () {
      for (let i = 0; i < 10; i += 1) yield randomBytes(1024 * 1024)
    })(),
  )
  const response = await fetch(`${gateway.publicAddress}/index.php/site-json/site/v2/media`, {
    method: 'POST',
    headers: { 'Content-Type': 'image/png' },
    body: Readable.toWeb(stream) as ReadableStream,
    duplex: 'half',
  } as RequestInit).catch((error: unknown) => error)
  // The client may see the response or, since it is still sending, the end of the connection.
  if (response instanceof Response) expect(response.status).toBe(413)
  else expect(response).toBeInstanceOf(TypeError)
  expect(origin.received).toEqual([])
})

test('an open service gets any method, path and query as they are, under its base path', async () => {
  const response = await fetch(`${gateway.publicAddress}/shared/A//b/?q=%20a+b&q=2`, {
    method: 'PROPFIND',
    headers: { Depth: '1', 'Content-Type': 'text/xml' },
    body: '<a/>',
  })
  expect(response.status).toBe(200)
  expect(origin.received[0]).toMatchObject({ method: 'PROPFIND', target: '/base/A//b/?q=%20a+b&q=2' })
  expect(origin.received[0]?.content.toString()).toBe('<a/>')
  expect(origin.received[0]?.headers['depth']).toBe('1')
})

test('an open service is cached as its upstream allows, and a write to the same target is seen', async () => {
  let count = 0
  origin.script = (_, wire) => {
    count += 1
    wire.respond({
      headers: { 'Cache-Control': 'max-age=60', 'Content-Type': 'text/plain' },
      content: String(count),
    })
  }
  const target = `${gateway.publicAddress}/shared/counter`
  const read = async (): Promise<string> => (await fetch(target)).text()
  expect([await read(), await read()]).toEqual(['1', '1'])
  await fetch(target, { method: 'POST', body: 'x' })
  expect(await read()).toBe('3')
})

test('with the safe profile and no rule nothing of an open service is kept', async () => {
  const responses = [
    await fetch(`${gateway.publicAddress}/legacy/a`),
    await fetch(`${gateway.publicAddress}/legacy/a`),
  ]
  expect(responses.map((response) => response.headers.get('cache-status'))).toEqual([
    'trellis; fwd=bypass; detail=no-rule',
    'trellis; fwd=bypass; detail=no-rule',
  ])
  expect(origin.received).toHaveLength(2)
})

test('content on GET of an open service is sent on', async () => {
  const { request } = await import('node:http')
  const status = await new Promise<number | undefined>((resolve, reject) => {
    const sent = request(
      `${gateway.publicAddress}/legacy/search`,
      { method: 'GET', headers: { 'Content-Type': 'application/json', 'Content-Length': 2 } },
      (response) => {
        response.resume()
        resolve(response.statusCode)
      },
    )
    sent.on('error', reject)
    sent.end('{}')
  })
  expect(status).toBe(200)
  expect(origin.received[0]?.content.toString()).toBe('{}')
})

test.each(['GET', 'POST'])(
  'a response of 503 to %s is passed on once, not asked for again',
  async (method) => {
    origin.script = (_, wire) => wire.respond({ status: 503, content: 'busy' })
    const response = await fetch(`${gateway.publicAddress}/legacy/busy`, { method })
    expect([response.status, await response.text()]).toEqual([503, 'busy'])
    expect(origin.received).toHaveLength(1)
  },
)

test('a response that breaks off is seen as broken by the client', async () => {
  // What breaks off before that is answered 502.
  const hasHead = createLatch()
  origin.script = async (_, wire) => {
    wire.write('HTTP/1.1 200 OK\r\nContent-Length: 1000\r\nContent-Type: text/plain\r\n\r\nshort')
    await hasHead.opened
    wire.reset()
  }
  const response = await fetch(`${gateway.publicAddress}/legacy/broken`)
  hasHead.open()
  await expect(response.text()).rejects.toThrow()
})

test('no connection header of the upstream reaches the client, several Set-Cookie lines do', async () => {
  origin.script = (_, wire) => {
    wire.write(
      'HTTP/1.1 200 OK\r\nConnection: close, X-Hop\r\nX-Hop: 1\r\nKeep-Alive: timeout=9\r\nProxy-Authenticate: x\r\n' +
        'Set-Cookie: a=1\r\nSet-Cookie: b=2\r\nContent-Length: 2\r\n\r\nok',
    )
  }
  const response = await fetch(`${gateway.publicAddress}/legacy/hop`, { method: 'POST', body: 'x' })
  expect(response.headers.get('x-hop')).toBeNull()
  expect(response.headers.get('proxy-authenticate')).toBeNull()
  expect(response.headers.getSetCookie()).toEqual(['a=1', 'b=2'])
})

test('a request that comes back to the gateway is refused', async () => {
  let via: string | undefined
  origin.script = (request, wire) => {
    via = request.headers['via']
    wire.respond({ content: 'ok' })
  }
  await fetch(`${gateway.publicAddress}/legacy/loop`)
  const looped = await fetch(`${gateway.publicAddress}/legacy/loop`, { headers: { Via: via ?? '' } })
  expect(looped.status).toBe(508)
  expect(origin.received).toHaveLength(1)
})

test('a client that goes away takes its request to the upstream with it', async () => {
  let closed = false
  origin.script = (_, wire) => {
    wire.socket.once('close', () => {
      closed = true
    })
  }
  const controller = new AbortController()
  const gone = fetch(`${gateway.publicAddress}/legacy/slow`, { signal: controller.signal }).catch(
    () => 'gone',
  )
  await origin.until(() => origin.received.length === 1)
  controller.abort()
  expect(await gone).toBe('gone')
  await origin.until(() => closed)
})
