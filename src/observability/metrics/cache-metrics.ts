import { ageSeconds, counter, gauge, histogram, type MetricRow } from './metric-row.ts'

/** Waits of a write for other processes: mostly a millisecond, at worst a few leases. */
const spreadSeconds = [0.001, 0.005, 0.025, 0.1, 0.5, 1, 2.5, 5] as const

/** Metrics of coherence between processes, and of their shared store. */
export const coherenceMetrics = {
  memoryTrusted: gauge(
    'memory_trusted',
    [],
    '1 while answers may be given from memory, 0 while whoever else writes cannot be heard; with workers, how many may.',
  ),
  trustLost: counter('memory_trust_lost_total', ['reason'], 'Times a process stopped trusting its memory.'),
  memoryDropped: counter(
    'memory_dropped_total',
    [],
    'Times everything stored was dropped, since what was written meanwhile is not known.',
  ),
  notesApplied: counter(
    'notes_applied_total',
    [],
    'Notes of writes in other processes that were carried out here.',
  ),
  writeSpread: histogram(
    'write_spread_seconds',
    ['outcome'],
    spreadSeconds,
    'How long the answer to a write waited for the other processes: `acknowledged` by all, `lapsed` when the lease of some ran out, `isolated` when nobody was reached and nobody trusts its memory.',
  ),
  writesRefused: counter(
    'writes_refused_unheard_total',
    [],
    'Writes answered with 503 since other instances could not have been told (`cache.shared.writes`).',
  ),
  ledgerFailures: counter(
    'ledger_failures_total',
    ['step'],
    'Messages to the ledger that got no answer in time.',
  ),
  sharedConnectionLosses: counter(
    'shared_connection_losses_total',
    [],
    'Times the connection to the shared store was lost.',
  ),
  sharedTroubles: counter(
    'shared_troubles_total',
    ['trouble'],
    'What the shared store or the way to it answered instead of doing what it was asked: its own word (`OOM`, `READONLY`, `NOPERM`, …), the code of the connection, `timeout`, `other`.',
  ),
  sharedLookups: counter(
    'shared_lookups_total',
    ['outcome'],
    'Reads that memory could not answer, by what the second tier had: `found`, `absent`, `outdated`, `refused`, `failed`, `resting` after failures.',
  ),
  sharedRefused: counter(
    'shared_refused_total',
    ['reason'],
    'What was found in the second tier and not taken, by why: `signature`, `key`, `age`, `size`, `malformed`, `fields`, `variant`, `not-storable`, `stale`.',
  ),
  sharedStored: counter('shared_stored_total', [], 'Responses put into the second tier.'),
  sharedStoredBytes: counter('shared_stored_bytes_total', [], 'Bytes of responses put into the second tier.'),
  sharedFailures: counter('shared_failures_total', ['step'], 'Commands to the second tier that failed.'),
  sharedWaits: counter(
    'shared_waits_total',
    ['outcome'],
    'Reads that waited for what another instance was asking the upstream for.',
  ),
  workersWanted: gauge(
    'workers_wanted',
    [],
    'Worker processes that should run; absent with one process.',
    'max',
  ),
  workersReady: gauge('workers_ready', [], 'Worker processes that accept requests.', 'max'),
  workerEnds: gauge(
    'worker_ends',
    ['end'],
    'Workers that ended unasked since the start, by `exit`, `signal` or `stuck`; each was replaced.',
    'max',
  ),
} as const satisfies Record<string, MetricRow>

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
