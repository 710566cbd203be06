import { request } from 'node:http'
import { expect, test } from 'vitest'
import { closeAfterEach } from '../../support/close.ts'
import { postBatch, siteService, startTestGateway, type TestGateway } from '../../support/gateway.ts'
import { type Origin, pause, startOrigin } from '../../support/origin.ts'

// A request that makes the upstream fail does not fail the requests that wait for the same response.

const json = { 'Content-Type': 'application/json' }
const readers = 20
const path = '/index.php/site-json/site/v2/posts'

let origin: Origin
let gateway: TestGateway
closeAfterEach(() => [gateway, origin])

type Fault = `status ${number}` | 'reset'

/** A header that no key has, so that others wait for the request. */
const refused = (length = 1) => ({ 'User-Agent': `boom${'x'.repeat(length)}` })
const isRefused = (headers: Readonly<Record<string, unknown>>): boolean =>
  String(headers['user-agent']).startsWith('boom')

/** The upstream answers when all wait; it fails on each request of that client. */
const start = async (fault: Fault): Promise<void> => {
  origin = await startOrigin(async ({ headers }, wire, count) => {
    // The request of those that wait for no other one shows that they have come.
    for (let turn = 0; count === 1 && origin.received.length === 1 && turn < 50; turn += 1) {
      if ((await gateway.metric('trellis_in_flight_requests')) > readers) break
      await pause(20)
    }
    if (!isRefused(headers)) return wire.respond({ headers: json, content: '[{"id":7}]' })
    if (fault === 'reset') return wire.reset()
    return wire.respond({ status: Number(fault.slice(7)), headers: json, content: '{"code":"boom"}' })
  })
  gateway = await startTestGateway({
    services: {
      site: siteService(origin.origin, {
        cache: { rules: [{ match: 'GET /site/v2/**', ttl: '1h' }] },
      }),
    },
  })
}

const read = (headers: Readonly<Record<string, string>>): Promise<number> =>
  new Promise((resolve, reject) => {
    request(`${gateway.publicAddress}${path}`, { headers: headers, agent: false }, (response) => {
      response.resume().on('end', () => resolve(response.statusCode ?? 0))
    })
      .on('error', reject)
      .end()
  })

const others = (): Promise<number>[] =>
  Array.from({ length: readers }, (_, at) => read({ 'User-Agent': `browser ${at}` }))

test.each<Fault>(['status 500', 'status 431', 'status 400', 'status 403', 'reset'])(
  'readers who joined a request that ended with %s get a healthy answer',
  async (fault) => {
    await start(fault)
    const leader = read(refused(fault === 'status 431' ? 8_000 : 1))
    await origin.until(() => origin.received.length === 1)
    const statuses = await Promise.all(others())
    expect(statuses).toEqual(Array(readers).fill(200))
    expect(await leader).toBeGreaterThanOrEqual(400)
    const plain = origin.received.filter(({ headers }) => !isRefused(headers))
    expect(plain).toHaveLength(1)
  },
)

test('a request that a firewall refuses does not part the readers after it', async () => {
  await start('status 403')
  expect(await read(refused())).toBe(403)
  expect(await Promise.all(others())).toEqual(Array(readers).fill(200))
  expect(origin.received).toHaveLength(2)
})

test('readers who joined an item of a batch that failed get a healthy answer', async () => {
  await start('status 500')
  const item = { method: 'GET', path: '/site/v2/posts' }
  const leader = postBatch(gateway, { requests: [item] }, refused())
  await origin.until(() => origin.received.length === 1)
  expect(await Promise.all(others())).toEqual(Array(readers).fill(200))
  expect(await (await leader).json()).toMatchObject({ responses: [{ status: 500 }] })
})

test.each<readonly [string, Readonly<Record<string, string>>]>([
  ['a range', { Range: 'bytes=0-0', ...refused() }],
  ['no-store', { 'Cache-Control': 'no-store', ...refused() }],
  ['max-age=0', { 'Cache-Control': 'max-age=0', ...refused() }],
  ['no encoding', { 'Accept-Encoding': 'identity;q=0', ...refused() }],
])('a failing request that asks for %s fails by itself', async (_, headers) => {
  await start('status 500')
  const leader = read(headers)
  await origin.until(() => origin.received.length === 1)
  expect(await Promise.all(others())).toEqual(Array(readers).fill(200))
  expect(await leader).toBe(500)
})
