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
import { applyInvalidations } from '../pipeline/apply-invalidations.ts'

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

/** What the notes of others are carried out on. */
export type MembershipRooms = {
  readonly cache: Pick<Cache, 'invalidate' | 'suspect' | 'purge'>
  /** What the gateway knows of a site may be from before a write. */
  documentsOutdated(service: string, collection: string): void
}

/** Several processes that keep one promise, as far as the cache has to know before it is there. */
export type Membership = {
  readonly forCache: Pick<CacheOptions, 'trust' | 'tier'>
  /** Undefined where there is no store that instances share. */
  readonly stores: SharedStores | undefined
  /** Makes this process a member; to be started. */
  join(rooms: MembershipRooms): Coherence
  /** To be called after the member has taken its leave. */
  close(): void
}

/** Is what others cannot hear of refused? */
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
    return applyInvalidations(
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

/** Prepares this process to be one of several; undefined where it is alone. */
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
        place: () => coherence?.place ?? { epoch: '', applied: 0 },
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
      // Whoever saw it end need not wait until it has been silent for long.
      worker?.onEnded((ended) => joined.forget(ended))
      return joined
    },
    stores: shared?.stores,
    close: () => shared?.close(),
  }
}
