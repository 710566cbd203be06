import type { BatchEvent } from '../../batch/events.ts'
import type { CacheEvent, StoredDescription } from '../../cache/events.ts'
import type { CoherenceEvent, SharedTierEvent } from '../../cluster/events.ts'
import type { DownstreamEvent } from '../../downstream/events.ts'
import { accessRefusals } from '../../exchange/access.ts'
import {
  type CacheOutcome,
  type ExchangeEvent,
  type ExchangeFinishedEvent,
  hasEmptiedCache,
} from '../../exchange/events.ts'
import { methodName } from '../../http/methods.ts'
import { type AccessEvent, type EdgeEvent, jwksResults, type LifecycleEvent } from '../../server/events.ts'
import type { OverloadEvent } from '../../server/overload.ts'
import { type WebSocketEvent, websocketOutcomes } from '../../server/websockets.ts'
import type { DiscoveryEvent } from '../../service/connection.ts'
import type { UpstreamEvent } from '../../upstream/events.ts'
import type { ChangeEvent } from '../../wordpress/changes/feed-state.ts'
import type { TracingEvent } from '../open-telemetry.ts'
import type { PushEvent } from '../push-metrics.ts'
import { writeLabelOf } from './cache-metrics.ts'
import type { Families, HistogramSeries, NumberSeries } from './registry.ts'

const statusClasses = ['other', '1xx', '2xx', '3xx', '4xx', '5xx'] as const

/** `2xx` and so on; `other` for an invalid status. */
const statusClass = (status: number): (typeof statusClasses)[number] =>
  statusClasses[Math.trunc(status / 100)] ?? 'other'

const add = (series: NumberSeries, by = 1): void => {
  series.value += by
}

const set = (series: NumberSeries, value: number): void => {
  series.value = value
}

/** Counts one value and returns its bucket. NaN (a clock that failed) would spoil the sum for good, so it is left out: -1. */
export const observeValue = (series: HistogramSeries, value: number): number => {
  if (!Number.isFinite(value)) return -1
  const { bounds, counts } = series
  let bucket = 0
  // Most values are in the first buckets: a scan beats a binary search.
  while (bucket < bounds.length && value > (bounds[bucket] as number)) bucket += 1
  counts[bucket] = (counts[bucket] as number) + 1
  series.sum += value
  return bucket
}

/** Counts one value, and keeps its trace as the exemplar. */
const observeTraced = (
  series: HistogramSeries,
  value: number,
  { id, epochMs }: { readonly id: string; readonly epochMs: number },
): void => {
  const bucket = observeValue(series, value)
  if (bucket === -1) return
  series.exemplars ??= []
  series.exemplars[bucket] = { labelSet: { trace_id: id }, value, timestamp: epochMs / 1000 }
}

/** Kinds of exchanges whose series are remembered; a contract has some sixty routes, a learned one some hundred more. */
const maxKinds = 10_000

const countWrite = (families: Families, event: ExchangeFinishedEvent, method: string): void => {
  const { service, route, writeKind } = event
  if (writeKind === undefined) return
  add(families.cacheWrites.series({ service, taken: writeLabelOf(writeKind) }))
  if (hasEmptiedCache(event))
    add(families.cacheLostHits.series({ service, route: `${method} ${route}`, reason: 'emptied' }))
}

/** Counts completed exchanges. The series of each kind are looked up once: a hit then costs one look-up and additions. */
const createFinishedObserver = (families: Families): ((event: ExchangeFinishedEvent) => void) => {
  const seriesOf = (service: string, route: string, method: string, status: string, cache: CacheOutcome) => ({
    requests: families.requests.series({ service, route, method, status_class: status, cache }),
    duration: families.routeSeconds.series({ service, route }),
    ownSeconds: families.ownSeconds.series({ service, cache }),
    upstream: families.upstreamWaitSeconds.series({ service }),
    age: cache === 'hit' || cache === 'stale' ? families.cacheServedAge.series({ service }) : undefined,
  })
  const seriesByKind = new Map<string, ReturnType<typeof seriesOf>>()
  return (event) => {
    const { service, route, cache, trace, ageSeconds, durationSeconds, upstreamSeconds } = event
    const method = methodName(event.method)
    const status = statusClass(event.status)
    countWrite(families, event, method)
    if (event.origin === 'batch') {
      add(families.itemRequests.series({ service, route, method, status_class: status, cache }))
      return
    }
    const kind = `${service} ${route} ${method} ${status} ${cache}`
    let series = seriesByKind.get(kind)
    if (series === undefined) {
      series = seriesOf(service, route, method, status, cache)
      if (seriesByKind.size < maxKinds) seriesByKind.set(kind, series)
    }
    add(series.requests)
    if (trace === undefined) observeValue(series.duration, durationSeconds)
    else observeTraced(series.duration, durationSeconds, trace)
    observeValue(series.ownSeconds, Math.max(0, durationSeconds - upstreamSeconds))
    if (series.age !== undefined && ageSeconds !== undefined) observeValue(series.age, ageSeconds)
    if (upstreamSeconds > 0) observeValue(series.upstream, upstreamSeconds)
  }
}

const createBatchObserver =
  (families: Families) =>
  (service: string, event: BatchEvent): void => {
    if (event.kind === 'batch-item-finished') {
      const { method, outcome } = event
      families.batchItems.series({
        service,
        method,
        outcome,
        status_class: statusClass(event.status),
      }).value += 1
      if (outcome === 'answered')
        observeValue(families.batchItemQueueSeconds.series({ service }), event.queuedSeconds)
      return
    }
    if (event.kind === 'batch-split') {
      const { split, reason } = event
      families.batchSplits.series({ service, split, reason }).value += 1
      observeValue(families.batchRequests.series({ service, split }), event.requests)
      return
    }
    if (event.kind === 'upstream-batch-finished') {
      const { result } = event
      families.upstreamBatches.series({ service, result }).value += 1
      observeValue(families.upstreamBatchItems.series({ service }), event.items)
      observeValue(families.upstreamBatchSeconds.series({ service }), event.durationSeconds)
      return
    }
    families.batches.series({ service, result: event.result }).value += 1
    observeValue(families.batchSize.series({ service }), event.items)
    observeValue(families.batchSeconds.series({ service }), event.durationSeconds)
    observeValue(families.batchParallelism.series({ service }), event.parallelism)
    // A counter never goes down: a batch that was slower than its items saved nothing.
    families.batchSavedSeconds.series({ service }).value += Math.max(
      0,
      event.itemSeconds - event.durationSeconds,
    )
    families.batchOrdered.series({ service }).value += event.ordered
  }

/** One function for each kind of event: a new kind does not compile until it is counted. */
type Counts<Event extends { readonly kind: string }> = {
  readonly [Kind in Event['kind']]: (event: Extract<Event, { readonly kind: Kind }>) => void
}

const observer =
  <Event extends { readonly kind: string }>(counts: Counts<Event>) =>
  (event: Event): void =>
    counts[event.kind as Event['kind']](event as never)

/** A resolved reason returns to zero. */
const resetService = (
  family: Families['discoveryRefusedRoutes' | 'discoveryDifferences'],
  service: string,
) => {
  for (const [labels, series] of family.entries()) if (labels['service'] === service) set(series, 0)
}

const uncounted = (): void => {}

const createExchangeObserver = (families: Families) =>
  observer<ExchangeEvent>({
    bypassed: ({ service, route, detail }) => {
      add(families.cacheForwards.series({ service, reason: 'bypass', detail }))
      add(families.cacheLostHits.series({ service, route, reason: detail }))
    },
    'exchange-finished': createFinishedObserver(families),
    'request-refused': ({ service, route, code }) => add(families.refusals.series({ service, route, code })),
    'access-refused': ({ service, reason }) => add(families.accessRefused.series({ service, reason })),
    'write-advanced': ({ service, state }) => add(families.writeStates.series({ service, state })),
    'write-illegal': ({ service }) => add(families.writeFaults.series({ service })),
    'write-quarantined': ({ service, by }) => {
      families.writesOpen.series({ service }).value += by
    },
    verified: ({ service, outcome }) => add(families.verified.series({ service, outcome })),
    warmed: ({ service, outcome }) => add(families.cacheWarmed.series({ service, outcome })),
    'target-canonicalised': ({ service }) => add(families.canonicalMerges.series({ service })),
    'undeclared-parameters': ({ service, handling }) =>
      add(families.undeclaredParameters.series({ service, handling })),
  })

const createCoherenceObserver = (families: Families) =>
  observer<CoherenceEvent>({
    'trust-lost': ({ reason }) => {
      set(families.memoryTrusted.series({}), 0)
      add(families.trustLost.series({ reason }))
    },
    'trust-regained': () => set(families.memoryTrusted.series({}), 1),
    'invalidations-applied': ({ invalidations }) =>
      add(families.invalidationsApplied.series({}), invalidations),
    'memory-dropped': () => add(families.memoryDropped.series({})),
    'write-broadcast': ({ outcome, waitedSeconds }) => {
      observeValue(families.writeBroadcast.series({ outcome }), waitedSeconds)
    },
    'ledger-failed': ({ step }) => add(families.ledgerFailures.series({ step })),
    'write-refused': () => add(families.writesRefused.series({})),
    'cut-off': uncounted,
  })

const createSharedTierObserver = (families: Families) =>
  observer<SharedTierEvent>({
    'tier-lookup': ({ outcome }) => add(families.sharedLookups.series({ outcome })),
    'tier-refused': ({ reason }) => add(families.sharedRefused.series({ reason })),
    'tier-stored': ({ bytes }) => {
      add(families.sharedStored.series({}))
      add(families.sharedStoredBytes.series({}), bytes)
    },
    'tier-failed': ({ step }) => add(families.sharedFailures.series({ step })),
    'tier-waited': ({ outcome }) => add(families.sharedWaits.series({ outcome })),
    connection: ({ state }) => {
      if (state === 'down') add(families.sharedConnectionLosses.series({}))
    },
    'store-trouble': ({ trouble }) => add(families.sharedTroubles.series({ trouble })),
  })

/** Labels for what an upstream says of a description: each contract knows the texts of its upstreams, and no other text is a label. */
export type DescriptionLabels = (description: StoredDescription) => {
  /** Empty where the description is complete. */
  readonly cause: string
  readonly untested: readonly string[]
}

const createCacheObserver = (families: Families, descriptionLabels: DescriptionLabels) =>
  observer<CacheEvent>({
    forwarded: ({ service, route, reason, missed }) => {
      add(families.cacheForwards.series({ service, reason, detail: '' }))
      if (missed !== undefined) add(families.cacheLostHits.series({ service, route, reason: missed }))
    },
    stored: ({ service, bytes, description }) => {
      add(families.cacheStored.series({ service }))
      if (description !== undefined) {
        const { cause, untested } = descriptionLabels(description)
        add(families.cacheDescribed.series({ service, cause }))
        for (const plugin of untested) add(families.cacheUntestedPlugins.series({ service, plugin }))
      }
      add(families.cacheStoredBytes.series({ service }), bytes)
    },
    'not-stored': ({ service, route, reason }) => {
      add(families.cacheNotStored.series({ service, reason }))
      add(families.cacheLostHits.series({ service, route, reason }))
    },
    collapsed: ({ service }) => add(families.cacheCollapsed.series({ service })),
    'served-stale': ({ service, reason }) => add(families.cacheServedStale.series({ service, reason })),
    'background-failed': ({ service }) => add(families.cacheBackgroundFailures.series({ service })),
    invalidated: ({ by, entries, cut }) => {
      add(families.cacheInvalidations.series({ by }))
      add(families.cacheInvalidatedEntries.series({ by }), entries)
      add(families.cacheCutForwards.series({ by }), cut)
    },
    compressed: ({ coding, bytes, saved }) => {
      add(families.cacheCompressions.series({ coding }))
      add(families.cacheCompressedBytes.series({ coding }), bytes)
      add(families.cacheSavedBytes.series({ coding }), saved)
    },
    evicted: ({ bytes }) => {
      add(families.cacheEvictions.series({}))
      add(families.cacheEvictedBytes.series({}), bytes)
    },
  })

const createChangesObserver = (families: Families) =>
  observer<ChangeEvent>({
    'changes-applied': ({ service, source, changes, entries }) => {
      add(families.changesApplied.series({ service, source }), changes)
      add(families.changesDropped.series({ service, source }), entries)
    },
    'service-dropped': ({ service, reason }) => add(families.changesServiceDrops.series({ service, reason })),
    'changes-refused': ({ service, reason }) => add(families.changesRefused.series({ service, reason })),
    'poll-failed': ({ service, reason }) => add(families.changesPollFailures.series({ service, reason })),
    'feed-state': uncounted,
  })

const createDownstreamObserver = (families: Families) =>
  observer<DownstreamEvent>({
    'purge-sent': ({ service, receiver, outcome }) =>
      add(families.downstreamPurges.series({ service, receiver, outcome })),
    'purge-awaited': ({ service, receiver, outcome, waitedSeconds }) =>
      observeValue(families.downstreamWait.series({ service, receiver, outcome }), waitedSeconds),
    'receiver-behind': uncounted,
    'receiver-caught-up': uncounted,
    'receiver-given-up': ({ service, receiver }) =>
      add(families.downstreamPurges.series({ service, receiver, outcome: 'given-up' })),
  })

const createUpstreamObserver = (families: Families) =>
  observer<UpstreamEvent>({
    'attempt-finished': ({ service, target, outcome, statusClass, headSeconds, durationSeconds }) => {
      add(families.upstreamAttempts.series({ service, target, outcome, status_class: statusClass }))
      if (headSeconds !== undefined)
        observeValue(families.upstreamHeadSeconds.series({ service, target }), headSeconds)
      observeValue(families.upstreamSeconds.series({ service, target }), durationSeconds)
    },
    retried: ({ service, target, reason }) =>
      add(families.upstreamRetries.series({ service, target, reason })),
    'gave-up': ({ service, target, reason }) =>
      add(families.upstreamGaveUp.series({ service, target, reason })),
    'slot-wait-finished': ({ service, outcome, waitedSeconds }) => {
      add(families.upstreamQueued.series({ service, outcome }))
      observeValue(families.upstreamQueueSeconds.series({ service }), waitedSeconds)
    },
    'slow-client-ended': ({ service, wait }) => add(families.upstreamSlowClients.series({ service, wait })),
    'breaker-changed': ({ service, to }) => add(families.upstreamBreakerChanges.series({ service, to })),
    'connection-fault': ({ service, target }) =>
      add(families.upstreamConnectionFaults.series({ service, target })),
    'breaker-refused': ({ service }) => add(families.upstreamBreakerRefused.series({ service })),
    'target-changed': ({ service, target, to }) =>
      add(families.upstreamTargetChanges.series({ service, target, to })),
    'check-finished': ({ service, target, result }) =>
      add(families.upstreamChecks.series({ service, target, result })),
  })

const createLifecycleObserver = (families: Families) =>
  observer<LifecycleEvent>({
    reloaded: ({ outcome, atSeconds }) => {
      add(families.configReloads.series({ outcome }))
      set(families.configReloadGood.series({}), outcome === 'applied' || outcome === 'unchanged' ? 1 : 0)
      set(families.configReloadTime.series({ outcome }), atSeconds)
    },
    'process-fault': () => add(families.processFaults.series({})),
    'certificate-in-force': ({ notAfterSeconds }) =>
      set(families.certificateExpiry.series({}), notAfterSeconds),
  })

const createDiscoveryObserver = (families: Families) =>
  observer<DiscoveryEvent>({
    'index-refreshed': ({ service, unlistedRoutes, learnedRows, refused }) => {
      add(families.discoveryRefreshes.series({ service, result: 'ok' }))
      set(families.discoveryUnlistedRoutes.series({ service }), unlistedRoutes)
      set(families.discoveryLearnedRows.series({ service }), learnedRows)
      resetService(families.discoveryRefusedRoutes, service)
      for (const [reason, routes] of Object.entries(refused))
        set(families.discoveryRefusedRoutes.series({ service, reason }), routes)
    },
    'index-failed': ({ service, reason }) =>
      add(families.discoveryRefreshes.series({ service, result: reason })),
    // `index-refreshed` counts them.
    'routes-refused': () => {},
    'drift-compared': ({ service, differences }) => {
      resetService(families.discoveryDifferences, service)
      for (const [kind, count] of Object.entries(differences))
        set(families.discoveryDifferences.series({ service, kind }), count)
    },
  })

const createEdgeObserver = (families: Families) =>
  observer<EdgeEvent | OverloadEvent>({
    'connection-cut': ({ reason }) => add(families.connectionsCut.series({ reason })),
    'no-request': ({ reason }) => add(families.protocolRefusals.series({ reason })),
    'rate-limited': ({ limit }) => add(families.rateLimited.series({ limit })),
    shed: ({ class: work, signal }) => add(families.shed.series({ class: work, signal })),
    'buffer-refused': ({ work }) => add(families.bufferedRefusals.series({ work })),
    'pressure-changed': ({ level }) => set(families.pressureLevel.series({}), level),
  })

/** Every series of a service is there, with 0, when its access is configured. */
const createAccessObserver = (families: Families) =>
  observer<AccessEvent>({
    'access-configured': ({ service }) => {
      for (const reason of accessRefusals) families.accessRefused.series({ service, reason })
      for (const result of jwksResults) families.jwksFetches.series({ service, result })
    },
    'jwks-fetched': ({ service, result }) => add(families.jwksFetches.series({ service, result })),
  })

/** Every outcome of a service is there, with 0, when they are configured. */
const createWebsocketsObserver = (families: Families) =>
  observer<WebSocketEvent>({
    'websockets-configured': ({ service }) => {
      for (const outcome of websocketOutcomes) families.websockets.series({ service, outcome })
    },
    'websocket-ended': ({ service, outcome }) => add(families.websockets.series({ service, outcome })),
  })

/** One function for each folder's events. */
export const createEventObservers = (families: Families, descriptionLabels: DescriptionLabels) => ({
  batch: createBatchObserver(families),
  exchange: createExchangeObserver(families),
  coherence: createCoherenceObserver(families),
  sharedTier: createSharedTierObserver(families),
  cache: createCacheObserver(families, descriptionLabels),
  changes: createChangesObserver(families),
  downstream: createDownstreamObserver(families),
  upstream: createUpstreamObserver(families),
  lifecycle: createLifecycleObserver(families),
  discovery: createDiscoveryObserver(families),
  edge: createEdgeObserver(families),
  access: createAccessObserver(families),
  websockets: createWebsocketsObserver(families),
  tracing: ({ outcome, count }: TracingEvent): void => add(families.traceSpans.series({ outcome }), count),
  push: ({ outcome }: PushEvent): void => add(families.metricPushes.series({ outcome })),
  log: (): void => add(families.logLinesDropped.series({})),
})
