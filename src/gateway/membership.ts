import { randomBytes } from 'node:crypto'
import { availableParallelism } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import { type DiagnosisParts, type DiagnosisRequest, respondToDiagnosis } from '../admin/diagnosis.ts'
import type { ReloadOutcome } from '../admin/operator.ts'
import type { Cache, CacheEntry, CacheOptions, EntryOrder } from '../cache/cache.ts'
import { targetKey, targetKeyOf } from '../cache/cache-read.ts'
import { type Invalidation, type Purge, topTargets, type UsedTarget } from '../cache/invalidation.ts'
import { type Clock, type Moment, readClock, systemClock } from '../clock.ts'
import { type Coherence, createCoherence } from '../cluster/coherence.ts'
import type { CoherenceEvent } from '../cluster/events.ts'
import { sharedStore } from '../cluster/shared-store.ts'
import type { Ask } from '../cluster/supervisor.ts'
import type { WorkerLink, WorkerRequest } from '../cluster/worker-link.ts'
import type { Config } from '../config/config.ts'
import { type ConfigResult, configFromData, filledAsData } from '../config/load.ts'
import { applyInvalidations } from '../exchange/invalidate-write.ts'
import { openWritesOf } from '../exchange/open-writes.ts'
import type { Log } from '../observability/logger.ts'
import type { Metrics } from '../observability/metrics.ts'
import type { FeedMessage } from '../wordpress/changes/service-feed.ts'
import type { Downstreams } from './downstreams.ts'
import type { UpstreamIssue } from './upstream-issues.ts'
import type { Warmer, WarmResult, WarmTarget } from './warmer.ts'

type MembershipParts = {
  readonly config: Config
  readonly clock: Clock
  readonly logger: Pick<Log, 'info' | 'warn'>
  readonly metrics: Metrics
  /** Where this process is one of several that share a port. */
  readonly worker: WorkerLink | undefined
}

/** The parts that invalidations of other members are applied to. */
export type InvalidationListeners = {
  readonly cache: Pick<Cache, 'invalidate' | 'suspect' | 'purge'>
  /** The gateway's documents about a site may predate a write. */
  documentsStale(service: string, collection: string): void
  /** Receivers in front of the gateway are purged of what other members have changed: these may have ended before. */
  contacted(invalidations: readonly Invalidation[]): void
}

/** Are writes refused while they cannot be sent to other members? */
export const refusesUnacknowledged = ({ cache }: Config): boolean =>
  cache.shared.writes === 'refuse-while-cut-off'

const tell = (logger: Pick<Log, 'info' | 'warn'>, event: CoherenceEvent): void => {
  if (event.kind === 'trust-lost') logger.warn({ reason: event.reason }, event.kind)
  else if (event.kind === 'cut-off') logger.warn({ writes: event.writes }, event.kind)
  else if (event.kind === 'trust-regained' || event.kind === 'memory-dropped') logger.info({}, event.kind)
}

/** Prepares the membership of this process among several; undefined for a single process. */
export const prepareMembership = async (parts: MembershipParts) => {
  const { clock, config, logger, metrics, worker } = parts
  const isShared = config.cache.shared.url.isSet
  if (!isShared && worker === undefined) return undefined
  const member = worker?.assignment.member ?? randomBytes(6).toString('hex')
  let coherence: Coherence | undefined
  const mayTrust = (at: Moment): boolean => coherence?.mayTrust(at) === true
  const shared = isShared
    ? await sharedStore({ ...parts, report: metrics.observe.sharedTier }, member, {
        position: () => coherence?.position ?? { epoch: '', applied: 0 },
        mayTrust: () => mayTrust(readClock(clock)),
        targetTag: targetKeyOf,
      })
    : undefined
  const ledger = shared?.ledger ?? worker?.ledger
  if (ledger === undefined) return undefined
  const lease = { isCurrent: mayTrust }
  const forCache: Pick<CacheOptions, 'lease' | 'tier'> =
    shared === undefined ? { lease } : { lease, tier: shared.tier }
  return {
    /** The parts that the cache needs before it is created. */
    forCache,
    /** Undefined without a shared store. */
    stores: shared?.stores,
    /** Makes this process a member; start it afterwards. */
    join: ({ cache, documentsStale, contacted }: InvalidationListeners): Coherence => {
      const joined = createCoherence({
        member,
        ledger,
        canBeCutOff: isShared,
        refusesUnacknowledged: isShared && refusesUnacknowledged(config),
        leaseMs: config.cache.shared.leaseMs,
        joinMs: 2 * config.cache.shared.forgetAfterMs,
        clock,
        apply: (invalidated) => {
          shared?.invalidated(invalidated)
          const invalidations = invalidated.map(({ invalidation }) => invalidation)
          contacted(invalidations)
          return applyInvalidations(invalidations, cache, documentsStale, 'elsewhere')
        },
        dropAll: (at) => {
          shared?.restarted(at)
          cache.purge({ selector: { kind: 'all' }, mode: 'hard', dryRun: false })
          contacted([{ kind: 'all', mode: 'hard' }])
          for (const { name } of config.services) documentsStale(name, '')
        },
        report: (event) => {
          metrics.observe.coherence(event)
          tell(logger, event)
        },
      })
      coherence = joined
      // The exit was observed: do not wait for the lease to run out.
      worker?.onEnded(joined.forget)
      return joined
    },
    /** Call it after the member has left. */
    close: () => shared?.close(),
  }
}

type OperatorCacheParts = {
  readonly cache: Pick<Cache, 'purgeInTurns' | 'entries' | 'topUsed'>
  readonly warmer: Pick<Warmer, 'add'>
  /** Drops what invalidations reach in other processes and in front of the gateway; absent where there is neither. */
  readonly broadcast: Downstreams['broadcast']
  readonly worker: WorkerLink | undefined
  /** Refuses purges that cannot be sent to other instances. */
  readonly refusesUnacknowledged: boolean
}

const invalidationsOf = (selector: Purge['selector'], mode: Purge['mode']): readonly Invalidation[] => {
  switch (selector.kind) {
    case 'target':
      return [{ kind: 'tag', tag: targetKey(selector.service, selector.target), mode }]
    case 'tag':
      return [{ kind: 'tag', tag: selector.tag, mode }]
    case 'prefix':
      return selector.prefixes.map((prefix) => ({ kind: 'prefix', service: selector.service, prefix, mode }))
    case 'all':
      return [{ kind: 'all', mode }]
    case 'matching':
      throw new TypeError('a purge by predicate cannot be sent to other processes')
  }
}

const ranks: Readonly<Record<EntryOrder, (entry: CacheEntry) => number>> = {
  bytes: ({ bytes }) => bytes,
  hits: ({ hits }) => hits,
  age: ({ ageSeconds }) => ageSeconds,
}

type OperatorPurge = Omit<Purge, 'selector'> & { readonly selectors: readonly Purge['selector'][] }

const sum = (counts: readonly number[]): number => counts.reduce((all, count) => all + count, 0)

const purgeAll = async (
  cache: Pick<Cache, 'purgeInTurns'>,
  { selectors, ...how }: OperatorPurge,
): Promise<number> => {
  const counts: number[] = []
  for (const selector of selectors) counts.push(await cache.purgeInTurns({ selector, ...how }))
  return sum(counts)
}

type CacheRequest =
  | { readonly topic: 'count'; readonly content: readonly Purge['selector'][] }
  | { readonly topic: 'open-writes'; readonly content: string }
  | { readonly topic: 'entries'; readonly content: { readonly order: EntryOrder; readonly limit: number } }
  | {
      readonly topic: 'most-used'
      readonly content: { readonly selectors: readonly Purge['selector'][]; readonly limit: number }
    }
  | {
      readonly topic: 'warm'
      /** `waitMs`: how long to wait for the results; 0: they are not asked for. */
      readonly content: { readonly targets: readonly WarmTarget[]; readonly waitMs: number }
    }

const isWaiting = ({ topic, content }: WorkerRequest): boolean =>
  topic === 'warm' && (content as Extract<CacheRequest, { topic: 'warm' }>['content']).waitMs > 0

type Warmed = { readonly added: number; readonly results: readonly (WarmResult | null)[] }

/** Null where there is no result in time. */
const warmWithin = async (
  warmer: Pick<Warmer, 'add'>,
  targets: readonly WarmTarget[],
  waitMs: number,
): Promise<Warmed> => {
  const { added, results } = warmer.add(targets)
  if (waitMs === 0) return { added, results: [] }
  const end = new AbortController()
  const late = sleep(waitMs, null, { signal: end.signal }).catch(() => null)
  const settled = await Promise.all(results.map((result) => Promise.race([result, late])))
  end.abort()
  return { added, results: settled }
}

/** Best first: of several processes, the worst result of a URL counts. */
const outcomes: readonly WarmResult['outcome'][] = ['hit', 'fetched', 'bypassed', 'dropped', 'failed']

const worst = (results: readonly (WarmResult | null)[]): WarmResult | null =>
  results.reduce((first, second) =>
    first !== null && (second === null || outcomes.indexOf(second.outcome) > outcomes.indexOf(first.outcome))
      ? second
      : first,
  )

const respondToCacheRequest = (
  cache: Pick<Cache, 'purgeInTurns' | 'entries' | 'topUsed'>,
  warmer: Pick<Warmer, 'add'>,
  { topic, content }: CacheRequest,
): unknown => {
  switch (topic) {
    case 'count':
      return purgeAll(cache, { selectors: content, mode: 'hard', dryRun: true })
    case 'open-writes':
      return openWritesOf(cache)
        .reaching(content)
        .map((sinceMs) => systemClock.monotonic() - sinceMs)
    case 'entries':
      return cache.entries(content.order, content.limit)
    case 'most-used':
      return cache.topUsed(content.selectors, content.limit)
    case 'warm':
      return warmWithin(warmer, content.targets, content.waitMs)
  }
}

/** The cache as the admin side sees it: that of this process, or of all that share the port or the store. */
export const operatorCache = ({
  cache,
  warmer,
  broadcast,
  worker,
  refusesUnacknowledged,
}: OperatorCacheParts) => {
  /** The responses of all processes that share the port. */
  const ask = async <Value>(question: CacheRequest): Promise<readonly Value[]> => {
    const responses =
      worker === undefined
        ? [await respondToCacheRequest(cache, warmer, question)]
        : await worker.ask(question)
    return responses as readonly Value[]
  }
  return {
    /** `unacknowledged`: dropped here; other instances could not be notified, or a receiver that must confirm has not. */
    purge: async ({ selectors, mode, dryRun }: OperatorPurge): Promise<number | 'unacknowledged'> => {
      if (dryRun) return sum(await ask<number>({ topic: 'count', content: selectors }))
      const here = await purgeAll(cache, { selectors, mode, dryRun })
      const elsewhere = await broadcast(selectors.flatMap((selector) => invalidationsOf(selector, mode)))
      return elsewhere.unconfirmed || (elsewhere.unacknowledged && refusesUnacknowledged)
        ? 'unacknowledged'
        : here + elsewhere.entries
    },
    /** For how many milliseconds each write has been open that reaches a service. */
    openWrites: async (service: string): Promise<readonly number[]> =>
      (await ask<readonly number[]>({ topic: 'open-writes', content: service })).flat(),
    entries: async (order: EntryOrder, limit: number): Promise<readonly CacheEntry[]> => {
      const lists = await ask<readonly CacheEntry[]>({ topic: 'entries', content: { order, limit } })
      const rank = ranks[order]
      return lists
        .flat()
        .sort((a, b) => rank(b) - rank(a))
        .slice(0, limit)
    },
    /** The public targets that a purge would concern, those with most hits first. */
    topUsed: async (
      selectors: readonly Purge['selector'][],
      limit: number,
    ): Promise<readonly UsedTarget[]> => {
      const lists = await ask<readonly UsedTarget[]>({ topic: 'most-used', content: { selectors, limit } })
      return topTargets(lists.flat(), limit)
    },
    /** Fetches the targets in the background, in every process that has its own memory. `added`: how many. */
    warm: async (targets: readonly WarmTarget[], waitMs: number): Promise<Warmed> => {
      const responses = await ask<Warmed>({ topic: 'warm', content: { targets, waitMs } })
      return {
        added: Math.max(0, ...responses.map(({ added }) => added)),
        results:
          waitMs === 0
            ? []
            : targets.map((_, at) => worst(responses.map(({ results }) => results[at] ?? null))),
      }
    },
  }
}

export type OperatorCache = ReturnType<typeof operatorCache>

type WorkerResponses = Pick<OperatorCacheParts, 'cache' | 'warmer'> & {
  readonly metrics: Pick<Metrics, 'snapshot'>
  readonly diagnosis: Pick<DiagnosisParts, 'history' | 'logLevel'>
  reload(): Promise<ReloadOutcome>
  invalidation(issue: UpstreamIssue): void
  /** Applies changes behind the gateway that another worker has received. */
  applyFeedMessage(message: FeedMessage): void
}

/** Each request to the admin side reaches one worker, and is answered for all of them. */
export const serveWorkers =
  ({ cache, warmer, metrics, diagnosis, reload, invalidation, applyFeedMessage }: WorkerResponses) =>
  (question: WorkerRequest): unknown => {
    switch (question.topic) {
      case 'metrics':
        return metrics.snapshot()
      case 'reload':
        return reload()
      case 'issue':
        return invalidation(question.content as UpstreamIssue)
      case 'changes':
        return applyFeedMessage(question.content as FeedMessage)
      case 'history':
      case 'recent':
      case 'log-level':
        return respondToDiagnosis(diagnosis, question as DiagnosisRequest)
      default:
        return respondToCacheRequest(cache, warmer, question as CacheRequest)
    }
  }

const snapshots = (worker: WorkerLink): Promise<readonly unknown[]> =>
  worker.ask({ topic: 'metrics', content: null })

/** The metrics of this process, or of all that share the port. */
export const scrapeOf = async (
  worker: WorkerLink | undefined,
  metrics: Metrics,
  accept: string | undefined,
) => ({
  contentType: metrics.contentType(accept),
  text:
    worker === undefined
      ? await metrics.scrape(accept)
      : await metrics.together(await snapshots(worker), accept),
})

export const metricsOf = async (worker: WorkerLink | undefined, metrics: Metrics) =>
  worker === undefined ? metrics.snapshot() : metrics.snapshotTogether(await snapshots(worker))

const isGood = ({ kind }: ReloadOutcome): boolean => kind === 'applied' || kind === 'unchanged'

/** Result of a reload of all workers: a refusal of one counts. */
const reloadOutcomeOf = (responses: readonly unknown[]): ReloadOutcome => {
  const outcomes = responses as readonly ReloadOutcome[]
  return (
    outcomes.find((outcome) => !isGood(outcome)) ??
    outcomes.find(({ kind }) => kind === 'applied') ??
    outcomes[0] ?? { kind: 'failed', cause: undefined }
  )
}

/** The parent reads the configuration, and all workers apply it. */
export const reloadEverywhere = async (worker: Pick<WorkerLink, 'ask'>): Promise<ReloadOutcome> =>
  reloadOutcomeOf(await worker.ask({ topic: 'reload', content: null }))

export const workerStatus = (
  worker: WorkerLink | undefined,
): { readonly starting: boolean; readonly workersMissing: boolean } => {
  if (worker === undefined) return { starting: false, workersMissing: false }
  const { complete, ready, wanted } = worker.status()
  return { starting: !complete, workersMissing: complete && ready < wanted }
}

/** The files that the parent has read, as plain data for its workers. */
export type HandedConfig =
  | { readonly kind: 'filled'; readonly filled: unknown }
  | Extract<ConfigResult, { kind: 'faults' }>

const asHanded = (result: ConfigResult): HandedConfig =>
  result.kind === 'ok' ? { kind: 'filled', filled: filledAsData(result.filled) } : result

/** The configuration in these files: the same for every worker, even if a file has changed since. */
export const fromHanded = (handed: HandedConfig): ConfigResult =>
  handed.kind === 'filled' ? configFromData(handed.filled) : handed

const readingFailed = (cause: unknown): readonly ReloadOutcome[] => [{ kind: 'failed', cause }]

/** Holds the files read at the start, or by the last reload that the workers applied: only the parent reads files. */
export const createWorkersConfig = (filled: unknown, readConfig: () => Promise<ConfigResult>) => {
  let inForce: HandedConfig = { kind: 'filled', filled: filledAsData(filled) }
  /** Requested; the workers may still refuse it. */
  let candidate: HandedConfig = inForce
  let before: Promise<unknown> = Promise.resolve()

  const reload = async (question: WorkerRequest, ask: Ask): Promise<readonly unknown[]> => {
    const read = asHanded(await readConfig())
    if (read.kind === 'filled') candidate = read
    // A slow worker, which reads a site's index, applies it as well.
    const responses = await ask({ ...question, content: read }, 'until-all')
    const { kind } = reloadOutcomeOf(responses)
    if (kind === 'applied' || kind === 'unchanged') inForce = candidate
    candidate = inForce
    return responses
  }
  return {
    /** The configuration that all workers have, also those that are started later. */
    get inForce() {
      return inForce
    },
    through: (question: WorkerRequest, ask: Ask): Promise<readonly unknown[]> => {
      // A warming that is waited for ends by itself.
      if (question.topic !== 'reload') return ask(question, isWaiting(question) ? 'until-all' : 'brief')
      const responses = before.then(() => reload(question, ask)).catch(readingFailed)
      before = responses
      return responses
    },
    // It got one configuration at its start, and another one was applied meanwhile.
    stale: (configOfWorker: unknown): WorkerRequest | undefined =>
      configOfWorker === candidate ? undefined : { topic: 'reload', content: candidate },
  }
}

export const workersOf = ({ workers }: Pick<Config, 'workers'>): number =>
  workers === 0 ? availableParallelism() : workers
