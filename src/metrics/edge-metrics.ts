import { counter, gauge, type MetricRow } from './metric-row.ts'

/** Metrics of the public port, and of what is refused to protect the process. */
export const edgeMetrics = {
  connectionsCut: counter(
    'connections_cut_total',
    ['reason'],
    'Connections closed by the gateway: `too-many`, `address`, `slow-reader`, `resets` (HTTP/2) or `drain`.',
  ),
  rateLimited: counter(
    'rate_limited_total',
    ['limit'],
    'Requests and batch items refused with 429, by limit.',
  ),
  shed: counter(
    'shed_total',
    ['class', 'signal'],
    'Requests refused because of overload, by class of work and signal.',
  ),
  bufferedBytes: gauge('buffered_bytes', [], 'Memory for bodies in flight (`limits.bufferedBytes`).'),
  bufferedRefusals: counter(
    'buffered_refusals_total',
    ['work'],
    'Times `limits.bufferedBytes` was exhausted, by the work affected.',
  ),
  pressureLevel: gauge(
    'pressure_level',
    [],
    'Overload level: 0 = none, 1 = refuses batches and misses, 2 = all upstream requests, 3 = everything.',
    'max',
  ),
} as const satisfies Record<string, MetricRow>
