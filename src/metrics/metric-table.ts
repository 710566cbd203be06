/** Buckets of the OpenTelemetry HTTP conventions for request durations, in seconds. */
const httpSeconds = [0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10] as const
/** What the gateway adds by itself lies far below the first HTTP bucket. */
const ownSeconds = [
  0.000_05, 0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.1, 0.5,
] as const
const counts = [1, 2, 3, 5, 8, 12, 16, 20, 25, 50, 100] as const

type MetricRow = {
  readonly name: string
  readonly help: string
  /** Values come from the configuration, from a route table or from a closed list: never from a client. */
  readonly labels: readonly string[]
} & (
  | { readonly type: 'counter' | 'gauge' }
  | { readonly type: 'histogram'; readonly buckets: readonly number[] }
)

const counter = <const Labels extends readonly string[]>(name: string, labels: Labels, help: string) =>
  ({ type: 'counter', name: `trellis_${name}`, labels, help }) as const
const gauge = <const Labels extends readonly string[]>(name: string, labels: Labels, help: string) =>
  ({ type: 'gauge', name: `trellis_${name}`, labels, help }) as const
const histogram = <const Labels extends readonly string[]>(
  name: string,
  labels: Labels,
  buckets: readonly number[],
  help: string,
) => ({ type: 'histogram', name: `trellis_${name}`, labels, buckets, help }) as const

/** Every metric of the gateway, one row each. The registry is made of it; docs/metrics.md and dashboards/ are checked against it. */
export const metricTable = {
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

  cacheForwards: counter(
    'cache_forwards_total',
    ['service', 'reason'],
    'Requests that the cache sent on, by reason (RFC 9211 fwd).',
  ),
  cacheStored: counter('cache_stored_total', ['service'], 'Responses stored.'),
  cacheStoredBytes: counter('cache_stored_bytes_total', ['service'], 'Bytes of responses stored.'),
  cacheNotStored: counter(
    'cache_not_stored_total',
    ['service', 'reason'],
    'Responses not stored, by reason.',
  ),
  cacheCollapsed: counter(
    'cache_collapsed_total',
    ['service'],
    "Readers answered by another reader's upstream request.",
  ),
  cacheServedStale: counter(
    'cache_served_stale_total',
    ['service', 'reason'],
    'Stale responses served, by reason.',
  ),
  cacheBackgroundFailures: counter(
    'cache_background_failures_total',
    ['service'],
    'Background validations that failed.',
  ),
  cacheInvalidations: counter('cache_invalidations_total', ['by'], 'Invalidations, by writes and by purges.'),
  cacheInvalidatedEntries: counter(
    'cache_invalidated_entries_total',
    ['by'],
    'Stored responses that an invalidation touched.',
  ),
  cacheCutForwards: counter(
    'cache_cut_forwards_total',
    ['by'],
    'Upstream requests in flight whose answer may no longer be stored because of an invalidation.',
  ),
  cacheEvictions: counter('cache_evictions_total', [], 'Stored responses dropped to make room.'),
  cacheEvictedBytes: counter('cache_evicted_bytes_total', [], 'Bytes dropped to make room.'),
  cacheEntries: gauge('cache_entries', [], 'Stored responses.'),
  cacheBytes: gauge('cache_bytes', [], 'Bytes of stored responses with keys, fields and tags.'),
  cacheMaxBytes: gauge('cache_max_bytes', [], 'Bytes that the cache may hold (cache.maxBytes).'),

  upstreamAttempts: counter(
    'upstream_attempts_total',
    ['service', 'target', 'outcome', 'status_class'],
    'Attempts at a target, by how they ended.',
  ),
  upstreamHeadSeconds: histogram(
    'upstream_head_seconds',
    ['service', 'target'],
    httpSeconds,
    'From an attempt begun to its response head, in seconds.',
  ),
  upstreamSeconds: histogram(
    'upstream_attempt_duration_seconds',
    ['service', 'target'],
    httpSeconds,
    'Whole attempt with the last byte of the answer, in seconds.',
  ),
  upstreamRetries: counter(
    'upstream_retries_total',
    ['service', 'target', 'reason'],
    'Attempts tried again, by reason.',
  ),
  upstreamGaveUp: counter(
    'upstream_gave_up_total',
    ['service', 'target', 'reason'],
    'Failed attempts that were not tried again, by reason; `budget` says that the retry budget is used up.',
  ),
  upstreamQueued: counter(
    'upstream_queue_total',
    ['service', 'outcome'],
    'Requests that asked for a free place, by how the wait ended.',
  ),
  upstreamQueueSeconds: histogram(
    'upstream_queue_seconds',
    ['service'],
    httpSeconds,
    'Wait for a free place, in seconds.',
  ),
  upstreamTargetChanges: counter(
    'upstream_target_changes_total',
    ['service', 'target', 'change'],
    'Targets ejected, returned, or seen otherwise by a health check.',
  ),
  upstreamTargetUp: gauge(
    'upstream_target_up',
    ['service', 'target'],
    '1 while a target gets requests, 0 while it is left out.',
  ),
  upstreamTargetOutstanding: gauge(
    'upstream_target_outstanding_requests',
    ['service', 'target'],
    'Requests in flight at a target.',
  ),
  upstreamInFlight: gauge(
    'upstream_in_flight_requests',
    ['service'],
    'Requests in flight at all targets of a service.',
  ),
  upstreamWaiting: gauge('upstream_waiting_requests', ['service'], 'Requests that wait for a free place.'),

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
    'Batches, by how their items were sent and why so: see docs/batch.md.',
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

  discoveryRefreshes: counter(
    'discovery_refreshes_total',
    ['service', 'result'],
    "Readings of the upstream's index, `ok` or why it could not be used.",
  ),
  discoveryUnlistedRoutes: gauge(
    'discovery_unlisted_routes',
    ['service'],
    'Routes that the upstream announces and the contract does not list.',
  ),
  discoveryLearnedRows: gauge('discovery_learned_rows', ['service'], 'Rows made of unlisted routes.'),
  discoveryRefusedRoutes: gauge(
    'discovery_refused_routes',
    ['service', 'reason'],
    'Unlisted routes of which no row was made, by reason.',
  ),
  discoveryDifferences: gauge(
    'discovery_differences',
    ['service', 'kind'],
    "Differences between the upstream's index and the contract's table.",
  ),

  seriesOverflow: counter(
    'metrics_overflow_total',
    ['metric'],
    'Times a series was asked for and not made because its metric had too many; what it would count is under the label `_overflow`.',
  ),
  buildInfo: gauge('build_info', ['version', 'node'], 'Always 1; the labels say what runs.'),
  configInfo: gauge('config_info', ['hash'], 'Always 1; the label tells configurations apart.'),
} as const satisfies Record<string, MetricRow>

/** A metric's key in the table. */
export type MetricKey = keyof typeof metricTable
