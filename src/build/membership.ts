import { randomBytes } from 'node:crypto'
import type { Cache, CacheOptions } from '../cache/cache.ts'
import { targetKeyOf } from '../cache/cache-key.ts'
import type { Clock } from '../clock.ts'
import { type Coherence, createCoherence } from '../cluster/coherence.ts'
import type { CoherenceEvent } from '../cluster/events.ts'
import type { CoherenceOptions, Ledger } from '../cluster/ledger.ts'
import { type SharedStore, type SharedStores, sharedStore } from '../cluster/shared-store.ts'
import type { WorkerLink } from '../cluster/worker-link.ts'
import type { Config } from '../config/config.ts'
import type { Metrics } from '../observability/metrics.ts'
import { carryOut } from '../pipeline/apply-invalidations.ts'

/** The part of a logger that is needed here. */
type MembershipLog = {
  info(facts: object, message: string): void
  warn(facts: object, message: string): void
}

type MembershipParts = {
  readonly config: Config
  readonly clock: Clock
  readonly logger: MembershipLog
  readonly metrics: Metrics
  /** Where this process is one of several that share a port. */
  readonly worker: WorkerLink | undefined
}

/** The parts that notes of other members are applied to. */
export type MembershipRooms = {
  readonly cache: Pick<Cache, 'invalidate' | 'suspect' | 'purge'>
  /** The gateway's documents about a site may predate a write. */
  documentsOutdated(service: string, collection: string): void
}

/** Membership among several processes: the parts that the cache needs before it is created. */
export type Membership = {
  readonly forCache: Pick<CacheOptions, 'trust' | 'tier'>
  /** Undefined without a shared store. */
  readonly stores: SharedStores | undefined
  /** Makes this process a member; start it afterwards. */
  join(rooms: MembershipRooms): Coherence
  /** Call it after the member has left. */
  close(): void
}

/** Are writes refused that other members cannot learn of? */
export const refusesUnheard = ({ cache }: Config): boolean => cache.shared.writes === 'refuse-while-cut-off'

const tell = (logger: MembershipLog, event: CoherenceEvent): void => {
  if (event.kind === 'trust-lost') logger.warn({ reason: event.reason }, event.kind)
  else if (event.kind === 'cut-off') logger.warn({ writes: event.writes }, event.kind)
  else if (event.kind === 'trust-regained' || event.kind === 'memory-dropped') logger.info({}, event.kind)
}

type Kind = {
  readonly ledger: Ledger
  readonly canBeCutOff: boolean
  readonly shared: SharedStore | undefined
}

const coherenceFor = (
  parts: MembershipParts,
  { cache, documentsOutdated }: MembershipRooms,
  member: string,
  { ledger, canBeCutOff, shared }: Kind,
): Coherence => {
  const { config, clock, logger, metrics } = parts
  const apply: CoherenceOptions['apply'] = (noted) => {
    shared?.noted(noted)
    return carryOut(
      noted.map(({ note }) => note),
      cache,
      documentsOutdated,
      'elsewhere',
    )
  }
  return createCoherence({
    member,
    ledger,
    canBeCutOff,
    refusesUnheard: canBeCutOff && refusesUnheard(config),
    leaseMs: config.cache.shared.leaseMs,
    clock,
    apply,
    dropAll: (at) => {
      shared?.restarted(at)
      cache.purge({ selector: { kind: 'all' }, mode: 'hard', dryRun: false })
      for (const { name } of config.services) documentsOutdated(name, '')
    },
    report: (event) => {
      metrics.observe.coherence(event)
      tell(logger, event)
    },
  })
}

/** Prepares the membership of this process; undefined for a single process. */
export const prepareMembership = async (parts: MembershipParts): Promise<Membership | undefined> => {
  const { clock, config, worker } = parts
  const isShared = config.cache.shared.url.isSet
  if (!isShared && worker === undefined) return undefined
  const member = worker?.assignment.member ?? randomBytes(6).toString('hex')
  let coherence: Coherence | undefined
  const mayTrust = (at: { readonly now: number; readonly monotonic: number }): boolean =>
    coherence?.mayTrust(at) === true
  const shared = isShared
    ? await sharedStore({ ...parts, report: parts.metrics.observe.sharedTier }, member, {
        position: () => coherence?.position ?? { epoch: '', applied: 0 },
        mayTrust: () => mayTrust({ now: clock.now(), monotonic: clock.monotonic() }),
        targetTag: targetKeyOf,
      })
    : undefined
  const ledger = shared?.ledger ?? worker?.ledger
  if (ledger === undefined) return undefined
  return {
    forCache: { trust: { mayTrust }, ...(shared === undefined ? {} : { tier: shared.tier }) },
    join: (rooms) => {
      const joined = coherenceFor(parts, rooms, member, { ledger, canBeCutOff: isShared, shared })
      coherence = joined
      // The exit was observed: do not wait for the lease to run out.
      worker?.onEnded((ended) => joined.forget(ended))
      return joined
    },
    stores: shared?.stores,
    close: () => shared?.close(),
  }
}
