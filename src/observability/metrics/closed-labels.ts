import { type BatchItemOutcome, batchResults, chunkResults, splitReasons } from '../../batch/events.ts'
import { forwardReasons, invalidators, noStoreReasons } from '../../cache/events.ts'
import {
  distrustReasons,
  ledgerSteps,
  type SharedTierEvent,
  spreadOutcomes,
  tierLookups,
  tierRefusals,
  tierSteps,
} from '../../cluster/events.ts'
import { cacheOutcomes, verifiedOutcomes, writeKinds } from '../../exchange/events.ts'
import { bufferedWork } from '../../http/bounds.ts'
import { codings } from '../../http/content-coding.ts'
import { cutReasons, protocolFaults, reloadResults } from '../../server/events.ts'
import { pressureSignals, workClasses } from '../../server/overload.ts'
import { differenceKinds, indexRefusals, routeRefusals } from '../../service/announced.ts'
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
import type { TracingEvent } from '../open-telemetry.ts'
import type { PushEvent } from '../push-metrics.ts'
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

const byInvalidator = each('by', invalidators)
const byCoding = each('coding', codings)
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
  protocolRefusals: each('reason', protocolFaults),
  undeclaredParameters: each('handling', ['sent', 'stripped']),
  cacheForwards: each('reason', forwardReasons),
  cacheNotStored: each('reason', noStoreReasons),
  cacheServedStale: each('reason', ['revalidating', 'error']),
  cacheInvalidations: byInvalidator,
  cacheInvalidatedEntries: byInvalidator,
  cacheWrites: each('taken', writeKinds),
  cacheCutForwards: byInvalidator,
  downstreamPurges: 'open',
  downstreamWait: 'open',
  downstreamBehind: 'open',
  downstreamLag: 'open',
  changesState: 'open',
  changesApplied: 'open',
  changesDropped: 'open',
  changesServiceDrops: 'open',
  changesRefused: 'open',
  changesPollFailures: 'open',
  websockets: 'open',
  cacheWarmed: each('outcome', ['fetched', 'hit', 'bypassed', 'failed', 'dropped']),
  verified: each('outcome', verifiedOutcomes),
  cacheCompressions: byCoding,
  cacheCompressedBytes: byCoding,
  cacheSavedBytes: byCoding,
  upstreamAttempts: attempts,
  upstreamRetries: each('reason', retryReasons),
  upstreamGaveUp: each('reason', giveUpReasons),
  upstreamQueued: each('outcome', queueOutcomes),
  upstreamSlowClients: each('wait', clientWaits),
  upstreamTargetChanges: each(
    'to',
    all<OfKind<UpstreamEvent, 'target-changed'>['to']>({ healthy: 1, failing: 1, 'left-out': 1 }),
  ),
  upstreamChecks: each('result', checkResults),
  upstreamConnections: each('state', ['idle', 'busy']),
  upstreamBreakerState: each('state', ['closed', 'open', 'half-open']),
  upstreamBreakerChanges: each(
    'to',
    all<OfKind<UpstreamEvent, 'breaker-changed'>['to']>({ closed: 1, open: 1, 'half-open': 1 }),
  ),
  batches: each('result', batchResults),
  batchSplits: pairs(splits, each('reason', splitReasons)),
  batchRequests: splits,
  batchChunks: each('result', chunkResults),
  batchItems,
  discoveryRefreshes: each('result', ['ok', ...indexRefusals]),
  discoveryRefusedRoutes: each('reason', routeRefusals),
  discoveryDifferences: each('kind', differenceKinds),
  trustLost: each('reason', distrustReasons),
  writeSpread: each('outcome', spreadOutcomes),
  ledgerFailures: each('step', ledgerSteps),
  sharedTroubles: each(
    'trouble',
    // The usual ones of some thirty; the others get their series with their first error.
    ['ECONNREFUSED', 'ECONNRESET', 'OOM', 'READONLY', 'NOPERM', 'NOAUTH', 'LOADING', 'timeout', 'other'],
  ),
  sharedLookups: each('outcome', tierLookups),
  sharedRefused: each('reason', tierRefusals),
  sharedFailures: each('step', tierSteps),
  sharedWaits: each(
    'outcome',
    all<OfKind<SharedTierEvent, 'tier-waited'>['outcome']>({ found: 1, 'not-found': 1 }),
  ),
  workerEnds: 'open',
  connectionsCut: each('reason', cutReasons),
  accessRefused: 'open',
  jwksFetches: 'open',
  shed: pairs(each('class', workClasses), each('signal', pressureSignals)),
  bufferedRefusals: each('work', bufferedWork),
  configReloads: each('outcome', reloadResults),
  configReloadTime: 'open',
  seriesOverflow: 'open',
  traceSpans: each('outcome', all<TracingEvent['outcome']>({ ended: 1, exported: 1, failed: 1 })),
  metricPushes: each('outcome', all<PushEvent['outcome']>({ exported: 1, failed: 1 })),
  buildInfo: 'open',
  configInfo: 'open',
}
