import { beforeAll, expect, test } from 'vitest'
import { closeAfterAll } from '../support/close.ts'
import { siteService, startTestGateway, type TestGateway } from '../support/gateway.ts'
import { type Origin, pause, startOrigin } from '../support/origin.ts'

const response = { headers: { 'Content-Type': 'application/json' }, content: '{"id":1,"slug":"stored"}' }

let origin: Origin
let gateway: TestGateway

beforeAll(async () => {
  origin = await startOrigin((_, wire) => wire.respond(response))
  gateway = await startTestGateway({
    services: {
      site: siteService(origin.origin, {
        upstream: {
          targets: [origin.origin],
          basePath: '/index.php/wp-json',
          breaker: { minRequests: 10, for: '300ms', probes: 1 },
        },
        cache: {
          rules: [
            { match: 'GET /site/v2/pages/*', ttl: '1h' },
            { match: 'GET /site/v2/**', ttl: '50ms', staleIfError: '1h' },
          ],
        },
      }),
    },
  })
})
closeAfterAll(() => [gateway, origin])

const read = async (path: string): Promise<string> => {
  const response = await fetch(`${gateway.publicAddress}/index.php/site-json/site/v2${path}`)
  const { slug } = (await response.json()) as { slug?: string }
  const status = response.headers.get('cache-status') ?? ''
  return [response.status, slug, /detail=error|hit/.exec(status)?.[0]].filter(Boolean).join(' ')
}

const degraded = async (): Promise<unknown> => {
  const response = await fetch(`${gateway.adminAddress}/readyz`)
  expect(response.status).toBe(200)
  return ((await response.json()) as { degraded: unknown }).degraded
}

/** Reads all the time until told to stop, twenty times at least, and says what came back. */
const readOn = async (path: string, isOver: () => boolean): Promise<Set<string>> => {
  const seen = new Set<string>()
  for (let reads = 0; reads < 20 || !isOver(); reads += 1) seen.add(await read(path))
  return seen
}

test('without any upstream, hits and allowed stale responses continue, and metrics show the outage', async () => {
  expect([await read('/pages/1'), await read('/posts/1')]).toEqual(['200 stored', '200 stored'])
  expect(await degraded()).toEqual([])
  await pause(60)
  await origin.close()

  let over = false
  const reading = Promise.all([readOn('/pages/1', () => over), readOn('/posts/1', () => over)])
  await expect.poll(() => gateway.metric('cache_served_stale_total', 'reason="error"')).toBeGreaterThan(20)
  await expect.poll(() => gateway.metric('upstream_breaker_refused_total')).toBeGreaterThan(10)
  const down = await degraded()
  over = true
  const [hits, stale] = await reading
  expect([...hits]).toEqual(['200 stored hit'])
  // A stale response is a hit in the sense of RFC 9211, with `detail=error`.
  expect([...stale]).toEqual(['200 stored hit'])
  expect(down).toEqual([{ reason: 'upstreams', service: 'site' }])
  expect(await gateway.metric('upstream_breaker_state', 'state="closed"')).toBe(0)
})

test('requests without a stored response are refused at once, with Retry-After', async () => {
  const ask = async (): Promise<unknown> => {
    const response = await fetch(`${gateway.publicAddress}/index.php/site-json/site/v2/posts/2`)
    const { code } = (await response.json()) as { readonly code: string }
    return [response.status, code, response.headers.has('retry-after')]
  }
  // A probe may be under way: it finds the port closed. Neither is what a timeout would say.
  await expect.poll(ask).toEqual([503, 'trellis_upstream_suspended', true])
})

test('the service recovers when the upstream does', async () => {
  origin = await startOrigin((_, wire) => wire.respond({ ...response, content: '{"id":1,"slug":"new"}' }), {
    port: origin.port,
  })
  await expect.poll(() => read('/posts/1')).toContain('200 new')
  await expect.poll(degraded).toEqual([])
  expect(await gateway.metric('upstream_breaker_state', 'state="closed"')).toBe(1)
})
