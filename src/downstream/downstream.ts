import { setTimeout as sleep } from 'node:timers/promises'
import type { Note } from '../cache/invalidation.ts'
import type { Clock } from '../clock.ts'
import type { DownstreamConfig } from '../config/config.ts'
import type { Downstream } from '../exchange/exchange.ts'
import { receiverControl } from '../http/caching-fields.ts'
import type { FieldLines } from '../http/message.ts'
import type { DownstreamEvent, ReceiverStatus } from './events.ts'
import { createOutwardTags } from './outward-tags.ts'
import { PurgeTarget } from './purge-target.ts'
import { addressesByDns, PurgeTargets } from './purge-targets.ts'

/** What was purged is purged once more, one to two of these later. */
const againMs = 5_000

const separators = { 'Surrogate-Key': ' ', xkey: ' ', 'Cache-Tag': ',', 'Cache-Groups': ', ' } as const

/** The tags of a service for receivers, by its configuration alone. */
export const outwardTagsOf = (
  service: string,
  { key, receivers }: Pick<DownstreamConfig, 'key' | 'receivers'>,
  tagOfAll: string | undefined,
) => {
  const secrets = key.isSet ? [key.reveal()] : receivers.map(({ secret }) => secret.reveal())
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
  /** Would a change with these notes wait for a receiver that is behind and must confirm? */
  refuses(notes: readonly Note[]): boolean
  /** To be awaited before a change is acknowledged, after every gateway has dropped what it reaches. */
  purge(notes: readonly Note[]): Promise<Purged>
  /** Purges soon, for a change that another process has made. */
  again(notes: readonly Note[]): void
  statuses(): readonly ReceiverStatus[]
  close(): Promise<void>
}

export const createDownstream = (options: DownstreamOptions): ServiceDownstream => {
  const { service, config, clock, random, report } = options
  const tags = outwardTagsOf(service, config, options.tagOfAll)
  const { everything } = tags
  /** Until they have been told everything. */
  let isBehind = true
  const changed = (): void => {
    isBehind = receivers.some((receiver) => receiver.isBehind)
  }
  const receivers = config.receivers.map((receiverConfig, at) => {
    const before = config.receivers.slice(0, at).filter(({ type }) => type === receiverConfig.type).length
    const name = before === 0 ? receiverConfig.type : `${receiverConfig.type}-${before + 1}`
    const facts = { config: receiverConfig, service, name, changed }
    return new PurgeTargets({
      ...facts,
      addressesOf: addressesByDns,
      create: (address) => new PurgeTarget({ ...facts, address, everything, clock, random, report }),
      joined: (target) => target.enqueue([everything]),
    })
  })
  const targets = (): readonly PurgeTarget[] => receivers.flatMap((receiver) => receiver.targets)
  /** What is sent once more: in the next turn, and in the one after that. */
  let [next, later] = [new Set<string>(), new Set<string>()]
  let timer: NodeJS.Timeout | undefined

  const remember = (reached: ReadonlySet<string>): void => {
    for (const tag of reached) later.add(tag)
    // More than it would be sent as everything in any case.
    if (later.size > 2_000) later = new Set([everything])
  }
  const turn = (): void => {
    if (next.size > 0) for (const target of targets()) target.enqueue(next)
    next = later
    later = new Set()
  }
  const purgeAll = async (reached: ReadonlySet<string>): Promise<Purged> => {
    await sleep(config.settleMs)
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
    mayStore: () => options.isForAll && !isBehind,
    linesFor: (storedTags, lifetimeMs): FieldLines | undefined => {
      const seconds = Math.floor(lifetimeMs(config.lifetimeMs) / 1000)
      if (seconds < 1) return undefined
      return [config.tags, line(tags.of(storedTags)), ...receiverControl(`max-age=${seconds}`)]
    },
    start: () => {
      for (const receiver of receivers) receiver.start()
      // Responses of an earlier configuration, whose tags are others, may be on their way.
      void purgeAll(new Set([everything]))
      timer = setInterval(turn, againMs)
      timer.unref()
    },
    refuses: (notes) =>
      isBehind &&
      receivers.some((receiver) => receiver.isBehind && receiver.onFailure === 'refuse') &&
      tags.reached(notes).size > 0,
    purge: async (notes) => {
      const reached = tags.reached(notes)
      if (reached.size === 0) return 'done'
      const purged = purgeAll(reached)
      return receivers.every((receiver) => receiver.isBehind && receiver.onFailure === 'lag')
        ? 'done'
        : purged
    },
    again: (notes) => remember(tags.reached(notes)),
    statuses: () => receivers.flatMap((receiver) => receiver.statuses()),
    close: async () => {
      clearInterval(timer)
      await Promise.all(receivers.map((receiver) => receiver.close()))
    },
  }
}
