import { afterAll, beforeAll, expect, test } from 'vitest'
import { type GatewayProcess, startGatewayProcess } from '../support/gateway-process.ts'
import { type Origin, pause, startOrigin } from '../support/origin.ts'

const readers = 200
const list = JSON.stringify([{ id: 1, title: { rendered: 'Quince' } }])
let upstream: Origin
let gateway: GatewayProcess

const waiting = async (): Promise<number> => {
  const metrics = await (await fetch(`${gateway.adminOrigin}/metrics`)).text()
  return Number(/^trellis_in_flight_requests(?:\{[^}]*\})? (\d+)$/m.exec(metrics)?.[1] ?? 0)
}

/** Requests for the list that the upstream has received. */
const received = (): number => upstream.received.filter(({ target }) => target.includes('/posts')).length

beforeAll(async () => {
  upstream = await startOrigin(async ({ target }, wire) => {
    if (!target.includes('/posts')) return wire.respond({ status: 404 })
    // Answers when all clients wait: a request that was not collapsed would be counted.
    while ((await waiting()) < readers) await pause(20)
    wire.respond({
      headers: { 'Content-Type': 'application/json; charset=UTF-8', 'X-WP-Total': '1' },
      content: list,
    })
  })
  gateway = await startGatewayProcess({
    services: {
      site: {
        contract: 'site',
        mount: '/index.php/site-json',
        names: 'wordpress',
        upstream: { targets: [upstream.origin], basePath: '/index.php/wp-json' },
        cache: { rules: [{ match: 'GET /site/v2/**', ttl: '60s' }] },
      },
    },
  })
})
afterAll(async () => {
  await gateway?.stop()
  await upstream?.close()
})

const ask = (): Promise<Response> => fetch(`${gateway.origin}/index.php/site-json/site/v2/posts?per_page=5`)

test(`${readers} concurrent readers of a list that is not stored send one request to the upstream`, async () => {
  const responses = await Promise.all(Array.from({ length: readers }, ask))
  expect(new Set(responses.map((response) => response.status))).toEqual(new Set([200]))
  for (const response of responses) expect(await response.text()).toBe(list)
  expect(received()).toBe(1)
})

test('the next reader gets a hit, and the metrics say so', async () => {
  const before = received()
  const response = await ask()
  expect(response.headers.get('cache-status')).toMatch(/^trellis; ?hit/)
  expect(Number(response.headers.get('age'))).toBeGreaterThanOrEqual(0)
  expect(await response.text()).toBe(list)
  expect(received()).toBe(before)
  const metrics = await (await fetch(`${gateway.adminOrigin}/metrics`)).text()
  const counted = (cache: string): string =>
    `trellis_requests_total{service="site",route="/site/v2/posts",method="GET",status_class="2xx",cache="${cache}"}`
  expect(metrics).toContain(`${counted('miss')} 1\n`)
  expect(metrics).toContain(`${counted('collapsed')} ${readers - 1}\n`)
  expect(metrics).toContain(`${counted('hit')} 1\n`)
})
