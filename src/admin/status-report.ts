import type { MetricName, MetricSnapshot } from '../observability/metrics.ts'
import { adviceFor, type LostHits } from './advice.ts'
import { describedText, descriptionsOf } from './descriptions.ts'
import type { Notice } from './operator.ts'
import type { Readiness } from './readiness.ts'

type Sample = Pick<MetricSnapshot['values'][number], 'labels' | 'value'>

/** Names of samples; those without the prefix are of prom-client. */
type SampleName =
  | MetricName
  | `${MetricName}_${'bucket' | 'sum' | 'count'}`
  | `${'nodejs' | 'process'}_${string}`

type ReadSamples = (name: SampleName) => readonly Sample[]

const readSamples = (metrics: readonly MetricSnapshot[]): ReadSamples => {
  const samples = new Map<string, Sample[]>()
  for (const { name, values } of metrics)
    for (const { metricName = name, labels, value } of values) {
      const list = samples.get(metricName)
      if (list === undefined) samples.set(metricName, [{ labels, value }])
      else list.push({ labels, value })
    }
  return (name) => samples.get(name) ?? []
}

const problems: Readonly<Record<Readiness['degraded'][number]['reason'], string>> = {
  config: 'the last reload was refused',
  shared: 'no contact with the other processes or Redis',
  workers: 'a worker is being replaced',
  changes: 'changes may be missing',
  downstream: 'a cache in front has not confirmed a purge',
  upstreams: 'no target responds',
}

const maxRows = 20

type SampleLabels = Sample['labels']
type Count = { readonly count: number }

/** Sums of the samples with the same values of `names`, the largest first. */
const addedUp = <Name extends string>(
  samples: readonly Sample[],
  names: readonly Name[],
): readonly (Readonly<Record<Name, string>> & Count)[] => {
  const sums = new Map<string, { labels: Readonly<Record<Name, string>>; count: number }>()
  for (const { labels, value } of samples) {
    const chosenLabels = Object.fromEntries(
      names.map((name) => [name, String(labels[name] ?? '')]),
    ) as Record<Name, string>
    const key = JSON.stringify(names.map((name) => chosenLabels[name]))
    const sum = sums.get(key)
    if (sum === undefined) sums.set(key, { labels: chosenLabels, count: value })
    else sum.count += value
  }
  return [...sums.values()]
    .map(({ labels, count }) => ({ ...labels, count }))
    .sort((first, second) => second.count - first.count)
}

/** Many counters are there with 0 from the start. */
const happened = <Counted extends Count>(rows: readonly Counted[]): readonly Counted[] =>
  rows.filter(({ count }) => count > 0)

const total = (samples: readonly Sample[]): number => samples.reduce((sum, { value }) => sum + value, 0)

const matching = (samples: readonly Sample[], wanted: SampleLabels): readonly Sample[] =>
  samples.filter(({ labels }) => Object.entries(wanted).every(([name, value]) => labels[name] === value))

const isHit: ReadonlySet<unknown> = new Set(['hit', 'revalidated', 'collapsed', 'stale'])

/** The routes with most requests, with their cache results and total duration. */
const routes = (read: ReadSamples) => {
  const requests = read('trellis_requests_total')
  return addedUp(requests, ['service', 'route'])
    .slice(0, maxRows)
    .map(({ service, route, count }) => {
      const ofRoute = matching(requests, { service, route })
      return {
        service,
        route,
        requests: count,
        hits: total(ofRoute.filter(({ labels }) => isHit.has(labels['cache']))),
        errors: total(matching(ofRoute, { status_class: '5xx' })),
        /** Times of whole responses. */
        buckets: bucketsOf(matching(read('trellis_route_duration_seconds_bucket'), { service, route })),
      }
    })
}

/** `isKnown`: false before the first contact. */
const upOf = (value: number | undefined) => ({ isKnown: value !== undefined, up: value === 1 })

const upstreams = (read: ReadSamples) =>
  addedUp(read('trellis_upstream_breaker_state'), ['service']).map(({ service }) => {
    const of = (metric: SampleName): readonly Sample[] => matching(read(metric), { service })
    return {
      service,
      breaker: String(
        of('trellis_upstream_breaker_state').find(({ value }) => value > 0)?.labels['state'] ?? 'closed',
      ),
      inFlight: total(of('trellis_upstream_in_flight_requests')),
      waiting: total(of('trellis_upstream_waiting_requests')),
      retriesLeft: total(of('trellis_upstream_retries_left')),
      targets: of('trellis_upstream_target_outstanding_requests').map(
        ({ labels: { target = '' }, value }) => ({
          target: String(target),
          // With several workers a scrape shows the worst: a target is up when it is up for all that know it.
          ...upOf(matching(of('trellis_upstream_target_up'), { target })[0]?.value),
          leftOut: total(matching(of('trellis_upstream_target_left_out'), { target })) > 0,
          outstanding: value,
          attempts: total(matching(of('trellis_upstream_attempts_total'), { target })),
          /** Times until the response headers. */
          buckets: bucketsOf(matching(of('trellis_upstream_head_seconds_bucket'), { target })),
          failures: total(
            matching(of('trellis_upstream_attempts_total'), { target }).filter(
              ({ labels }) => labels['outcome'] !== 'answered',
            ),
          ),
        }),
      ),
    }
  })

const problemOf = (
  { reason, service }: Readiness['degraded'][number],
  services: ReturnType<typeof upstreams>,
): string => {
  const breaker = services.find((upstream) => upstream.service === service)?.breaker ?? 'closed'
  return reason !== 'upstreams' || breaker === 'closed'
    ? problems[reason]
    : `the breaker is ${breaker}, because too many requests failed`
}

/** The change feeds; with several workers a state that one of them has is shown, the worst first. */
const changeFeeds = (read: ReadSamples) =>
  addedUp(read('trellis_changes_state'), ['service']).map(({ service }) => {
    const states = matching(read('trellis_changes_state'), { service }).filter(({ value }) => value > 0)
    return {
      service,
      state:
        ['silent', 'behind', 'cold', 'heard'].find((state) =>
          states.some(({ labels }) => labels['state'] === state),
        ) ?? 'cold',
      lagSeconds: matching(read('trellis_changes_lag_seconds'), { service })[0]?.value ?? null,
      applied: total(matching(read('trellis_changes_applied_total'), { service })),
      serviceDrops: total(matching(read('trellis_changes_service_drops_total'), { service })),
    }
  })

const receivers = (read: ReadSamples) =>
  addedUp(read('trellis_downstream_behind'), ['service', 'receiver']).map(({ service, receiver, count }) => {
    const purges = (outcome: string): number =>
      total(matching(read('trellis_downstream_purges_total'), { service, receiver, outcome }))
    return {
      service,
      receiver,
      behind: count > 0,
      lagSeconds: matching(read('trellis_downstream_lag_seconds'), { service, receiver })[0]?.value ?? 0,
      confirmed: purges('confirmed'),
      failed: purges('failed'),
    }
  })

/** Why requests were forwarded or bypassed the cache, and why responses were not stored: the most frequent reasons. */
const notCached = (read: ReadSamples) =>
  [
    ...addedUp(read('trellis_cache_forwards_total'), ['service', 'reason', 'detail']).map(
      ({ detail, reason, ...row }) =>
        detail === ''
          ? { what: 'forwarded' as const, reason, ...row }
          : { what: 'bypassed' as const, reason: detail, ...row },
    ),
    ...addedUp(read('trellis_cache_not_stored_total'), ['service', 'reason']).map((row) => ({
      what: 'not stored' as const,
      ...row,
    })),
  ]
    .filter(({ count }) => count > 0)
    .sort((first, second) => second.count - first.count)
    .slice(0, maxRows)

/** What keeps each route from hits, beside all that it was asked for. */
const lostHits = (read: ReadSamples): readonly LostHits[] =>
  addedUp(read('trellis_cache_lost_hits_total'), ['service', 'route', 'reason']).map((lost) => {
    const { service, route } = lost
    return {
      ...lost,
      reads: total(matching(read('trellis_requests_total'), { service, route, method: 'GET' })),
    }
  })

/** Cumulative as in Prometheus; bounds in seconds, the last one unbounded. */
const bucketsOf = (samples: readonly Sample[]) =>
  addedUp(samples, ['le'])
    .map(({ le, count }) => ({ le: le === '+Inf' ? null : Number(le), count }))
    .sort((first, second) => (first.le ?? Number.POSITIVE_INFINITY) - (second.le ?? Number.POSITIVE_INFINITY))

/**
 * Stored responses that were compared, and the nines that these support: with 95 % confidence at most 10 to the power of -nines of all
 * differ. Without a difference that is the rule of three.
 */
const verified = (read: ReadSamples) => {
  const of = (outcome: string): number => total(matching(read('trellis_verified_total'), { outcome }))
  const differed = of('differed')
  const checked = of('same') + differed
  const bound = differed === 0 ? 3 : differed + 2 * Math.sqrt(differed) + 3
  return { checked, differed, nines: Math.max(0, Math.floor(Math.log10(Math.max(1, checked / bound)))) }
}

/** Of all services together. */
const durations = (read: ReadSamples) => ({
  sum: total(read('trellis_request_duration_seconds_sum')),
  count: total(read('trellis_request_duration_seconds_count')),
  buckets: bucketsOf(read('trellis_request_duration_seconds_bucket')),
})

/**
 * The data of the status page, from one scrape (of all workers) and the readiness. Counts are since the start: two reports give
 * rates. Times are seconds, sizes bytes. It contains no text of clients.
 */
export const statusReport = (
  metrics: readonly MetricSnapshot[],
  readiness: Readiness,
  notices: readonly Notice[],
) => {
  const read = readSamples(metrics)
  const label = (metric: SampleName, name: string): string => String(read(metric)[0]?.labels[name] ?? '')
  const number = (metric: SampleName): number => total(read(metric))
  const services = upstreams(read)
  const descriptions = descriptionsOf(
    addedUp(read('trellis_cache_described_total'), ['service', 'cause']),
    addedUp(read('trellis_cache_stored_total'), ['service']),
    addedUp(read('trellis_cache_untested_plugins_total'), ['service', 'plugin']),
  )
  return {
    readiness: {
      ...readiness,
      degraded: readiness.degraded.map((degradation) => ({
        ...degradation,
        text: problemOf(degradation, services),
      })),
    },
    notices,
    build: { version: label('trellis_build_info', 'version'), node: label('trellis_build_info', 'node') },
    configHash: label('trellis_config_info', 'hash'),
    startedAt: number('process_start_time_seconds'),
    /** When the first certificate expires, in seconds since 1970; null without TLS. */
    certificateExpiresAt: read('trellis_tls_certificate_expiry_timestamp_seconds')[0]?.value ?? null,
    process: {
      heapBytes: number('nodejs_heap_size_used_bytes'),
      residentBytes: number('process_resident_memory_bytes'),
      loopDelaySeconds: number('nodejs_eventloop_lag_p99_seconds'),
    },
    workers: { ready: number('trellis_workers_ready'), wanted: number('trellis_workers_wanted') },
    memoryTrusted: read('trellis_memory_trusted').every(({ value }) => value > 0),
    requests: {
      total: number('trellis_requests_total'),
      byCache: addedUp(read('trellis_requests_total'), ['cache']),
      byStatus: addedUp(read('trellis_requests_total'), ['status_class']),
      inFlight: number('trellis_in_flight_requests'),
      connections: number('trellis_connections'),
      receivedBytes: number('trellis_received_bytes_total'),
      sentBytes: number('trellis_sent_bytes_total'),
    },
    durations: durations(read),
    routes: routes(read),
    cache: {
      entries: number('trellis_cache_entries'),
      bytes: number('trellis_cache_bytes'),
      maxBytes: number('trellis_cache_max_bytes'),
      evictions: number('trellis_cache_evictions_total'),
      invalidated: number('trellis_cache_invalidated_entries_total'),
      collapsed: number('trellis_cache_collapsed_total'),
      servedStale: number('trellis_cache_served_stale_total'),
    },
    /** Writes whose response streams on: what they may change is not stored. */
    openWrites: happened(addedUp(read('trellis_writes_open'), ['service'])),
    verified: verified(read),
    upstreams: services,
    notCached: notCached(read),
    advice: adviceFor(lostHits(read), { maxBytes: number('trellis_cache_max_bytes') }, descriptions),
    descriptions: descriptions.map((one) => ({ ...one, text: describedText(one) })),
    changes: changeFeeds(read),
    receivers: receivers(read),
    refusals: happened(addedUp(read('trellis_refusals_total'), ['service', 'route', 'code'])).slice(
      0,
      maxRows,
    ),
    protocolRefusals: happened(addedUp(read('trellis_protocol_refusals_total'), ['reason'])),
    shed: happened(addedUp(read('trellis_shed_total'), ['class', 'signal'])),
    rateLimited: happened(addedUp(read('trellis_rate_limited_total'), ['limit'])),
    batch: {
      batches: number('trellis_batches_total'),
      items: happened(addedUp(read('trellis_batch_items_total'), ['outcome'])),
      splits: happened(addedUp(read('trellis_batch_splits_total'), ['split'])),
    },
  }
}

export type StatusReport = ReturnType<typeof statusReport>
