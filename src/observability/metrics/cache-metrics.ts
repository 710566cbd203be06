import type { BypassReason } from '../../cache/decide-caching.ts'
import { forwardReasons, invalidators, noStoreReasons } from '../../cache/events.ts'
import {
  broadcastOutcomes,
  ledgerSteps,
  noLeaseReasons,
  type SharedTierEvent,
  tierLookups,
  tierRefusals,
  tierSteps,
} from '../../cluster/events.ts'
import { verifiedOutcomes, type WriteKind, writeKinds, writeStates } from '../../exchange/events.ts'
import { codings } from '../../http/content-coding.ts'
import {
  type AttemptOutcome,
  checkResults,
  clientWaits,
  giveUpReasons,
  queueOutcomes,
  retryReasons,
  type StatusClass,
  type UpstreamEvent,
} from '../../upstream/events.ts'
import {
  ageSeconds,
  all,
  configured,
  counter,
  gauge,
  histogram,
  httpSeconds,
  type MetricRow,
  open,
  withLabel,
} from './metric-row.ts'

const { service, target } = configured

/** The label `taken`. */
export const writeLabelOf = (kind: WriteKind) => (kind === 'unclassified' ? 'unknown' : kind)

type OfKind<Event extends { kind: string }, Kind extends Event['kind']> = Extract<Event, { kind: Kind }>

/** Attempts with a response have its status class; others have none. */
const attempts = (outcomes: readonly AttemptOutcome[], classes: readonly StatusClass[]) =>
  withLabel(withLabel([{}], 'outcome', outcomes), 'status_class', classes)

const bypassDetails = all<BypassReason>({
  method: 1,
  'no-rule': 1,
  'ambiguous-path': 1,
  'request-content': 1,
  'request-no-store': 1,
  authorization: 1,
  cookie: 1,
  'creating-read': 1,
  'acting-script': 1,
  cron: 1,
  'method-override': 1,
  nonce: 1,
  password: 1,
  'context-edit': 1,
  'non-public-status': 1,
  'api-key': 1,
})

export const upstreamMetrics = {
  upstreamAttempts: counter(
    'upstream_attempts_total',
    { service, target, outcome: open, status_class: open },
    'Requests sent to a target, retries included.',
    [
      ...attempts(['answered', 'discarded'], ['2xx', '3xx', '4xx', '5xx']),
      ...attempts(['unreachable', 'timeout', 'broken', 'aborted'], ['none']),
    ],
  ),
  upstreamHeadSeconds: histogram(
    'upstream_head_seconds',
    { service, target },
    httpSeconds,
    'Time of an attempt until the response headers.',
  ),
  upstreamSeconds: histogram(
    'upstream_attempt_duration_seconds',
    { service, target },
    httpSeconds,
    'Time of an attempt until the last byte.',
  ),
  upstreamRetries: counter(
    'upstream_retries_total',
    { service, target, reason: retryReasons },
    'Retried attempts.',
  ),
  upstreamGaveUp: counter(
    'upstream_gave_up_total',
    { service, target, reason: giveUpReasons },
    'Failed attempts not retried; `budget` = the retry budget was empty.',
  ),
  upstreamQueued: counter(
    'upstream_queue_total',
    { service, outcome: queueOutcomes },
    'Requests for a slot: `sent`, `aborted`, or refused: `full` (queue), `client-share`, `arriving-share` (bodies still arriving), `timeout`.',
  ),
  upstreamQueueSeconds: histogram(
    'upstream_queue_seconds',
    { service },
    httpSeconds,
    'How long requests waited for a free slot.',
  ),
  upstreamSlowClients: counter(
    'upstream_slow_clients_total',
    { service, wait: clientWaits },
    'Requests of slow clients that were ended: `request-body` or `reader`.',
  ),
  upstreamConnectionFaults: counter(
    'upstream_connection_faults_total',
    { service, target },
    'Connections ended by an unexpected error in their handling; report it with its log line.',
  ),
  upstreamTargetChanges: counter(
    'upstream_target_changes_total',
    {
      service,
      target,
      to: all<OfKind<UpstreamEvent, 'target-changed'>['to']>({ healthy: 1, failing: 1, 'left-out': 1 }),
    },
    'State changes of a target: `healthy`, `failing` (still used), `left-out`.',
  ),
  upstreamChecks: counter(
    'upstream_checks_total',
    { service, target, result: checkResults },
    'Health checks: `good`, or the failure `status`, `timeout`, `connect`, `tls`, `broken`.',
  ),
  upstreamRetriesLeft: gauge('upstream_retries_left', { service }, 'Retries that the budget still allows.'),
  upstreamConnections: gauge(
    'upstream_connections',
    { service, target, state: ['idle', 'busy'] },
    'Connections to a target, `busy` or `idle`.',
  ),
  upstreamTargetUp: gauge(
    'upstream_target_up',
    { service, target },
    '1 = healthy, 0 = checks or requests fail; absent before the first contact; with workers, the lowest.',
    'min',
  ),
  upstreamTargetLeftOut: gauge(
    'upstream_target_left_out',
    { service, target },
    '1 = ejected, gets no requests; with workers, the highest.',
    'max',
  ),
  upstreamTargetOutstanding: gauge(
    'upstream_target_outstanding_requests',
    { service, target },
    'Requests in flight to a target.',
  ),
  upstreamBreakerState: gauge(
    'upstream_breaker_state',
    { service, state: ['closed', 'open', 'half-open'] },
    '1 for the state of the breaker (`closed`, `open`, `half-open`).',
    'max',
  ),
  upstreamBreakerChanges: counter(
    'upstream_breaker_changes_total',
    {
      service,
      to: all<OfKind<UpstreamEvent, 'breaker-changed'>['to']>({ closed: 1, open: 1, 'half-open': 1 }),
    },
    'Breaker changes.',
  ),
  upstreamBreakerRefused: counter(
    'upstream_breaker_refused_total',
    { service },
    'Requests refused by the open breaker.',
  ),
  upstreamInFlight: gauge('upstream_in_flight_requests', { service }, 'Requests in flight to a service.'),
  upstreamWaitingForClients: gauge(
    'upstream_waiting_for_clients_requests',
    { service },
    'Requests in flight that wait for their client.',
  ),
  upstreamWaiting: gauge('upstream_waiting_requests', { service }, 'Requests that wait for a slot.'),
} as const satisfies Record<string, MetricRow>

/** Waits of a write for other processes: mostly a millisecond, at worst a few leases. */
const broadcastSeconds = [0.001, 0.005, 0.025, 0.1, 0.5, 1, 2.5, 5] as const

/** Metrics of coherence between processes, and of their shared store. */
export const coherenceMetrics = {
  memoryTrusted: gauge(
    'memory_trusted',
    {},
    'Processes that may serve from memory; 0 = no contact with other instances.',
  ),
  trustLost: counter(
    'memory_trust_lost_total',
    { reason: noLeaseReasons },
    'Times a process stopped serving from memory.',
  ),
  memoryDropped: counter(
    'memory_dropped_total',
    {},
    'Drops of the whole cache, because writes may be missing.',
  ),
  invalidationsApplied: counter('notes_applied_total', {}, 'Invalidations received from other processes.'),
  writeBroadcast: histogram(
    'write_spread_seconds',
    { outcome: broadcastOutcomes },
    broadcastSeconds,
    'How long writes waited for other processes: `acknowledged`, `lapsed` (a lease ended), `isolated` (none reachable).',
  ),
  writesRefused: counter('writes_refused_unheard_total', {}, 'Writes refused because Redis was unreachable.'),
  ledgerFailures: counter(
    'ledger_failures_total',
    { step: ledgerSteps },
    'Coordination messages without a timely reply.',
  ),
  sharedConnectionLosses: counter('shared_connection_losses_total', {}, 'Lost connections to Redis.'),
  sharedTroubles: counter(
    'shared_troubles_total',
    {
      trouble: // The usual ones of some thirty; the others get their series with their first error.
        ['ECONNREFUSED', 'ECONNRESET', 'OOM', 'READONLY', 'NOPERM', 'NOAUTH', 'LOADING', 'timeout', 'other'],
    },
    'Errors of Redis, such as `OOM`, `READONLY`, `NOPERM`, `timeout`.',
  ),
  sharedLookups: counter(
    'shared_lookups_total',
    { outcome: tierLookups },
    'Lookups in Redis: `found`, `absent`, `outdated`, `refused`, `failed`, or `resting` after failures.',
  ),
  sharedRefused: counter(
    'shared_refused_total',
    { reason: tierRefusals },
    'Redis entries rejected, such as `signature` or `age`.',
  ),
  sharedStored: counter('shared_stored_total', {}, 'Responses written to Redis.'),
  sharedStoredBytes: counter('shared_stored_bytes_total', {}, 'Bytes of responses written to Redis.'),
  sharedFailures: counter(
    'shared_failures_total',
    { step: tierSteps },
    'Failed Redis commands of the cache.',
  ),
  sharedWaits: counter(
    'shared_waits_total',
    { outcome: all<OfKind<SharedTierEvent, 'tier-waited'>['outcome']>({ found: 1, 'not-found': 1 }) },
    "Requests that waited for another instance's upstream request.",
  ),
  workersWanted: gauge('workers_wanted', {}, 'Configured workers; absent with one process.', 'max'),
  workersReady: gauge('workers_ready', {}, 'Workers that accept requests.', 'max'),
  workerEnds: gauge(
    'worker_ends',
    { end: open },
    'Workers replaced after an unexpected end: `exit`, `signal` or `stuck`.',
    'max',
  ),
} as const satisfies Record<string, MetricRow>

export const changeMetrics = {
  changesState: gauge(
    'changes_state',
    { service, state: open },
    '1 for the state of the change feed (`cold`, `heard`, `behind`, `silent`).',
    'max',
  ),
  changesLag: gauge('changes_lag_seconds', { service }, 'Time since every change was last known.', 'max'),
  changesApplied: counter(
    'changes_applied_total',
    { service, source: open },
    'Changes applied: reported by WordPress (`push`) or another service (`plain`), or found by `poll`.',
  ),
  changesDropped: counter(
    'changes_dropped_entries_total',
    { service, source: open },
    'Stored responses dropped by changes.',
  ),
  changesServiceDrops: counter(
    'changes_service_drops_total',
    { service, reason: open },
    'Drops of a whole service, because changes may be missing.',
  ),
  changesRefused: counter(
    'changes_refused_total',
    { service, reason: open },
    'Refused requests to `/changes`.',
  ),
  changesPollFailures: counter(
    'changes_poll_failures_total',
    { service, reason: open },
    'Polls that failed.',
  ),
} as const satisfies Record<string, MetricRow>

export const downstreamMetrics = {
  downstreamPurges: counter(
    'downstream_purges_total',
    { service, receiver: open, outcome: open },
    'Purges sent to caches in front of the gateway: `confirmed`, `failed` and sent again, or `given-up` with a service that was removed.',
  ),
  downstreamWait: histogram(
    'downstream_wait_seconds',
    { service, receiver: open, outcome: open },
    httpSeconds,
    'How long writes and other changes waited for a cache in front, after `settle`: `confirmed`, `late` (not within `timeout`), `behind` (not waited for).',
  ),
  downstreamBehind: gauge(
    'downstream_behind',
    { service, receiver: open },
    '1 while a cache in front has not confirmed a purge that failed or was late.',
    'max',
  ),
  downstreamLag: gauge(
    'downstream_lag_seconds',
    { service, receiver: open },
    'Time since the cache in front had last confirmed every purge.',
    'max',
  ),
} as const satisfies Record<string, MetricRow>

export const cacheMetrics = {
  writeStates: counter(
    'write_states_total',
    { service, state: open },
    'Writes by how far they got: `partly-sent`, `sent`, `open` (the response has begun), `ended`, `broken-off` (what they may have changed is quarantined).',
    withLabel([{}], 'state', writeStates.slice(1)),
  ),
  writesOpen: gauge(
    'writes_open',
    { service },
    'Writes whose response streams: nothing that they may change is stored meanwhile.',
  ),
  writeFaults: counter(
    'write_faults_total',
    { service },
    'Writes that were ended because of a fault of the gateway: their outcome counts as unknown.',
  ),
  cacheForwards: counter(
    'cache_forwards_total',
    { service, reason: open, detail: open },
    'Requests that the cache forwarded (RFC 9211 `fwd`), but no writes; `detail`: why a request bypassed it.',
    [
      ...withLabel(withLabel([{}], 'reason', forwardReasons), 'detail', ['']),
      ...withLabel([{ reason: 'bypass' }], 'detail', bypassDetails),
    ],
  ),
  cacheLostHits: counter(
    'cache_lost_hits_total',
    { service, route: open, reason: open },
    'What keeps a route from hits: reads that bypassed the cache, responses that were not stored, had expired (`expired`) or were evicted (`evicted`), keys with headers and undeclared parameters (`key-header`, `key-parameter`), writes that emptied the cache (`emptied`).',
  ),
  cacheStored: counter('cache_stored_total', { service }, 'Responses stored.'),
  cacheDescribed: counter(
    'cache_described_total',
    { service, cause: open },
    'Stored responses that came with a list of what they show; `cause`: what keeps the list from being complete, empty where it is.',
  ),
  cacheUntestedPlugins: counter(
    'cache_untested_plugins_total',
    { service, plugin: open },
    'Stored responses beside a plugin whose version the companion was not tested with.',
  ),
  cacheStoredBytes: counter('cache_stored_bytes_total', { service }, 'Bytes of responses stored.'),
  cacheNotStored: counter(
    'cache_not_stored_total',
    { service, reason: noStoreReasons },
    'Responses not stored.',
  ),
  cacheCollapsed: counter(
    'cache_collapsed_total',
    { service },
    'Requests that shared the upstream request of another client.',
  ),
  cacheServedAge: histogram(
    'cache_served_age_seconds',
    { service },
    ageSeconds,
    'Age of stored responses when served.',
  ),
  cacheServedStale: counter(
    'cache_served_stale_total',
    { service, reason: ['revalidating', 'error'] },
    'Stale responses served.',
  ),
  cacheBackgroundFailures: counter(
    'cache_background_failures_total',
    { service },
    'Failed revalidations in the background.',
  ),
  cacheInvalidations: counter('cache_invalidations_total', { by: invalidators }, 'Invalidations.'),
  cacheInvalidatedEntries: counter(
    'cache_invalidated_entries_total',
    { by: invalidators },
    'Stored responses invalidated.',
  ),
  cacheWrites: counter(
    'cache_writes_total',
    { service, taken: writeKinds.map(writeLabelOf) },
    'Requests that may write, by what they were taken for: `reported` and `nothing` by the WordPress companion, `table` by what is known of WordPress, `harmless` by `cache.harmlessWrites`, `unknown` all others.',
  ),
  cacheCutForwards: counter(
    'cache_cut_forwards_total',
    { by: invalidators },
    'Responses not stored, because they were invalidated while they were fetched.',
  ),
  cacheWarmed: counter(
    'cache_warmed_total',
    { service, outcome: ['fetched', 'hit', 'bypassed', 'failed', 'dropped'] },
    'URLs to fetch after a purge or for `POST /cache/warm`: `fetched`, `hit`, `bypassed` (not stored), `failed`, `dropped` (too many waited).',
  ),
  verified: counter(
    'verified_total',
    { service, outcome: verifiedOutcomes },
    'Stored responses fetched again and compared (`cache.verify`): `same`, `differed` (dropped), `varies` (no two responses are the same), `overtaken` (by a write), `failed` (no response to compare).',
  ),
  cacheCompressions: counter('cache_compressions_total', { coding: codings }, 'Stored responses compressed.'),
  cacheCompressedBytes: counter(
    'cache_compressed_bytes_total',
    { coding: codings },
    'Bytes before compression.',
  ),
  cacheSavedBytes: counter('cache_compression_saved_bytes_total', { coding: codings }, 'Bytes saved.'),
  cacheEvictions: counter('cache_evictions_total', {}, 'Stored responses evicted to free memory.'),
  cacheEvictedBytes: counter('cache_evicted_bytes_total', {}, 'Bytes evicted to free memory.'),
  cacheEntries: gauge('cache_entries', {}, 'Stored responses.'),
  cacheBytes: gauge('cache_bytes', {}, 'Memory of stored responses, keys and tags.'),
  cacheMaxBytes: gauge('cache_max_bytes', {}, 'Memory limit (`cache.maxBytes`).'),
} as const satisfies Record<string, MetricRow>
