import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { siteService } from '../support/gateway.ts'
import { type GatewayProcess, startGatewayProcess } from '../support/gateway-process.ts'
import { logLinesOf } from '../support/log-lines-of.ts'
import { type Origin, startOrigin } from '../support/origin.ts'
import { exchangeBytes } from '../support/raw-client.ts'

let origin: Origin
const mount = '/index.php/site-json/site/v2'

const start = (log: Record<string, unknown>): Promise<GatewayProcess> =>
  startGatewayProcess({
    log: { level: 'info', ...log },
    trustedProxies: ['127.0.0.1'],
    services: {
      site: siteService(origin.origin, { cache: { rules: [{ match: 'GET /site/v2/**', ttl: '60s' }] } }),
      guarded: {
        contract: 'open',
        mount: '/guarded',
        upstream: { targets: [origin.origin] },
        access: { deny: ['203.0.113.0/24'] },
      },
      notes: {
        contract: 'openapi',
        mount: '/notes',
        document: fileURLToPath(new URL('./openapi/callers.yaml', import.meta.url)),
        upstream: { targets: [origin.origin] },
        // A check of a response has its own log line, some time after the response.
      },
    },
  })

beforeAll(async () => {
  origin = await startOrigin()
})
afterAll(() => origin.close())

type Line = Readonly<Record<string, unknown>>

/** The access lines that a request adds. */
const linesOf = async (
  gateway: GatewayProcess,
  ask: () => Promise<unknown>,
  count = 1,
): Promise<readonly Line[]> => {
  const before = logLinesOf(gateway.program, 'request').length
  await ask()
  await expect
    .poll(() => logLinesOf(gateway.program, 'request').length)
    .toBeGreaterThanOrEqual(before + count)
  return logLinesOf(gateway.program, 'request').slice(before)
}

describe('with all members', () => {
  let gateway: GatewayProcess
  beforeAll(async () => {
    gateway = await start({ access: { path: true, client: true, userAgent: true, target: true } })
  })
  afterAll(() => gateway.stop())

  const get = (path: string, headers: Record<string, string> = {}) =>
    fetch(`${gateway.origin}${path}`, { headers }).then(async (response) => {
      await response.arrayBuffer()
      return response
    })

  test('a line answers a customer: path, network of the client, user agent, target, cache and reason', async () => {
    const [miss, hit] = await linesOf(
      gateway,
      async () => {
        const headers = { 'X-Forwarded-For': '198.51.100.77', 'User-Agent': 'shop/1.2' }
        await get(`${mount}/posts?per_page=3`, headers)
        await get(`${mount}/posts?per_page=3`, headers)
      },
      2,
    )
    expect(miss).toMatchObject({
      path: `${mount}/posts?per_page=3`,
      client: '198.51.100.0/24',
      userAgent: 'shop/1.2',
      target: origin.origin,
      cache: 'miss',
      cacheStatus: expect.stringContaining('fwd=uri-miss'),
    })
    expect(hit).toMatchObject({ cache: 'hit', client: '198.51.100.0/24' })
    expect(hit).not.toHaveProperty('target')
  })

  test('values of API keys that an OpenAPI document puts into the query are hidden', async () => {
    const [line] = await linesOf(gateway, () => get('/notes/public?app+id=alice&page=2'))
    expect(line).toMatchObject({ path: '/notes/public?app+id=[redacted]&page=2' })
  })

  test('of an IPv6 address the first 48 bits are logged', async () => {
    const [line] = await linesOf(gateway, () =>
      get(`${mount}/posts`, { 'X-Forwarded-For': '2001:db8:aaaa:bbbb::7' }),
    )
    expect(line).toMatchObject({ client: '2001:db8:aaaa::/48' })
  })

  test('a request under no mount has a line, and the id of its response', async () => {
    let response: Response | undefined
    const [line] = await linesOf(gateway, async () => {
      response = await get('/nowhere?x=1', { 'X-Forwarded-For': '198.51.100.77' })
    })
    expect(response?.status).toBe(404)
    const id = response?.headers.get('x-request-id')
    expect(id).toMatch(/^[\w-]{8,}$/)
    expect(line).toMatchObject({
      id,
      service: 'none',
      route: 'unmatched',
      method: 'GET',
      status: 404,
      code: 'no_route',
      path: '/nowhere?x=1',
      client: '198.51.100.0/24',
    })
  })

  test.each([
    ['bytes that are not HTTP', 'BREW\x00coffee\r\n\r\n', 400],
    ['a request with two hosts', 'GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n', 400],
  ])('%s have a line with an id', async (_, bytes, status) => {
    const [line] = await linesOf(gateway, () => exchangeBytes(gateway.origin, bytes))
    expect(line).toMatchObject({ service: 'none', status, code: 'malformed_request', client: '127.0.0.0/24' })
    expect(line?.['id']).toMatch(/^[\w-]{8,}$/)
  })

  test.each([
    ['a wrong argument', `${mount}/posts?per_page=0`, {}, 'rest_invalid_param'],
    ['an unknown path', '/nowhere', {}, 'no_route'],
    ['an address', '/guarded/', { 'X-Forwarded-For': '203.0.113.9' }, 'access_denied'],
  ])('a refusal has its code in the access line and no second line: %s', async (_, path, headers, code) => {
    const from = gateway.program.output().length
    const [line] = await linesOf(gateway, () => get(path, headers as Record<string, string>))
    expect(line).toMatchObject({ code })
    const text = gateway.program.output().slice(from)
    expect(text.trim().split('\n'), text).toHaveLength(1)
  })

  test('secrets in the query are hidden, whatever their spelling', async () => {
    const secrets = [
      'token',
      '_wpnonce',
      'post_password',
      'pass%77ord',
      'access_token',
      'api_key',
      'X-Amz-Signature',
      'password%ff',
    ]
    const query = secrets.map((name) => `${name}=planted`).join('&')
    const [line] = await linesOf(gateway, () => get(`${mount}/posts?page=1&${query}&author=7`))
    expect(line?.['path']).toContain('page=1&token=[redacted]&')
    expect(line?.['path']).toContain('author=7')
    expect(gateway.program.output()).not.toContain('planted')
  })

  test('long values are cut, and bytes outside ASCII are replaced', async () => {
    const [line] = await linesOf(gateway, () =>
      exchangeBytes(
        gateway.origin,
        `GET ${mount}/posts/${'a'.repeat(3_000)} HTTP/1.1\r\nHost: a\r\nUser-Agent: \x9b31m"},{"msg":"request"\t${'u'.repeat(3_000)}\r\nConnection: close\r\n\r\n`,
      ),
    )
    expect(String(line?.['path'])).toHaveLength(512)
    expect(String(line?.['path'])).toMatch(/^\/index.php\/site-json\/site\/v2\/posts\/a+\.\.\.$/)
    expect(String(line?.['userAgent'])).toHaveLength(200)
    expect(String(line?.['userAgent'])).toMatch(/^\?{1,2}31m"},{"msg":"request"\?u+\.\.\.$/)
    const written = gateway.program
      .output()
      .split('\n')
      .filter((one) => one.startsWith('{'))
    for (const one of written) expect(() => JSON.parse(one)).not.toThrow()
  })
})

test('`client: full` logs the whole address, and members that are off are absent', async () => {
  const gateway = await start({ access: { requests: 'sample', client: 'full' } })
  const [line] = await linesOf(gateway, async () => {
    await (
      await fetch(`${gateway.origin}${mount}/posts`, { headers: { 'X-Forwarded-For': '198.51.100.77' } })
    ).arrayBuffer()
  })
  expect(line).toMatchObject({ client: '198.51.100.77', weight: 1 })
  for (const name of ['path', 'userAgent', 'target']) expect(line).not.toHaveProperty(name)
  await gateway.stop()
})

test('without an access log, a refused request under no mount is logged with the id of its response', async () => {
  const gateway = await start({ access: false })
  const response = await fetch(`${gateway.origin}/nowhere`)
  await expect
    .poll(() => logLinesOf(gateway.program, 'request-refused'))
    .toMatchObject([{ id: response.headers.get('x-request-id'), code: 'no_route' }])
  expect(response.headers.get('x-request-id')).toMatch(/^[\w-]{8,}$/)
  await gateway.stop()
})

test('the format for terminals has one line for each request', async () => {
  const gateway = await start({ format: 'pretty', access: { path: true } })
  const from = gateway.program.output().length
  const response = await fetch(`${gateway.origin}${mount}/posts?per_page=2`)
  await response.arrayBuffer()
  await fetch(`${gateway.origin}/nowhere`)
  const lines = () =>
    gateway.program
      .output()
      .slice(from)
      .trim()
      .split('\n')
      .filter((line) => /^\d\d:\d\d/.test(line))
  await expect.poll(() => lines().length).toBe(2)
  const id = response.headers.get('x-request-id') ?? ''
  expect(lines()[0]).toMatch(
    /^\d\d:\d\d:\d\d\.\d{3} 200 GET {4}\/index\.php\/site-json\/site\/v2\/posts\?per_page=2 {2}\d+(\.\d)? ms {2}miss {2}site {2}[\w-]+$/,
  )
  expect(lines()[0]).toContain(id)
  expect(lines()[1]).toMatch(/404 GET {4}\/nowhere .*no_route/)
  await gateway.stop()
})
