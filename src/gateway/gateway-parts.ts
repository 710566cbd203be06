import { randomBytes } from 'node:crypto'
import { createPartitions } from '../cache/cache-key.ts'
import { type Clock, systemClock } from '../clock.ts'
import type { Config } from '../config/config.ts'
import { type OperatorCache, operatorCache } from './admin/operator-cache.ts'
import type { GatewayOptions } from './gateway-options.ts'
import { type ConnectedFeeds, connectChangeFeeds } from './parts/change-feeds.ts'
import { CurrentSnapshot } from './parts/current-snapshot.ts'
import { refusesUnacknowledged } from './parts/membership.ts'
import { type Observation, startObservation } from './parts/observation.ts'
import { createPublicSide, type PublicSide } from './parts/public-side.ts'
import { GatewayStatus } from './parts/status.ts'
import { createStorage, type Storage } from './parts/storage.ts'
import { createWarmer, type Warmer } from './parts/warmer.ts'
import type { LastingParts } from './snapshot/snapshot.ts'

/** The parts of a gateway that outlive its configurations. */
export type GatewayParts = {
  readonly config: Config
  readonly options: GatewayOptions
  readonly clock: Clock
  readonly current: CurrentSnapshot
  readonly observation: Observation
  readonly storage: Storage
  readonly publicSide: PublicSide
  readonly warmer: Warmer
  readonly operatorCache: OperatorCache
  readonly feeds: ConnectedFeeds
  readonly status: GatewayStatus
}

/** Builds the parts in the order in which they need each other. */
export const createGatewayParts = async (config: Config, options: GatewayOptions): Promise<GatewayParts> => {
  const clock = systemClock
  const { worker } = options
  const current = new CurrentSnapshot(config)
  const observation = await startObservation(config, options, clock)
  const { logger, metrics, redaction } = observation
  const storage = await createStorage({ config, clock, current, logger, metrics, redaction, worker })
  const { membership, buffered, cache, writes, downstreams, coherence, broadcast } = storage
  const publicSide = createPublicSide({ config, current, logger, metrics, buffered })
  const warmer = createWarmer({
    limits: config.cache.warm,
    clock,
    begin: () => current.beginOwnRequest(),
    report: metrics.observe.exchange,
    finished: (counts) => logger.info(counts, 'cache-warmed'),
  })
  const feeds = connectChangeFeeds({
    ...{ clock, cache, broadcast, worker, metrics, logger, current },
    stores: membership?.stores,
  })
  return {
    ...{ config, options, clock, current, observation, storage, publicSide, warmer, feeds },
    operatorCache: operatorCache({
      ...{ cache, warmer, broadcast, worker },
      openWrites: writes.open,
      refusesUnacknowledged: refusesUnacknowledged(config),
    }),
    status: new GatewayStatus({ current, worker, coherence, downstreams, feeds }, options.findings ?? []),
  }
}

/** What each configuration snapshot is built from, beside its configuration. */
export const lastingPartsOf = (parts: GatewayParts, publicUrl: string): LastingParts => {
  const { clock, observation, options, storage, publicSide, feeds, status } = parts
  const { logger, metrics, redaction, sampled, watches } = observation
  const { buffered, cache, writes, coherence, downstreams, broadcast, membership } = storage
  const { inFlight, port, revocations, unread, websockets } = publicSide
  return {
    ...{ clock, logger, metrics, redaction, sampled, cache, buffered, publicUrl },
    ...{ inFlight, revocations, unread, websockets },
    cacheContext: { cache, writes, budget: buffered.budget, partitionOf: createPartitions() },
    writeRegistryFor: (config) => broadcast.writeRegistryFor(config),
    downstreamOf: downstreams.of,
    operatorCache: parts.operatorCache,
    stores: membership?.stores,
    mayRemember: () => coherence?.noLease() === undefined,
    tableChanged: (name) => {
      const selector = { kind: 'matching', matches: (service: string) => service === name } as const
      cache.purge({ selector, mode: 'hard', dryRun: false })
      // Caches in front have its responses under other tags.
      void downstreams.purge([{ kind: 'prefix', service: name, prefix: '', mode: 'hard' }])
    },
    feedLease: feeds.lease,
    watches: watches.watches,
    spans: watches.spans,
    accessLog: watches.accessLog,
    overload: port.overload,
    poisoned: new Set(),
    version: options.version,
    frontPage: options.frontPage,
    via: `trellis-${randomBytes(6).toString('hex')}`,
    isDraining: () => status.isDraining,
  }
}
