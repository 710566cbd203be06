import { inTurns } from '../http/bodies/turns.ts'
import type { ErrorShape } from '../service/contract.ts'
import { envelopeInPieces, validationEnvelope } from './envelope/write-envelope.ts'
import type { BatchResult } from './events.ts'
import type { ItemResult } from './item.ts'
import { itemError } from './item-errors.ts'
import {
  type BatchInput,
  type PlannedBatch,
  type PlannedItem,
  type PlanOptions,
  planBatch,
} from './order/plan-batch.ts'
import type { TaskEnd } from './order/run-schedule.ts'
import { batchEvent, itemEvent } from './report-batch.ts'
import { collapseReads } from './send/collapse-reads.ts'
import { honouringRetryAfter } from './send/retry-after.ts'
import { type ItemHandlers, type ItemsEnd, type RunOptions, runItems } from './send/run-items.ts'

type StopReason = 'client-gone' | 'deadline'

/** Cancels the batch when its client disconnects, or at the deadline (0 = none). */
const cancelBatch = (client: AbortSignal, deadlineMs: number) => {
  const stop = new AbortController()
  let reason: StopReason | undefined
  const stopFor = (why: StopReason) => {
    reason ??= why
    stop.abort()
  }
  const gone = () => stopFor('client-gone')
  const timer = deadlineMs > 0 ? setTimeout(() => stopFor('deadline'), deadlineMs) : undefined
  client.addEventListener('abort', gone, { once: true })
  if (client.aborted) gone()
  return {
    signal: stop.signal,
    reason: () => reason,
    release() {
      clearTimeout(timer)
      client.removeEventListener('abort', gone)
    },
  }
}

/** Resolved settings of a service's batch route, and what its batches share. */
export type BatchOptions = RunOptions &
  PlanOptions & {
    /** For the whole batch; 0 = none. */
    readonly deadlineMs: number
    readonly errors: ErrorShape
  }

export type BatchResponse = { readonly status: number; readonly content: Buffer }

export type BatchRequest = BatchInput & {
  readonly signal: AbortSignal
  readonly sender: ItemHandlers
}

/** What the response shows for an item: its response or its error; at the deadline, whether it may have been carried out. */
const itemResult = (item: PlannedItem, end: TaskEnd<ItemResult> | undefined): ItemResult => {
  if (item.kind === 'refused') return item.error
  if (end?.kind === 'finished') return end.result
  return itemError(end?.kind === 'unfinished' ? 'outcome_unknown' : 'not_sent')
}

/** Runs batches of a service: plans the items, runs them in an order that keeps the outcome, and writes the response. */
export const createBatch = (options: BatchOptions): ((request: BatchRequest) => Promise<BatchResponse>) => {
  const { clock, report } = options

  const run = async (
    { items, waits }: PlannedBatch,
    { signal, sender }: BatchRequest,
    startedMs: number,
  ): Promise<readonly ItemResult[]> => {
    const cancellation = cancelBatch(signal, options.deadlineMs)
    const leftMs = (): number =>
      options.deadlineMs > 0 ? startedMs + options.deadlineMs - clock.monotonic() : Number.POSITIVE_INFINITY
    const handleItem = collapseReads(honouringRetryAfter(sender.handleItem, leftMs, clock), waits)
    const end = await runItems(
      options,
      { ...sender, handleItem },
      {
        items: items.map((item) => (item.kind === 'runnable' ? item.item : undefined)),
        waits,
        stop: cancellation.signal,
      },
    )
    cancellation.release()
    await options.turn()
    const results = items.map((item, index) => itemResult(item, end.items[index]))
    reportRun({ items, waits, results, end }, cancellation.reason() ?? 'ran', startedMs)
    return results
  }

  const reportRun = (
    {
      items,
      waits,
      results,
      end,
    }: Pick<PlannedBatch, 'items' | 'waits'> & {
      readonly results: readonly ItemResult[]
      readonly end: ItemsEnd
    },
    result: BatchResult,
    startedMs: number,
  ): void => {
    const nowMs = clock.monotonic()
    for (const [index, item] of items.entries()) {
      const method = item.kind === 'runnable' ? item.item.method : item.method
      const status = (results[index] as ItemResult).status
      report(itemEvent({ method, status }, end.items[index], { batchStartedMs: startedMs, nowMs }))
    }
    report(
      batchEvent(
        { result, items: items.length, durationMs: nowMs - startedMs },
        { end: end.requests, waits },
      ),
    )
  }

  return async (request) => {
    const startedMs = clock.monotonic()
    await options.turn()
    const { flow } = request.sender
    const plan = await inTurns(planBatch(options, request), flow)
    const { items } = plan
    if (plan.allMustValidate && items.some(({ kind }) => kind === 'refused')) {
      const durationMs = clock.monotonic() - startedMs
      report(batchEvent({ result: 'validation', items: items.length, durationMs }))
      return { status: 207, content: validationEnvelope(items, options) }
    }
    const results = await run(plan, request, startedMs)
    return { status: 207, content: await inTurns(envelopeInPieces(results, options), flow) }
  }
}
