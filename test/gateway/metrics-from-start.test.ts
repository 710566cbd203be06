import { beforeAll, expect, test } from 'vitest'
import { metricTable } from '../../src/observability/metrics/registry.ts'
import { closeAfterAll } from '../support/close.ts'
import { siteService, startTestGateway, type TestGateway } from '../support/gateway.ts'
import { type Origin, startOrigin } from '../support/origin.ts'

let origin: Origin
let gateway: TestGateway

const accessed = { allow: ['127.0.0.0/8'] }

const settings = (): Record<string, unknown> => ({
  rateLimits: [{ name: 'reads', service: 'site', match: 'GET /**', max: 1000, window: '1m' }],
  services: {
    site: siteService(origin.origin),
    store: {
      contract: 'plants',
      mount: '/store',
      upstream: { targets: [origin.origin] },
      access: accessed,
    },
    pages: {
      contract: 'open',
      mount: '/pages',
      upstream: { targets: [origin.origin] },
      cache: {
        rules: [
          { match: 'GET /assets/**', ttl: '1h' },
          { match: 'GET /news/*', ttl: '1m' },
        ],
      },
    },
  },
})

beforeAll(async () => {
  origin = await startOrigin()
  gateway = await startTestGateway(settings())
})
closeAfterAll(() => [gateway, origin])

const scrape = async (): Promise<readonly string[]> => {
  const response = await fetch(`${gateway.adminAddress}/metrics`)
  return (await response.text()).split('\n').filter((line) => line.startsWith('trellis_'))
}

/** The families without a line before the first event, each with the reason. */
const absent: Readonly<Record<string, string>> = {
  trellis_requests_total: 'its routes are as many as the contract and the upstream announce',
  trellis_item_requests_total: 'the same',
  trellis_refusals_total: 'the same',
  trellis_cache_lost_hits_total: 'the same',
  trellis_cache_described_total:
    'its causes are as many as the upstream names, and only a WordPress with the companion names some',
  trellis_cache_untested_plugins_total: 'its plugins are those that the companion names',
  trellis_route_duration_seconds: 'the same',
  trellis_metrics_overflow_total: 'one series for each other metric, and only after a fault',
  trellis_config_last_reload_timestamp_seconds: 'a time: 0 would say 1970',
  trellis_tls_certificate_expiry_timestamp_seconds: 'a time, and only with TLS',
  trellis_workers_wanted: 'only with several processes',
  trellis_workers_ready: 'only with several processes',
  trellis_worker_ends: 'only with several processes',
  trellis_changes_applied_total: 'only of services with the setting',
  trellis_changes_dropped_entries_total: 'only of services with the setting',
  trellis_changes_lag_seconds: 'only of services with the setting',
  trellis_changes_poll_failures_total: 'only of services with the setting',
  trellis_changes_refused_total: 'only of services with the setting',
  trellis_changes_service_drops_total: 'only of services with the setting',
  trellis_changes_state: 'only of services with the setting',
  trellis_downstream_purges_total: 'only of services with the setting',
  trellis_downstream_wait_seconds: 'only of services with the setting',
  trellis_downstream_behind: 'only of services with the setting',
  trellis_downstream_lag_seconds: 'only of services with the setting',
  trellis_upstream_target_up: 'unknown before the first contact',
  trellis_websockets_open: 'only of services with the setting',
  trellis_websockets_total: 'only of services with the setting',
}

test('every metric whose labels are closed lists is there, with 0, before the first request', async () => {
  const lines = await scrape()
  const missing = Object.values(metricTable)
    .filter(
      ({ name, type }) =>
        !lines.some((line) => line.startsWith(type === 'histogram' ? `${name}_count` : name)),
    )
    .map(({ name }) => name)
  expect(missing.sort()).toEqual(Object.keys(absent).sort())
})

test.each([
  'trellis_pressure_level 0',
  'trellis_memory_trusted 1',
  'trellis_config_last_reload_good 1',
  'trellis_shed_total{class="miss",signal="heap"} 0',
  'trellis_rate_limited_total{limit="reads"} 0',
  'trellis_config_reloads_total{outcome="invalid"} 0',
  'trellis_cache_not_stored_total{service="pages",reason="set-cookie"} 0',
  'trellis_cache_invalidations_total{by="purge"} 0',
  'trellis_request_duration_seconds_count{service="pages"} 0',
  'trellis_discovery_refreshes_total{service="site",result="timeout"} 0',
  'trellis_batches_total{service="site",result="ran"} 0',
  'trellis_access_refused_total{service="store",reason="address"} 0',
])('%s', async (line) => {
  expect(await scrape()).toContain(line)
})

test('each target has its series, and only sites have series of batches and discovery', async () => {
  const lines = await scrape()
  for (const service of ['site', 'store', 'pages'])
    expect(lines).toContain(
      `trellis_upstream_target_changes_total{service="${service}",target="${origin.origin}",to="left-out"} 0`,
    )
  const ofSites = lines.filter((line) => /^trellis_(batch|discovery)/.test(line))
  expect(ofSites.filter((line) => !line.includes('service="site"'))).toEqual([])
})

test('the number of series is that of the configuration, and a reload adds those of a new service', async () => {
  const before = await scrape()
  // A site has some 520 lines, another service some 290, and the process 160.
  expect(before.length).toBeLessThan(1_400)
  const { services, ...rest } = settings()
  const more = { contract: 'open', mount: '/more', upstream: { targets: [origin.origin] } }
  expect(await gateway.put({ ...rest, services: { ...(services as object), more } })).toMatchObject({
    kind: 'applied',
  })
  const after = await scrape()
  expect(after).toContain('trellis_cache_not_stored_total{service="more",reason="private"} 0')
  expect(after.length - before.length).toBeLessThan(400)
})

test('requests to an open service are counted by the path patterns of its rules', async () => {
  const ask = async (path: string, method = 'GET'): Promise<void> => {
    await (await fetch(`${gateway.publicAddress}/pages${path}`, { method })).arrayBuffer()
  }
  for (const path of ['/assets/a.css', '/assets/deep/b.js', '/news/1', '/news/1/comments', '/'])
    await ask(path)
  await ask('/news/1', 'POST')
  const routes = (await scrape())
    .filter((line) => line.startsWith('trellis_requests_total') && line.includes('service="pages"'))
    .map((line) => [
      /route="([^"]*)"/.exec(line)?.[1],
      /method="([^"]*)"/.exec(line)?.[1],
      line.split(' ').at(-1),
    ])
  const counts = new Map<string, number>()
  for (const [route, method, count] of routes)
    counts.set(`${method} ${route}`, (counts.get(`${method} ${route}`) ?? 0) + Number(count))
  expect(Object.fromEntries(counts)).toEqual({
    'GET /assets/**': 2,
    'GET /news/*': 1,
    'POST /news/*': 1,
    'GET /**': 2,
  })
})
