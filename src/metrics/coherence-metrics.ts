import { counter, gauge, histogram, type MetricRow } from './metric-row.ts'

/** A write waits for other processes: mostly a millisecond, at worst a few leases. */
const spreadSeconds = [0.001, 0.005, 0.025, 0.1, 0.5, 1, 2.5, 5] as const

/** Metrics of several processes that keep one promise, and of what they share. */
export const coherenceMetrics = {
  memoryTrusted: gauge(
    'memory_trusted',
    [],
    'Processes that may serve from memory; 0 = contact to other instances is lost.',
  ),
  trustLost: counter(
    'memory_trust_lost_total',
    ['reason'],
    'Times a process stopped serving from memory, by reason.',
  ),
  memoryDropped: counter(
    'memory_dropped_total',
    [],
    'Times the whole cache was dropped because missed writes are unknown.',
  ),
  notesApplied: counter('notes_applied_total', [], 'Invalidations received from other processes.'),
  writeSpread: histogram(
    'write_spread_seconds',
    ['outcome'],
    spreadSeconds,
    'Wait of a write for the other processes: `acknowledged`, `lapsed` (a lease ran out) or `isolated` (none reachable).',
  ),
  writesRefused: counter(
    'writes_refused_unheard_total',
    [],
    'Writes refused because Redis was unreachable (`cache.shared.writes`).',
  ),
  ledgerFailures: counter(
    'ledger_failures_total',
    ['step'],
    'Coordination messages without a reply in time.',
  ),
  sharedConnectionLosses: counter('shared_connection_losses_total', [], 'Lost connections to Redis.'),
  sharedTroubles: counter(
    'shared_troubles_total',
    ['trouble'],
    'Errors of Redis or its connection, such as `OOM`, `READONLY`, `NOPERM`, `timeout`.',
  ),
  sharedLookups: counter(
    'shared_lookups_total',
    ['outcome'],
    'Lookups in Redis: `found`, `absent`, `outdated`, `refused`, `failed`, or `resting` after failures.',
  ),
  sharedRefused: counter(
    'shared_refused_total',
    ['reason'],
    'Redis entries rejected, by reason, such as `signature` or `age`.',
  ),
  sharedStored: counter('shared_stored_total', [], 'Responses written to Redis.'),
  sharedStoredBytes: counter('shared_stored_bytes_total', [], 'Bytes of responses written to Redis.'),
  sharedFailures: counter('shared_failures_total', ['step'], 'Failed Redis commands of the cache.'),
  sharedWaits: counter(
    'shared_waits_total',
    ['outcome'],
    'Requests that waited for the upstream request of another instance.',
  ),
  workersWanted: gauge('workers_wanted', [], 'Configured workers; absent with one process.', 'max'),
  workersReady: gauge('workers_ready', [], 'Workers that accept requests.', 'max'),
  workerEnds: gauge(
    'worker_ends',
    ['end'],
    'Workers that ended unexpectedly and were replaced: `exit`, `signal` or `stuck`.',
    'max',
  ),
} as const satisfies Record<string, MetricRow>
