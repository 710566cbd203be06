import { counter, counts, histogram, httpSeconds, type MetricRow } from './metric-row.ts'

/** Metrics of the batch route. */
export const batchMetrics = {
  batches: counter('batches_total', ['service', 'result'], 'Batches, by result.'),
  batchSize: histogram('batch_size_items', ['service'], counts, 'Items per batch.'),
  batchSeconds: histogram('batch_duration_seconds', ['service'], httpSeconds, 'Time of a whole batch.'),
  batchParallelism: histogram(
    'batch_parallelism_items',
    ['service'],
    counts,
    'Largest number of items of a batch in flight at once.',
  ),
  batchSavedSeconds: counter(
    'batch_saved_seconds_total',
    ['service'],
    'Time saved by running items in parallel.',
  ),
  batchOrdered: counter(
    'batch_ordered_items_total',
    ['service'],
    'Items that had to wait for an earlier item.',
  ),
  batchSplits: counter(
    'batch_splits_total',
    ['service', 'split', 'reason'],
    'How batches were sent (`items`, `chunks`, `whole`) and why (docs/batch.md).',
  ),
  batchRequests: histogram(
    'batch_upstream_requests',
    ['service', 'split'],
    counts,
    'Upstream requests per batch.',
  ),
  batchChunks: counter('batch_chunks_total', ['service', 'result'], 'Upstream batches, by result.'),
  batchChunkItems: histogram('batch_chunk_items', ['service'], counts, 'Items per upstream batch.'),
  batchChunkSeconds: histogram(
    'batch_chunk_duration_seconds',
    ['service'],
    httpSeconds,
    'Time of one upstream batch.',
  ),
  batchItems: counter(
    'batch_items_total',
    ['service', 'method', 'outcome', 'status_class'],
    'Batch items, by outcome.',
  ),
  batchItemQueueSeconds: histogram(
    'batch_item_queue_seconds',
    ['service'],
    httpSeconds,
    'Time from the start of a batch to the start of an item.',
  ),
} as const satisfies Record<string, MetricRow>
