import { counter, gauge, histogram, httpSeconds, type MetricRow, ownSeconds } from './metric-row.ts'

/** Metrics of requests and of batch items that went the way of one. */
export const requestMetrics = {
  requests: counter(
    'requests_total',
    ['service', 'route', 'method', 'status_class', 'cache'],
    'Requests answered, by row template and by how the cache took part.',
  ),
  requestSeconds: histogram(
    'request_duration_seconds',
    ['service', 'route', 'method'],
    httpSeconds,
    'From the request read to the answer ready, in seconds.',
  ),
  ownSeconds: histogram(
    'request_own_duration_seconds',
    ['service', 'cache'],
    ownSeconds,
    'Part of the duration that the gateway spent itself: all of it but the wait for the upstream, in seconds.',
  ),
  itemRequests: counter(
    'item_requests_total',
    ['service', 'route', 'method', 'status_class', 'cache'],
    'Batch items that went the way of a request; not counted in trellis_requests_total.',
  ),
  refusals: counter(
    'refusals_total',
    ['service', 'route', 'code'],
    'Requests that the gateway refused, or that failed on their way, by error code.',
  ),
  inFlight: gauge('in_flight_requests', [], 'Requests that are being answered.'),
} as const satisfies Record<string, MetricRow>
