import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { siteService } from '../support/gateway.ts'
import { type GatewayProcess, startGatewayProcess } from '../support/gateway-process.ts'
import { type Origin, startOrigin } from '../support/origin.ts'
import { exchangeBytes } from '../support/raw-client.ts'

let origin: Origin
let gateway: GatewayProcess

beforeAll(async () => {
  origin = await startOrigin()
  gateway = await startGatewayProcess({
    log: { level: 'info', access: true },
    services: {
      open: { contract: 'open', mount: '/open', upstream: { targets: [origin.origin] } },
      shared: {
        contract: 'open',
        mount: '/shared',
        upstream: { targets: [origin.origin] },
        cache: { profile: 'rfc-shared-cache' },
      },
      site: siteService(origin.origin, { cache: { rules: [{ match: 'GET /site/v2/**', ttl: '60s' }] } }),
    },
  })
})
afterAll(async () => {
  await gateway.stop()
  await origin.close()
})

type Line = Readonly<Record<string, unknown>>

const requestLines = (from: number): Line[] =>
  gateway.program
    .output()
    .slice(from)
    .split('\n')
    .filter((line) => line.includes('"msg":"request"'))
    .map((line) => JSON.parse(line) as Line)

const traceId = '0af7651916cd43dd8448eb211c80319c'

test('each request has one line, in the words of metrics and Cache-Status', async () => {
  const from = gateway.program.output().length
  const url = `${gateway.origin}/index.php/site-json/site/v2/posts?per_page=2`
  const headers = { traceparent: `00-${traceId}-b7ad6b7169203331-01` }
  const first = await fetch(url, { headers })
  await first.arrayBuffer()
  await (await fetch(url)).arrayBuffer()
  await (await fetch(`${url}000`)).arrayBuffer()
  await expect.poll(() => requestLines(from).length).toBe(3)
  const [miss, hit, refused] = requestLines(from)
  expect(miss).toMatchObject({
    id: first.headers.get('x-request-id'),
    trace: traceId,
    service: 'site',
    route: '/site/v2/posts',
    method: 'GET',
    status: 200,
    cache: 'miss',
    cacheStatus: expect.stringMatching(/^fwd=uri-miss; fwd-status=200; ttl=(60|5\d); stored$/),
    bytes: 11,
  })
  expect(hit).toMatchObject({
    cache: 'hit',
    cacheStatus: expect.stringMatching(/^hit; ttl=(60|5\d)$/),
    upstreamMs: 0,
    bytes: 11,
  })
  expect(refused).toMatchObject({ status: 400, cache: 'none', route: '/site/v2/posts' })
})

const lasting = 'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nCache-Control: max-age=60\r\n'

test.each([
  ['/open/a', `${lasting}Content-Length: 11\r\n\r\n{"ok":true}`, 11],
  ['/open/a', `${lasting}Transfer-Encoding: chunked\r\n\r\nb\r\n{"ok":true}\r\n0\r\n\r\n`, 11],
  ['/shared/a', `${lasting}Content-Location: /a\r\nContent-Length: 11\r\n\r\n{"ok":true}`, 11],
  [
    '/shared/a',
    `${lasting}Content-Location: /a\r\nTransfer-Encoding: chunked\r\n\r\nb\r\n{"ok":true}\r\n0\r\n\r\n`,
    11,
  ],
  ['/open/a', `HTTP/1.1 204 No Content\r\n\r\n`, 0],
] as const)('the line of a POST to %s has the length of its response', async (path, response, bytes) => {
  const before = origin.script
  onTestFinished(() => {
    origin.script = before
  })
  origin.script = (_, wire) => wire.write(response)
  const from = gateway.program.output().length
  await (await fetch(`${gateway.origin}${path}`, { method: 'POST', body: 'a=1' })).arrayBuffer()
  await expect.poll(() => requestLines(from).length).toBe(1)
  expect([requestLines(from)[0]?.['method'], requestLines(from)[0]?.['bytes']]).toEqual(['POST', bytes])
})

const planted = 'planted-secret'

test.each([
  [
    'line ends in the target',
    `GET /index.php/site-json/site/v2/posts/%0a{"msg":"${planted}" HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`,
  ],
  [
    'an unknown method',
    `BREW-${planted} /index.php/site-json/ HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`,
  ],
  [
    'a rare method',
    `PROPFIND /index.php/site-json/${planted} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`,
  ],
  [
    'fields',
    `GET /index.php/site-json/site/v2/posts?password=${planted} HTTP/1.1\r\nHost: a\r\nConnection: close\r\nCookie: ${planted}\r\nTraceparent: 00-${planted}\r\nX-Request-Id: ${planted}\r\nUser-Agent: ${planted}\r\n\r\n`,
  ],
])('nothing of a request can be found in the log: %s', async (_, bytes) => {
  const from = gateway.program.output().length
  await exchangeBytes(gateway.origin, bytes)
  await expect.poll(() => gateway.program.output().length).toBeGreaterThan(from)
  const text = gateway.program.output().slice(from)
  expect(text).not.toContain(planted)
  for (const line of text.trim().split('\n')) expect(() => JSON.parse(line)).not.toThrow()
})

test('lines are written beside the work, and none is missing when the process has ended', async () => {
  const other = await startGatewayProcess({
    log: { level: 'info', access: true },
    services: { site: siteService(origin.origin) },
  })
  const ask = () =>
    fetch(`${other.origin}/index.php/site-json/site/v2/posts`).then((response) => response.text())
  for (let round = 0; round < 10; round += 1) await Promise.all(Array.from({ length: 50 }, ask))
  expect(await other.stop()).toBe(0)
  expect(other.program.output().split('"msg":"request"')).toHaveLength(501)
})
