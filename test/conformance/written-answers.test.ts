import { afterAll, beforeAll, expect, test } from 'vitest'
import { createLatch } from '../support/latch.ts'
import { headerOf, type OpenService, startOpenService } from './open-service.ts'

let service: OpenService
let target = 0
beforeAll(async () => {
  service = await startOpenService()
})
afterAll(() => service.close())

type HeaderValues = Readonly<Record<string, string>>

/** POSTs to a fresh target, then reads it; what the read got. */
const readAfterPost = async (
  headers: (path: string) => HeaderValues,
  options: { readonly status?: number; readonly request?: readonly string[] } = {},
): Promise<string> => {
  target += 1
  const path = `/posted/${target}`
  service.origin.script = ({ method }, wire) => {
    if (method === 'POST') {
      wire.respond({ status: options.status ?? 200, headers: headers(path), content: 'posted' })
    } else wire.respond({ content: 'read' })
  }
  const posted = await service.ask(
    [`POST ${path} HTTP/1.1`, 'Content-Length: 1', ...(options.request ?? [])],
    'x',
  )
  expect(posted).toMatch(/posted$/)
  return service.ask([`GET ${path} HTTP/1.1`])
}

const fresh: HeaderValues = { 'Cache-Control': 'max-age=60' }

// RFC 9110 §9.3.3
test.each<[string, (path: string) => HeaderValues]>([
  ['its path', (path) => ({ ...fresh, 'Content-Location': path })],
  ['a relative reference', (path) => ({ ...fresh, 'Content-Location': path.replace('/posted/', '') })],
  ['the address of the upstream', (path) => ({ ...fresh, 'Content-Location': service.origin.origin + path })],
  ['the public address', (path) => ({ ...fresh, 'Content-Location': service.gateway.publicAddress + path })],
])(
  'the response to a POST with explicit freshness serves later reads when Content-Location is %s',
  async (_, headers) => {
    const reply = await readAfterPost(headers)
    expect(reply).toMatch(/posted$/)
    expect(headerOf(reply, 'Cache-Status')).toMatch(/^trellis; hit/)
  },
)

test.each<[string, (path: string) => HeaderValues, Parameters<typeof readAfterPost>[1]]>([
  ['no Content-Location', () => fresh, {}],
  ['another Content-Location', (path) => ({ ...fresh, 'Content-Location': `${path}0` }), {}],
  [
    'a Content-Location elsewhere',
    (path) => ({ ...fresh, 'Content-Location': `http://other.test${path}` }),
    {},
  ],
  ['no lifetime', (path) => ({ 'Content-Location': path }), {}],
  [
    'a heuristic only',
    (path) => ({ 'Content-Location': path, 'Last-Modified': 'Mon, 01 Jan 2024 00:00:00 GMT' }),
    {},
  ],
  ['private', (path) => ({ 'Content-Location': path, 'Cache-Control': 'private, max-age=60' }), {}],
  ['no-store', (path) => ({ 'Content-Location': path, 'Cache-Control': 'no-store, max-age=60' }), {}],
  ['another status', (path) => ({ ...fresh, 'Content-Location': path }), { status: 201 }],
  [
    'a request with no-store',
    (path) => ({ ...fresh, 'Content-Location': path }),
    { request: ['Cache-Control: no-store'] },
  ],
  [
    'a credential',
    (path) => ({ ...fresh, 'Content-Location': path }),
    { request: ['Authorization: Basic eA=='] },
  ],
])('it does not with %s', async (_, headers, options) => {
  expect(await readAfterPost(headers, options)).toMatch(/read$/)
})

test('a response that breaks off is not stored', async () => {
  service.origin.script = ({ method }, wire) => {
    if (method !== 'POST') {
      wire.respond({ content: 'read' })
      return
    }
    wire.write(
      'HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Location: /broken\r\nContent-Length: 9\r\n\r\nposted',
    )
    wire.end()
  }
  await service.ask(['POST /broken HTTP/1.1', 'Content-Length: 1'], 'x')
  expect(await service.ask(['GET /broken HTTP/1.1'])).toMatch(/read$/)
})

test('a response to a POST is not stored if one of its groups was invalidated while the POST was in flight', async () => {
  let version = 1
  const written = createLatch()
  const tags = { 'Cache-Control': 'max-age=60', 'Cache-Groups': '"stock"' }
  service.origin.script = async ({ method }, wire) => {
    const content = `version ${version}`
    if (method === 'PUT') {
      version += 1
      wire.respond({ status: 204, headers: { 'Cache-Group-Invalidation': '"stock"' } })
      return
    }
    if (method === 'POST') await written.opened
    wire.respond({ headers: { ...tags, 'Content-Location': '/report' }, content })
  }
  const before = service.origin.received.length
  const posted = service.ask(['POST /report HTTP/1.1', 'Content-Length: 1'], 'x')
  await service.origin.until(() => service.origin.received.length > before)
  await service.ask(['PUT /item HTTP/1.1', 'Content-Length: 1'], 'x')
  written.open()
  expect(await posted).toMatch(/version 1$/)
  expect(await service.ask(['GET /report HTTP/1.1'])).toMatch(/version 2$/)
})

// RFC 9111 §4.3.5
test.each([
  ['says nothing that contradicts', {}, 'hit'],
  ['has the same length and tag', { ETag: '"a"' }, 'hit'],
  ['has another tag', { ETag: '"b"' }, 'miss'],
  ['has another date', { 'Last-Modified': 'Mon, 01 Jan 2024 00:00:00 GMT' }, 'miss'],
])('a HEAD whose response %s: the stored response is a %s', async (name, headers, expected) => {
  const path = `/head/${encodeURIComponent(name)}`
  service.origin.script = ({ method }, wire) => {
    if (method === 'HEAD') {
      const lines = Object.entries({ ...headers, 'Cache-Control': 'max-age=60', 'X-New': '1' })
      wire.write(`HTTP/1.1 200 OK\r\n${lines.map((line) => `${line.join(': ')}\r\n`).join('')}\r\n`)
      wire.end()
    } else wire.respond({ headers: { 'Cache-Control': 'max-age=0', ETag: '"a"' }, content: 'whole' })
  }
  await service.ask([`GET ${path} HTTP/1.1`])
  await service.ask([`HEAD ${path} HTTP/1.1`])
  const reply = await service.ask([`GET ${path} HTTP/1.1`])
  expect(reply).toMatch(/whole$/)
  expect(headerOf(reply, 'Cache-Status')?.startsWith('trellis; hit')).toBe(expected === 'hit')
  expect(headerOf(reply, 'X-New')).toBe(expected === 'hit' ? '1' : undefined)
})

// RFC 9110 §15.3.6: the content is not sent, so a length would take the begin of the next response for it.
test.each(['no-store', 'max-age=60'])('a 205 with content and %s says that it has none', async (control) => {
  target += 1
  service.origin.script = (_, wire) =>
    wire.respond({ status: 205, headers: { 'Cache-Control': control }, content: 'reset' })
  for (const _ of ['miss', 'again']) {
    const reply = await service.ask([`GET /reset/${target} HTTP/1.1`])
    expect(reply).toMatch(/^HTTP\/1\.1 205 [\s\S]*\r\n\r\n$/)
    expect(reply.match(/^content-length: .*$/gim)).toEqual(['Content-Length: 0'])
  }
})
