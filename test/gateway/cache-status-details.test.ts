import { request } from 'node:http'
import { text } from 'node:stream/consumers'
import { beforeAll, expect, test } from 'vitest'
import type { StatusDetail } from '../../src/cache/events.ts'
import { closeAfterAll } from '../support/close.ts'
import { siteService, startTestGateway, type TestGateway } from '../support/gateway.ts'
import { createLatch } from '../support/latch.ts'
import { type Origin, startOrigin } from '../support/origin.ts'

// Each row of docs/why-not-cached.md, played: what has to be sent and answered so that Cache-Status carries this detail.

type HeaderValues = Readonly<Record<string, string>>
type Row = {
  readonly detail: StatusDetail
  /** A service of the gateway below. */
  readonly to?: 'safe' | 'wide' | 'site' | 'hasty'
  readonly method?: string
  /** Below the mount. */
  readonly path?: string
  readonly headers?: HeaderValues
  readonly content?: string
  readonly response?: { readonly status?: number; readonly headers?: HeaderValues; readonly content?: string }
  /** The response to a second request; the detail is that of the second. */
  readonly second?: Row['response']
}

const fresh = { 'Cache-Control': 'max-age=60' }
const long = 'x'.repeat(100_000)

const bypasses: readonly Row[] = [
  { detail: 'method', method: 'OPTIONS' },
  { detail: 'no-rule', path: '/without-a-rule' },
  { detail: 'request-content', content: '{}', headers: { 'content-type': 'application/json' } },
  { detail: 'request-no-store', headers: { 'cache-control': 'no-store' } },
  { detail: 'authorization', headers: { authorization: 'Bearer a' } },
  { detail: 'authorization', headers: { 'x-session-id': 'a' } },
  { detail: 'cookie', headers: { cookie: 'theme=dark' } },
  { detail: 'nonce', headers: { 'x-wp-nonce': 'a' } },
  { detail: 'nonce', path: '/cached/nonce?_wpnonce=a' },
  { detail: 'password', path: '/cached/a?password=b' },
  { detail: 'context-edit', path: '/cached/a?context=edit' },
  { detail: 'non-public-status', path: '/cached/a?status=draft' },
  { detail: 'method-override', path: '/cached/a?_method=DELETE' },
  { detail: 'cron', path: '/cached/wp-cron.php' },
  { detail: 'creating-read', path: '/cached/wp-block-editor/v1/navigation-fallback' },
]

const notStored: readonly Row[] = [
  { detail: 'status', response: { status: 404 } },
  { detail: 'no-freshness', to: 'wide' },
  { detail: 'no-store', response: { headers: { 'Cache-Control': 'no-store' } } },
  { detail: 'private', response: { headers: { 'Cache-Control': 'private' } } },
  { detail: 'set-cookie', response: { headers: { 'Set-Cookie': 'a=b' } } },
  { detail: 'token', response: { headers: { 'X-WP-Nonce': 'a' } } },
  {
    detail: 'authorization',
    to: 'wide',
    headers: { authorization: 'Bearer a' },
    response: { headers: fresh },
  },
  { detail: 'vary-any', response: { headers: { Vary: '*' } } },
  { detail: 'vary-any', response: { headers: { Vary: 'X-Request-Id' } } },
  {
    detail: 'must-understand',
    to: 'wide',
    response: { status: 299, headers: { 'Cache-Control': 'must-understand, max-age=60' } },
  },
  { detail: 'too-large', response: { content: long.repeat(3) } },
  { detail: 'unreadable', to: 'site', path: '/site/v2/posts', response: { content: '<p>Error</p>' } },
  { detail: 'method', method: 'HEAD' },
]

const noFault: readonly Row[] = [
  { detail: 'streamed', response: { content: long } },
  { detail: 'only-if-cached', to: 'wide', headers: { 'cache-control': 'only-if-cached' } },
  {
    detail: 'revalidating',
    response: { headers: { 'Cache-Control': 'max-age=0, stale-while-revalidate=60', ETag: '"a"' } },
    second: {},
  },
  {
    detail: 'error',
    response: { headers: { 'Cache-Control': 'max-age=0, stale-if-error=60', ETag: '"a"' } },
    second: { status: 500 },
  },
]

const rows = [...bypasses, ...notStored, ...noFault]

let origin: Origin
let gateway: TestGateway

beforeAll(async () => {
  origin = await startOrigin()
  const targets = [origin.origin]
  gateway = await startTestGateway({
    cache: { maxEntryBytes: '200KiB' },
    services: {
      safe: {
        contract: 'open',
        mount: '/safe',
        upstream: { targets },
        cache: { rules: [{ match: 'GET /cached/**', ttl: '60s' }] },
      },
      wide: {
        contract: 'open',
        mount: '/wide',
        upstream: { targets },
        cache: { profile: 'rfc-shared-cache' },
      },
      site: siteService(origin.origin),
      hasty: {
        contract: 'open',
        mount: '/hasty',
        upstream: { targets, timeouts: { headers: '500ms', total: '60s' } },
        cache: { rules: [{ match: 'GET /cached/**', ttl: '60s' }] },
      },
    },
  })
})
closeAfterAll(() => [gateway, origin])

const mounts = { safe: '/safe', wide: '/wide', site: '/index.php/site-json', hasty: '/hasty' }

/** What the gateway says of one request; the content is read to its end. */
const statusOf = (row: Row, path: string): Promise<string> =>
  new Promise((resolve, reject) => {
    const { to = 'safe', method = 'GET', content = '' } = row
    const length = content === '' ? {} : { 'content-length': String(content.length) }
    const headers = { ...row.headers, ...length }
    request(`${gateway.publicAddress}${mounts[to]}${path}`, { method, headers }, (response) => {
      text(response).then(() => resolve(String(response.headers['cache-status'])), reject)
    })
      .once('error', reject)
      .end(content)
  })

const respondsWith =
  (response: Row['response']): Origin['script'] =>
  (_request, wire) => {
    const headers = { 'Content-Type': 'application/json', ...response?.headers }
    wire.respond({ content: '[]', ...response, headers })
  }

test.each(rows.map((row, number) => ({ ...row, number })))(
  'Cache-Status says detail=$detail (row $number)',
  async (row) => {
    const path = row.path ?? `/cached/${row.number}`
    origin.script = respondsWith(row.response)
    if (row.second !== undefined) {
      await statusOf(row, path)
      origin.script = respondsWith(row.second)
    }
    expect(await statusOf(row, path)).toMatch(new RegExp(`; detail=${row.detail}$`))
  },
)

test.each(bypasses)('a request that bypasses the cache is counted: $detail', async (row) => {
  origin.script = respondsWith(row.response)
  const counted = () =>
    gateway.metric('trellis_cache_forwards_total{service="safe",reason="bypass"', `detail="${row.detail}"`)
  const before = await counted()
  await statusOf(row, row.path ?? '/cached/counted')
  expect(await counted()).toBe(before + 1)
})

test('Cache-Status says detail=overtaken when a write came during the fetch', async () => {
  const path = '/cached/overtaken'
  const written = createLatch()
  origin.script = async (received, wire) => {
    if (received.method === 'GET') await written.opened
    respondsWith({})(received, wire, 0)
  }
  const before = origin.received.length
  const read = statusOf({ detail: 'overtaken' }, path)
  await origin.until(() => origin.received.length > before)
  await statusOf({ detail: 'overtaken', method: 'PUT' }, path)
  written.open()
  expect(await read).toMatch(/; detail=overtaken$/)
})

test('Cache-Status says detail=unsettled after a write that got no response', async () => {
  const path = '/cached/unsettled'
  origin.script = (received, wire, count) => {
    if (received.method === 'GET') return respondsWith({})(received, wire, count)
  }
  await statusOf({ detail: 'unsettled', to: 'hasty', method: 'PUT' }, path)
  expect(await statusOf({ detail: 'unsettled', to: 'hasty' }, path)).toMatch(/; detail=unsettled$/)
})

// `not-admitted`, `no-room` and `shared` need a full cache, many requests in flight, and Redis: test/unit/cache/store/admission.test.ts,
// test/gateway/hostile/buffered-bytes.long.test.ts, test/real/redis-shared-tier.real.test.ts.
