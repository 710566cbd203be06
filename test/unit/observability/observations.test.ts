import { expect, test } from 'vitest'
import type { ExchangeFinishedEvent } from '../../../src/exchange/events.ts'
import { createMetrics } from '../../../src/observability/metrics.ts'
import { descriptionLabels } from '../../../src/wordpress/tags/description-labels.ts'

const build = () =>
  createMetrics({ descriptionLabels, version: '1.2.3', configHash: 'abc', processMetrics: false })

const linesOf = async (metrics: { scrape(): Promise<string> }, name: string): Promise<string[]> =>
  (await metrics.scrape()).split('\n').filter((line) => line.startsWith(name))

const exchange = (changes: Partial<ExchangeFinishedEvent> = {}): ExchangeFinishedEvent => ({
  kind: 'exchange-finished',
  service: 'site',
  route: '/site/v2/posts/{id}',
  method: 'GET',
  status: 200,
  cache: 'hit',
  durationSeconds: 0.000_2,
  upstreamSeconds: 0,
  origin: 'client',
  ...changes,
})

test('requests are counted by service, route, method, status class and cache outcome', async () => {
  const metrics = build()
  for (const event of [
    exchange(),
    exchange({ status: 304 }),
    exchange({ status: 299 }),
    exchange({ cache: 'miss', durationSeconds: 0.03, upstreamSeconds: 0.02 }),
    exchange({ method: 'POST', status: 503, cache: 'none' }),
  ]) {
    metrics.observe.exchange(event)
  }
  expect(await linesOf(metrics, 'trellis_requests_total{')).toEqual([
    'trellis_requests_total{service="site",route="/site/v2/posts/{id}",method="GET",status_class="2xx",cache="hit"} 2',
    'trellis_requests_total{service="site",route="/site/v2/posts/{id}",method="GET",status_class="3xx",cache="hit"} 1',
    'trellis_requests_total{service="site",route="/site/v2/posts/{id}",method="GET",status_class="2xx",cache="miss"} 1',
    'trellis_requests_total{service="site",route="/site/v2/posts/{id}",method="POST",status_class="5xx",cache="none"} 1',
  ])
})

test('the duration is split into the whole and the own part', async () => {
  const metrics = build()
  metrics.observe.exchange(exchange({ cache: 'miss', durationSeconds: 0.5, upstreamSeconds: 0.25 }))
  metrics.observe.exchange(exchange({ cache: 'miss', durationSeconds: 0.5, upstreamSeconds: 0.75 }))
  const whole = await linesOf(metrics, 'trellis_request_duration_seconds_sum')
  const own = await linesOf(metrics, 'trellis_request_own_duration_seconds_sum')
  const upstream = await linesOf(metrics, 'trellis_request_upstream_duration_seconds_sum')
  expect(whole).toEqual(['trellis_request_duration_seconds_sum{service="site"} 1'])
  expect(own).toEqual(['trellis_request_own_duration_seconds_sum{service="site",cache="miss"} 0.25'])
  expect(upstream).toEqual(['trellis_request_upstream_duration_seconds_sum{service="site"} 1'])
})

test('a service shows all buckets of the conventions, a route some of them, both for the same requests', async () => {
  const metrics = build()
  metrics.observe.exchange(exchange({ durationSeconds: 0.06 }))
  metrics.observe.exchange(exchange({ durationSeconds: 0.3, route: '/site/v2/pages' }))
  const count = async (name: string) =>
    (await linesOf(metrics, `${name}_bucket`)).map((line) =>
      line
        .match(/le="([^"]+)".* (\d+)$/)
        ?.slice(1)
        .join(' '),
    )
  expect(await count('trellis_request_duration_seconds')).toEqual([
    '0.0005 0',
    '0.001 0',
    '0.0025 0',
    '0.005 0',
    '0.01 0',
    '0.025 0',
    '0.05 0',
    '0.075 1',
    '0.1 1',
    '0.25 1',
    '0.5 2',
    '0.75 2',
    '1 2',
    '2.5 2',
    '5 2',
    '7.5 2',
    '10 2',
    '+Inf 2',
  ])
  expect((await count('trellis_route_duration_seconds')).slice(0, 8)).toEqual([
    '0.005 0',
    '0.025 0',
    '0.1 1',
    '0.25 1',
    '1 1',
    '2.5 1',
    '10 1',
    '+Inf 1',
  ])
  // A second scrape adds nothing up twice.
  expect(await linesOf(metrics, 'trellis_request_duration_seconds_count')).toEqual([
    'trellis_request_duration_seconds_count{service="site"} 2',
  ])
})

test('clients that prefer OpenMetrics get it, with the trace of the last request of a bucket; text has none', async () => {
  const metrics = build()
  const trace = { id: '0af7651916cd43dd8448eb211c80319c', epochMs: 1_700_000_000_500 }
  metrics.observe.exchange(exchange({ durationSeconds: 0.06, trace }))
  metrics.observe.exchange(exchange({ durationSeconds: 0.3 }))
  const accept = 'application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5,*/*;q=0.1'
  for (let round = 0; round < 2; round += 1) {
    const text = await metrics.scrape(accept)
    expect(metrics.contentType(accept)).toContain('application/openmetrics-text')
    expect(text).toContain(
      `_bucket{le="0.075",service="site"} 1 # {trace_id="${trace.id}"} 0.06 1700000000.5\n`,
    )
    expect(text).toContain('# TYPE trellis_requests counter\ntrellis_requests_total{')
    expect(text.match(/trace_id/g)).toHaveLength(2)
    expect(text.endsWith('# EOF\n')).toBe(true)
    const plain = await metrics.scrape('text/plain')
    expect(plain).not.toContain('trace_id')
    expect(plain).toContain('# TYPE trellis_requests_total counter\ntrellis_requests_total{')
  }
})

test.each([
  [undefined, 'text/plain'],
  ['*/*', 'text/plain'],
  ['application/openmetrics-text', 'application/openmetrics-text'],
  ['application/openmetrics-text;q=0', 'text/plain'],
  ['application/openmetrics-text;q=x', 'text/plain'],
  ['text/plain, application/openmetrics-text;q=0.5', 'text/plain'],
])('who accepts %s gets %s', (accept, type) => {
  expect(build().contentType(accept)).toContain(type)
})

test('the age of responses from memory and the number of merged spellings are measured', async () => {
  const metrics = build()
  metrics.observe.exchange(exchange({ ageSeconds: 20 }))
  metrics.observe.exchange(exchange({ ageSeconds: 7_000, cache: 'stale' }))
  metrics.observe.exchange(exchange({ ageSeconds: -1, cache: 'miss', service: 'plants' }))
  metrics.observe.exchange({ kind: 'target-canonicalised', service: 'site' })
  expect(
    (await linesOf(metrics, 'trellis_cache_served_age')).map((line) =>
      line.replace(/.*?([^"_]*)"?,?service="site"\} /, '$1 '),
    ),
  ).toEqual([
    '1 0',
    '5 0',
    '15 0',
    '60 1',
    '300 1',
    '900 1',
    '3600 1',
    '14400 2',
    '86400 2',
    '+Inf 2',
    'sum{ 7020',
    'count{ 2',
  ])
  expect(await linesOf(metrics, 'trellis_canonical')).toEqual([
    'trellis_canonical_merges_total{service="site"} 1',
  ])
})

test('requests with undeclared parameters are counted by how these are treated', async () => {
  const metrics = build()
  const event = { kind: 'undeclared-parameters', service: 'site', count: 3 } as const
  metrics.observe.exchange({ ...event, handling: 'sent' })
  metrics.observe.exchange({ ...event, handling: 'stripped' })
  metrics.observe.exchange({ ...event, handling: 'stripped' })
  expect((await linesOf(metrics, 'trellis_undeclared')).sort()).toEqual([
    'trellis_undeclared_parameters_total{service="site",handling="sent"} 1',
    'trellis_undeclared_parameters_total{service="site",handling="stripped"} 2',
  ])
})

test('batch items are counted apart from requests', async () => {
  const metrics = build()
  metrics.observe.exchange(exchange({ origin: 'batch', method: 'PATCH', cache: 'none' }))
  expect(await linesOf(metrics, 'trellis_requests_total{')).toEqual([])
  expect(await linesOf(metrics, 'trellis_item_requests_total{')).toEqual([
    'trellis_item_requests_total{service="site",route="/site/v2/posts/{id}",method="PATCH",status_class="2xx",cache="none"} 1',
  ])
})

test.each([
  ['a method nobody knows', { method: 'BREW' }, 'method="_OTHER",status_class="2xx"'],
  ['a status beyond 599', { status: 800 }, 'method="GET",status_class="other"'],
  ['a status below 100', { status: 7 }, 'method="GET",status_class="other"'],
])('%s has a label from the closed list', async (_description, changes, labels) => {
  const metrics = build()
  metrics.observe.exchange(exchange(changes))
  metrics.observe.exchange(exchange({ method: 'HEAD' }))
  const lines = await linesOf(metrics, 'trellis_requests_total{')
  expect(lines).toHaveLength(2)
  expect(lines[0]).toContain(labels)
  expect(lines[1]).toContain('method="HEAD",status_class="2xx"')
})

test('cache events', async () => {
  const { observe, ...metrics } = build()
  observe.cache({ kind: 'forwarded', service: 'site', route: '/posts', reason: 'uri-miss' })
  observe.cache({ kind: 'stored', service: 'site', bytes: 2_000, description: { kind: 'complete' } })
  observe.cache({ kind: 'not-stored', service: 'site', route: '/a', reason: 'set-cookie' })
  observe.cache({ kind: 'collapsed', service: 'site' })
  observe.cache({ kind: 'served-stale', service: 'site', reason: 'error', failure: 'unreachable' })
  observe.cache({ kind: 'background-failed', service: 'site' })
  observe.cache({ kind: 'invalidated', by: 'write', entries: 3, cut: 1 })
  observe.cache({ kind: 'evicted', bytes: 100 })
  metrics.readAtScrape({
    publicSide: () => ({ inFlight: 2, connections: 3, receivedBytes: 4, sentBytes: 5, draining: false }),
    bufferedBytes: () => 0,
    websockets: () => [],
    cache: () => ({ entries: 5, bytes: 6, maxBytes: 7 }),
    upstreams: () => [],
  })
  const counted = (await linesOf(metrics, 'trellis_cache')).filter((line) => !line.endsWith(' 0'))
  expect(counted).toEqual([
    'trellis_cache_forwards_total{service="site",reason="uri-miss",detail=""} 1',
    'trellis_cache_lost_hits_total{service="site",route="/a",reason="set-cookie"} 1',
    'trellis_cache_stored_total{service="site"} 1',
    'trellis_cache_described_total{service="site",cause=""} 1',
    'trellis_cache_stored_bytes_total{service="site"} 2000',
    'trellis_cache_not_stored_total{service="site",reason="set-cookie"} 1',
    'trellis_cache_collapsed_total{service="site"} 1',
    'trellis_cache_served_stale_total{service="site",reason="error"} 1',
    'trellis_cache_background_failures_total{service="site"} 1',
    'trellis_cache_invalidations_total{by="write"} 1',
    'trellis_cache_invalidated_entries_total{by="write"} 3',
    'trellis_cache_cut_forwards_total{by="write"} 1',
    'trellis_cache_evictions_total 1',
    'trellis_cache_evicted_bytes_total 100',
    'trellis_cache_entries 5',
    'trellis_cache_bytes 6',
    'trellis_cache_max_bytes 7',
  ])
})

test('upstream events, and targets as they are at the scrape', async () => {
  const { observe, ...metrics } = build()
  const at = { service: 'site', target: 'http://10.0.0.7' }
  observe.upstream({
    kind: 'attempt-finished',
    ...at,
    outcome: 'answered',
    statusClass: '2xx',
    headSeconds: 0.02,
    durationSeconds: 0.03,
    attempt: 1,
  })
  observe.upstream({
    kind: 'attempt-finished',
    ...at,
    outcome: 'timeout',
    statusClass: 'none',
    headSeconds: undefined,
    durationSeconds: 10,
    attempt: 2,
  })
  observe.upstream({ kind: 'retried', ...at, reason: 'timed-out' })
  observe.upstream({ kind: 'gave-up', ...at, reason: 'budget' })
  observe.upstream({ kind: 'slot-wait-finished', service: 'site', outcome: 'full', waitedSeconds: 0 })
  observe.upstream({ kind: 'target-changed', ...at, from: 'healthy', to: 'left-out', cause: 'x' })
  observe.upstream({ kind: 'check-finished', ...at, result: 'timeout' })
  observe.upstream({ kind: 'breaker-changed', service: 'site', from: 'closed', to: 'open', cause: 'x' })
  observe.upstream({ kind: 'slow-client-ended', service: 'site', wait: 'reader' })
  observe.upstream({ kind: 'breaker-refused', service: 'site' })
  let targets = [
    { origin: at.target, state: 'left-out' as const, outstanding: 1, connections: 3, idleConnections: 1 },
  ]
  metrics.readAtScrape({
    publicSide: () => ({ inFlight: 0, connections: 3, receivedBytes: 4, sentBytes: 5, draining: false }),
    bufferedBytes: () => 0,
    websockets: () => [],
    cache: () => ({ entries: 0, bytes: 0, maxBytes: 0 }),
    upstreams: () => [
      {
        service: 'site',
        inFlight: 4,
        queued: 3,
        waitingForClients: 2,
        breaker: 'open',
        retriesLeft: 2,
        targets,
      },
    ],
  })
  const lines = (await linesOf(metrics, 'trellis_upstream')).filter((line) => !line.includes('_bucket'))
  const labels = 'service="site",target="http://10.0.0.7"'
  expect(lines).toEqual([
    `trellis_upstream_attempts_total{${labels},outcome="answered",status_class="2xx"} 1`,
    `trellis_upstream_attempts_total{${labels},outcome="timeout",status_class="none"} 1`,
    `trellis_upstream_head_seconds_sum{${labels}} 0.02`,
    `trellis_upstream_head_seconds_count{${labels}} 1`,
    `trellis_upstream_attempt_duration_seconds_sum{${labels}} 10.03`,
    `trellis_upstream_attempt_duration_seconds_count{${labels}} 2`,
    `trellis_upstream_retries_total{${labels},reason="timed-out"} 1`,
    `trellis_upstream_gave_up_total{${labels},reason="budget"} 1`,
    'trellis_upstream_queue_total{service="site",outcome="full"} 1',
    'trellis_upstream_queue_seconds_sum{service="site"} 0',
    'trellis_upstream_queue_seconds_count{service="site"} 1',
    'trellis_upstream_slow_clients_total{service="site",wait="reader"} 1',
    `trellis_upstream_target_changes_total{${labels},to="left-out"} 1`,
    `trellis_upstream_checks_total{${labels},result="timeout"} 1`,
    'trellis_upstream_retries_left{service="site"} 2',
    `trellis_upstream_connections{${labels},state="idle"} 1`,
    `trellis_upstream_connections{${labels},state="busy"} 2`,
    `trellis_upstream_target_up{${labels}} 0`,
    `trellis_upstream_target_left_out{${labels}} 1`,
    `trellis_upstream_target_outstanding_requests{${labels}} 1`,
    'trellis_upstream_breaker_state{service="site",state="closed"} 0',
    'trellis_upstream_breaker_state{service="site",state="open"} 1',
    'trellis_upstream_breaker_state{service="site",state="half-open"} 0',
    'trellis_upstream_breaker_changes_total{service="site",to="open"} 1',
    'trellis_upstream_breaker_refused_total{service="site"} 1',
    'trellis_upstream_in_flight_requests{service="site"} 4',
    'trellis_upstream_waiting_for_clients_requests{service="site"} 2',
    'trellis_upstream_waiting_requests{service="site"} 3',
  ])
  targets = []
  expect(await linesOf(metrics, 'trellis_upstream_target_up{')).toEqual([])
})

test('batch events', async () => {
  const { observe, ...metrics } = build()
  observe.batch('site', {
    kind: 'batch-finished',
    result: 'ran',
    items: 25,
    durationSeconds: 1,
    itemSeconds: 5,
    parallelism: 8,
    ordered: 2,
  })
  observe.batch('site', {
    kind: 'batch-finished',
    result: 'ran',
    items: 1,
    durationSeconds: 1,
    itemSeconds: 0.5,
    parallelism: 1,
    ordered: 0,
  })
  observe.batch('site', {
    kind: 'batch-item-finished',
    method: 'PUT',
    outcome: 'answered',
    status: 200,
    queuedSeconds: 0.25,
    durationSeconds: 1,
  })
  observe.batch('site', {
    kind: 'batch-item-finished',
    method: 'PUT',
    outcome: 'not-sent',
    status: 504,
    queuedSeconds: 0,
    durationSeconds: 0,
  })
  observe.batch('site', { kind: 'batch-split', split: 'chunks', reason: 'two-parts', requests: 2 })
  observe.batch('site', {
    kind: 'upstream-batch-finished',
    result: 'answered',
    items: 13,
    durationSeconds: 0.5,
  })
  const lines = (await linesOf(metrics, 'trellis_batch')).filter((line) => !line.includes('_bucket'))
  expect(lines).toEqual([
    'trellis_batches_total{service="site",result="ran"} 2',
    'trellis_batch_size_items_sum{service="site"} 26',
    'trellis_batch_size_items_count{service="site"} 2',
    'trellis_batch_duration_seconds_sum{service="site"} 2',
    'trellis_batch_duration_seconds_count{service="site"} 2',
    'trellis_batch_parallelism_items_sum{service="site"} 9',
    'trellis_batch_parallelism_items_count{service="site"} 2',
    'trellis_batch_saved_seconds_total{service="site"} 4',
    'trellis_batch_ordered_items_total{service="site"} 2',
    'trellis_batch_splits_total{service="site",split="chunks",reason="two-parts"} 1',
    'trellis_batch_upstream_requests_sum{service="site",split="chunks"} 2',
    'trellis_batch_upstream_requests_count{service="site",split="chunks"} 1',
    'trellis_batch_chunks_total{service="site",result="answered"} 1',
    'trellis_batch_chunk_items_sum{service="site"} 13',
    'trellis_batch_chunk_items_count{service="site"} 1',
    'trellis_batch_chunk_duration_seconds_sum{service="site"} 0.5',
    'trellis_batch_chunk_duration_seconds_count{service="site"} 1',
    'trellis_batch_items_total{service="site",method="PUT",outcome="answered",status_class="2xx"} 1',
    'trellis_batch_items_total{service="site",method="PUT",outcome="not-sent",status_class="5xx"} 1',
    'trellis_batch_item_queue_seconds_sum{service="site"} 0.25',
    'trellis_batch_item_queue_seconds_count{service="site"} 1',
  ])
})

test('discovery events are counted, and a resolved difference returns to zero', async () => {
  const { observe, ...metrics } = build()
  observe.discovery({
    kind: 'index-refreshed',
    service: 'site',
    unlistedRoutes: 75,
    learnedRows: 74,
    refused: { 'pattern-unreadable': 1 },
  })
  observe.discovery({
    kind: 'index-failed',
    service: 'site',
    reason: 'timeout',
    keptLast: true,
  })
  observe.discovery({ kind: 'drift-compared', service: 'site', differences: { 'route-missing': 2 } })
  observe.discovery({ kind: 'drift-compared', service: 'site', differences: { 'argument-added': 1 } })
  expect(await linesOf(metrics, 'trellis_discovery')).toEqual([
    'trellis_discovery_refreshes_total{service="site",result="ok"} 1',
    'trellis_discovery_refreshes_total{service="site",result="timeout"} 1',
    'trellis_discovery_unlisted_routes{service="site"} 75',
    'trellis_discovery_learned_rows{service="site"} 74',
    'trellis_discovery_refused_routes{service="site",reason="pattern-unreadable"} 1',
    'trellis_discovery_differences{service="site",kind="route-missing"} 0',
    'trellis_discovery_differences{service="site",kind="argument-added"} 1',
  ])
})

test('labels show version and configuration, and a new configuration replaces the old one', async () => {
  const metrics = build()
  metrics.setConfig({ hash: 'def', services: [], limits: [] })
  expect(await linesOf(metrics, 'trellis_config_info')).toEqual(['trellis_config_info{hash="def"} 1'])
  expect(await linesOf(metrics, 'trellis_build_info')).toEqual([
    `trellis_build_info{version="1.2.3",node="${process.version}"} 1`,
  ])
})

test('two gateways in one process have separate counts', async () => {
  const [one, two] = [build(), build()]
  one.observe.exchange({
    kind: 'request-refused',
    id: 'x',
    service: 'site',
    route: 'unmatched',
    code: 'no_route',
    status: 404,
    origin: 'client',
  })
  expect(await linesOf(one, 'trellis_refusals_total{')).toHaveLength(1)
  expect(await linesOf(two, 'trellis_refusals_total{')).toHaveLength(0)
})

test('process metrics exist when configured', async () => {
  const metrics = createMetrics({ descriptionLabels, version: '1', configHash: 'a', processMetrics: true })
  const text = await metrics.scrape()
  for (const name of [
    'nodejs_eventloop_lag_seconds',
    'nodejs_heap_size_used_bytes',
    'process_cpu_seconds_total',
  ]) {
    expect(text).toContain(`# TYPE ${name} `)
  }
})
