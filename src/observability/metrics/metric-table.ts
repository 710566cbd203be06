import { cacheMetrics, coherenceMetrics } from './cache-metrics.ts'
import {
  batchMetrics,
  discoveryMetrics,
  edgeMetrics,
  gatewayMetrics,
  lifecycleMetrics,
  requestMetrics,
} from './request-metrics.ts'
import { upstreamMetrics } from './upstream-metrics.ts'

/** Every metric of the gateway, one row each, by area. The registry is built from it; docs/metrics.md and dashboards/ are tested against it. */
export const metricTable = {
  ...requestMetrics,
  ...cacheMetrics,
  ...upstreamMetrics,
  ...batchMetrics,
  ...discoveryMetrics,
  ...coherenceMetrics,
  ...edgeMetrics,
  ...lifecycleMetrics,
  ...gatewayMetrics,
} as const

/** A metric's key in the table. */
export type MetricKey = keyof typeof metricTable
