import { AggregatorRegistry, type Registry } from 'prom-client'
import { openMetricsOf, type ScrapeFormat } from './read-metric.ts'

type Snapshot = Parameters<typeof AggregatorRegistry.aggregate>[0][number]

/** The snapshots of several processes as one scrape: each metric says how its numbers are put together. */
export const addUp = (snapshots: readonly unknown[], format: ScrapeFormat): Promise<string> => {
  const registry = AggregatorRegistry.aggregate(snapshots as Snapshot[])
  return format === 'openmetrics' ? openMetricsOf(registry as Registry).metrics() : registry.metrics()
}
