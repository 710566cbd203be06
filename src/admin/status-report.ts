import type { Notice, Readiness } from './operator.ts'

type Sample = { readonly labels: Readonly<Record<string, string>>; readonly value: number }

/** A quoted value may contain braces. What follows the value (a time, an exemplar) is ignored. */
const sampleLine = /^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{((?:[^"}]|"(?:[^"\\]|\\.)*")*)\})? (\S+)/
const label = /([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\.)*)"/g
const escapes: Readonly<Record<string, string>> = { n: '\n' }

const labelsOf = (text: string): Record<string, string> =>
  Object.fromEntries(
    [...text.matchAll(label)].map(([, name = '', value = '']) => [
      name,
      value.replace(/\\(.)/g, (_, character: string) => escapes[character] ?? character),
    ]),
  )

/** Reads the samples of the `wanted` names from the gateway's own scrape. */
export const readExposition = (
  text: string,
  wanted: ReadonlySet<string>,
): ReadonlyMap<string, readonly Sample[]> => {
  const found = new Map<string, Sample[]>([...wanted].map((name) => [name, []]))
  for (const line of text.split('\n')) {
    const [, name = '', labels = '', value = ''] = sampleLine.exec(line) ?? []
    found.get(name)?.push({ labels: labelsOf(labels), value: Number(value) })
  }
  return found
}

/** The metrics that the status report reads; a test compares the names with the metric table. */
export const statusMetrics = {
  requests: 'trellis_requests_total',
  durations: 'trellis_request_duration_seconds_bucket',
  durationSum: 'trellis_request_duration_seconds_sum',
  durationCount: 'trellis_request_duration_seconds_count',
  routeSum: 'trellis_route_duration_seconds_sum',
  refusals: 'trellis_refusals_total',
  protocolRefusals: 'trellis_protocol_refusals_total',
  shed: 'trellis_shed_total',
  rateLimited: 'trellis_rate_limited_total',
  inFlight: 'trellis_in_flight_requests',
  connections: 'trellis_connections',
  receivedBytes: 'trellis_received_bytes_total',
  sentBytes: 'trellis_sent_bytes_total',
  entries: 'trellis_cache_entries',
  bytes: 'trellis_cache_bytes',
  maxBytes: 'trellis_cache_max_bytes',
  evictions: 'trellis_cache_evictions_total',
  invalidated: 'trellis_cache_invalidated_entries_total',
  servedStale: 'trellis_cache_served_stale_total',
  collapsed: 'trellis_cache_collapsed_total',
  targetUp: 'trellis_upstream_target_up',
  targetLeftOut: 'trellis_upstream_target_left_out',
  outstanding: 'trellis_upstream_target_outstanding_requests',
  attempts: 'trellis_upstream_attempts_total',
  headSeconds: 'trellis_upstream_head_seconds_bucket',
  breaker: 'trellis_upstream_breaker_state',
  upstreamInFlight: 'trellis_upstream_in_flight_requests',
  upstreamWaiting: 'trellis_upstream_waiting_requests',
  retriesLeft: 'trellis_upstream_retries_left',
  batches: 'trellis_batches_total',
  batchItems: 'trellis_batch_items_total',
  batchSplits: 'trellis_batch_splits_total',
  buildInfo: 'trellis_build_info',
  configInfo: 'trellis_config_info',
  memoryTrusted: 'trellis_memory_trusted',
  changesState: 'trellis_changes_state',
  changesLag: 'trellis_changes_lag_seconds',
  changesApplied: 'trellis_changes_applied_total',
  changesServiceDrops: 'trellis_changes_service_drops_total',
  workersReady: 'trellis_workers_ready',
  workersWanted: 'trellis_workers_wanted',
  heapBytes: 'nodejs_heap_size_used_bytes',
  residentBytes: 'process_resident_memory_bytes',
  loopDelay: 'nodejs_eventloop_lag_p99_seconds',
  startedAt: 'process_start_time_seconds',
} as const

type StatusMetric = keyof typeof statusMetrics

/** Longest list on the page. */
const mostRows = 20

type Labels = Readonly<Record<string, string>>
type Count = { readonly count: number }

/** Sums of the samples with the same values of `names`, the largest first. */
const addedUp = <Name extends string>(
  samples: readonly Sample[],
  names: readonly Name[],
): readonly (Readonly<Record<Name, string>> & Count)[] => {
  const sums = new Map<string, { labels: Readonly<Record<Name, string>>; count: number }>()
  for (const { labels, value } of samples) {
    const kept = Object.fromEntries(names.map((name) => [name, labels[name] ?? ''])) as Record<Name, string>
    const key = JSON.stringify(names.map((name) => kept[name]))
    const sum = sums.get(key)
    if (sum === undefined) sums.set(key, { labels: kept, count: value })
    else sum.count += value
  }
  return [...sums.values()]
    .map(({ labels, count }) => ({ ...labels, count }))
    .sort((one, other) => other.count - one.count)
}

/** Many counters are there with 0 from the start. */
const happened = <Counted extends Count>(rows: readonly Counted[]): readonly Counted[] =>
  rows.filter(({ count }) => count > 0)

const total = (samples: readonly Sample[]): number => samples.reduce((sum, { value }) => sum + value, 0)

const matching = (samples: readonly Sample[], wanted: Labels): readonly Sample[] =>
  samples.filter(({ labels }) => Object.entries(wanted).every(([name, value]) => labels[name] === value))

type Read = (metric: StatusMetric) => readonly Sample[]

const isHit: ReadonlySet<string | undefined> = new Set(['hit', 'revalidated', 'collapsed', 'stale'])

/** The routes with most requests, with their cache results and total duration. */
const routes = (read: Read) => {
  const requests = read('requests')
  return addedUp(requests, ['service', 'route'])
    .slice(0, mostRows)
    .map(({ service, route, count }) => {
      const own = matching(requests, { service, route })
      return {
        service,
        route,
        requests: count,
        hits: total(own.filter(({ labels }) => isHit.has(labels['cache']))),
        errors: total(matching(own, { status_class: '5xx' })),
        seconds: total(matching(read('routeSum'), { service, route })),
      }
    })
}

const upstreams = (read: Read) =>
  addedUp(read('targetUp'), ['service']).map(({ service }) => {
    const of = (metric: StatusMetric): readonly Sample[] => matching(read(metric), { service })
    return {
      service,
      breaker: of('breaker').find(({ value }) => value > 0)?.labels['state'] ?? 'closed',
      inFlight: total(of('upstreamInFlight')),
      waiting: total(of('upstreamWaiting')),
      retriesLeft: total(of('retriesLeft')),
      // With several workers a scrape shows the worst: a target is up when it is up for all of them.
      targets: of('targetUp').map(({ labels: { target = '' }, value }) => ({
        target,
        up: value > 0,
        leftOut: total(matching(of('targetLeftOut'), { target })) > 0,
        outstanding: total(matching(of('outstanding'), { target })),
        attempts: total(matching(of('attempts'), { target })),
        /** Times until the response headers. */
        buckets: bucketsOf(matching(of('headSeconds'), { target })),
        failures: total(
          matching(of('attempts'), { target }).filter(({ labels }) => labels['outcome'] !== 'answered'),
        ),
      })),
    }
  })

/** The change feeds; with several workers a state that one of them has is shown, the worst first. */
const changeFeeds = (read: Read) =>
  addedUp(read('changesState'), ['service']).map(({ service }) => {
    const states = matching(read('changesState'), { service }).filter(({ value }) => value > 0)
    return {
      service,
      state:
        ['silent', 'behind', 'cold', 'heard'].find((state) =>
          states.some(({ labels }) => labels['state'] === state),
        ) ?? 'cold',
      lagSeconds: matching(read('changesLag'), { service })[0]?.value ?? null,
      applied: total(matching(read('changesApplied'), { service })),
      serviceDrops: total(matching(read('changesServiceDrops'), { service })),
    }
  })

/** Cumulative as in Prometheus; bounds in seconds, the last one unbounded. */
const bucketsOf = (samples: readonly Sample[]) =>
  addedUp(samples, ['le'])
    .map(({ le, count }) => ({ le: le === '+Inf' ? null : Number(le), count }))
    .sort((one, other) => (one.le ?? Number.POSITIVE_INFINITY) - (other.le ?? Number.POSITIVE_INFINITY))

/** Of all services together. */
const durations = (read: Read) => ({
  sum: total(read('durationSum')),
  count: total(read('durationCount')),
  buckets: bucketsOf(read('durations')),
})

/**
 * The data of the status page, from one scrape (of all workers) and the readiness. Counts are since the start: two reports give
 * rates. Times are seconds, sizes bytes. It contains no text of clients.
 */
export const statusReport = (scrape: string, readiness: Readiness, notices: readonly Notice[] = []) => {
  const found = readExposition(scrape, new Set(Object.values(statusMetrics)))
  const read: Read = (metric) => found.get(statusMetrics[metric]) ?? []
  const label = (metric: StatusMetric, name: string): string => read(metric)[0]?.labels[name] ?? ''
  const number = (metric: StatusMetric): number => total(read(metric))
  return {
    readiness,
    notices,
    build: { version: label('buildInfo', 'version'), node: label('buildInfo', 'node') },
    configHash: label('configInfo', 'hash'),
    startedAt: number('startedAt'),
    process: {
      heapBytes: number('heapBytes'),
      residentBytes: number('residentBytes'),
      loopDelaySeconds: number('loopDelay'),
    },
    workers: { ready: number('workersReady'), wanted: number('workersWanted') },
    memoryTrusted: read('memoryTrusted').every(({ value }) => value > 0),
    requests: {
      total: number('requests'),
      byCache: addedUp(read('requests'), ['cache']),
      byStatus: addedUp(read('requests'), ['status_class']),
      inFlight: number('inFlight'),
      connections: number('connections'),
      receivedBytes: number('receivedBytes'),
      sentBytes: number('sentBytes'),
    },
    durations: durations(read),
    routes: routes(read),
    cache: {
      entries: number('entries'),
      bytes: number('bytes'),
      maxBytes: number('maxBytes'),
      evictions: number('evictions'),
      invalidated: number('invalidated'),
      collapsed: number('collapsed'),
      servedStale: number('servedStale'),
    },
    upstreams: upstreams(read),
    changes: changeFeeds(read),
    refusals: happened(addedUp(read('refusals'), ['service', 'route', 'code'])).slice(0, mostRows),
    protocolRefusals: happened(addedUp(read('protocolRefusals'), ['reason'])),
    shed: happened(addedUp(read('shed'), ['class', 'signal'])),
    rateLimited: happened(addedUp(read('rateLimited'), ['limit'])),
    batch: {
      batches: number('batches'),
      items: happened(addedUp(read('batchItems'), ['outcome'])),
      splits: happened(addedUp(read('batchSplits'), ['split'])),
    },
  }
}

export type StatusReport = ReturnType<typeof statusReport>
