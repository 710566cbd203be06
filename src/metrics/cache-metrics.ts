import { ageSeconds, counter, gauge, histogram, type MetricRow } from './metric-row.ts'

/** Metrics of the cache. */
export const cacheMetrics = {
  cacheForwards: counter(
    'cache_forwards_total',
    ['service', 'reason'],
    'Requests that the cache forwarded, by reason (RFC 9211 `fwd`).',
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
    'Requests answered by the upstream request of another client.',
  ),
  cacheServedAge: histogram(
    'cache_served_age_seconds',
    ['service'],
    ageSeconds,
    'Age of the stored responses that were served.',
  ),
  cacheServedStale: counter(
    'cache_served_stale_total',
    ['service', 'reason'],
    'Stale responses served, by reason.',
  ),
  cacheBackgroundFailures: counter(
    'cache_background_failures_total',
    ['service'],
    'Failed revalidations in the background.',
  ),
  cacheInvalidations: counter('cache_invalidations_total', ['by'], 'Invalidations by writes and by purges.'),
  cacheInvalidatedEntries: counter(
    'cache_invalidated_entries_total',
    ['by'],
    'Stored responses that were invalidated.',
  ),
  cacheCutForwards: counter(
    'cache_cut_forwards_total',
    ['by'],
    'Upstream requests in flight whose response must not be stored because of an invalidation.',
  ),
  cacheCompressions: counter(
    'cache_compressions_total',
    ['coding'],
    'Stored responses that were compressed, by coding.',
  ),
  cacheCompressedBytes: counter('cache_compressed_bytes_total', ['coding'], 'Bytes before compression.'),
  cacheSavedBytes: counter(
    'cache_compression_saved_bytes_total',
    ['coding'],
    'Bytes saved by compression, counted once per stored response.',
  ),
  cacheEvictions: counter('cache_evictions_total', [], 'Stored responses evicted to free memory.'),
  cacheEvictedBytes: counter('cache_evicted_bytes_total', [], 'Bytes evicted to free memory.'),
  cacheEntries: gauge('cache_entries', [], 'Stored responses.'),
  cacheBytes: gauge('cache_bytes', [], 'Memory used by stored responses, keys and tags.'),
  cacheMaxBytes: gauge('cache_max_bytes', [], 'Memory limit of the cache (`cache.maxBytes`).'),
} as const satisfies Record<string, MetricRow>
