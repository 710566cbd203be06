import { batchMetrics } from './batch-metrics.ts'
import { cacheMetrics } from './cache-metrics.ts'
import { coherenceMetrics } from './coherence-metrics.ts'
import { discoveryMetrics } from './discovery-metrics.ts'
import { edgeMetrics } from './edge-metrics.ts'
import { gatewayMetrics } from './gateway-metrics.ts'
import { lifecycleMetrics } from './lifecycle-metrics.ts'
import { requestMetrics } from './request-metrics.ts'
import { upstreamMetrics } from './upstream-metrics.ts'

/** Every metric of the gateway, one row each, by area. The registry is made of it; docs/metrics.md and dashboards/ are checked against it. */
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
