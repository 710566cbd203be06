import { expect, test } from 'vitest'
import { statusReport } from '../../../src/admin/status-report.ts'

const ready = { ready: true, reasons: [], degraded: [], findings: [], unknown: [] }

/** Metrics written as in a scrape. */
const metrics = (lines: readonly string[]) =>
  lines.map((line) => {
    const [, name = '', labels = '', value] = /^(\w+)\{(.*)\} (\S+)$/.exec(line) ?? []
    const pairs = [...labels.matchAll(/(\w+)="([^"]*)"/g)].map(([, label, text]) => [label, text])
    const values = [{ labels: Object.fromEntries(pairs), value: Number(value) }]
    return { name, help: '', type: 'gauge', values }
  })

test('a report adds up what belongs together, the largest first', () => {
  const report = statusReport(
    metrics([
      'trellis_requests_total{service="site",route="/a",method="GET",status_class="2xx",cache="hit"} 8',
      'trellis_requests_total{service="site",route="/a",method="GET",status_class="5xx",cache="miss"} 2',
      'trellis_requests_total{service="site",route="/b",method="GET",status_class="2xx",cache="miss"} 20',
      'trellis_route_duration_seconds_bucket{le="0.025",service="site",route="/a"} 3',
      'trellis_request_duration_seconds_bucket{le="+Inf",service="site"} 30',
      'trellis_request_duration_seconds_bucket{le="0.005",service="site"} 7',
      'trellis_upstream_target_outstanding_requests{service="site",target="http://a"} 0',
      'trellis_upstream_target_outstanding_requests{service="site",target="http://b"} 0',
      'trellis_upstream_target_outstanding_requests{service="site",target="http://c"} 0',
      'trellis_upstream_target_up{service="site",target="http://a"} 1',
      'trellis_upstream_target_up{service="site",target="http://b"} 0',
      'trellis_upstream_target_left_out{service="site",target="http://b"} 1',
      'trellis_upstream_attempts_total{service="site",target="http://b",outcome="answered",status_class="2xx"} 4',
      'trellis_upstream_attempts_total{service="site",target="http://b",outcome="refused",status_class=""} 3',
      'trellis_upstream_breaker_state{service="site",state="closed"} 0',
      'trellis_upstream_breaker_state{service="site",state="open"} 1',
      'trellis_config_info{hash="0a1b"} 1',
    ]),
    ready,
    [],
  )
  expect(report.routes).toEqual([
    { service: 'site', route: '/b', requests: 20, hits: 0, errors: 0, buckets: [] },
    { service: 'site', route: '/a', requests: 10, hits: 8, errors: 2, buckets: [{ le: 0.025, count: 3 }] },
  ])
  expect(report.requests.byCache).toEqual([
    { cache: 'miss', count: 22 },
    { cache: 'hit', count: 8 },
  ])
  expect(report.durations.buckets).toEqual([
    { le: 0.005, count: 7 },
    { le: null, count: 30 },
  ])
  expect(report.upstreams).toMatchObject([
    {
      service: 'site',
      breaker: 'open',
      targets: [
        { target: 'http://a', isKnown: true, up: true, leftOut: false, failures: 0 },
        { target: 'http://b', isKnown: true, up: false, leftOut: true, attempts: 7, failures: 3 },
        { target: 'http://c', isKnown: false, up: false, leftOut: false },
      ],
    },
  ])
  expect(report.configHash).toBe('0a1b')
  expect(report.memoryTrusted).toBe(true)
})

test('a report names the reasons of misses, the most frequent first, and the state of each receiver', () => {
  const report = statusReport(
    metrics([
      'trellis_cache_forwards_total{service="site",reason="uri-miss",detail=""} 3',
      'trellis_cache_forwards_total{service="site",reason="bypass",detail="cookie"} 4',
      'trellis_cache_forwards_total{service="site",reason="vary-miss",detail=""} 0',
      'trellis_cache_not_stored_total{service="site",reason="set-cookie"} 5',
      'trellis_downstream_behind{service="site",receiver="varnish"} 1',
      'trellis_downstream_lag_seconds{service="site",receiver="varnish"} 7',
      'trellis_downstream_purges_total{service="site",receiver="varnish",outcome="confirmed"} 4',
      'trellis_downstream_purges_total{service="site",receiver="varnish",outcome="failed"} 2',
    ]),
    ready,
    [],
  )
  expect(report.notCached).toEqual([
    { what: 'not stored', service: 'site', reason: 'set-cookie', count: 5 },
    { what: 'bypassed', service: 'site', reason: 'cookie', count: 4 },
    { what: 'forwarded', service: 'site', reason: 'uri-miss', count: 3 },
  ])
  expect(report.receivers).toEqual([
    { service: 'site', receiver: 'varnish', behind: true, lagSeconds: 7, confirmed: 4, failed: 2 },
  ])
})

test.each([
  ['open', 'the breaker is open, because too many requests failed'],
  ['closed', 'no target responds'],
])('a service that is down says why: breaker %s', (state, text) => {
  const report = statusReport(
    metrics([`trellis_upstream_breaker_state{service="site",state="${state}"} 1`]),
    { ...ready, degraded: [{ reason: 'upstreams', service: 'site' }] },
    [],
  )
  expect(report.readiness.degraded).toEqual([{ reason: 'upstreams', service: 'site', text }])
})

test('a report says when the first certificate expires, and null without one', () => {
  const expiry = 'trellis_tls_certificate_expiry_timestamp_seconds{} 1800000000'
  expect(statusReport(metrics([expiry]), ready, []).certificateExpiresAt).toBe(1_800_000_000)
  expect(statusReport([], ready, []).certificateExpiresAt).toBeNull()
})
