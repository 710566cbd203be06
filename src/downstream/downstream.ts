import { setTimeout as sleep } from 'node:timers/promises'
import type { Invalidation } from '../cache/invalidation.ts'
import type { Clock } from '../clock.ts'
import type { DownstreamConfig } from '../config/config.ts'
import type { Downstream } from '../exchange/service.ts'
import { downstreamCacheControl } from '../http/headers/caching-headers.ts'
import type { HeaderLines } from '../http/headers/header-lines.ts'
import type { DownstreamEvent, ReceiverStatus } from './events.ts'
import { createOutwardTags } from './outward-tags.ts'
import { addressesByDns, Receiver } from './receiver.ts'
import { ReceiverInstance } from './receiver-instance.ts'

/** What was purged is purged once more, one to two of these later. */
const againMs = 5_000

/** Longer than this no timer of Node waits. */
const maxTimerMs = 2 ** 31 - 1

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
  /** Would a change with these invalidations wait for a receiver that lags and must confirm? */
  refuses(invalidations: readonly Invalidation[]): boolean
  /** To be awaited before a change is acknowledged, after every gateway has dropped what it reaches. */
  purge(invalidations: readonly Invalidation[]): Promise<Purged>
  /** Purges soon, for a change that another process has made. */
  again(invalidations: readonly Invalidation[]): void
  statuses(): readonly ReceiverStatus[]
  /**
   * Purges everything; closes, and resolves, once it is confirmed and has been sent once more, or when receivers may show nothing any
   * longer that they have stored.
   */
  leave(): Promise<void>
  close(): Promise<void>
}

/** Each has the name of its type, and a number from the second of a type on. */
const createReceivers = (
  { service, config, clock, random, report }: DownstreamOptions,
  everything: string,
  changed: () => void,
): readonly Receiver[] =>
  config.receivers.map((receiverConfig, at) => {
    const before = config.receivers.slice(0, at).filter(({ type }) => type === receiverConfig.type).length
    const name = before === 0 ? receiverConfig.type : `${receiverConfig.type}-${before + 1}`
    const facts = { config: receiverConfig, service, receiver: name, changed }
    return new Receiver({
      ...facts,
      addressesOf: addressesByDns,
      report,
      create: (address) => new ReceiverInstance({ ...facts, address, everything, clock, random, report }),
      joined: (instance) => instance.enqueue([everything]),
    })
  })

export const createDownstream = (options: DownstreamOptions): ServiceDownstream => {
  const { service, config, report } = options
  const tags = outwardTagsOf(service, config, options.tagOfAll)
  const { everything } = tags
  /** Until they have been sent every invalidation. */
  let isLagging = true
  const changed = (): void => {
    isLagging = receivers.some((receiver) => receiver.isLagging)
  }
  const receivers = createReceivers(options, everything, changed)
  const instances = (): readonly ReceiverInstance[] => receivers.flatMap((receiver) => receiver.instances)
  /** What is sent once more: in the next turn, and in the one after that. */
  let [next, later] = [new Set<string>(), new Set<string>()]
  let timer: NodeJS.Timeout | undefined
  /** Called when nothing is to be sent any more. */
  let left: (() => void) | undefined
  let expiry: NodeJS.Timeout | undefined

  const close = async (): Promise<void> => {
    clearInterval(timer)
    clearTimeout(expiry)
    await Promise.all(receivers.map((receiver) => receiver.close()))
  }
  const remember = (reached: ReadonlySet<string>): void => {
    for (const tag of reached) later.add(tag)
    // More than it would be sent as everything in any case.
    if (later.size > 2_000) later = new Set([everything])
  }
  const turn = (): void => {
    if (next.size > 0) for (const instance of instances()) instance.enqueue(next)
    else if (left !== undefined && later.size === 0 && !isLagging) void close().then(left)
    next = later
    later = new Set()
  }
  const purgeAll = async (reached: ReadonlySet<string>): Promise<Purged> => {
    await Promise.all([sleep(config.settleMs), ...receivers.map((receiver) => receiver.refresh())])
    remember(reached)
    const ends = await Promise.all(
      instances().map(async (instance) => ({ end: await instance.purge(reached), instance })),
    )
    const lacks =
      ends.some(({ end, instance }) => end !== 'confirmed' && instance.onFailure === 'refuse') ||
      receivers.some(({ isKnown, onFailure }) => !isKnown && onFailure === 'refuse')
    return lacks ? 'unconfirmed' : 'done'
  }
  const giveUp = (resolve: () => void): void => {
    for (const { receiver, address, isLagging } of receivers.flatMap((one) => one.statuses()))
      if (isLagging) report({ kind: 'receiver-given-up', service, receiver, address })
    void close().then(resolve)
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
      for (const receiver of receivers) receiver.start()
      // Responses of an earlier configuration, whose tags are others, may be on their way.
      void purgeAll(new Set([everything]))
      timer = setInterval(turn, againMs)
      timer.unref()
    },
    refuses: (invalidations) =>
      isLagging &&
      receivers.some((receiver) => receiver.isLagging && receiver.onFailure === 'refuse') &&
      tags.reached(invalidations).size > 0,
    purge: async (invalidations) => {
      const reached = tags.reached(invalidations)
      if (reached.size === 0) return 'done'
      const purged = purgeAll(reached)
      return receivers.every((receiver) => receiver.isLagging && receiver.onFailure === 'lag')
        ? 'done'
        : purged
    },
    again: (invalidations) => remember(tags.reached(invalidations)),
    statuses: () => receivers.flatMap((receiver) => receiver.statuses()),
    leave: () =>
      new Promise<void>((resolve) => {
        expiry = setTimeout(() => giveUp(resolve), Math.min(config.lifetimeMs, maxTimerMs))
        expiry.unref()
        void purgeAll(new Set([everything])).then(() => {
          left = resolve
        })
      }),
    close,
  }
}
