import type { CacheEvent } from '../../cache/events.ts'
import type { ChangeEvent } from '../../changes/events.ts'
import type { CoherenceEvent, SharedTierEvent } from '../../cluster/events.ts'
import { accessRefusals } from '../../pipeline/access.ts'
import { type AccessEvent, type EdgeEvent, jwksResults, type LifecycleEvent } from '../../server/events.ts'
import type { OverloadEvent } from '../../server/overload.ts'
import { type WebSocketEvent, websocketOutcomes } from '../../server/websockets.ts'
import type { DiscoveryEvent } from '../../site/events.ts'
import type { UpstreamEvent } from '../../upstream/events.ts'
import { type Families, type HistogramSeries, type NumberSeries, observeValue } from './registry.ts'

/** One function for each kind of event: a new kind does not compile until it is counted. */
type Counts<Event extends { readonly kind: string }> = {
  readonly [Kind in Event['kind']]: (event: Extract<Event, { readonly kind: Kind }>) => void
}

type Observer<Event> = (event: Event) => void

const observer =
  <Event extends { readonly kind: string }>(counts: Counts<Event>): Observer<Event> =>
  (event) =>
    counts[event.kind as Event['kind']](event as never)

const add = (series: NumberSeries, by = 1): void => {
  series.value += by
}

const set = (series: NumberSeries, value: number): void => {
  series.value = value
}

const uncounted = (): void => {}

/** Counts events of coherence between processes. */
export const createCoherenceObserver = (families: Families): Observer<CoherenceEvent> =>
  observer<CoherenceEvent>({
    'trust-lost': ({ reason }) => {
      set(families.memoryTrusted.series({}), 0)
      add(families.trustLost.series({ reason }))
    },
    'trust-regained': () => set(families.memoryTrusted.series({}), 1),
    'notes-applied': ({ notes }) => add(families.notesApplied.series({}), notes),
    'memory-dropped': () => add(families.memoryDropped.series({})),
    'write-spread': ({ outcome, waitedSeconds }) => {
      observeValue(families.writeSpread.series({ outcome }), waitedSeconds)
    },
    'ledger-failed': ({ step }) => add(families.ledgerFailures.series({ step })),
    'write-refused': () => add(families.writesRefused.series({})),
    'cut-off': uncounted,
  })

/** Counts events of the shared store. */
export const createSharedTierObserver = (families: Families): Observer<SharedTierEvent> =>
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

/** Counts events of the cache. */
export const createCacheObserver = (families: Families): Observer<CacheEvent> =>
  observer<CacheEvent>({
    forwarded: ({ service, reason }) => add(families.cacheForwards.series({ service, reason })),
    stored: ({ service, bytes }) => {
      add(families.cacheStored.series({ service }))
      add(families.cacheStoredBytes.series({ service }), bytes)
    },
    'not-stored': ({ service, reason }) => add(families.cacheNotStored.series({ service, reason })),
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

/** Counts what happens to the change feeds. */
export const createChangeObserver = (families: Families): Observer<ChangeEvent> =>
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

type Attempt = Extract<UpstreamEvent, { kind: 'attempt-finished' }>

/** The series of each attempt and each wait for a slot, resolved once. */
type TargetSeries = {
  readonly head: HistogramSeries
  readonly whole: HistogramSeries
  readonly ended: Map<string, NumberSeries>
}

const createAttemptObserver = (families: Families): ((event: Attempt) => void) => {
  const services = new Map<string, Map<string, TargetSeries>>()

  const resolve = (service: string, target: string): TargetSeries => {
    const targets = services.get(service) ?? new Map<string, TargetSeries>()
    services.set(service, targets)
    const made = {
      head: families.upstreamHeadSeconds.series({ service, target }),
      whole: families.upstreamSeconds.series({ service, target }),
      ended: new Map<string, NumberSeries>(),
    }
    targets.set(target, made)
    return made
  }
  return ({ service, target, outcome, statusClass, headSeconds, durationSeconds }) => {
    const series = services.get(service)?.get(target) ?? resolve(service, target)
    const how = outcome + statusClass
    let ended = series.ended.get(how)
    if (ended === undefined) {
      ended = families.upstreamAttempts.series({ service, target, outcome, status_class: statusClass })
      series.ended.set(how, ended)
    }
    ended.value += 1
    if (headSeconds !== undefined) observeValue(series.head, headSeconds)
    observeValue(series.whole, durationSeconds)
  }
}

type SlotWait = Extract<UpstreamEvent, { kind: 'slot-wait-finished' }>

/** As for attempts: the series of waits, resolved once for each service. */
const createSlotObserver = (families: Families): ((event: SlotWait) => void) => {
  const services = new Map<string, { waits: Map<string, NumberSeries>; seconds: HistogramSeries }>()
  const resolve = (service: string) => {
    const made = {
      waits: new Map<string, NumberSeries>(),
      seconds: families.upstreamQueueSeconds.series({ service }),
    }
    services.set(service, made)
    return made
  }
  return ({ service, outcome, waitedSeconds }) => {
    const { waits, seconds } = services.get(service) ?? resolve(service)
    let ended = waits.get(outcome)
    if (ended === undefined) {
      ended = families.upstreamQueued.series({ service, outcome })
      waits.set(outcome, ended)
    }
    ended.value += 1
    observeValue(seconds, waitedSeconds)
  }
}

/** Counts events of the upstreams. */
export const createUpstreamObserver = (families: Families): Observer<UpstreamEvent> =>
  observer<UpstreamEvent>({
    'attempt-finished': createAttemptObserver(families),
    retried: ({ service, target, reason }) =>
      add(families.upstreamRetries.series({ service, target, reason })),
    'gave-up': ({ service, target, reason }) =>
      add(families.upstreamGaveUp.series({ service, target, reason })),
    'slot-wait-finished': createSlotObserver(families),
    'slow-client-ended': ({ service, wait }) => add(families.upstreamSlowClients.series({ service, wait })),
    'breaker-changed': ({ service, to }) => add(families.upstreamBreakerChanges.series({ service, to })),
    'breaker-refused': ({ service }) => add(families.upstreamBreakerRefused.series({ service })),
    'target-changed': ({ service, target, to }) =>
      add(families.upstreamTargetChanges.series({ service, target, to })),
    'check-finished': ({ service, target, result }) =>
      add(families.upstreamChecks.series({ service, target, result })),
  })

/** Counts events of the process. */
export const createLifecycleObserver = (families: Families): Observer<LifecycleEvent> =>
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

/** Sets one gauge for each named count, and resets the others to zero. */
const setCounts = (
  counts: Readonly<Record<string, number | undefined>>,
  known: Set<string>,
  seriesOf: (name: string) => { value: number },
): void => {
  for (const name of Object.keys(counts)) known.add(name)
  for (const name of known) seriesOf(name).value = counts[name] ?? 0
}

/** Counts events of discovery. */
export const createDiscoveryObserver = (families: Families): Observer<DiscoveryEvent> => {
  // Closed lists by type, remembered for each service, so that a resolved reason returns to zero.
  const reasons = new Map<string, Set<string>>()
  const kinds = new Map<string, Set<string>>()
  const knownOf = (all: Map<string, Set<string>>, service: string): Set<string> => {
    const known = all.get(service) ?? new Set()
    all.set(service, known)
    return known
  }
  return observer<DiscoveryEvent>({
    'index-refreshed': ({ service, unlistedRoutes, learnedRows, refused }) => {
      add(families.discoveryRefreshes.series({ service, result: 'ok' }))
      set(families.discoveryUnlistedRoutes.series({ service }), unlistedRoutes)
      set(families.discoveryLearnedRows.series({ service }), learnedRows)
      setCounts(refused, knownOf(reasons, service), (reason) =>
        families.discoveryRefusedRoutes.series({ service, reason }),
      )
    },
    'index-failed': ({ service, reason }) =>
      add(families.discoveryRefreshes.series({ service, result: reason })),
    'drift-compared': ({ service, differences }) =>
      setCounts(differences, knownOf(kinds, service), (kind) =>
        families.discoveryDifferences.series({ service, kind }),
      ),
    'response-checked': ({ service, result }) => add(families.responseChecks.series({ service, result })),
    'response-checks-failed': ({ service }) =>
      add(families.responseChecks.series({ service, result: 'failed' })),
  })
}

/** Counts connections and requests that the public port refuses or ends. */
export const createEdgeObserver = (families: Families): Observer<EdgeEvent | OverloadEvent> =>
  observer<EdgeEvent | OverloadEvent>({
    'connection-cut': ({ reason }) => add(families.connectionsCut.series({ reason })),
    'no-request': ({ reason }) => add(families.protocolRefusals.series({ reason })),
    'rate-limited': ({ limit }) => add(families.rateLimited.series({ limit })),
    shed: ({ class: work, signal }) => add(families.shed.series({ class: work, signal })),
    'buffer-refused': ({ work }) => add(families.bufferedRefusals.series({ work })),
    'pressure-changed': ({ level }) => set(families.pressureLevel.series({}), level),
  })

/** Counts fetches of keys; every series of a service is there, with 0, when its access is configured. */
export const createAccessObserver = (families: Families): Observer<AccessEvent> =>
  observer<AccessEvent>({
    'access-configured': ({ service }) => {
      for (const reason of accessRefusals) families.accessRefused.series({ service, reason })
      for (const result of jwksResults) families.jwksFetches.series({ service, result })
    },
    'jwks-fetched': ({ service, result }) => add(families.jwksFetches.series({ service, result })),
  })

/** Counts WebSockets; every outcome of a service is there, with 0, when it is configured. */
export const createWebSocketObserver = (families: Families): Observer<WebSocketEvent> =>
  observer<WebSocketEvent>({
    'websockets-configured': ({ service }) => {
      for (const outcome of websocketOutcomes) families.websockets.series({ service, outcome })
    },
    'websocket-ended': ({ service, outcome }) => add(families.websockets.series({ service, outcome })),
  })
