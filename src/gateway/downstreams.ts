import type { Note } from '../cache/invalidation.ts'
import type { Clock } from '../clock.ts'
import type { Coherence } from '../cluster/coherence.ts'
import {
  type Config,
  type DownstreamConfig,
  type ServiceConfig,
  servesEveryReader,
} from '../config/config.ts'
import { sameSettings } from '../config/same-settings.ts'
import { createDownstream, type ServiceDownstream } from '../downstream/downstream.ts'
import type { DownstreamEvent, ReceiverStatus } from '../downstream/events.ts'
import { GatewayError } from '../errors.ts'
import type { Service } from '../exchange/exchange.ts'
import type { CacheContext } from '../exchange/ports.ts'
import type { Log } from '../observability/logger.ts'
import type { Metrics } from '../observability/metrics.ts'
import type { Contract } from '../service/contract.ts'

type DownstreamParts = {
  readonly clock: Clock
  readonly coherence: Coherence | undefined
  readonly metrics: Pick<Metrics, 'observe'>
  readonly logger: Pick<Log, 'info' | 'warn'>
}

/** The caches in front of a service under one configuration. */
type Held = {
  readonly service: string
  readonly config: DownstreamConfig
  readonly tagOfAll: string | undefined
  readonly isForAll: boolean
  readonly downstream: ServiceDownstream
}

export type SpreadEverywhere = Awaited<ReturnType<Coherence['spread']>> & {
  /** A receiver without which nothing is acknowledged has not confirmed. */
  readonly unconfirmed: boolean
}

type Announcer = NonNullable<CacheContext['announcer']>

export type Downstreams = {
  /** Of a service that is being built: the same as before where its settings are. */
  of(config: ServiceConfig, contract: Contract): ServiceDownstream | undefined
  /** Starts those of the configuration in use, and ends all others. */
  use(services: readonly Service[]): void
  /** Of a configuration: tells the other processes and the receivers of writes. */
  announcerFor(config: Pick<Config, 'services'>): Announcer | undefined
  /** To be awaited before a change is acknowledged. */
  spread(notes: readonly Note[]): Promise<SpreadEverywhere>
  /** A change that another process has made, which may have ended before it purged. */
  heard(notes: readonly Note[]): void
  /** What receivers have stored under tags that it no longer has. */
  outdated(notes: readonly Note[]): void
  statuses(): readonly ReceiverStatus[]
  close(): Promise<void>
}

const hasDownstream = ({ services }: Pick<Config, 'services'>): boolean =>
  services.some(({ downstream }) => downstream !== undefined)

/** The caches in front of all services, told of everything that the other processes are told of. */
export const connectDownstreams = ({ clock, coherence, metrics, logger }: DownstreamParts): Downstreams => {
  let downstreams: readonly Held[] = []
  let used: readonly ServiceDownstream[] = []
  /** Of services that a reload has removed: their receivers are asked until they have dropped everything of them. */
  let leaving: readonly Held[] = []

  const report = (event: DownstreamEvent): void => {
    metrics.observe.downstream(event)
    const { kind, service, receiver } = event
    if (kind === 'receiver-behind')
      logger.warn({ service, receiver, address: event.address, reason: event.reason }, kind)
    else if (kind === 'receiver-caught-up') logger.info({ service, receiver, address: event.address }, kind)
  }

  const spread = async (notes: readonly Note[], write?: string): Promise<SpreadEverywhere> => {
    const others = (await coherence?.spread(notes, write)) ?? { entries: 0, unheard: false }
    const purged = await Promise.all(used.map((downstream) => downstream.purge(notes)))
    return { ...others, unconfirmed: purged.includes('unconfirmed') }
  }

  const announcer: Announcer = {
    begin: async (notes, mayMatter) => {
      if (used.some((downstream) => downstream.refuses(notes)))
        throw new GatewayError('receiver_behind', { retryAfterSeconds: 1 })
      return coherence === undefined ? { kind: 'begun', write: '' } : coherence.begin(notes, mayMatter)
    },
    spread: async (notes, write) => {
      const { unconfirmed } = await spread(notes, write)
      if (unconfirmed) throw new GatewayError('receiver_unconfirmed')
    },
  }

  return {
    of: ({ name: service, downstream: config, access }, { tagger }) => {
      if (config === undefined) return undefined
      const tagOfAll = tagger.everything
      const isForAll = servesEveryReader({ access })
      const match = downstreams.find(
        (held) =>
          held.service === service &&
          held.tagOfAll === tagOfAll &&
          held.isForAll === isForAll &&
          sameSettings(held.config, config),
      )
      if (match !== undefined) return match.downstream
      const facts = { service, config, tagOfAll, isForAll }
      const downstream = createDownstream({ ...facts, clock, random: Math.random, report })
      downstreams = [...downstreams, { ...facts, downstream }]
      return downstream
    },
    use: (services) => {
      const next = downstreams.filter((held) =>
        services.some(({ responses: { downstream } }) => downstream === held.downstream),
      )
      const ended = downstreams.filter((held) => !next.includes(held))
      downstreams = next
      const before = used
      used = next.map(({ downstream }) => downstream)
      for (const downstream of used) if (!before.includes(downstream)) downstream.start()
      // A start purges everything of its service. What receivers have stored of a service without one no later purge would name.
      const isStarted = ({ service }: Held): boolean => next.some((held) => held.service === service)
      const closed = [...leaving, ...ended].filter(isStarted)
      for (const held of ended)
        if (!isStarted(held)) void held.downstream.purge([{ kind: 'all', mode: 'hard' }])
      leaving = [...leaving, ...ended].filter((held) => !isStarted(held))
      for (const { downstream } of closed) void downstream.close()
    },
    announcerFor: (config) => (hasDownstream(config) ? announcer : coherence),
    spread: (notes) => spread(notes),
    heard: (notes) => {
      for (const downstream of used) downstream.again(notes)
    },
    outdated: (notes) => {
      for (const downstream of used) void downstream.purge(notes)
    },
    statuses: () => used.flatMap((downstream) => downstream.statuses()),
    close: async () => {
      await Promise.all([...downstreams, ...leaving].map(({ downstream }) => downstream.close()))
    },
  }
}
