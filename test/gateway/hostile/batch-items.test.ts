import { beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { closeAfterAll } from '../../support/close.ts'
import { siteService, startTestGateway, type TestGateway } from '../../support/gateway.ts'
import { type Origin, startOrigin } from '../../support/origin.ts'

// Items of a batch reach routes of their service only, under the credential of the batch only.

const site = '/index.php/site-json'
let origin: Origin
let other: Origin
let gateway: TestGateway

beforeAll(async () => {
  origin = await startOrigin()
  other = await startOrigin()
  gateway = await startTestGateway({
    admin: { port: 0 },
    services: {
      site: siteService(origin.origin, { batch: { split: 'item' } }),
      other: { contract: 'open', mount: '/other', upstream: { targets: [other.origin] } },
    },
  })
})
closeAfterAll(() => [gateway, origin, other])
beforeEach(() => {
  origin.received.length = 0
  other.received.length = 0
})

type Envelope = { readonly responses: readonly { readonly status: number; readonly body: unknown }[] }

const post = async (
  content: string,
  headers: Readonly<Record<string, string>> = {},
): Promise<{ status: number; responses: Envelope['responses'] }> => {
  const response = await fetch(`${gateway.publicAddress}${site}/batch/v1`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', ...headers },
    body: content,
  })
  const { responses = [] } = (await response.json()) as Partial<Envelope>
  return { status: response.status, responses }
}
const batch = (items: readonly unknown[], headers?: Readonly<Record<string, string>>) =>
  post(JSON.stringify({ requests: items }), headers)

describe('a path leads nowhere else', () => {
  const elsewhere = (): readonly string[] => [
    other.origin,
    `${other.origin}/site/v2/posts`,
    `//${new URL(other.origin).host}/site/v2/posts`,
    `\\\\${new URL(other.origin).host}\\x`,
    `http:/${new URL(other.origin).host}/x`,
    `http://user:pass@${new URL(other.origin).host}/site/v2/posts`,
    `@${new URL(other.origin).host}/x`,
    `http://2130706433:${other.port}/x`,
    `http://0x7f.1:${other.port}/x`,
    `http://[::ffff:127.0.0.1]:${other.port}/x`,
    `${gateway.adminAddress}/metrics`,
    `${gateway.adminAddress}/cache/purge`,
    '/other/x',
    '/../other/x',
    '/../../other/x',
    '/site/v2/../../../../other/x',
    '/%2e%2e/other/x',
    '/site/v2/posts/%2e%2e/%2e%2e/x',
    '/metrics',
    '/batch/v1',
    '/BATCH/v1',
    'file:///etc/passwd',
    'gopher://127.0.0.1/x',
    '/site/v2/posts?rest_route=/site/v2/users',
    '/site/v2/posts\r\nHost: evil.example',
    '/site/v2/posts HTTP/1.1\r\nX-Evil: 1\r\n\r\nGET /evil',
    `/site/v2/posts/${'x'.repeat(20_000)}`,
  ]

  test('absolute URLs, other hosts, other services, the admin side, the batch itself', async () => {
    for (const path of elsewhere()) {
      origin.received.length = 0
      const { status, responses } = await batch([{ path, method: 'POST', body: { title: 'x' } }])
      expect([path, [207, 400].includes(status)]).toEqual([path, true])
      expect(other.received).toEqual([])
      for (const { target, head, headers } of origin.received) {
        // Whatever host was named, the route is one of the site.
        expect([path, target]).toEqual([
          path,
          expect.stringMatching(/^\/index\.php\/wp-json\/wp\/v2\/posts\b/),
        ])
        expect(headers['host']).toBe(new URL(origin.origin).host)
        expect(head).not.toMatch(/evil\.example|X-Evil|user:pass/)
        expect(head.split('\r\n').filter((line) => /^host:/i.test(line))).toHaveLength(1)
      }
      expect(JSON.stringify(responses)).not.toContain('trellis_requests_total')
    }
  })
})

test('headers of an item say nothing about credentials, framing, addresses or the connection', async () => {
  const evil = {
    Authorization: 'Bearer evil',
    Cookie: 'wordpress_logged_in_x=evil',
    Host: 'evil.example',
    'Content-Length': '0',
    'Transfer-Encoding': 'chunked',
    Connection: 'Authorization, evil',
    'X-Forwarded-For': '6.6.6.6',
    'X-Forwarded-Host': 'evil.example',
    'X-Real-IP': '6.6.6.6',
    X_Real_IP: '6.6.6.6',
    'X-HTTP-Method-Override': 'DELETE',
    'X-WP-Nonce': 'evil',
    'Idempotency-Key': 'evil',
    Via: '1.1 evil',
    'X-Original-URL': '/evil',
    'X-A': 'evil\r\nX-B: evil',
    'X-C\r\nX-D': 'evil',
    __proto__: { 'X-E': 'evil' },
    constructor: 'fine',
  }
  const item = { path: '/site/v2/posts/5', method: 'PUT', headers: evil, body: { title: 'x' } }
  const { status } = await batch([item], { Authorization: 'Basic own' })
  expect(status).toBe(207)
  expect(origin.received.map(({ method, target }) => `${method} ${target}`)).toEqual([
    'PUT /index.php/wp-json/wp/v2/posts/5',
  ])
  const [sent] = origin.received
  expect(sent?.head).not.toMatch(/evil|6\.6\.6\.6|override/i)
  expect(sent?.headers['authorization']).toBe('Basic own')
  expect(sent?.content.toString()).toBe('{"title":"x"}')
})

describe('repeated members of an item', () => {
  test.each([
    ['an id in the body that is not the one of the path', { path: '/site/v2/posts/5', body: { id: 6 } }],
    ['an id in the query that is not the one of the path', { path: '/site/v2/posts/5?id=6', body: {} }],
  ])('%s is refused', async (_, item) => {
    const { responses } = await batch([{ method: 'PUT', ...item }])
    expect(responses[0]?.status).toBe(400)
    expect(origin.received).toEqual([])
  })
})

describe('bodies of items reach the upstream as they were written', () => {
  test.each([
    ['an integer beyond 2^53', '{"title":"x","meta":{"n":9223372036854775807}}'],
    ['minus zero', '{"title":"x","meta":{"n":-0}}'],
    ['an exponent', '{"title":"x","meta":{"n":1e2}}'],
    ['an escaped line end', '{"title":"a\\r\\nb"}'],
    ['a member that looks like a prototype', '{"title":"x","meta":{"__proto__":{"polluted":1}}}'],
    ['a constructor', '{"title":"x","meta":{"constructor":{"prototype":{"polluted":1}}}}'],
  ])('%s', async (_, body) => {
    const { status } = await post(`{"requests":[{"path":"/site/v2/posts/5","method":"PUT","body":${body}}]}`)
    expect(status).toBe(207)
    expect(origin.received.map(({ content }) => content.toString())).toEqual([body])
    expect(({} as Record<string, unknown>)['polluted']).toBeUndefined()
  })
})

describe('an envelope that is too much', () => {
  test.each([
    ['26 items', `{"requests":[${Array(26).fill('{"path":"/site/v2/posts/5"}').join(',')}]}`, 400],
    ['more than eight megabytes', `{"requests":[],"x":"${'x'.repeat(8 << 20)}"}`, 413],
    [
      'a thousand levels',
      `{"requests":[{"path":"/site/v2/posts/5","body":${'['.repeat(1_000)}${']'.repeat(1_000)}}]}`,
      400,
    ],
    ['a hundred thousand brackets', `{"requests":${'['.repeat(100_000)}`, 400],
    ['a byte order mark', '\ufeff{"requests":[]}', 400],
    [
      'half a surrogate pair',
      '{"requests":[{"path":"/site/v2/posts/5","method":"PUT","body":{"title":"\\ud800"}}]}',
      400,
    ],
    ['not a number', '{"requests":NaN}', 400],
    ['two documents', '{"requests":[]}{"requests":[]}', 400],
    ['a list', '[]', 400],
  ])('%s is refused and nothing is sent', async (_, content, status) => {
    expect((await post(content)).status).toBe(status)
    expect(origin.received).toEqual([])
  })

  test('the same member twice: the last one counts, for the check and for the upstream alike', async () => {
    const { responses } = await post(
      '{"requests":[{"path":"/site/v2/posts/5","method":"PUT","body":{"id":5,"title":"a","id":6}}]}',
    )
    expect(responses[0]?.status).toBe(400)
    expect(origin.received).toEqual([])
  })
})
