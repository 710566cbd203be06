import type { Clock } from '../../clock.ts'
import type { BatchEvent, UpstreamBatchResult } from '../events.ts'
import type { BatchItem, HandleItem, ItemResponse, ItemResult } from '../item.ts'
import { thrownItemError } from '../item-errors.ts'
import { conflictGroups, type Waits } from '../order/plan-order.ts'
import { planUnits, type Unit } from '../order/plan-units.ts'
import { runSchedule, type ScheduleEnd, type TaskEnd } from '../order/run-schedule.ts'
import type { Splitter } from '../order/split.ts'
import type { Semaphore } from './semaphore.ts'
import type { UpstreamBatchWatch } from './upstream-batch.ts'

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

export type ItemsRun = {
  readonly items: readonly (BatchItem | undefined)[]
  readonly waits: readonly Waits[]
  readonly stop: AbortSignal
}

/** How each item ended, and the schedule of the upstream requests. */
export type ItemsEnd = {
  readonly items: readonly (TaskEnd<ItemResult> | undefined)[]
  readonly requests: ScheduleEnd<unknown>
}

const resultOf = async (response: Promise<ItemResponse>): Promise<ItemResult> => {
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
): Promise<readonly ItemResult[]> => {
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
  return Promise.all(responses.map((response) => resultOf(response)))
}

const splitOf = (units: readonly Unit[]): 'items' | 'chunks' | 'whole' => {
  const upstreamBatches = units.filter(({ members }) => members.length > 1).length
  if (upstreamBatches === 0) return 'items'
  return upstreamBatches === 1 ? 'whole' : 'chunks'
}

const itemEnd = (end: TaskEnd<readonly ItemResult[]>, place: number): TaskEnd<ItemResult> =>
  end.kind === 'finished' ? { ...end, result: end.result[place] as ItemResult } : end

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
  const run = async (at: number): Promise<readonly ItemResult[]> => {
    const members = (units[at]?.members ?? []).map((index) => items[index] as BatchItem)
    const [first] = members
    if (first === undefined) return []
    if (at > 0) await options.turn()
    if (members.length > 1) return runTogether(options, sender, members, stop)
    return [await resultOf(sender.handleItem(first, signalFor(first, stop), stop))]
  }
  const requests = await runSchedule<readonly ItemResult[]>({
    waits: units.map((unit) => unit.waits),
    concurrency,
    enter: () => semaphore.enter(flow, stop),
    leave: () => semaphore.leave(flow),
    run,
    stop,
    now: () => clock.monotonic(),
  })
  options.splitter.ended()

  const ends: (TaskEnd<ItemResult> | undefined)[] = items.map(() => undefined)
  for (const [at, unit] of units.entries()) {
    for (const [place, index] of unit.members.entries()) {
      ends[index] = itemEnd(requests.ends[at] ?? { kind: 'not-begun' }, place)
    }
  }
  return { items: ends, requests }
}
