import type { BatchEvent } from '../../batch/events.ts'
import { cacheOutcomes, type ExchangeEvent } from '../../pipeline/events.ts'
import {
  type Families,
  type HistogramSeries,
  type NumberSeries,
  observeTraced,
  observeValue,
} from './registry.ts'

const methods = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', '_OTHER'] as const
const statusClasses = ['1xx', '2xx', '3xx', '4xx', '5xx', 'other'] as const

const methodSlots: ReadonlyMap<string, number> = new Map(methods.map((method, slot) => [method, slot]))
const cacheSlots: ReadonlyMap<string, number> = new Map(cacheOutcomes.map((outcome, slot) => [outcome, slot]))
const otherMethod = methods.length - 1
const noCache = cacheOutcomes.length - 1

const otherStatus = statusClasses.length - 1

const statusSlot = (status: number): number =>
  status >= 100 && status < 600 ? Math.trunc(status / 100) - 1 : otherStatus

/** `2xx` and so on; `other` for an invalid status. */
const statusClass = (status: number): (typeof statusClasses)[number] =>
  statusClasses[statusSlot(status)] ?? 'other'

/** Routes of one service that are remembered; a contract has some sixty, a learned one some hundred more. */
const maxRoutes = 1_000

/** The series of one kind of exchange, resolved once: afterwards counting costs additions only. */
type ExchangeSeries = {
  readonly requests: NumberSeries
  readonly duration: HistogramSeries
  readonly own: HistogramSeries
  readonly upstream: HistogramSeries
  /** Only for responses served from memory. */
  readonly age: HistogramSeries | undefined
}

type Slots = (ExchangeSeries | undefined)[]

/** Counts completed exchanges. A cache hit costs two lookups by strings that are the same objects each time, then additions. */
export const createExchangeObserver = (families: Families): ((event: ExchangeEvent) => void) => {
  const services = new Map<string, Map<string, Slots>>()

  const resolve = (event: ExchangeEvent, methodSlot: number, cacheSlot: number): ExchangeSeries => {
    const { service, route } = event
    const method = methods[methodSlot] ?? '_OTHER'
    const cache = cacheOutcomes[cacheSlot] ?? 'none'
    const labels = { service, route, method, status_class: statusClass(event.status), cache }
    return {
      requests: families.requests.series(labels),
      duration: families.routeSeconds.series({ service, route }),
      age: cache === 'hit' || cache === 'stale' ? families.cacheServedAge.series({ service }) : undefined,
      upstream: families.upstreamWaitSeconds.series({ service }),
      own: families.ownSeconds.series({ service, cache }),
    }
  }

  const newSlots = (service: string, route: string): Slots => {
    const routes = services.get(service) ?? new Map<string, Slots>()
    services.set(service, routes)
    const slots: Slots = []
    // Above the cap a route is resolved each time.
    if (routes.size < maxRoutes) routes.set(route, slots)
    return slots
  }

  const observeItem = ({ service, route, method, status, cache }: ExchangeEvent): void => {
    const known = methodSlots.has(method) ? method : '_OTHER'
    families.itemRequests.series({
      service,
      route,
      method: known,
      status_class: statusClass(status),
      cache,
    }).value += 1
  }

  return (event) => {
    if (event.origin === 'batch') {
      observeItem(event)
      return
    }
    const methodSlot = methodSlots.get(event.method) ?? otherMethod
    const cacheSlot = cacheSlots.get(event.cache) ?? noCache
    const slots = services.get(event.service)?.get(event.route) ?? newSlots(event.service, event.route)
    const slot =
      (methodSlot * statusClasses.length + statusSlot(event.status)) * cacheOutcomes.length + cacheSlot
    const series = slots[slot] ?? resolve(event, methodSlot, cacheSlot)
    slots[slot] = series
    series.requests.value += 1
    if (event.trace === undefined) observeValue(series.duration, event.durationSeconds)
    else observeTraced(series.duration, event.durationSeconds, event.trace)
    observeValue(series.own, Math.max(0, event.durationSeconds - event.upstreamSeconds))
    if (series.age !== undefined && event.ageSeconds !== undefined) observeValue(series.age, event.ageSeconds)
    if (event.upstreamSeconds > 0) observeValue(series.upstream, event.upstreamSeconds)
  }
}

/** Counts events of batches of one service. */
export const createBatchObserver =
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
    if (event.kind === 'batch-chunk-finished') {
      const { result } = event
      families.batchChunks.series({ service, result }).value += 1
      observeValue(families.batchChunkItems.series({ service }), event.items)
      observeValue(families.batchChunkSeconds.series({ service }), event.durationSeconds)
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
