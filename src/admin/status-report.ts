import { readExposition, type Sample } from './exposition.ts'
import type { Readiness } from './readiness.ts'
import { type StatusMetric, statusMetrics } from './status-metrics.ts'

/** Rows of one list at most: a page, not a scrape. */
const mostRows = 20

type Labels = Readonly<Record<string, string>>
type Count = { readonly count: number }

/** Samples with the same values of `names` added up, the largest first. */
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

const total = (samples: readonly Sample[]): number => samples.reduce((sum, { value }) => sum + value, 0)

const matching = (samples: readonly Sample[], wanted: Labels): readonly Sample[] =>
  samples.filter(({ labels }) => Object.entries(wanted).every(([name, value]) => labels[name] === value))

type Read = (metric: StatusMetric) => readonly Sample[]

const isHit: ReadonlySet<string | undefined> = new Set(['hit', 'revalidated', 'collapsed', 'stale'])

/** The routes that were asked most, with what was asked of the cache and how long their answers took in all. */
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
      // Of several workers a scrape shows the worst: a target is up when all of them hold it to be.
      targets: of('targetUp').map(({ labels: { target = '' }, value }) => ({
        target,
        up: value > 0,
        leftOut: total(matching(of('targetLeftOut'), { target })) > 0,
        outstanding: total(matching(of('outstanding'), { target })),
        attempts: total(matching(of('attempts'), { target })),
        failures: total(
          matching(of('attempts'), { target }).filter(({ labels }) => labels['outcome'] !== 'answered'),
        ),
      })),
    }
  })

/** Buckets of all services together, cumulative as Prometheus has them; bounds in seconds, the last without one. */
const durations = (read: Read) => ({
  sum: total(read('durationSum')),
  count: total(read('durationCount')),
  buckets: addedUp(read('durations'), ['le'])
    .map(({ le, count }) => ({ le: le === '+Inf' ? null : Number(le), count }))
    .sort((one, other) => (one.le ?? Number.POSITIVE_INFINITY) - (other.le ?? Number.POSITIVE_INFINITY)),
})

/**
 * What the status page shows, from one scrape (of all workers) and the readiness. Counts are since the start, so that
 * whoever asks twice has rates; times are seconds, sizes bytes. Nothing in it was written by a client.
 */
export const statusReport = (scrape: string, readiness: Readiness) => {
  const found = readExposition(scrape, new Set(Object.values(statusMetrics)))
  const read: Read = (metric) => found.get(statusMetrics[metric]) ?? []
  const label = (metric: StatusMetric, name: string): string => read(metric)[0]?.labels[name] ?? ''
  const number = (metric: StatusMetric): number => total(read(metric))
  return {
    readiness,
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
    refusals: addedUp(read('refusals'), ['service', 'route', 'code']).slice(0, mostRows),
    protocolRefusals: addedUp(read('protocolRefusals'), ['reason']),
    shed: addedUp(read('shed'), ['class', 'signal']),
    rateLimited: addedUp(read('rateLimited'), ['limit']),
    batch: {
      batches: number('batches'),
      items: addedUp(read('batchItems'), ['outcome']),
      splits: addedUp(read('batchSplits'), ['split']),
    },
  }
}

export type StatusReport = ReturnType<typeof statusReport>
