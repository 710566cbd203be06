import { counter, gauge, type MetricRow } from './metric-row.ts'

/** Metrics of discovery and learned rows. */
export const discoveryMetrics = {
  discoveryRefreshes: counter(
    'discovery_refreshes_total',
    ['service', 'result'],
    'Reads of the upstream index: `ok`, or the reason of the failure.',
  ),
  discoveryUnlistedRoutes: gauge(
    'discovery_unlisted_routes',
    ['service'],
    'Upstream routes outside the contract.',
    'max',
  ),
  discoveryLearnedRows: gauge('discovery_learned_rows', ['service'], 'Learned routes.', 'max'),
  discoveryRefusedRoutes: gauge(
    'discovery_refused_routes',
    ['service', 'reason'],
    'Upstream routes that were not learned, by reason.',
    'max',
  ),
  discoveryDifferences: gauge(
    'discovery_differences',
    ['service', 'kind'],
    'Differences between the upstream index and the contract.',
    'max',
  ),
} as const satisfies Record<string, MetricRow>
