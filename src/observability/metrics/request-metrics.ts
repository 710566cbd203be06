import {
  counter,
  counts,
  gauge,
  histogram,
  httpSeconds,
  type MetricRow,
  ownSeconds,
  routeSeconds,
} from './metric-row.ts'

/** Metrics of the public port, and of what is refused to protect the process. */
export const edgeMetrics = {
  connectionsCut: counter(
    'connections_cut_total',
    ['reason'],
    'Connections ended by the gateway: `too-many` (limits.connections), `address` (limits.connectionsPerAddress), `slow-reader` (limits.readerTimeout), `resets` (too many HTTP/2 streams reset), `drain` (drain.timeout).',
  ),
  rateLimited: counter(
    'rate_limited_total',
    ['limit'],
    'Requests and items of batches refused with 429, by limit.',
  ),
  shed: counter(
    'shed_total',
    ['class', 'signal'],
    'Work given up because of overload: `batch` and `miss` first, then `pass`, `hit` last; and the signal that showed it.',
  ),
  bufferedBytes: gauge(
    'buffered_bytes',
    [],
    'Bytes held for requests under way: responses that are being stored, request bodies that are read whole, answers of batches, and answers that slow clients have not taken (limits.bufferedBytes).',
  ),
  bufferedRefusals: counter(
    'buffered_refusals_total',
    ['work'],
    'Times that limits.bufferedBytes, or the half of it that one client may hold, had no room: `fill` is passed on and not stored, `request-body` and `batch-item` get 503, `write-answer` is passed on unread, for `slow-reader` the oldest connection of the client is ended.',
  ),
  pressureLevel: gauge(
    'pressure_level',
    [],
    'How much is given up now: 0 nothing, 1 batches and misses, 2 all that asks an upstream, 3 everything.',
    'max',
  ),
} as const satisfies Record<string, MetricRow>

/** Metrics of the process. */
export const lifecycleMetrics = {
  configReloads: counter(
    'config_reloads_total',
    ['outcome'],
    'Reloads of the configuration: `applied`, `unchanged`, or why the one before stayed: `invalid`, `restart-needed`, `failed`.',
  ),
  configReloadGood: gauge(
    'config_last_reload_good',
    [],
    '1 when the last reload was applied or had nothing to change, 0 when it was refused; absent before the first.',
    'min',
  ),
  configReloadTime: gauge(
    'config_last_reload_timestamp_seconds',
    ['outcome'],
    'When a reload last had this outcome, in seconds since 1970.',
    'max',
  ),
  processFaults: counter(
    'process_faults_total',
    [],
    'Errors that nothing caught; each makes the process drain and end.',
  ),
  certificateExpiry: gauge(
    'tls_certificate_expiry_timestamp_seconds',
    [],
    "When the public side's certificate runs out, in seconds since 1970; absent without TLS.",
    'min',
  ),
} as const satisfies Record<string, MetricRow>

/** Metrics of the gateway as a whole. */
export const gatewayMetrics = {
  seriesOverflow: counter(
    'metrics_overflow_total',
    ['metric'],
    'Times a series was asked for and not made because its metric had too many; what it would count is under the label `_overflow`.',
  ),
  traceSpans: counter(
    'trace_spans_total',
    ['outcome'],
    'Spans of recorded traces: `ended`, then `exported`, or `failed` when the collector did not take them; what is missing then was given up because too many waited.',
  ),
  logLinesDropped: counter(
    'log_lines_dropped_total',
    [],
    'Log lines given up because whoever reads them is too slow or has gone, or the disk is full.',
  ),
  draining: gauge('draining', [], '1 from the moment at which the gateway begins to go away.', 'max'),
  buildInfo: gauge('build_info', ['version', 'node'], 'Always 1; the labels say what runs.', 'max'),
  configInfo: gauge('config_info', ['hash'], 'Always 1; the label tells configurations apart.', 'max'),
} as const satisfies Record<string, MetricRow>

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
    "Differences between the upstream's index and the contract's table.",
    'max',
  ),
} as const satisfies Record<string, MetricRow>

/** Metrics of the batch route. */
export const batchMetrics = {
  batches: counter('batches_total', ['service', 'result'], 'Batches, by how they ended.'),
  batchSize: histogram('batch_size_items', ['service'], counts, 'Items of a batch.'),
  batchSeconds: histogram('batch_duration_seconds', ['service'], httpSeconds, 'Whole batch, in seconds.'),
  batchParallelism: histogram(
    'batch_parallelism_items',
    ['service'],
    counts,
    'Most items of a batch that ran at one moment.',
  ),
  batchSavedSeconds: counter(
    'batch_saved_seconds_total',
    ['service'],
    'Seconds by which batches were faster than their items one after the other.',
  ),
  batchOrdered: counter(
    'batch_ordered_items_total',
    ['service'],
    'Items that had to wait for another item of their batch.',
  ),
  batchSplits: counter(
    'batch_splits_total',
    ['service', 'split', 'reason'],
    'Batches, by how their items were sent (items, chunks, whole) and why so: see docs/batch.md.',
  ),
  batchRequests: histogram(
    'batch_upstream_requests',
    ['service', 'split'],
    counts,
    'Upstream requests that one batch became.',
  ),
  batchChunks: counter('batch_chunks_total', ['service', 'result'], 'Upstream batches, by how they ended.'),
  batchChunkItems: histogram('batch_chunk_items', ['service'], counts, 'Items of one upstream batch.'),
  batchChunkSeconds: histogram(
    'batch_chunk_duration_seconds',
    ['service'],
    httpSeconds,
    'One upstream batch, in seconds.',
  ),
  batchItems: counter(
    'batch_items_total',
    ['service', 'method', 'outcome', 'status_class'],
    'Items of batches, by how they ended.',
  ),
  batchItemQueueSeconds: histogram(
    'batch_item_queue_seconds',
    ['service'],
    httpSeconds,
    'From the start of a batch to the start of an item, in seconds.',
  ),
} as const satisfies Record<string, MetricRow>

/** Metrics of requests and of batch items. */
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
