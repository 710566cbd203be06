import { once } from 'node:events'
import { connect as connectHttp2 } from 'node:http2'
import { connect, type Socket } from 'node:net'
import { text } from 'node:stream/consumers'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { afterEach, beforeAll, expect, test } from 'vitest'
import { keyPair, pem } from '../../support/certificates.ts'
import { closeAfterAll } from '../../support/close.ts'
import { siteService, startTestGateway, type TestGateway } from '../../support/gateway.ts'
import { type Origin, startOrigin } from '../../support/origin.ts'
import { exchangeBytes } from '../../support/raw-client.ts'

const mebibyte = 1024 * 1024

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void

let origin: Origin
let gateway: TestGateway
let sockets: Socket[] = []
beforeAll(async () => {
  origin = await startOrigin(({ content, headers }, wire) =>
    wire.respond({
      headers: { 'Content-Type': 'application/json' },
      content: JSON.stringify({ content: content.toString('latin1'), type: headers['content-type'] }),
    }),
  )
  gateway = await startTestGateway({
    // A busy machine sends forty large bodies slowly.
    limits: { bodyBytes: '1MiB', requestTimeout: '0s', minBytesPerSecond: 0 },
    services: {
      open: { contract: 'open', mount: '/open', upstream: { targets: [origin.origin] } },
      plants: { contract: 'plants', mount: '/', upstream: { targets: [origin.origin] } },
      site: siteService(origin.origin),
    },
  })
})
afterEach(() => {
  for (const socket of sockets) socket.destroy()
  sockets = []
  origin.received.length = 0
})
closeAfterAll(() => [gateway, origin])

const ask = async (method: string, target: string, headers: string, content: string): Promise<string> =>
  exchangeBytes(
    gateway.publicAddress,
    `${method} ${target} HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n${headers}\r\n\r\n${content}`,
  )

/** A request of which the content never comes whole. */
const begin = async (target: string, headers: string): Promise<Socket> => {
  const { hostname, port } = new URL(gateway.publicAddress)
  const socket = connect(Number(port), hostname)
  sockets.push(socket)
  socket.on('error', () => {})
  await once(socket, 'connect')
  socket.write(`POST ${target} HTTP/1.1\r\nHost: a.test\r\nAuthorization: Bearer a\r\n${headers}\r\n\r\n`)
  return socket
}

const statusOf = async (socket: Socket): Promise<string> => {
  const [head] = (await once(socket, 'data')) as [Buffer]
  return head.toString('latin1', 9, 12)
}

const types = [
  'text/plain',
  'text/plain; charset=utf-8',
  'text/plain\t; a',
  'TEXT/PLAIN',
  'application/json',
  'application/x-www-form-urlencoded',
  'multipart/form-data; boundary=x',
  ';;;',
  'text',
  '',
]

test.each(types)(
  'an upstream gets a body of the type "%s" whole, and its type as the client wrote it',
  async (type) => {
    const framed = await ask(
      'POST',
      '/open/echo',
      `Content-Type: ${type}\r\nContent-Length: 10`,
      '0123456789',
    )
    const chunked = await ask(
      'POST',
      '/open/echo',
      `Content-Type: ${type}\r\nTransfer-Encoding: chunked`,
      '4\r\n0123\r\n6\r\n456789\r\n0\r\n\r\n',
    )
    for (const response of [framed, chunked]) {
      expect(response).toMatch(/^HTTP\/1\.1 200 /)
      expect(response).toContain('"content":"0123456789"')
    }
    expect(origin.received.map(({ headers }) => headers['content-type'])).toEqual([type, type])
  },
)

test.each(['GET', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'PROPFIND', 'LOCK'])(
  'an upstream gets the plain text of a %s',
  async (method) => {
    const headers = 'Content-Type: text/plain\r\nContent-Length: 10'
    expect(await ask(method, '/open/echo', headers, '0123456789')).toContain('"content":"0123456789"')
  },
)

test('a text file that is uploaded to the media route arrives', async () => {
  const headers =
    'Content-Disposition: attachment; filename="a.txt"\r\n' + 'Content-Type: text/plain\r\nContent-Length: 10'
  const response = await ask('POST', '/index.php/site-json/site/v2/media', headers, '0123456789')
  expect(response).toContain('"content":"0123456789"')
})

test.each([
  ['/nowhere', 404, '"error":404'],
  ['/plants', 415, '"error":415'],
  ['/index.php/site-json/site/v2/posts', 415, 'trellis_unsupported_content_type'],
  ['/index.php/site-json/batch/v1', 415, 'trellis_unsupported_content_type'],
])(
  '%s refuses a body of a type that it does not take without waiting for it: %i',
  async (target, status, text) => {
    for (const type of ['text/plain', ';;;']) {
      const socket = await begin(target, `Content-Type: ${type}\r\nContent-Length: 1000`)
      const [response] = (await once(socket, 'data')) as [Buffer]
      expect(response.toString()).toContain(` ${status} `)
      expect(response.toString()).toContain(text)
    }
    expect(origin.received).toEqual([])
  },
)

test.each([
  ['/open/echo', 'text/plain', 67_108_865],
  ['/open/echo', 'image/png', 67_108_865],
  ['/plants', 'application/json', 1_048_577],
  ['/index.php/site-json/site/v2/posts', 'application/json', 1_048_577],
  ['/index.php/site-json/batch/v1', 'application/json', 1_048_577],
  ['/index.php/site-json/site/v2/media', 'text/plain', 67_108_865],
])('%s refuses %s with a declared length of %i at once', async (target, type, length) => {
  expect(await statusOf(await begin(target, `Content-Type: ${type}\r\nContent-Length: ${length}`))).toBe(
    '413',
  )
  expect(origin.received).toEqual([])
})

test.each(['/plants', '/index.php/site-json/site/v2/posts', '/index.php/site-json/batch/v1'])(
  '%s reads a body in chunks as far as the limit and no farther',
  async (target) => {
    const socket = await begin(target, 'Content-Type: application/json\r\nTransfer-Encoding: chunked')
    const piece = `10000\r\n${' '.repeat(65_536)}\r\n`
    const status = statusOf(socket)
    for (let i = 0; i < 17; i += 1) socket.write(piece)
    expect(await status).toBe('413')
  },
)

test.each(['text/plain', 'application/json'])(
  'forty large bodies (%s) that a contract does not take cost no memory',
  async (type) => {
    const content = Buffer.alloc(16 * mebibyte - 1, ' ')
    /** Garbage apart, of which a busy machine leaves more. */
    const held = (): number => {
      collect()
      const { heapUsed, external } = process.memoryUsage()
      return heapUsed + external
    }
    const before = held()
    const responses: string[] = []
    for (let i = 0; i < 40; i += 1) {
      const socket = await begin('/plants', `Content-Type: ${type}\r\nContent-Length: ${16 * mebibyte}`)
      socket.on('data', (chunk: Buffer) => responses.push(chunk.toString('latin1', 9, 12)))
      socket.write(content)
    }
    await expect.poll(() => responses.length).toBe(40)
    expect(new Set(responses)).toEqual(new Set([type === 'text/plain' ? '415' : '413']))
    expect(held() - before).toBeLessThan(64 * mebibyte)
  },
)

test('over HTTP/2, and with CORS, bodies of every type are passed on as well', async () => {
  const other = await startTestGateway({
    listen: { port: 0, http2: true, tls: keyPair('good') },
    cors: { origins: ['https://a.test'] },
    services: { open: { contract: 'open', mount: '/open', upstream: { targets: [origin.origin] } } },
  })
  const client = connectHttp2(other.publicAddress, { ca: pem('ca.pem') })
  const send = (method: string, path: string, type: string): Promise<string> =>
    text(client.request({ ':method': method, ':path': path, 'content-type': type }).end('0123456789'))
  for (const type of ['text/plain', ';;;']) {
    expect(await send('POST', '/open/echo', type)).toContain('"content":"0123456789"')
    expect(await send('OPTIONS', '/nowhere', type)).toContain('no_route')
  }
  client.destroy()
  await other.close()
})
