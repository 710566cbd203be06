import type { Invalidation } from '../../cache/invalidation.ts'
import type { Clock } from '../../clock.ts'
import { type DownstreamConfig, type ServiceConfig, servesEveryReader } from '../../config/config.ts'
import { sameSettings } from '../../config/same-settings.ts'
import { createDownstream, type ServiceDownstream } from '../../downstream/downstream.ts'
import type { DownstreamEvent, ReceiverStatus } from '../../downstream/events.ts'
import type { Service } from '../../exchange/service.ts'
import type { Log } from '../../observability/logger.ts'
import type { Metrics } from '../../observability/metrics.ts'
import type { Contract } from '../../service/contract.ts'

type DownstreamParts = {
  readonly clock: Clock
  readonly metrics: Pick<Metrics, 'observe'>
  readonly logger: Pick<Log, 'info' | 'warn'>
}

/** The caches in front of a service under one configuration. */
type RunningDownstream = {
  readonly service: string
  readonly config: DownstreamConfig
  readonly tagOfAll: string | undefined
  readonly isForAll: boolean
  readonly downstream: ServiceDownstream
}

export type Downstreams = {
  /** Of a service that is being built: the same as before where its settings are. */
  of(config: ServiceConfig, contract: Contract): ServiceDownstream | undefined
  /** Starts those of the configuration in use, and ends all others. */
  use(services: readonly Service[]): void
  /** Does a cache in front that must confirm purges lag? */
  refuses(invalidations: readonly Invalidation[]): boolean
  /** `unconfirmed`: a cache in front without which nothing is acknowledged has not confirmed. */
  purge(invalidations: readonly Invalidation[]): Promise<'confirmed' | 'unconfirmed'>
  /** A change that another process has made, which may have ended before it purged. */
  changedElsewhere(invalidations: readonly Invalidation[]): void
  /** What receivers have stored under tags that it no longer has. */
  stale(invalidations: readonly Invalidation[]): void
  statuses(): readonly ReceiverStatus[]
  close(): Promise<void>
}

/** The caches in front of all services: they get every invalidation that the other processes get. */
export const connectDownstreams = ({ clock, metrics, logger }: DownstreamParts): Downstreams => {
  let downstreams: readonly RunningDownstream[] = []
  let used: readonly ServiceDownstream[] = []
  /** Of services that a reload has removed: their receivers are purged until they have dropped everything of them. */
  let leaving: readonly RunningDownstream[] = []

  const report = (event: DownstreamEvent): void => {
    metrics.observe.downstream(event)
    const { kind, service, receiver } = event
    if (kind === 'receiver-behind')
      logger.warn({ service, receiver, address: event.address, reason: event.reason }, kind)
    else if (kind === 'receiver-caught-up') logger.info({ service, receiver, address: event.address }, kind)
    else if (kind === 'receiver-given-up') logger.warn({ service, receiver, address: event.address }, kind)
  }

  const leave = (current: RunningDownstream): void => {
    void current.downstream.leave().then(() => {
      leaving = leaving.filter((other) => other !== current)
    })
  }

  return {
    of: ({ name: service, downstream: config, access }, { tagger }) => {
      if (config === undefined) return undefined
      const tagOfAll = tagger.everything
      const isForAll = servesEveryReader({ access })
      const match = downstreams.find(
        (current) =>
          current.service === service &&
          current.tagOfAll === tagOfAll &&
          current.isForAll === isForAll &&
          sameSettings(current.config, config),
      )
      if (match !== undefined) return match.downstream
      const facts = { service, config, tagOfAll, isForAll }
      const downstream = createDownstream({ ...facts, clock, random: Math.random, report })
      downstreams = [...downstreams, { ...facts, downstream }]
      return downstream
    },
    use: (services) => {
      const next = downstreams.filter((current) =>
        services.some(({ responses: { downstream } }) => downstream === current.downstream),
      )
      const ended = downstreams.filter((current) => !next.includes(current))
      downstreams = next
      const before = used
      used = next.map(({ downstream }) => downstream)
      for (const downstream of used) if (!before.includes(downstream)) downstream.start()
      // A start purges everything of its service. What receivers have stored of a service without one no later purge would name.
      const isStarted = ({ service }: RunningDownstream): boolean =>
        next.some((current) => current.service === service)
      // Of a configuration that was refused nothing has been sent.
      const wasUsed = ({ downstream }: RunningDownstream): boolean => before.includes(downstream)
      const left = ended.filter((current) => wasUsed(current) && !isStarted(current))
      const closed = [...leaving.filter(isStarted), ...ended.filter((current) => !left.includes(current))]
      leaving = [...leaving.filter((current) => !isStarted(current)), ...left]
      for (const current of left) leave(current)
      for (const { downstream } of closed) void downstream.close()
    },
    refuses: (invalidations) => used.some((downstream) => downstream.refuses(invalidations)),
    purge: async (invalidations) => {
      const purged = await Promise.all(used.map((downstream) => downstream.purge(invalidations)))
      return purged.includes('unconfirmed') ? 'unconfirmed' : 'confirmed'
    },
    changedElsewhere: (invalidations) => {
      for (const downstream of used) downstream.again(invalidations)
    },
    stale: (invalidations) => {
      for (const downstream of used) void downstream.purge(invalidations)
    },
    statuses: () => used.flatMap((downstream) => downstream.statuses()),
    close: async () => {
      await Promise.all([...downstreams, ...leaving].map(({ downstream }) => downstream.close()))
    },
  }
}
