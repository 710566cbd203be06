import {
  type BatchItemOutcome,
  batchMethods,
  batchResults,
  splitReasons,
  upstreamBatchResults,
} from '../../batch/events.ts'
import { cacheOutcomes } from '../../exchange/events.ts'
import { bufferedWork } from '../../http/bounds/byte-budget.ts'
import { cutReasons, protocolFaults, reloadResults } from '../../server/events.ts'
import { pressureSignals, workClasses } from '../../server/overload.ts'
import { differenceKinds, indexRefusals, routeRefusals } from '../../service/connection.ts'
import {
  configured,
  counter,
  counts,
  gauge,
  histogram,
  httpSeconds,
  type MetricRow,
  open,
  ownSeconds,
  requestSeconds as requestBounds,
  routeSeconds,
  withLabel,
} from './metric-row.ts'

const { service, limit } = configured

const splits = ['items', 'chunks', 'whole'] as const

/** The usual ones; a rare combination gets its series with its first item. */
const batchItems = (outcomes: readonly BatchItemOutcome[], classes: readonly string[]) =>
  withLabel(withLabel(withLabel([{}], 'method', batchMethods), 'outcome', outcomes), 'status_class', classes)

/** Metrics of the public port, and of requests refused to protect the process. */
export const edgeMetrics = {
  connectionsCut: counter(
    'connections_cut_total',
    { reason: cutReasons },
    'Connections closed by the gateway: `too-many`, `address`, `slow-reader`, `resets`, `revoked` (an event stream), `pipelining` or `drain`.',
  ),
  rateLimited: counter('rate_limited_total', { limit }, 'Requests and items refused with 429.'),
  accessRefused: counter(
    'access_refused_total',
    { service, reason: open },
    'Requests and items refused by `access`.',
  ),
  jwksFetches: counter(
    'jwks_fetches_total',
    { service, result: open },
    "Fetches of the issuer's keys: `ok`, or the fault.",
  ),
  shed: counter(
    'shed_total',
    { class: workClasses, signal: pressureSignals },
    'Requests refused because of overload.',
  ),
  bufferedBytes: gauge(
    'buffered_bytes',
    {},
    'Memory that bodies in flight hold; `limits.bufferedBytes` bounds it.',
  ),
  bufferedRefusals: counter(
    'buffered_refusals_total',
    { work: bufferedWork },
    'Times `limits.bufferedBytes` was exhausted.',
  ),
  pressureLevel: gauge(
    'pressure_level',
    {},
    'Overload level: 0 = none, 1 = refuses batches and misses, 2 = all upstream requests, 3 = everything.',
    'max',
  ),
} as const satisfies Record<string, MetricRow>

export const lifecycleMetrics = {
  configReloads: counter(
    'config_reloads_total',
    { outcome: reloadResults },
    'Reloads: `applied`, `unchanged`, `invalid`, `restart-needed` or `failed`.',
  ),
  configReloadGood: gauge(
    'config_last_reload_good',
    {},
    '1 = the last reload succeeded, 0 = refused; absent before the first.',
    'min',
  ),
  configReloadTime: gauge(
    'config_last_reload_timestamp_seconds',
    { outcome: open },
    'Last reload with this outcome.',
    'max',
  ),
  processFaults: counter('process_faults_total', {}, 'Uncaught errors; each ends the process.'),
  certificateExpiry: gauge(
    'tls_certificate_expiry_timestamp_seconds',
    {},
    'When the first certificate expires; absent without TLS.',
    'min',
  ),
} as const satisfies Record<string, MetricRow>

export const gatewayMetrics = {
  seriesOverflow: counter(
    'metrics_overflow_total',
    { metric: open },
    'Observations counted under `_overflow`: too many series.',
  ),
  traceSpans: counter(
    'trace_spans_total',
    { outcome: ['ended', 'exported', 'failed'] },
    'Spans: `ended`, `exported`, or `failed` to export.',
  ),
  metricPushes: counter(
    'metric_pushes_total',
    { outcome: ['exported', 'failed'] },
    'Pushes to an OpenTelemetry collector: `exported` or `failed`.',
  ),
  logLinesDropped: counter('log_lines_dropped_total', {}, 'Log lines dropped: output slow, closed or full.'),
  draining: gauge('draining', {}, '1 = shutting down.', 'max'),
  buildInfo: gauge(
    'build_info',
    { version: open, node: open },
    'Always 1; labels: versions of Trellis and Node.',
    'max',
  ),
  configInfo: gauge('config_info', { hash: open }, 'Always 1; label: identifies the configuration.', 'max'),
} as const satisfies Record<string, MetricRow>

export const discoveryMetrics = {
  discoveryRefreshes: counter(
    'discovery_refreshes_total',
    { service, result: ['ok', ...indexRefusals] },
    'Reads of the upstream index: `ok`, or the fault.',
  ),
  discoveryUnlistedRoutes: gauge(
    'discovery_unlisted_routes',
    { service },
    'Upstream routes outside the contract.',
    'max',
  ),
  discoveryLearnedRows: gauge('discovery_learned_rows', { service }, 'Learned routes.', 'max'),
  discoveryRefusedRoutes: gauge(
    'discovery_refused_routes',
    { service, reason: routeRefusals },
    'Upstream routes that were not learned.',
    'max',
  ),
  discoveryDifferences: gauge(
    'discovery_differences',
    { service, kind: differenceKinds },
    'Differences between upstream index and contract that change responses.',
    'max',
  ),
} as const satisfies Record<string, MetricRow>

export const batchMetrics = {
  batches: counter('batches_total', { service, result: batchResults }, 'Batches.'),
  batchSize: histogram('batch_size_items', { service }, counts, 'Items per batch.'),
  batchSeconds: histogram('batch_duration_seconds', { service }, httpSeconds, 'Time of a whole batch.'),
  batchParallelism: histogram(
    'batch_parallelism_items',
    { service },
    counts,
    'The largest number of items of a batch in flight at once.',
  ),
  batchSavedSeconds: counter(
    'batch_saved_seconds_total',
    { service },
    'Time saved by running items in parallel.',
  ),
  batchOrdered: counter(
    'batch_ordered_items_total',
    { service },
    'Items that had to wait for an earlier item.',
  ),
  batchSplits: counter(
    'batch_splits_total',
    { service, split: splits, reason: splitReasons },
    'How batches were sent, and why (docs/batch.md).',
  ),
  batchRequests: histogram(
    'batch_upstream_requests',
    { service, split: splits },
    counts,
    'Upstream requests per batch.',
  ),
  upstreamBatches: counter(
    'batch_chunks_total',
    { service, result: upstreamBatchResults },
    'Upstream batches.',
  ),
  upstreamBatchItems: histogram('batch_chunk_items', { service }, counts, 'Items per upstream batch.'),
  upstreamBatchSeconds: histogram(
    'batch_chunk_duration_seconds',
    { service },
    httpSeconds,
    'Time of one upstream batch.',
  ),
  batchItems: counter(
    'batch_items_total',
    { service, method: open, outcome: open, status_class: open },
    'Batch items.',
    [
      ...batchItems(['answered'], ['2xx', '4xx', '5xx']),
      ...batchItems(['refused'], ['4xx']),
      ...batchItems(['not-sent', 'outcome-unknown'], ['5xx']),
    ],
  ),
  batchItemQueueSeconds: histogram(
    'batch_item_queue_seconds',
    { service },
    httpSeconds,
    'Time before an item of a batch starts.',
  ),
} as const satisfies Record<string, MetricRow>

export const requestMetrics = {
  requests: counter(
    'requests_total',
    { service, route: open, method: open, status_class: open, cache: open },
    'Completed requests.',
  ),
  requestSeconds: histogram(
    'request_duration_seconds',
    { service },
    requestBounds,
    'Time from reading the request to the response.',
  ),
  routeSeconds: histogram(
    'route_duration_seconds',
    { service, route: open },
    routeSeconds,
    'The same per route, with fewer buckets.',
    requestBounds,
  ),
  ownSeconds: histogram(
    'request_own_duration_seconds',
    { service, cache: cacheOutcomes },
    ownSeconds,
    'Time that Trellis itself took: the duration without the wait for the upstream.',
  ),
  upstreamWaitSeconds: histogram(
    'request_upstream_duration_seconds',
    { service },
    httpSeconds,
    'How long requests waited for the upstream.',
  ),
  itemRequests: counter(
    'item_requests_total',
    { service, route: open, method: open, status_class: open, cache: open },
    'Batch items; not in trellis_requests_total.',
  ),
  refusals: counter('refusals_total', { service, route: open, code: open }, 'Refused or failed requests.'),
  receivedBytes: counter('received_bytes_total', {}, 'Bytes received from clients, headers included.'),
  sentBytes: counter('sent_bytes_total', {}, 'Bytes sent to clients, headers included.'),
  connections: gauge('connections', {}, 'Open client connections.'),
  protocolRefusals: counter(
    'protocol_refusals_total',
    { reason: protocolFaults },
    'Connections closed because of malformed HTTP; `framing`, `transfer-coding`, `chunking`: possible request smuggling; `http2`: frames.',
  ),
  canonicalMerges: counter(
    'canonical_merges_total',
    { service },
    'New spellings of URLs that share a stored response with an earlier spelling (GET).',
  ),
  undeclaredParameters: counter(
    'undeclared_parameters_total',
    { service, handling: ['sent', 'stripped'] },
    'New URLs with undeclared query parameters: `sent` or `stripped`.',
  ),
  websocketsOpen: gauge('websockets_open', { service }, 'Open WebSockets.'),
  websockets: counter(
    'websockets_total',
    { service, outcome: open },
    'WebSockets that ended or were refused.',
  ),
  inFlight: gauge('in_flight_requests', {}, 'Requests in flight.'),
} as const satisfies Record<string, MetricRow>
