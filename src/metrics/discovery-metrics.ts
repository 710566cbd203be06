import { counter, gauge, type MetricRow } from './metric-row.ts'

/** Metrics of discovery and learned rows. */
export const discoveryMetrics = {
  discoveryRefreshes: counter(
    'discovery_refreshes_total',
    ['service', 'result'],
    "Readings of the upstream's index, `ok` or why it could not be used.",
  ),
  discoveryUnlistedRoutes: gauge(
    'discovery_unlisted_routes',
    ['service'],
    'Routes that the upstream announces and the contract does not list.',
    'max',
  ),
  discoveryLearnedRows: gauge('discovery_learned_rows', ['service'], 'Rows made of unlisted routes.', 'max'),
  discoveryRefusedRoutes: gauge(
    'discovery_refused_routes',
    ['service', 'reason'],
    'Unlisted routes of which no row was made, by reason.',
    'max',
  ),
  discoveryDifferences: gauge(
    'discovery_differences',
    ['service', 'kind'],
    "Differences between the upstream's index and the contract's table by which a request is answered otherwise.",
    'max',
  ),
} as const satisfies Record<string, MetricRow>
