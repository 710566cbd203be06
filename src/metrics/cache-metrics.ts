import { ageSeconds, counter, gauge, histogram, type MetricRow } from './metric-row.ts'

/** Metrics of the cache. */
export const cacheMetrics = {
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
  cacheServedAge: histogram(
    'cache_served_age_seconds',
    ['service'],
    ageSeconds,
    'Age of the stored responses that readers got, in seconds.',
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
  cacheCompressions: counter(
    'cache_compressions_total',
    ['coding'],
    'Stored responses compressed, once for each coding.',
  ),
  cacheCompressedBytes: counter(
    'cache_compressed_bytes_total',
    ['coding'],
    'Bytes of stored responses before compression.',
  ),
  cacheSavedBytes: counter(
    'cache_compression_saved_bytes_total',
    ['coding'],
    'Bytes by which the coded forms are shorter; each answer that takes one saves as much again.',
  ),
  cacheEvictions: counter('cache_evictions_total', [], 'Stored responses dropped to make room.'),
  cacheEvictedBytes: counter('cache_evicted_bytes_total', [], 'Bytes dropped to make room.'),
  cacheEntries: gauge('cache_entries', [], 'Stored responses.'),
  cacheBytes: gauge('cache_bytes', [], 'Bytes of stored responses with keys, fields and tags.'),
  cacheMaxBytes: gauge('cache_max_bytes', [], 'Bytes that the cache may hold (cache.maxBytes).'),
} as const satisfies Record<string, MetricRow>
