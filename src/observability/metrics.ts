import { AggregatorRegistry, collectDefaultMetrics, Gauge, Registry } from 'prom-client'
import type { WorkersStatus } from '../cluster/worker-link.ts'
import type { ReceiverStatus } from '../downstream/events.ts'
import type { Upstream } from '../upstream/upstream.ts'
import type { ChangeFeeds } from '../wordpress/changes/change-feeds.ts'
import { type Labels, type MetricRow, requestSeconds, withLabel } from './metrics/metric-row.ts'
import { createEventObservers, type DescriptionLabels } from './metrics/observe-events.ts'
import {
  addSeries,
  createRegistry,
  type Families,
  type MetricKey,
  type MetricSnapshot,
  metricTable,
  openMetricsOf,
  type ScrapeFormat,
} from './metrics/registry.ts'
import { batchMetrics, discoveryMetrics } from './metrics/request-metrics.ts'

/** Values that are read at the moment of a scrape. */
type ScrapeSource = {
  readonly publicSide: () => {
    readonly inFlight: number
    readonly connections: number
    readonly receivedBytes: number
    readonly sentBytes: number
    readonly draining: boolean
  }
  readonly cache: () => { readonly entries: number; readonly bytes: number; readonly maxBytes: number }
  readonly bufferedBytes: () => number
  /** Of each service that has WebSockets. */
  readonly websockets: () => readonly { readonly service: string; readonly open: number }[]
  readonly upstreams: () => readonly UpstreamReading[]
  /** Those that finish the requests of an earlier configuration. */
  readonly replacedUpstreams?: () => readonly UpstreamReading[]
  /** Where services report changes. */
  readonly changes?: ChangeFeeds['statuses']
  /** Caches in front of the gateway. */
  readonly receivers?: () => readonly ReceiverStatus[]
  /** Where several processes share the port. */
  readonly workers?: () => Omit<WorkersStatus, 'complete'>
}

type UpstreamReading = { readonly service: string } & Omit<
  ReturnType<Upstream['snapshot']>,
  'down' | 'unknown'
>

const readTargets = (families: Families, service: string, targets: UpstreamReading['targets']): void => {
  for (const { origin: target, state, outstanding, connections, idleConnections } of targets) {
    if (state !== 'unknown')
      families.upstreamTargetUp.series({ service, target }).value = state === 'healthy' ? 1 : 0
    families.upstreamTargetLeftOut.series({ service, target }).value = state === 'left-out' ? 1 : 0
    families.upstreamTargetOutstanding.series({ service, target }).value = outstanding
    families.upstreamConnections.series({ service, target, state: 'idle' }).value = idleConnections
    families.upstreamConnections.series({ service, target, state: 'busy' }).value = Math.max(
      0,
      connections - idleConnections,
    )
  }
}

const readUpstreams = (
  families: Families,
  upstreams: readonly UpstreamReading[],
  replacedUpstreams: readonly UpstreamReading[],
): void => {
  families.upstreamInFlight.clear()
  families.upstreamWaiting.clear()
  families.upstreamWaitingForClients.clear()
  families.upstreamTargetUp.clear()
  families.upstreamTargetLeftOut.clear()
  families.upstreamTargetOutstanding.clear()
  families.upstreamConnections.clear()
  for (const upstream of upstreams) {
    const { service, inFlight, queued, waitingForClients, breaker, retriesLeft, targets } = upstream
    families.upstreamInFlight.series({ service }).value = inFlight
    families.upstreamWaiting.series({ service }).value = queued
    families.upstreamWaitingForClients.series({ service }).value = waitingForClients
    families.upstreamRetriesLeft.series({ service }).value = retriesLeft
    for (const state of ['closed', 'open', 'half-open']) {
      families.upstreamBreakerState.series({ service, state }).value = state === breaker ? 1 : 0
    }
    readTargets(families, service, targets)
  }
  for (const { service, inFlight, queued, waitingForClients } of replacedUpstreams) {
    families.upstreamInFlight.series({ service }).value += inFlight
    families.upstreamWaiting.series({ service }).value += queued
    families.upstreamWaitingForClients.series({ service }).value += waitingForClients
  }
}

const feedStates = ['cold', 'heard', 'behind', 'silent']

const readChanges = (families: Families, feeds: ReturnType<ChangeFeeds['statuses']>): void => {
  families.changesState.clear()
  families.changesLag.clear()
  for (const { service, state, lagSeconds } of feeds) {
    for (const feedState of feedStates) {
      families.changesState.series({ service, state: feedState }).value = feedState === state ? 1 : 0
    }
    if (lagSeconds !== undefined) families.changesLag.series({ service }).value = lagSeconds
  }
}

const readReceivers = (families: Families, receivers: readonly ReceiverStatus[]): void => {
  families.downstreamBehind.clear()
  families.downstreamLag.clear()
  for (const { service, receiver, isLagging, lagSeconds } of receivers) {
    const [isBehind, lag] = [
      families.downstreamBehind.series({ service, receiver }),
      families.downstreamLag.series({ service, receiver }),
    ]
    // Of several instances the worst: a label for each would be unbounded over time.
    isBehind.value = Math.max(isBehind.value, isLagging ? 1 : 0)
    lag.value = Math.max(lag.value, lagSeconds)
  }
}

const readWorkers = (families: Families, { workers }: ScrapeSource): void => {
  if (workers === undefined) return
  const { wanted, ready, ended } = workers()
  families.workersWanted.series({}).value = wanted
  families.workersReady.series({}).value = ready
  for (const [end, count] of Object.entries(ended)) families.workerEnds.series({ end }).value = count
}

/** Sets the gauges from their sources. Targets removed by a reload leave no series behind. */
const readSource = (families: Families, source: ScrapeSource): void => {
  const publicSide = source.publicSide()
  families.inFlight.series({}).value = publicSide.inFlight
  families.connections.series({}).value = publicSide.connections
  families.receivedBytes.series({}).value = publicSide.receivedBytes
  families.sentBytes.series({}).value = publicSide.sentBytes
  families.draining.series({}).value = publicSide.draining ? 1 : 0
  families.bufferedBytes.series({}).value = source.bufferedBytes()
  families.websocketsOpen.clear()
  for (const { service, open } of source.websockets())
    families.websocketsOpen.series({ service }).value = open
  const cache = source.cache()
  families.cacheEntries.series({}).value = cache.entries
  families.cacheBytes.series({}).value = cache.bytes
  families.cacheMaxBytes.series({}).value = cache.maxBytes
  readUpstreams(families, source.upstreams(), source.replacedUpstreams?.() ?? [])
  readChanges(families, source.changes?.() ?? [])
  readReceivers(families, source.receivers?.() ?? [])
  readWorkers(families, source)
}

export type MetricName = (typeof metricTable)[MetricKey]['name']

/** No 0 before their first value: a time, what only several processes have, and what only services with a setting have. */
const withoutZero: ReadonlySet<MetricKey> = new Set([
  'certificateExpiry',
  'workersWanted',
  'workersReady',
  'changesLag',
  'websocketsOpen',
])

/** The facts of a configuration that decide which series there are. */
export type DeclaredServices = {
  readonly services: readonly {
    readonly name: string
    /** Its upstream announces its routes, and which of them a batch takes. */
    readonly hasIndex: boolean
    /** Origins. */
    readonly targets: readonly string[]
  }[]
  readonly limits: readonly string[]
}

const ofRegistered: ReadonlySet<string> = new Set([
  ...Object.keys(batchMetrics),
  ...Object.keys(discoveryMetrics),
])

const configuredSeries = (key: MetricKey, { services, limits }: DeclaredServices): readonly Labels[] => {
  const { labels }: MetricRow = metricTable[key]
  if (labels.includes('limit')) return withLabel([{}], 'limit', limits)
  if (!labels.includes('service')) return [{}]
  const concerned = services.filter(({ hasIndex }) => hasIndex || !ofRegistered.has(key))
  return concerned.flatMap(({ name: service, targets }) =>
    labels.includes('target') ? withLabel([{ service }], 'target', targets) : [{ service }],
  )
}

/** With each value of its closed labels; none where a label is open. */
const closedSeries = ({ values, series }: MetricRow, configured: readonly Labels[]): readonly Labels[] => {
  if (series !== undefined)
    return configured.flatMap((labels) => series.map((more) => ({ ...labels, ...more })))
  let all = configured
  for (const [label, of] of Object.entries(values))
    if (of !== 'configured') all = of === 'open' ? [] : withLabel(all, label, of)
  return all
}

/**
 * Makes the series of every metric whose labels are closed lists or come from the configuration. A counter that appears with its
 * first event hides that event from `rate()`, and a panel without series shows "No data" instead of 0.
 */
const declareSeries = (families: Families, declared: DeclaredServices): void => {
  for (const key of Object.keys(metricTable) as MetricKey[]) {
    if (withoutZero.has(key)) continue
    const family: { declare(values: Labels): void } = families[key]
    for (const labels of closedSeries(metricTable[key], configuredSeries(key, declared)))
      family.declare(labels)
  }
}

const preference = (accept: string, type: string): number => {
  for (const range of accept.toLowerCase().split(',', 16)) {
    const [name = '', ...parameters] = range.split(';', 8).map((part) => part.trim())
    if (name !== type) continue
    const weight = parameters.find((parameter) => parameter.startsWith('q='))
    return weight === undefined ? 1 : Number(weight.slice(2))
  }
  return 0
}

/** OpenMetrics, with exemplars, for clients that accept it and do not prefer plain text. */
const acceptedFormat = (accept: string | undefined): ScrapeFormat => {
  const openmetrics = preference(accept ?? '', 'application/openmetrics-text')
  // NaN is no preference at all.
  return openmetrics > 0 && openmetrics >= preference(accept ?? '', 'text/plain')
    ? 'openmetrics'
    : 'prometheus'
}

export type { MetricSnapshot }

const snapshotOf = (registry: Registry): Promise<readonly MetricSnapshot[]> =>
  registry.getMetricsAsJSON() as Promise<unknown[]> as Promise<MetricSnapshot[]>

type Snapshot = Parameters<typeof AggregatorRegistry.aggregate>[0][number]

/** The snapshots of several processes added up: each metric has a rule by which its numbers are combined. */
const addUp = (snapshots: readonly unknown[]): Registry =>
  AggregatorRegistry.aggregate(snapshots as Snapshot[]) as Registry

/** Routes show few buckets, services all of them: counted once, added up at a scrape. */
const addUpRoutes = ({ routeSeconds, requestSeconds }: Families, services: readonly string[]): void => {
  requestSeconds.clear()
  for (const service of services) requestSeconds.declare({ service })
  for (const [{ service = '' }, series] of routeSeconds.entries()) {
    addSeries(requestSeconds.series({ service }), series)
  }
}

/** Of each service since the start: requests, those answered from the cache, those answered 5xx, then the counts of `durationBounds`. */
export type ServiceTotals = ReadonlyMap<string, readonly number[]>

/** Upper bounds of the buckets of request durations, in seconds; one more bucket is unbounded. */
export const durationBounds: readonly number[] = requestSeconds

const fromCache: ReadonlySet<string | undefined> = new Set(['hit', 'revalidated', 'collapsed', 'stale'])

const readTotals = ({ requests, routeSeconds }: Families, services: readonly string[]): ServiceTotals => {
  const totals = new Map(services.map((service) => [service, [0, 0, 0]]))
  const durations = new Map<string, number[]>()
  for (const [{ service = '', cache, status_class }, { value }] of requests.entries()) {
    const total = totals.get(service) ?? [0, 0, 0]
    totals.set(service, total)
    total[0] = (total[0] ?? 0) + value
    if (fromCache.has(cache)) total[1] = (total[1] ?? 0) + value
    if (status_class === '5xx') total[2] = (total[2] ?? 0) + value
  }
  for (const [{ service = '' }, { counts }] of routeSeconds.entries()) {
    const previous = durations.get(service)
    durations.set(
      service,
      previous === undefined ? [...counts] : previous.map((count, at) => count + (counts[at] ?? 0)),
    )
  }
  return new Map(
    [...totals].map(([service, total]) => [service, [...total, ...(durations.get(service) ?? [])]]),
  )
}

type MetricsOptions = {
  readonly version: string
  readonly configHash: string
  readonly descriptionLabels: DescriptionLabels
  /** Event loop, heap, garbage collection and process; their observers live as long as the process. */
  readonly processMetrics: boolean
}

/** Far above what the contracts, the configured services and their targets can make; reached only by a fault. */
const caps = { numbers: 2_000, histograms: 400 }

/** Gauges with the ending of counters, which Prometheus's own linter refuses; each has a twin by type without it. */
const misnamed = [
  'nodejs_active_handles_total',
  'nodejs_active_requests_total',
  'nodejs_active_resources_total',
]

/** prom-client's own one is left out where the numbers of several processes are added up. */
const startTime = {
  name: 'process_start_time_seconds',
  help: 'Start time of the process since unix epoch in seconds.',
  aggregator: 'min',
} as const

let sharedRegistry: Registry | undefined
/** prom-client's observers of the event loop and the collector cannot be stopped, so the gateways of a process share them. */
const processRegistry = (): Registry => {
  if (sharedRegistry !== undefined) return sharedRegistry
  sharedRegistry = new Registry()
  collectDefaultMetrics({ register: sharedRegistry })
  for (const name of [...misnamed, startTime.name]) sharedRegistry.removeSingleMetric(name)
  new Gauge({ ...startTime, registers: [sharedRegistry] }).set(performance.timeOrigin / 1000)
  return sharedRegistry
}

export const createMetrics = (options: MetricsOptions) => {
  const { families, registry: gatewayRegistry } = createRegistry(caps)
  const registry = options.processMetrics
    ? Registry.merge([gatewayRegistry, processRegistry()])
    : gatewayRegistry
  const registries = { prometheus: registry, openmetrics: openMetricsOf(registry) }
  families.buildInfo.series({ version: options.version, node: process.version }).value = 1
  // The configuration at the start was good.
  families.configReloadGood.series({}).value = 1
  let services: readonly string[] = []
  /** The configuration in use: its hash, and the services whose series are there before their first event. */
  const setConfig = ({ hash, ...declared }: DeclaredServices & { readonly hash: string }): void => {
    families.configInfo.clear()
    families.configInfo.series({ hash }).value = 1
    services = declared.services.map(({ name }) => name)
    declareSeries(families, declared)
  }
  setConfig({ hash: options.configHash, services: [], limits: [] })
  let source: ScrapeSource | undefined
  const prepare = (): void => {
    if (source !== undefined) readSource(families, source)
    addUpRoutes(families, services)
  }
  return {
    /** Content-Type of a scrape in the format that an Accept header asks for: Prometheus text, unless OpenMetrics is named. */
    contentType: (accept?: string): string => registries[acceptedFormat(accept)].contentType,
    /** The counts of this process as plain data: for `together` of another one. */
    snapshot(): Promise<readonly MetricSnapshot[]> {
      prepare()
      return snapshotOf(registry)
    },
    snapshotTogether: (snapshots: readonly unknown[]) => snapshotOf(addUp(snapshots)),
    together: (snapshots: readonly unknown[], accept?: string): Promise<string> => {
      const sum = addUp(snapshots)
      return (acceptedFormat(accept) === 'openmetrics' ? openMetricsOf(sum) : sum).metrics()
    },
    scrape(accept?: string): Promise<string> {
      prepare()
      return registries[acceptedFormat(accept)].metrics()
    },
    /** One function for each folder's events; none of them throws. */
    observe: createEventObservers(families, options.descriptionLabels),
    /** Where the gauges come from; without it they are absent. */
    readAtScrape(scrapeSource: ScrapeSource): void {
      source = scrapeSource
    },
    setConfig,
    /** The counts that the history is made of. */
    totals: (): ServiceTotals => readTotals(families, services),
    /** Without other processes the memory is always trusted. */
    setAlone(): void {
      families.memoryTrusted.series({}).value = 1
    },
  }
}

export type Metrics = ReturnType<typeof createMetrics>

type Observe = (event: never) => void

/** Those who hear of some events beside the metrics. */
export type Observers = Partial<Omit<Metrics['observe'], 'batch'>>

/** Metrics whose events others observe too, after them and in this order. */
export const observedBy = (metrics: Metrics, ...others: readonly Observers[]): Metrics => {
  const { batch, ...single } = metrics.observe
  // The same object, by the kind of an event.
  const observe: Record<string, Observe> = single
  for (const [kind, take] of others.flatMap((other) => Object.entries<Observe>(other))) {
    const earlier = observe[kind] as Observe
    observe[kind] = (event) => {
      earlier(event)
      take(event)
    }
  }
  return { ...metrics, observe: { batch, ...single } }
}
