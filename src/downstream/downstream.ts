import { setTimeout as sleep } from 'node:timers/promises'
import type { Invalidation } from '../cache/invalidation.ts'
import type { Clock } from '../clock.ts'
import type { DownstreamConfig } from '../config/config.ts'
import type { Downstream } from '../exchange/service.ts'
import { downstreamCacheControl } from '../http/headers/caching-headers.ts'
import type { HeaderLines } from '../http/headers/header-lines.ts'
import type { DownstreamEvent, PurgeTargetStatus } from './events.ts'
import { createOutwardTags } from './outward-tags.ts'
import { PurgeTarget } from './purge-target.ts'
import { addressesByDns, PurgeTargets } from './purge-targets.ts'

/** What was purged is purged once more, one to two of these later. */
const againMs = 5_000

const separators = { 'Surrogate-Key': ' ', xkey: ' ', 'Cache-Tag': ',', 'Cache-Groups': ', ' } as const

/** The tags of a service for receivers, by its configuration alone. */
export const outwardTagsOf = (
  service: string,
  { key, receivers: purgeTargets }: Pick<DownstreamConfig, 'key' | 'receivers'>,
  tagOfAll: string | undefined,
) => {
  const secrets = key.isSet ? [key.reveal()] : purgeTargets.map(({ secret }) => secret.reveal())
  return createOutwardTags(service, JSON.stringify(secrets), tagOfAll)
}

type DownstreamOptions = {
  readonly service: string
  readonly config: DownstreamConfig
  readonly tagOfAll: string | undefined
  /** Receivers do not ask who reads: they store nothing of a service that some may not read. */
  readonly isForAll: boolean
  readonly clock: Clock
  readonly random: () => number
  readonly report: (event: DownstreamEvent) => void
}

/** `unconfirmed`: a receiver without which nothing is acknowledged has not confirmed. */
type Purged = 'done' | 'unconfirmed'

/** The caches in front of one service: what they may store, and the purges that they are sent (docs/decisions/0023-downstream.md). */
export type ServiceDownstream = Downstream & {
  start(): void
  /** Would a change with these invalidations wait for a receiver that is behind and must confirm? */
  refuses(invalidations: readonly Invalidation[]): boolean
  /** To be awaited before a change is acknowledged, after every gateway has dropped what it reaches. */
  purge(invalidations: readonly Invalidation[]): Promise<Purged>
  /** Purges soon, for a change that another process has made. */
  again(invalidations: readonly Invalidation[]): void
  statuses(): readonly PurgeTargetStatus[]
  /** Purges everything; closes, and resolves, once it is confirmed and has been sent once more. */
  leave(): Promise<void>
  close(): Promise<void>
}

export const createDownstream = (options: DownstreamOptions): ServiceDownstream => {
  const { service, config, clock, random, report } = options
  const tags = outwardTagsOf(service, config, options.tagOfAll)
  const { everything } = tags
  /** Until they have been sent every invalidation. */
  let isLagging = true
  const changed = (): void => {
    isLagging = purgeTargets.some((purgeTarget) => purgeTarget.isLagging)
  }
  const purgeTargets = config.receivers.map((purgeTargetConfig, at) => {
    const before = config.receivers.slice(0, at).filter(({ type }) => type === purgeTargetConfig.type).length
    const name = before === 0 ? purgeTargetConfig.type : `${purgeTargetConfig.type}-${before + 1}`
    const facts = { config: purgeTargetConfig, service, name, changed }
    return new PurgeTargets({
      ...facts,
      addressesOf: addressesByDns,
      create: (address) => new PurgeTarget({ ...facts, address, everything, clock, random, report }),
      joined: (target) => target.enqueue([everything]),
    })
  })
  const targets = (): readonly PurgeTarget[] => purgeTargets.flatMap((purgeTarget) => purgeTarget.targets)
  /** What is sent once more: in the next turn, and in the one after that. */
  let [next, later] = [new Set<string>(), new Set<string>()]
  let timer: NodeJS.Timeout | undefined
  /** Called when nothing is to be sent any more. */
  let left: (() => void) | undefined

  const close = async (): Promise<void> => {
    clearInterval(timer)
    await Promise.all(purgeTargets.map((purgeTarget) => purgeTarget.close()))
  }
  const remember = (reached: ReadonlySet<string>): void => {
    for (const tag of reached) later.add(tag)
    // More than it would be sent as everything in any case.
    if (later.size > 2_000) later = new Set([everything])
  }
  const turn = (): void => {
    if (next.size > 0) for (const target of targets()) target.enqueue(next)
    else if (left !== undefined && later.size === 0 && !isLagging) void close().then(left)
    next = later
    later = new Set()
  }
  const purgeAll = async (reached: ReadonlySet<string>): Promise<Purged> => {
    await Promise.all([sleep(config.settleMs), ...purgeTargets.map((purgeTarget) => purgeTarget.refresh())])
    remember(reached)
    const ends = await Promise.all(
      targets().map(async (target) => ({ end: await target.purge(reached), target })),
    )
    const lacks = ends.some(({ end, target }) => end !== 'confirmed' && target.onFailure === 'refuse')
    return lacks ? 'unconfirmed' : 'done'
  }
  const line = (outwardTags: readonly string[]): string =>
    config.tags === 'Cache-Groups'
      ? outwardTags.map((tag) => `"${tag}"`).join(separators[config.tags])
      : outwardTags.join(separators[config.tags])

  return {
    mayStore: () => options.isForAll && !isLagging,
    linesFor: (storedTags, lifetimeMs): HeaderLines | undefined => {
      const seconds = Math.floor(lifetimeMs(config.lifetimeMs) / 1000)
      if (seconds < 1) return undefined
      return [config.tags, line(tags.of(storedTags)), ...downstreamCacheControl(`max-age=${seconds}`)]
    },
    start: () => {
      for (const purgeTarget of purgeTargets) purgeTarget.start()
      // Responses of an earlier configuration, whose tags are others, may be on their way.
      void purgeAll(new Set([everything]))
      timer = setInterval(turn, againMs)
      timer.unref()
    },
    refuses: (invalidations) =>
      isLagging &&
      purgeTargets.some((purgeTarget) => purgeTarget.isLagging && purgeTarget.onFailure === 'refuse') &&
      tags.reached(invalidations).size > 0,
    purge: async (invalidations) => {
      const reached = tags.reached(invalidations)
      if (reached.size === 0) return 'done'
      const purged = purgeAll(reached)
      return purgeTargets.every((purgeTarget) => purgeTarget.isLagging && purgeTarget.onFailure === 'lag')
        ? 'done'
        : purged
    },
    again: (invalidations) => remember(tags.reached(invalidations)),
    statuses: () => purgeTargets.flatMap((purgeTarget) => purgeTarget.statuses()),
    leave: async () => {
      await purgeAll(new Set([everything]))
      await new Promise<void>((resolve) => {
        left = resolve
      })
    },
    close,
  }
}
