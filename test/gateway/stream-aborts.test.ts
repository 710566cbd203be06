import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import { connect as connectHttp2, constants } from 'node:http2'
import { connect } from 'node:net'
import { beforeEach, expect, onTestFinished, test } from 'vitest'
import { keyPair, pem } from '../support/certificates.ts'
import { siteService, startTestGateway, type TestGateway } from '../support/gateway.ts'
import { createLatch } from '../support/latch.ts'
import { type Origin, type OriginOptions, pause, type Script, startOrigin } from '../support/origin.ts'

const gatewayFor = async (
  script: Script,
  upstream: Readonly<Record<string, unknown>> = {},
  options: OriginOptions = {},
  settings: Readonly<Record<string, unknown>> = {},
): Promise<{ origin: Origin; gateway: TestGateway }> => {
  const origin = await startOrigin(script, options)
  const gateway = await startTestGateway({
    ...settings,
    services: {
      open: {
        contract: 'open',
        mount: '/open',
        upstream: { targets: [origin.origin], ...upstream },
        cache: { profile: 'rfc-shared-cache' },
      },
      site: siteService(origin.origin, {
        upstream: { targets: [origin.origin], basePath: '/index.php/wp-json', ...upstream },
      }),
    },
  })
  onTestFinished(async () => {
    await origin.close()
    await gateway.close()
  })
  return { origin, gateway }
}

const idle = async (gateway: TestGateway): Promise<void> => {
  await expect.poll(() => gateway.metric('upstream_in_flight_requests', '"open"')).toBe(0)
  expect(await gateway.metric('upstream_waiting_requests', '"open"')).toBe(0)
}

const held: Script = (received, wire) => {
  if (!received.target.includes('held')) wire.respond({})
}

/** Sends a request and hangs up when it is where it should be. */
const hangUpWhen = async (
  url: string,
  method: string,
  content: string,
  isThere: () => Promise<void>,
): Promise<void> => {
  const headers =
    content === '' ? {} : { 'Content-Type': 'application/json', 'Content-Length': content.length }
  const sent = request(url, { method, agent: false, headers: headers })
  sent.on('error', () => {})
  sent.end(content)
  await isThere()
  sent.destroy()
}

test.each([
  ['GET', '/open/waits', ''],
  ['POST', '/open/waits', '{}'],
  ['POST', '/index.php/site-json/site/v2/posts', '{"title":"x"}'],
])(
  'a client that goes while its %s %s waits for a place asks nothing of the upstream',
  async (method, path, content) => {
    const { origin, gateway } = await gatewayFor(held, { maxConcurrent: 1 })
    const first = new AbortController()
    const service = path.startsWith('/open') ? '/open/held' : '/index.php/site-json/site/v2/posts?search=held'
    const under = fetch(gateway.publicAddress + service, { signal: first.signal }).catch(() => {})
    await origin.until(() => origin.received.length === 1)
    const name = path.startsWith('/open') ? '"open"' : '"site"'
    const waiting = () => gateway.metric('upstream_waiting_requests', name)
    await hangUpWhen(gateway.publicAddress + path, method, content, () => expect.poll(waiting).toBe(1))
    await expect.poll(waiting).toBe(0)
    first.abort()
    await under
    await idle(gateway)
    await pause(50)
    expect(origin.received.map(({ target }) => target).filter((target) => !target.includes('held'))).toEqual(
      [],
    )
  },
)

test('a client that disconnects during an upload ends it at the upstream, and frees the slot', async () => {
  let gone = false
  const { origin, gateway } = await gatewayFor(
    (_, wire) =>
      void wire.socket.on('close', () => {
        gone = true
      }),
    {},
    { respondsEarly: true },
  )
  const sent = request(`${gateway.publicAddress}/open/file`, {
    method: 'POST',
    agent: false,
    headers: { 'Content-Length': 1_000_000 },
  })
  sent.on('error', () => {})
  sent.write(Buffer.alloc(100_000))
  await origin.until(() => origin.received.length === 1)
  sent.destroy()
  await origin.until(() => gone)
  await idle(gateway)
})

test('a client that goes in the middle of a response ends it at the upstream', async () => {
  let gone = false
  const { origin, gateway } = await gatewayFor((_, wire) => {
    wire.socket.on('close', () => {
      gone = true
    })
    wire.write('HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf')
  })
  const client = new AbortController()
  await fetch(`${gateway.publicAddress}/open/x`, { method: 'POST', body: 'x', signal: client.signal })
  client.abort()
  await origin.until(() => gone)
  await idle(gateway)
})

/** Opened when the client has the head: what breaks off before that is answered 502. */
let hasHead = createLatch()
beforeEach(() => {
  hasHead = createLatch()
})

const broken: readonly (readonly [string, Script])[] = [
  [
    'chunks',
    async (_, wire) => {
      wire.write('HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nTransfer-Encoding: chunked\r\n\r\n')
      wire.write(`20000\r\n${'a'.repeat(0x20000)}\r\n`)
      await hasHead.opened
      wire.reset()
    },
  ],
  [
    'chunks that were sent before',
    async (_, wire) => {
      wire.write(
        'HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n',
      )
      await hasHead.opened
      wire.reset()
    },
  ],
  [
    'a length',
    async (_, wire) => {
      wire.write('HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 300000\r\n\r\n')
      wire.write('a'.repeat(0x20000))
      await hasHead.opened
      wire.end()
    },
  ],
]

test.each(
  broken.flatMap(([name, script]) => ['GET', 'POST'].map((method) => [name, method, script] as const)),
)(
  'a response framed by %s that breaks off is cut for the client (%s), and not kept',
  async (_, method, script) => {
    const { origin, gateway } = await gatewayFor(script)
    const url = `${gateway.publicAddress}/open/x`
    const response = await fetch(url, { method, ...(method === 'POST' ? { body: 'x' } : {}) })
    expect(response.status).toBe(200)
    hasHead.open()
    await expect(response.arrayBuffer()).rejects.toThrow()
    origin.script = (_received, wire) => wire.respond({ content: 'whole' })
    expect(await (await fetch(url)).text()).toBe('whole')
  },
)

test.each(
  broken.flatMap(([name, script]) => ['GET', 'POST'].map((method) => [name, method, script] as const)),
)(
  'over HTTP/2 a response framed by %s that breaks off is a stream that is reset with an error (%s), and others go on',
  async (_, method, script) => {
    const listen = { port: 0, http2: true, tls: keyPair('good') }
    const { origin, gateway } = await gatewayFor(script, {}, {}, { listen })
    const client = connectHttp2(gateway.publicAddress, { ca: pem('ca.pem') })
    onTestFinished(() => client.destroy())
    const stream = client.request({ ':method': method, ':path': '/open/x' })
    const failed = once(stream, 'end').then(
      () => 'looks complete',
      () => 'failed',
    )
    stream.end(method === 'POST' ? 'x' : undefined)
    await once(stream, 'data')
    hasHead.open()
    expect(await failed).toBe('failed')
    expect(stream.rstCode).toBe(constants.NGHTTP2_INTERNAL_ERROR)
    origin.script = (_received, wire) => wire.respond({ content: 'whole' })
    const next = client.request({ ':path': '/open/x' }).setEncoding('utf8')
    expect(await once(next, 'data')).toEqual(['whole'])
  },
)

test('over HTTP/2 a response that a drain cuts does not look complete', async () => {
  const { gateway } = await gatewayFor(
    (_, wire) => wire.write('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n'),
    {},
    {},
    {
      listen: { port: 0, http2: true, tls: keyPair('good') },
      drain: { delay: '0s', timeout: '300ms' },
    },
  )
  const client = connectHttp2(gateway.publicAddress, { ca: pem('ca.pem') })
  client.on('error', () => {})
  onTestFinished(() => client.destroy())
  const stream = client.request({ ':path': '/open/x' })
  stream.on('error', () => {})
  const closed = once(stream, 'close')
  await once(stream, 'data')
  void gateway.close()
  await closed
  expect(stream.rstCode).not.toBe(constants.NGHTTP2_NO_ERROR)
})

test('to HTTP/1.0, where the end of the connection is the end of the content, a broken response is a reset', async () => {
  const { gateway } = await gatewayFor(broken[0]?.[1] as Script)
  const { hostname, port } = new URL(gateway.publicAddress)
  const socket = connect(Number(port), hostname)
  let bytes = 0
  socket.on('data', (chunk) => {
    bytes += chunk.length
    hasHead.open()
  })
  socket.write('GET /open/x HTTP/1.0\r\nHost: a\r\n\r\n')
  const [error] = (await once(socket, 'error')) as [NodeJS.ErrnoException]
  expect(error.code).toBe('ECONNRESET')
  expect(bytes).toBeGreaterThan(0)
})

test('a client that reads slowly slows the upstream down, and gets everything', async () => {
  const whole = 24 * 1024 * 1024
  let sent = 0
  const { gateway } = await gatewayFor((_, wire) => {
    wire.write(`HTTP/1.1 200 OK\r\nContent-Length: ${whole}\r\n\r\n`)
    const piece = Buffer.alloc(64 * 1024)
    const more = (): void => {
      while (sent < whole) {
        sent += piece.length
        if (!wire.socket.write(piece)) return
      }
    }
    wire.socket.on('drain', more)
    more()
  })
  const asked = request(`${gateway.publicAddress}/open/big`, { method: 'POST', agent: false })
  asked.end('x')
  const [response] = (await once(asked, 'response')) as [IncomingMessage]
  await pause(400)
  // The buffers of three sockets, and what the two programs hold.
  expect(sent).toBeLessThan(whole / 2)
  let bytes = 0
  for await (const chunk of response) bytes += (chunk as Buffer).length
  expect(bytes).toBe(whole)
})
