import type { BatchItemOutcome, BatchResult, ChunkResult, SplitReason } from '../../batch/events.ts'
import type { CacheEvent, ForwardReason, Invalidator } from '../../cache/events.ts'
import type { DistrustReason, LedgerStep, SpreadOutcome } from '../../cluster/events.ts'
import type { SharedTierEvent, TierLookup, TierRefusal, TierStep } from '../../cluster/redis-events.ts'
import type { BufferedFor } from '../../http/bounds.ts'
import type { CacheOutcome } from '../../pipeline/events.ts'
import type { EdgeEvent, ProtocolFault, ReloadResult } from '../../server/events.ts'
import type { PressureSignal, WorkClass } from '../../server/overload.ts'
import type { DifferenceKind, IndexRefusal, ResponseCheckResult, RouteRefusal } from '../../site/events.ts'
import type {
  AttemptOutcome,
  CheckResult,
  ClientWait,
  GiveUpReason,
  QueueOutcome,
  RetryReason,
  StatusClass,
  UpstreamEvent,
} from '../../upstream/events.ts'
import type { TracingEvent } from '../tracing.ts'
import type { MetricKey, metricTable } from './registry.ts'

export type Labels = Readonly<Record<string, string>>

/** All members of a union of texts. The compiler asks for each of them, so that a new one gets its series too. */
const all = <Value extends string>(members: Readonly<Record<Value, 1>>): readonly Value[] =>
  Object.keys(members) as Value[]

export const each = <const Label extends string>(label: Label, values: readonly string[]) =>
  values.map((value) => ({ [label]: value })) as Readonly<Record<Label, string>>[]

export const pairs = <One extends Labels, Other extends Labels>(
  ones: readonly One[],
  others: readonly Other[],
) => ones.flatMap((one) => others.map((other) => ({ ...one, ...other })))

type OfKind<Event extends { kind: string }, Kind extends Event['kind']> = Extract<Event, { kind: Kind }>

const cacheOutcomes = all<CacheOutcome>({
  hit: 1,
  miss: 1,
  stale: 1,
  revalidated: 1,
  collapsed: 1,
  bypass: 1,
  none: 1,
})
const invalidators = each('by', all<Invalidator>({ write: 1, purge: 1, elsewhere: 1, changes: 1 }))
const codings = each('coding', all<OfKind<CacheEvent, 'compressed'>['coding']>({ br: 1, gzip: 1, zstd: 1 }))
const splits = each('split', ['items', 'chunks', 'whole'])

/** Attempts with a response have its status class; others have none. */
const attempts = [
  ...pairs(
    each('outcome', ['answered', 'discarded'] satisfies AttemptOutcome[]),
    each('status_class', ['2xx', '3xx', '4xx', '5xx'] satisfies StatusClass[]),
  ),
  ...pairs(
    each('outcome', ['unreachable', 'timeout', 'broken', 'aborted'] satisfies AttemptOutcome[]),
    each('status_class', ['none'] satisfies StatusClass[]),
  ),
]

/** The usual ones; a rare combination gets its series with its first item. */
const batchItems = pairs(each('method', ['GET', 'POST', 'PUT', 'PATCH', 'DELETE']), [
  ...pairs(
    each('outcome', ['answered'] satisfies BatchItemOutcome[]),
    each('status_class', ['2xx', '4xx', '5xx']),
  ),
  ...pairs(each('outcome', ['refused'] satisfies BatchItemOutcome[]), each('status_class', ['4xx'])),
  ...pairs(
    each('outcome', ['not-sent', 'outcome-unknown'] satisfies BatchItemOutcome[]),
    each('status_class', ['5xx']),
  ),
])

/** Labels that come from the configuration. */
type FromConfig = 'service' | 'target' | 'limit'
type Table = typeof metricTable
type ClosedLabel<Key extends MetricKey> = Exclude<Table[Key]['labels'][number], FromConfig>

/**
 * The values of each metric's labels beside those of the configuration; the compiler asks for a line for each metric. `open`: too
 * many, unknown before the first event, a time, or declared elsewhere (where a service has the setting; the workers at each scrape).
 */
export const closedLabels: {
  readonly [Key in MetricKey as ClosedLabel<Key> extends never ? never : Key]:
    | 'open'
    | readonly Readonly<Record<ClosedLabel<Key>, string>>[]
} = {
  requests: 'open',
  itemRequests: 'open',
  routeSeconds: 'open',
  refusals: 'open',
  ownSeconds: each('cache', cacheOutcomes),
  protocolRefusals: each(
    'reason',
    all<ProtocolFault>({
      version: 1,
      host: 1,
      'transfer-coding': 1,
      'field-count': 1,
      target: 1,
      'start-line': 1,
      field: 1,
      framing: 1,
      chunking: 1,
      'too-large': 1,
      timeout: 1,
      'cut-off': 1,
      other: 1,
    }),
  ),
  undeclaredParameters: each('handling', ['sent', 'stripped']),
  cacheForwards: each(
    'reason',
    all<ForwardReason>({
      bypass: 1,
      method: 1,
      'uri-miss': 1,
      'vary-miss': 1,
      request: 1,
      stale: 1,
      partial: 1,
    }),
  ),
  cacheNotStored: each(
    'reason',
    all<OfKind<CacheEvent, 'not-stored'>['reason']>({
      status: 1,
      part: 1,
      'no-store': 1,
      private: 1,
      'set-cookie': 1,
      nonce: 1,
      authorization: 1,
      'vary-any': 1,
      'must-understand': 1,
      'no-freshness': 1,
      'too-large': 1,
      'no-room': 1,
      overtaken: 1,
      unsettled: 1,
      'not-admitted': 1,
      unreadable: 1,
      coding: 1,
      method: 1,
    }),
  ),
  cacheServedStale: each('reason', ['revalidating', 'error']),
  cacheInvalidations: invalidators,
  cacheInvalidatedEntries: invalidators,
  cacheCutForwards: invalidators,
  changesState: 'open',
  changesApplied: 'open',
  changesDropped: 'open',
  changesServiceDrops: 'open',
  changesRefused: 'open',
  changesPollFailures: 'open',
  websockets: 'open',
  cacheWarmed: each('outcome', ['fetched', 'hit', 'bypassed', 'failed', 'dropped']),
  cacheCompressions: codings,
  cacheCompressedBytes: codings,
  cacheSavedBytes: codings,
  upstreamAttempts: attempts,
  upstreamRetries: each(
    'reason',
    all<RetryReason>({
      'connect-failed': 1,
      'connection-lost': 1,
      'timed-out': 1,
      status: 1,
      'status-retry-after': 1,
    }),
  ),
  upstreamGaveUp: each(
    'reason',
    all<GiveUpReason>({
      'attempts-used': 1,
      method: 1,
      'content-consumed': 1,
      'no-other-target': 1,
      'retry-after-too-long': 1,
      deadline: 1,
      budget: 1,
    }),
  ),
  upstreamQueued: each(
    'outcome',
    all<QueueOutcome>({
      sent: 1,
      full: 1,
      'client-share': 1,
      'arriving-share': 1,
      timeout: 1,
      aborted: 1,
    }),
  ),
  upstreamSlowClients: each('wait', all<ClientWait>({ 'request-body': 1, reader: 1 })),
  upstreamTargetChanges: each(
    'to',
    all<OfKind<UpstreamEvent, 'target-changed'>['to']>({ healthy: 1, failing: 1, 'left-out': 1 }),
  ),
  upstreamChecks: each(
    'result',
    all<CheckResult>({ good: 1, status: 1, timeout: 1, connect: 1, tls: 1, broken: 1 }),
  ),
  upstreamConnections: each('state', ['idle', 'busy']),
  upstreamBreakerState: each('state', ['closed', 'open', 'half-open']),
  upstreamBreakerChanges: each(
    'to',
    all<OfKind<UpstreamEvent, 'breaker-changed'>['to']>({ closed: 1, open: 1, 'half-open': 1 }),
  ),
  batches: each(
    'result',
    all<BatchResult>({
      ran: 1,
      validation: 1,
      deadline: 1,
      'client-gone': 1,
      malformed: 1,
      'dry-run': 1,
    }),
  ),
  batchSplits: pairs(
    splits,
    each(
      'reason',
      all<SplitReason>({
        configured: 1,
        'few-items': 1,
        'no-batch-route': 1,
        'broken-chunks': 1,
        'one-group': 1,
        shared: 1,
        'first-guess': 1,
        explored: 1,
        measured: 1,
      }),
    ),
  ),
  batchRequests: splits,
  batchChunks: each(
    'result',
    all<ChunkResult>({ answered: 1, 'not-run': 1, limited: 1, 'not-sent': 1, broken: 1 }),
  ),
  batchItems,
  discoveryRefreshes: each(
    'result',
    all<IndexRefusal | 'ok'>({
      ok: 1,
      unreachable: 1,
      timeout: 1,
      status: 1,
      'too-large': 1,
      'too-deep': 1,
      'too-many-routes': 1,
      'not-json': 1,
      'not-an-index': 1,
      unusable: 1,
    }),
  ),
  discoveryRefusedRoutes: each(
    'reason',
    all<RouteRefusal>({
      'pattern-too-long': 1,
      'pattern-unreadable': 1,
      'template-taken': 1,
      'not-a-route': 1,
      'no-methods': 1,
      'too-many-arguments': 1,
      'too-many-routes': 1,
    }),
  ),
  discoveryDifferences: each(
    'kind',
    all<DifferenceKind>({
      'route-missing': 1,
      'pattern-changed': 1,
      'method-missing': 1,
      'method-added': 1,
      'batch-changed': 1,
      'argument-missing': 1,
      'argument-added': 1,
      'argument-changed': 1,
    }),
  ),
  responseChecks: each(
    'result',
    all<ResponseCheckResult>({ fits: 1, differs: 1, undescribed: 1, unchecked: 1, failed: 1 }),
  ),
  trustLost: each(
    'reason',
    all<DistrustReason>({ unreachable: 1, unproven: 1, 'member-silent': 1, 'young-ledger': 1 }),
  ),
  writeSpread: each('outcome', all<SpreadOutcome>({ acknowledged: 1, lapsed: 1, isolated: 1 })),
  ledgerFailures: each('step', all<LedgerStep>({ sync: 1, begin: 1, append: 1 })),
  sharedTroubles: each(
    'trouble',
    // The usual ones of some thirty; the others get their series with their first error.
    ['ECONNREFUSED', 'ECONNRESET', 'OOM', 'READONLY', 'NOPERM', 'NOAUTH', 'LOADING', 'timeout', 'other'],
  ),
  sharedLookups: each(
    'outcome',
    all<TierLookup>({ found: 1, absent: 1, outdated: 1, refused: 1, resting: 1, failed: 1 }),
  ),
  sharedRefused: each(
    'reason',
    all<TierRefusal>({
      malformed: 1,
      signature: 1,
      key: 1,
      age: 1,
      size: 1,
      fields: 1,
      variant: 1,
      'not-storable': 1,
      stale: 1,
    }),
  ),
  sharedFailures: each('step', all<TierStep>({ load: 1, store: 1, claim: 1 })),
  sharedWaits: each(
    'outcome',
    all<OfKind<SharedTierEvent, 'tier-waited'>['outcome']>({ found: 1, 'not-found': 1 }),
  ),
  workerEnds: 'open',
  connectionsCut: each(
    'reason',
    all<OfKind<EdgeEvent, 'connection-cut'>['reason']>({
      'too-many': 1,
      address: 1,
      'slow-reader': 1,
      resets: 1,
      drain: 1,
    }),
  ),
  accessRefused: 'open',
  jwksFetches: 'open',
  shed: pairs(
    each('class', all<WorkClass>({ batch: 1, miss: 1, pass: 1, hit: 1 })),
    each(
      'signal',
      all<PressureSignal>({
        'event-loop-delay': 1,
        'event-loop-utilization': 1,
        heap: 1,
        rss: 1,
        'in-flight': 1,
      }),
    ),
  ),
  bufferedRefusals: each(
    'work',
    all<BufferedFor>({
      fill: 1,
      'request-body': 1,
      'batch-item': 1,
      'write-answer': 1,
      'slow-reader': 1,
    }),
  ),
  configReloads: each(
    'outcome',
    all<ReloadResult>({ applied: 1, unchanged: 1, invalid: 1, 'restart-needed': 1, failed: 1 }),
  ),
  configReloadTime: 'open',
  seriesOverflow: 'open',
  traceSpans: each('outcome', all<TracingEvent['outcome']>({ ended: 1, exported: 1, failed: 1 })),
  buildInfo: 'open',
  configInfo: 'open',
}
