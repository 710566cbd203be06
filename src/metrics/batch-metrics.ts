import { counter, counts, histogram, httpSeconds, type MetricRow } from './metric-row.ts'

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
