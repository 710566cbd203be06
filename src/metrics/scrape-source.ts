import type { Families } from './registry.ts'

/** What is true at the moment of a scrape, read then and not before. */
export type ScrapeSource = {
  readonly inFlight: () => number
  readonly cache: () => { readonly entries: number; readonly bytes: number; readonly maxBytes: number }
  readonly upstreams: () => readonly UpstreamReading[]
}

type UpstreamReading = {
  readonly service: string
  readonly inFlight: number
  readonly queued: number
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
  families.upstreamTargetOutstanding.clear()
  families.upstreamConnections.clear()
  for (const { service, inFlight, queued, breaker, retriesLeft, targets } of upstreams) {
    families.upstreamInFlight.series({ service }).value = inFlight
    families.upstreamWaiting.series({ service }).value = queued
    families.upstreamRetriesLeft.series({ service }).value = retriesLeft
    for (const state of ['closed', 'open', 'half-open']) {
      families.upstreamBreakerState.series({ service, state }).value = state === breaker ? 1 : 0
    }
    readTargets(families, service, targets)
  }
}

/** Sets the gauges from their sources. Targets that are gone after a reload leave no series behind. */
export const readSource = (families: Families, source: ScrapeSource): void => {
  families.inFlight.series({}).value = source.inFlight()
  const cache = source.cache()
  families.cacheEntries.series({}).value = cache.entries
  families.cacheBytes.series({}).value = cache.bytes
  families.cacheMaxBytes.series({}).value = cache.maxBytes
  readUpstreams(families, source.upstreams())
}
