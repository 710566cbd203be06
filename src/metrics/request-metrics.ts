import {
  counter,
  gauge,
  histogram,
  httpSeconds,
  type MetricRow,
  ownSeconds,
  routeSeconds,
} from './metric-row.ts'

/** Metrics of requests and of batch items that went the way of one. */
export const requestMetrics = {
  requests: counter(
    'requests_total',
    ['service', 'route', 'method', 'status_class', 'cache'],
    'Completed requests, by route template and cache outcome.',
  ),
  requestSeconds: histogram(
    'request_duration_seconds',
    ['service'],
    httpSeconds,
    'Time from the request read to the response ready.',
  ),
  routeSeconds: histogram(
    'route_duration_seconds',
    ['service', 'route'],
    routeSeconds,
    'The same per route, with fewer buckets.',
    httpSeconds,
  ),
  ownSeconds: histogram(
    'request_own_duration_seconds',
    ['service', 'cache'],
    ownSeconds,
    'Part of the duration spent in the gateway, without waiting for the upstream.',
  ),
  upstreamWaitSeconds: histogram(
    'request_upstream_duration_seconds',
    ['service'],
    httpSeconds,
    'Part of the duration spent waiting for the upstream.',
  ),
  itemRequests: counter(
    'item_requests_total',
    ['service', 'route', 'method', 'status_class', 'cache'],
    'Batch items processed as requests; not part of trellis_requests_total.',
  ),
  refusals: counter(
    'refusals_total',
    ['service', 'route', 'code'],
    'Refused or failed requests, by error code.',
  ),
  receivedBytes: counter(
    'received_bytes_total',
    [],
    'Bytes received from clients, including headers and framing.',
  ),
  sentBytes: counter('sent_bytes_total', [], 'Bytes sent to clients, including headers and framing.'),
  connections: gauge('connections', [], 'Open client connections.'),
  protocolRefusals: counter(
    'protocol_refusals_total',
    ['reason'],
    'Connections closed because of malformed HTTP; `framing`, `transfer-coding` and `chunking` are possible request smuggling.',
  ),
  canonicalMerges: counter(
    'canonical_merges_total',
    ['service'],
    'New spellings of GET URLs that equal an already known request.',
  ),
  undeclaredParameters: counter(
    'undeclared_parameters_total',
    ['service', 'handling'],
    'New URLs with undeclared query parameters: `sent` or `stripped`.',
  ),
  inFlight: gauge('in_flight_requests', [], 'Requests in flight.'),
} as const satisfies Record<string, MetricRow>
