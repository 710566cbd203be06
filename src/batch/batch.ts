import type { ErrorShape } from '../service/contract.ts'
import {
  type BatchEvent,
  type BatchItemOutcome,
  type BatchMethod,
  type BatchResult,
  batchMethods,
} from './events.ts'
import {
  type AnswerPart,
  answeredPart,
  type BatchItem,
  type Dispatch,
  envelopeOf,
  type ItemAnswer,
  itemError,
  madePart,
  nullPart,
  shapedError,
} from './item.ts'
import {
  type BatchInput,
  type PlannedBatch,
  type PlannedItem,
  type PlanOptions,
  planBatch,
  type ScheduleEnd,
  type TaskEnd,
} from './order/plan-batch.ts'
import type { Waits } from './order/plan-order.ts'
import { honouringRetryAfter } from './send/chunk.ts'
import { type ItemSender, type Made, type RunOptions, runItems } from './send/run-items.ts'

const methodLabel = (method: string | undefined): BatchMethod =>
  batchMethods.find((known) => known === method) ?? '_OTHER'

const outcomeTable: Readonly<Record<TaskEnd<unknown>['kind'], BatchItemOutcome>> = {
  finished: 'answered',
  'not-begun': 'not-sent',
  unfinished: 'outcome-unknown',
}

/** The event of one item; `end` is undefined for one that was refused. */
const itemEvent = (
  item: { readonly method: string | undefined; readonly status: number },
  end: TaskEnd<unknown> | undefined,
  times: { readonly batchStartedMs: number; readonly nowMs: number },
): BatchEvent => {
  const startedMs = end === undefined || end.kind === 'not-begun' ? undefined : end.startedMs
  const endedMs = end?.kind === 'finished' ? end.endedMs : times.nowMs
  return {
    kind: 'batch-item-finished',
    method: methodLabel(item.method),
    outcome: end === undefined ? 'refused' : outcomeTable[end.kind],
    status: item.status,
    queuedSeconds: startedMs === undefined ? 0 : (startedMs - times.batchStartedMs) / 1000,
    durationSeconds: startedMs === undefined ? 0 : (endedMs - startedMs) / 1000,
  }
}

/** The event of a whole batch; without a schedule nothing ran. */
const batchEvent = (
  batch: { readonly result: BatchResult; readonly items: number; readonly durationMs: number },
  schedule?: {
    readonly end: ScheduleEnd<unknown>
    readonly waits: readonly (readonly number[] | undefined)[]
  },
): BatchEvent => {
  const spent = (schedule?.end.ends ?? []).map((end) =>
    end.kind === 'finished' ? end.endedMs - end.startedMs : 0,
  )
  return {
    kind: 'batch-finished',
    result: batch.result,
    items: batch.items,
    durationSeconds: batch.durationMs / 1000,
    itemSeconds: spent.reduce((sum, ms) => sum + ms, 0) / 1000,
    parallelism: schedule?.end.parallelism ?? 0,
    ordered: (schedule?.waits ?? []).filter((waits) => waits !== undefined && waits.length > 0).length,
  }
}

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
    /** To be called when the batch has ended. */
    release() {
      clearTimeout(timer)
      client.removeEventListener('abort', gone)
    },
  }
}

/** Equal reads after the same writes are sent once. */
const readKey = (item: BatchItem, waits: Waits): string =>
  JSON.stringify([item.path, item.query, item.fields, waits])

/** Identical reads of a batch are one request: the first that begins is sent, and all get its answer. */
const collapseReads = (dispatch: Dispatch, waits: readonly Waits[]): Dispatch => {
  const begun = new Map<string, Promise<ItemAnswer>>()
  return (item, signal, stop) => {
    if (item.method !== 'GET' || item.content !== undefined) return dispatch(item, signal, stop)
    const key = readKey(item, waits[item.index])
    const known = begun.get(key)
    if (known !== undefined) return known
    const answer = dispatch(item, signal, stop)
    begun.set(key, answer)
    return answer
  }
}

/** Resolved settings of a service's batch route, and what its batches share. */
export type BatchOptions = RunOptions &
  PlanOptions & {
    /** For the whole batch; 0 = none. */
    readonly deadlineMs: number
    readonly errors: ErrorShape
  }

export type BatchAnswer = { readonly status: number; readonly content: Buffer }

export type BatchRequest = BatchInput & {
  readonly signal: AbortSignal
  readonly sender: ItemSender
}

const partIn =
  (errors: ErrorShape) =>
  (made: Made): AnswerPart =>
    'content' in made ? answeredPart(made, errors) : madePart(shapedError(errors, made))

/** In a batch that failed as a whole no item shows headers (recorded: `"headers":[]`). */
const validationPart = (item: PlannedItem, errors: ErrorShape): AnswerPart =>
  item.kind === 'refused' ? madePart({ ...shapedError(errors, item.error), fields: [] }) : nullPart

const madeBy = (item: PlannedItem, end: TaskEnd<Made> | undefined): Made => {
  if (item.kind === 'refused') return item.error
  if (end?.kind === 'finished') return end.result
  return itemError(end?.kind === 'unfinished' ? 'outcome_unknown' : 'not_sent')
}

/** Answers a batch: reads it, decides the order of its items, runs them. */
export const createBatch = (options: BatchOptions): ((request: BatchRequest) => Promise<BatchAnswer>) => {
  const { clock, report, errors } = options
  const partOf = partIn(errors)

  const run = async (
    { items, waits }: PlannedBatch,
    { signal, sender }: BatchRequest,
    startedMs: number,
  ): Promise<readonly Made[]> => {
    const cancellation = cancelBatch(signal, options.deadlineMs)
    const leftMs = (): number =>
      options.deadlineMs > 0 ? startedMs + options.deadlineMs - clock.monotonic() : Number.POSITIVE_INFINITY
    const dispatch = collapseReads(honouringRetryAfter(sender.dispatch, leftMs), waits)
    const end = await runItems(
      options,
      { ...sender, dispatch },
      {
        items: items.map((item) => (item.kind === 'runnable' ? item.item : undefined)),
        waits,
        stop: cancellation.signal,
      },
    )
    cancellation.release()
    await options.turn()
    const nowMs = clock.monotonic()
    const made = items.map((item, index) => {
      const taskEnd = end.items[index]
      const answer = madeBy(item, taskEnd)
      const method = item.kind === 'runnable' ? item.item.method : item.method
      report(itemEvent({ method, status: answer.status }, taskEnd, { batchStartedMs: startedMs, nowMs }))
      return answer
    })
    const result: BatchResult = cancellation.reason() ?? 'ran'
    const batch = { result, items: items.length, durationMs: nowMs - startedMs }
    report(batchEvent(batch, { end: end.requests, waits }))
    return made
  }

  const reportUnrun = (result: BatchResult, items: number, startedMs: number): void =>
    report(batchEvent({ result, items, durationMs: clock.monotonic() - startedMs }))

  return async (request) => {
    const startedMs = clock.monotonic()
    await options.turn()
    const planned = planBatch(options, request)
    const { items } = planned
    if (planned.allMustValidate && items.some(({ kind }) => kind === 'refused')) {
      reportUnrun('validation', items.length, startedMs)
      const parts = items.map((item) => validationPart(item, errors))
      return { status: 207, content: envelopeOf(parts, 'validation') }
    }
    const made = await run(planned, request, startedMs)
    return { status: 207, content: envelopeOf(made.map(partOf), undefined) }
  }
}
