import { randomBytes } from 'node:crypto'
import type { Cache } from '../cache/cache.ts'
import type { Clock } from '../clock.ts'
import { type Coherence, createCoherence } from '../coherence/coherence.ts'
import type { CoherenceEvent } from '../coherence/events.ts'
import type { Ledger } from '../coherence/ledger.ts'
import type { Config } from '../config/config.ts'
import type { Metrics } from '../metrics/create-metrics.ts'
import { carryOut } from '../pipeline/carry-out.ts'
import type { WorkerLink } from '../workers/worker-link.ts'

/** The part of a logger that is needed here. */
type Log = { info(facts: object, message: string): void; warn(facts: object, message: string): void }

export type MembershipParts = {
  readonly config: Config
  readonly clock: Clock
  readonly logger: Log
  readonly metrics: Metrics
  readonly cache: Pick<Cache, 'invalidate' | 'suspect' | 'purge'>
  /** Where this process is one of several that share a port. */
  readonly worker: WorkerLink | undefined
  /** What the gateway knows of a site may be from before a write. */
  documentsOutdated(service: string, collection: string): void
}

type Kind = {
  readonly member: string
  readonly ledger: Ledger
  readonly canBeCutOff: boolean
}

/** Loaded only where it is wanted: whoever runs one process needs no client of a store. */
const redisLedger = async ({ config, metrics, logger }: MembershipParts, member: string): Promise<Ledger> => {
  const { createRedisLedger } = await import('../shared-tier/redis-ledger.ts')
  const { url, cluster, prefix, leaseMs, forgetAfterMs } = config.cache.shared
  return createRedisLedger({
    url: url.reveal(),
    cluster,
    prefix,
    member,
    leaseMs,
    forgetAfterMs,
    timeoutMs: leaseMs / 2,
    changed: (state) => {
      metrics.observe.sharedTier({ kind: 'connection', state })
      logger.info({ state }, 'shared-connection')
    },
  })
}

const kindOf = async (parts: MembershipParts): Promise<Kind | undefined> => {
  const { config, worker } = parts
  if (config.cache.shared.url.isSet) {
    const member = worker?.assignment.member ?? randomBytes(6).toString('hex')
    return { member, ledger: await redisLedger(parts, member), canBeCutOff: true }
  }
  return worker === undefined
    ? undefined
    : { member: worker.assignment.member, ledger: worker.ledger, canBeCutOff: false }
}

const tell = (logger: Log, event: CoherenceEvent): void => {
  if (event.kind === 'trust-lost') logger.warn({ reason: event.reason }, event.kind)
  else if (event.kind === 'trust-regained' || event.kind === 'memory-dropped') logger.info({}, event.kind)
}

/** Makes this process a member of the ledger that it shares with others; undefined where there are none. */
export const joinOthers = async (parts: MembershipParts): Promise<Coherence | undefined> => {
  const { cache, clock, logger, metrics, worker } = parts
  const kind = await kindOf(parts)
  if (kind === undefined) return undefined
  const coherence = createCoherence({
    ...kind,
    leaseMs: parts.config.cache.shared.leaseMs,
    clock,
    apply: (notes) =>
      carryOut(
        notes.map(({ note }) => note),
        cache,
        parts.documentsOutdated,
        'elsewhere',
      ),
    dropAll: () => {
      cache.purge({ selector: { kind: 'all' }, mode: 'hard', dryRun: false })
      for (const { name } of parts.config.services) parts.documentsOutdated(name, '')
    },
    report: (event) => {
      metrics.observe.coherence(event)
      tell(logger, event)
    },
  })
  // Whoever saw it end need not wait until it has been silent for long.
  worker?.onEnded((member) => coherence.forget(member))
  return coherence
}
