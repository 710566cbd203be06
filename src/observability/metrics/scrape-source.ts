import type { ChangeFeeds } from '../../changes/change-feeds.ts'
import type { Standing } from '../../cluster/worker-link.ts'
import type { Families } from './registry.ts'

/** Values that are read at the moment of a scrape. */
export type ScrapeSource = {
  readonly publicSide: () => {
    readonly inFlight: number
    readonly connections: number
    readonly receivedBytes: number
    readonly sentBytes: number
    readonly draining: boolean
  }
  readonly cache: () => { readonly entries: number; readonly bytes: number; readonly maxBytes: number }
  /** Of limits.bufferedBytes. */
  readonly bufferedBytes: () => number
  /** Of each service that has WebSockets. */
  readonly websockets: () => readonly { readonly service: string; readonly open: number }[]
  readonly upstreams: () => readonly UpstreamReading[]
  /** Where services report changes. */
  readonly changes?: ChangeFeeds['standings']
  /** Where several processes share the port. */
  readonly workers?: () => Omit<Standing, 'complete'>
}

type UpstreamReading = {
  readonly service: string
  readonly inFlight: number
  readonly queued: number
  readonly waitingForClients: number
  readonly breaker: string
  readonly retriesLeft: number
  readonly targets: readonly {
    readonly origin: string
    readonly state: string
    readonly outstanding: number
    readonly connections: number
    readonly idleConnections: number
  }[]
}

const readTargets = (families: Families, service: string, targets: UpstreamReading['targets']): void => {
  for (const { origin: target, state, outstanding, connections, idleConnections } of targets) {
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

const readUpstreams = (families: Families, upstreams: readonly UpstreamReading[]): void => {
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
}

const feedStates = ['cold', 'heard', 'behind', 'silent']

const readChanges = (families: Families, feeds: ReturnType<ChangeFeeds['standings']>): void => {
  families.changesState.clear()
  families.changesLag.clear()
  for (const { service, state, lagSeconds } of feeds) {
    for (const one of feedStates) {
      families.changesState.series({ service, state: one }).value = one === state ? 1 : 0
    }
    if (lagSeconds !== undefined) families.changesLag.series({ service }).value = lagSeconds
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
export const readSource = (families: Families, source: ScrapeSource): void => {
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
  readUpstreams(families, source.upstreams())
  readChanges(families, source.changes?.() ?? [])
  readWorkers(families, source)
}
