import type { Clock } from '../../clock.ts'
import { addCount } from '../../http/bounds/counts.ts'
import type { BatchEvent, UpstreamBatchResult } from '../events.ts'
import {
  type BatchItem,
  type HandleItem,
  type ItemError,
  type ItemResponse,
  thrownItemError,
} from '../item.ts'
import { conflictGroups, type Waits } from '../order/plan-order.ts'
import { planUnits, type Unit } from '../order/plan-units.ts'
import { runSchedule, type ScheduleEnd, type TaskEnd } from '../order/run-schedule.ts'
import type { Splitter } from '../order/split.ts'
import type { UpstreamBatchWatch } from './upstream-batch.ts'

/**
 * Bounds the upstream requests of all batches of a service together. Waiting requests are served in turn by flow, and first come
 * first served within a flow, so that the batches of one caller do not keep those of another waiting.
 */
export type Semaphore = {
  /** Waits to enter; false when stopped first. After true, `leave` must follow. */
  enter(flow: string, stop: AbortSignal): Promise<boolean>
  leave(flow: string): void
}

/**
 * Items wait here, and not in the queue of the upstream, which is as long as single requests need it: a few batches would fill it, and
 * everything else would get 503. Lets `max` requests in at a time, and `maxOfFlow` of one flow; at least one. The open batches bound those that wait.
 */
export const createSemaphore = (max: number, maxOfFlow: number): Semaphore => {
  let inUse = 0
  const takenBy = new Map<string, number>()
  // A Map keeps insertion order: the first flow is the next one to be served, and goes to the end afterwards.
  const flows = new Map<string, Set<() => void>>()

  const leaveQueue = (flow: string, granted: () => void): void => {
    const queue = flows.get(flow)
    queue?.delete(granted)
    if (queue?.size === 0) flows.delete(flow)
  }

  /** The first flow in the queue that has not all it may have. */
  const next = (): [string, Set<() => void>] | undefined => {
    for (const entry of flows) if ((takenBy.get(entry[0]) ?? 0) < Math.max(1, maxOfFlow)) return entry
    return undefined
  }

  const serve = (): void => {
    while (inUse < Math.max(1, max)) {
      const [flow, queue] = next() ?? []
      const [granted] = queue ?? []
      if (flow === undefined || queue === undefined || granted === undefined) return
      queue.delete(granted)
      flows.delete(flow)
      if (queue.size > 0) flows.set(flow, queue)
      inUse += 1
      addCount(takenBy, flow, 1)
      granted()
    }
  }

  return {
    enter: (flow, stop) =>
      new Promise((resolve) => {
        const stopped = (): void => {
          leaveQueue(flow, granted)
          resolve(false)
        }
        const granted = (): void => {
          stop.removeEventListener('abort', stopped)
          resolve(true)
        }
        stop.addEventListener('abort', stopped, { once: true })
        const queue = flows.get(flow)
        if (queue === undefined) flows.set(flow, new Set([granted]))
        else queue.add(granted)
        serve()
      }),
    leave: (flow) => {
      inUse -= 1
      addCount(takenBy, flow, -1)
      serve()
    },
  }
}

export type RunOptions = {
  /** Upstream requests of one batch in flight. */
  readonly concurrency: number
  readonly clock: Clock
  readonly report: (event: BatchEvent) => void
  readonly splitter: Splitter
  /** For the upstream requests of all batches together. */
  readonly semaphore: Semaphore
  /** Makes batches that are there at the same moment take turns. */
  readonly turn: () => Promise<void>
}

export type ItemHandlers = {
  /** Its requests wait in the queue of this client. */
  readonly flow: string
  /** Runs the item like a separate request, with the credentials of the batch. */
  readonly handleItem: HandleItem
  /** Runs items in one upstream batch, in their order. A response that rejects becomes its item's. */
  handleTogether(
    items: readonly BatchItem[],
    stop: AbortSignal,
    watch: UpstreamBatchWatch,
  ): readonly Promise<ItemResponse>[]
}

export type Made = ItemResponse | ItemError

export type ItemsRun = {
  readonly items: readonly (BatchItem | undefined)[]
  readonly waits: readonly Waits[]
  readonly stop: AbortSignal
}

/** How each item ended, and the schedule of the upstream requests. */
export type ItemsEnd = {
  readonly items: readonly (TaskEnd<Made> | undefined)[]
  readonly requests: ScheduleEnd<unknown>
}

const responseOf = async (response: Promise<ItemResponse>): Promise<Made> => {
  try {
    return await response
  } catch (error) {
    return thrownItemError(error)
  }
}

/** A write that has begun is left to finish, so that its outcome is known to the cache; a read without a client is aborted. */
const signalFor = (item: BatchItem, stop: AbortSignal): AbortSignal =>
  item.effect === 'write' ? new AbortController().signal : stop

const runTogether = (
  options: RunOptions,
  sender: ItemHandlers,
  items: readonly BatchItem[],
  stop: AbortSignal,
): Promise<readonly Made[]> => {
  let startedMs = options.clock.monotonic()
  const begun = (): void => {
    startedMs = options.clock.monotonic()
  }
  const ended = (result: UpstreamBatchResult): void => {
    const ms = options.clock.monotonic() - startedMs
    options.splitter.upstreamBatchEnded(result, items.length, ms)
    options.report({
      kind: 'upstream-batch-finished',
      result,
      items: items.length,
      durationSeconds: ms / 1000,
    })
  }
  const responses = sender.handleTogether(items, stop, { begun, ended })
  return Promise.all(responses.map((response) => responseOf(response)))
}

const splitOf = (units: readonly Unit[]): 'items' | 'chunks' | 'whole' => {
  const upstreamBatches = units.filter(({ members }) => members.length > 1).length
  if (upstreamBatches === 0) return 'items'
  return upstreamBatches === 1 ? 'whole' : 'chunks'
}

const itemEnd = (end: TaskEnd<readonly Made[]>, place: number): TaskEnd<Made> =>
  end.kind === 'finished' ? { ...end, result: end.result[place] as Made } : end

/** Runs the items, in as many upstream requests as the splitter decides; the outcome is that of running one after the other. */
export const runItems = async (
  options: RunOptions,
  sender: ItemHandlers,
  { items, waits, stop }: ItemsRun,
): Promise<ItemsEnd> => {
  const { clock, concurrency, semaphore } = options
  const { flow } = sender
  const groups = conflictGroups(waits)
  const split = options.splitter.begin({ runnable: groups.flat().length, groups: groups.length })
  const mayShareRequest = (index: number): boolean => items[index]?.effect === 'write'
  const units = planUnits(waits, groups, { ...split, mayShareRequest })
  if (units.length > 0) {
    options.report({
      kind: 'batch-split',
      split: splitOf(units),
      reason: split.reason,
      requests: units.length,
    })
  }
  const run = async (at: number): Promise<readonly Made[]> => {
    const members = (units[at]?.members ?? []).map((index) => items[index] as BatchItem)
    const [first] = members
    if (first === undefined) return []
    if (at > 0) await options.turn()
    if (members.length > 1) return runTogether(options, sender, members, stop)
    return [await responseOf(sender.handleItem(first, signalFor(first, stop), stop))]
  }
  const requests = await runSchedule<readonly Made[]>({
    waits: units.map((unit) => unit.waits),
    concurrency,
    enter: () => semaphore.enter(flow, stop),
    leave: () => semaphore.leave(flow),
    run,
    stop,
    now: () => clock.monotonic(),
  })
  options.splitter.ended()

  const ends: (TaskEnd<Made> | undefined)[] = items.map(() => undefined)
  for (const [at, unit] of units.entries()) {
    for (const [place, index] of unit.members.entries()) {
      ends[index] = itemEnd(requests.ends[at] ?? { kind: 'not-begun' }, place)
    }
  }
  return { items: ends, requests }
}
