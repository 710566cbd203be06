import { type ClientHttp2Session, connect, type OutgoingHttpHeaders } from 'node:http2'
import { request as httpsRequest } from 'node:https'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { keyPair, pem } from '../support/certificates.ts'
import { siteService, startTestGateway, type TestGateway } from '../support/gateway.ts'
import { type Origin, startOrigin } from '../support/origin.ts'

let origin: Origin
let gateway: TestGateway
let session: ClientHttp2Session
beforeAll(async () => {
  origin = await startOrigin((_, wire) =>
    wire.respond({ headers: { 'Content-Type': 'application/json' }, content: '[]' }),
  )
  const open = { contract: 'open', mount: '/a', upstream: { targets: [origin.origin] }, websockets: true }
  gateway = await startTestGateway({
    listen: { port: 0, tls: keyPair('good'), http2: true },
    cors: { origins: ['https://app.test'] },
    services: { site: siteService(origin.origin), open },
  })
  session = connect(gateway.publicAddress.replace('http:', 'https:'), {
    ca: pem('ca.pem'),
    rejectUnauthorized: false,
  })
})
afterAll(async () => {
  session?.destroy()
  await gateway?.close()
  await origin?.close()
})

/** The status, or the code of the error with which the stream ended. */
const ask = (headers: OutgoingHttpHeaders, content?: string): Promise<number | string> =>
  new Promise((resolve) => {
    const stream = session.request(headers, { endStream: content === undefined })
    stream.on('response', ({ ':status': status }) => resolve(status ?? 0))
    stream.on('error', ({ code = '' }: NodeJS.ErrnoException) => resolve(code))
    stream.on('close', () => resolve('closed'))
    stream.resume()
    if (content !== undefined) stream.end(content)
  })

/** The status of the same request over HTTP/1.1. */
const askBefore = ({ ':method': method, ':path': path, ...headers }: OutgoingHttpHeaders, content?: string) =>
  new Promise<number | undefined>((resolve, reject) => {
    const url = new URL(gateway.publicAddress)
    const options = {
      host: url.hostname,
      port: url.port,
      path: String(path),
      method: String(method ?? 'GET'),
    }
    const sent = httpsRequest({ ...options, headers, rejectUnauthorized: false, agent: false })
    sent.on('response', (response) => resolve(response.resume().statusCode))
    sent.on('error', reject)
    sent.end(content)
  })

const post = { ':method': 'POST', ':path': '/index.php/site-json/site/v2/posts', authorization: 'Basic YTpi' }
const preflight = { origin: 'https://app.test', 'access-control-request-method': 'GET' }

test.each<[string, OutgoingHttpHeaders, number, string?]>([
  ['no mount', { ':path': '/nowhere' }, 404],
  ['HEAD of no mount', { ':method': 'HEAD', ':path': '/nowhere' }, 404],
  ['a path that cannot be decoded', { ':path': '/a/%zz' }, 400],
  ['a long path', { ':path': `/a/${'x'.repeat(12_000)}` }, 414],
  ['a preflight', { ':method': 'OPTIONS', ':path': '/a/x', ...preflight }, 204],
  ['TRACE', { ':method': 'TRACE', ':path': '/a/x' }, 404],
  ['an unknown method', { ':method': 'FROB', ':path': '/a/x' }, 400],
  ['TE', { ':path': '/a/x', te: 'trailers' }, 200],
  ['content', { ':method': 'POST', ':path': '/a/x' }, 200, '{}'],
  ['broken JSON', { ...post, 'content-type': 'application/json' }, 400, '{'],
])('over HTTP/2 as over HTTP/1.1, %s', async (_, headers, expected, content) => {
  expect([await ask(headers, content), await askBefore(headers, content)]).toEqual([expected, expected])
  // The connection and the process go on.
  expect(await ask({ ':path': '/a/after' })).toBe(200)
})
