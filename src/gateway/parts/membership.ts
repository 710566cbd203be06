import { randomBytes } from 'node:crypto'
import type { Cache, CacheOptions } from '../../cache/cache.ts'
import { targetKeyOf } from '../../cache/cache-key.ts'
import type { Invalidation } from '../../cache/invalidation.ts'
import { type Clock, type Moment, readClock } from '../../clock.ts'
import { type Coherence, createCoherence } from '../../cluster/coherence.ts'
import type { CoherenceEvent } from '../../cluster/events.ts'
import { sharedStore } from '../../cluster/shared-store.ts'
import type { WorkerLink } from '../../cluster/worker-link.ts'
import type { Config } from '../../config/config.ts'
import { applyInvalidations } from '../../exchange/apply-invalidations.ts'
import type { Log } from '../../observability/logger.ts'
import type { Metrics } from '../../observability/metrics.ts'

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
  readonly cache: Pick<Cache, 'invalidate' | 'quarantine' | 'purge'>
  /** The gateway's documents about a site may predate a write. */
  documentsStale(service: string, collection: string): void
  /** Receivers in front of the gateway are purged of what other members have changed: these may have ended before. */
  changedElsewhere(invalidations: readonly Invalidation[]): void
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
    join: ({ cache, documentsStale, changedElsewhere }: InvalidationListeners): Coherence => {
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
          changedElsewhere(invalidations)
          return applyInvalidations(invalidations, cache, documentsStale, 'elsewhere')
        },
        dropAll: (at) => {
          shared?.restarted(at)
          cache.purge({ selector: { kind: 'all' }, mode: 'hard', dryRun: false })
          changedElsewhere([{ kind: 'all', mode: 'hard' }])
          for (const { name } of config.services) documentsStale(name, '')
        },
        report: (event) => {
          metrics.observe.coherence(event)
          tell(logger, event)
        },
      })
      coherence = joined
      // The exit was observed: do not wait for the lease to run out.
      worker?.onEnded((member) => joined.forget(member))
      return joined
    },
    /** Call it after the member has left. */
    close: () => shared?.close(),
  }
}
