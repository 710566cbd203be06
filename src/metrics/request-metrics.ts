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
    'Requests answered, by row template and by how the cache took part.',
  ),
  requestSeconds: histogram(
    'request_duration_seconds',
    ['service'],
    httpSeconds,
    'From the request read to the answer ready, in seconds.',
  ),
  routeSeconds: histogram(
    'route_duration_seconds',
    ['service', 'route'],
    routeSeconds,
    'The same for each row, by fewer buckets, in seconds.',
    httpSeconds,
  ),
  ownSeconds: histogram(
    'request_own_duration_seconds',
    ['service', 'cache'],
    ownSeconds,
    'Part of the duration that the gateway spent itself: all of it but the wait for the upstream, in seconds.',
  ),
  upstreamWaitSeconds: histogram(
    'request_upstream_duration_seconds',
    ['service'],
    httpSeconds,
    'Part of the duration that was spent waiting for the upstream, of the requests that asked it, in seconds.',
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
  receivedBytes: counter(
    'received_bytes_total',
    [],
    'Bytes that clients sent over connections of the public side, fields and framing included.',
  ),
  sentBytes: counter(
    'sent_bytes_total',
    [],
    'Bytes sent to clients over connections of the public side, fields and framing included.',
  ),
  connections: gauge('connections', [], 'Connections open on the public side.'),
  protocolRefusals: counter(
    'protocol_refusals_total',
    ['reason'],
    'Connections ended because of what came over them, by reason. What leaves open where a request ends, which is how requests are smuggled, is `framing`, `transfer-coding` and `chunking`.',
  ),
  canonicalMerges: counter(
    'canonical_merges_total',
    ['service'],
    'Spellings of GET targets, new to the memory of targets, that became the same canonical form as other spellings do.',
  ),
  undeclaredParameters: counter(
    'undeclared_parameters_total',
    ['service', 'handling'],
    'Valid requests with query parameters that their row does not declare, targets new to the memory of targets only: `sent` on and keyed, or `stripped`.',
  ),
  inFlight: gauge('in_flight_requests', [], 'Requests that are being answered.'),
} as const satisfies Record<string, MetricRow>
